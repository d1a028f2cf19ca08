# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Starting a crew from the inputs of a session."""

from typing import Any

from crewai import Crew

from playhead.core.protocol.shape import is_object
from playhead.engine.entry import Inputs, register_starter


def fits(target: Any) -> bool:
    return isinstance(target, Crew)


def start(crew: Any, inputs: Inputs) -> Any:
    """Runs the crew with a session's inputs and gives the text of its output."""
    value = inputs.value if is_object(inputs.value) else {}
    result = crew.kickoff(inputs=value.get("inputs"))
    if crew.stream:
        for _ in result:  # a crew that streams runs while it is read
            pass
        result = result.result
    return result.raw


def register() -> None:
    """Makes crews entry points."""
    register_starter(fits, start)
