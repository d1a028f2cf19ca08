# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Starting an agent object from the inputs of a session."""

from typing import Any

from smolagents.agents import MultiStepAgent

from playhead.core.protocol.shape import is_object
from playhead.engine.entry import Inputs, register_starter


def fits(target: Any) -> bool:
    return isinstance(target, MultiStepAgent)


def start(agent: Any, inputs: Inputs) -> Any:
    """Runs the agent with a session's inputs, each turn going on from the last, and gives its output."""
    value = inputs.value if is_object(inputs.value) else {"task": inputs.value}
    result: Any = None
    for number, turn in enumerate(value.get("turns") or [value]):
        given = turn if is_object(turn) else {"task": turn}
        task = given.get("task", given.get("prompt"))
        more = {"additional_args": given["additional_args"]} if given.get("additional_args") else {}
        result = agent.run(task, reset=number == 0 and given.get("reset", True), **more)
    return getattr(result, "output", result)


def register() -> None:
    """Makes agent objects entry points."""
    register_starter(fits, start)
