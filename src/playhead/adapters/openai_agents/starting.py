"""Starting an agent object from the inputs of a session."""

from typing import Any

from agents import Agent

from playhead.adapters.openai_agents import codec
from playhead.adapters.openai_agents.activation import Runner
from playhead.core.protocol.shape import is_object, obj
from playhead.engine.entry import Inputs, register_starter


def fits(target: Any) -> bool:
    return isinstance(target, Agent)


async def start(agent: Agent[Any], inputs: Inputs) -> Any:
    """Runs the agent with a session's inputs and gives its output. Each of several turns goes on from the last."""
    value = inputs.value if is_object(inputs.value) else {"prompt": inputs.value}
    result: Any = None
    for turn in value.get("turns") or [value]:
        result = await _turn(agent, turn if is_object(turn) else {"prompt": turn}, result)
    return result.final_output


async def _turn(agent: Agent[Any], turn: dict[str, Any], before: Any) -> Any:
    if before is not None and turn.get("approvals"):
        return await Runner.run(agent, _resumed(before, obj(turn["approvals"])))
    given = codec.decode_input(turn)
    if before is not None:
        history = before.to_input_list()
        given = [*history, {"role": "user", "content": turn.get("prompt")}]
    options = {name: turn[name] for name in ("context", "conversation_id", "previous_response_id") if turn.get(name)}
    return await Runner.run(agent, given, **options)


def _resumed(paused: Any, said: dict[str, Any]) -> Any:
    """The state to go on from, with what the person said in the recording."""
    state = paused.to_state()
    for item in state.get_interruptions():
        if said.get(item.call_id) is True:
            state.approve(item)
        else:
            state.reject(item)
    return state


def register() -> None:
    """Makes agent objects entry points."""
    register_starter(fits, start)
