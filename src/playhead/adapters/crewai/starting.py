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
    return crew.kickoff(inputs=value.get("inputs")).raw


def register() -> None:
    """Makes crews entry points."""
    register_starter(fits, start)
