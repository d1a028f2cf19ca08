"""Starting an agent object from the inputs of a session."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent

from playhead.adapters.pydantic_ai import codec
from playhead.adapters.pydantic_ai.capability import Playhead, is_present
from playhead.core.protocol.shape import is_object
from playhead.engine.entry import Inputs, register_starter


def fits(target: Any) -> bool:
    return isinstance(target, AbstractAgent)


async def start(agent: Agent[Any, Any], inputs: Inputs) -> Any:
    """Runs the agent with a session's inputs and gives its output. Each of several turns goes on from the last."""
    value = _as_inputs(inputs.value)
    history: Any = None
    output: Any = None
    for turn in value.get("turns") or [value]:
        result = await _run(agent, _as_inputs(turn), history)
        history, output = result.all_messages(), result.output
    return output


def _as_inputs(value: Any) -> dict[str, Any]:
    """Inputs of an import are the bare prompt."""
    return value if is_object(value) else {"prompt": value}


async def _run(agent: Agent[Any, Any], given: dict[str, Any], history: Any) -> Any:
    options: dict[str, Any] = {}
    if history is None and given.get("message_history"):
        history = codec.decode_history(given["message_history"])
    if given.get("deferred_tool_results"):
        options["deferred_tool_results"] = codec.decode_deferred(given["deferred_tool_results"])
    if given.get("deps") is not None:
        options["deps"] = codec.decode_deps(given["deps"], agent.deps_type)
    if not is_present(agent, None):
        options["capabilities"] = [Playhead()]
    return await agent.run(codec.decode_prompt(given.get("prompt")), message_history=history, **options)


def register() -> None:
    """Makes agent objects entry points."""
    register_starter(fits, start)
