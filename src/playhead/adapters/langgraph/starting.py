"""Starting a graph from the inputs of a session."""

from typing import Any

from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]

from playhead.adapters.langgraph import inputs
from playhead.adapters.langgraph.boundary import OUTPUTS
from playhead.core.protocol.shape import is_object
from playhead.engine.entry import Inputs, register_starter


def fits(target: Any) -> bool:
    return isinstance(target, Pregel)


def start(graph: Any, given: Inputs) -> Any:
    """Runs the graph with a session's inputs as the recorded run did: awaited or not, streamed or not."""
    turns = given.value.get("turns") if is_object(given.value) else None
    if turns is None:
        return _run(graph, given.value)
    return _each(graph, turns)


async def _each(graph: Any, turns: list[Any]) -> Any:
    """Each of several turns goes on from the last one's messages."""
    state: Any = None
    for turn in turns:
        value, options, _ = inputs.decode(turn)
        if state is not None and is_object(value) and "messages" in value:
            value = {**value, "messages": [*inputs.messages_of(state), *value["messages"]]}
        state = await graph.ainvoke(value, **options)
    return inputs.output(state, None)


def _run(graph: Any, recorded: Any) -> Any:
    value, options, beside = inputs.decode(recorded)
    entry = beside.get("graph_entry", "invoke" if is_object(recorded) and "prompt" not in recorded else "ainvoke")
    if entry == "invoke":
        return inputs.output(graph.invoke(value, **options), None)
    if entry == "stream":
        ended = _listening()
        for _ in graph.stream(value, **options):
            pass
        return ended[-1] if ended else None
    return _awaited(graph, value, options, entry)


async def _awaited(graph: Any, value: Any, options: dict[str, Any], entry: str) -> Any:
    if entry == "ainvoke":
        return inputs.output(await graph.ainvoke(value, **options), None)
    ended = _listening()
    async for _ in graph.astream(value, **options):
        pass
    return ended[-1] if ended else None


def _listening() -> list[Any]:
    ended: list[Any] = []
    OUTPUTS.set(ended)
    return ended


_registered: list[bool] = []


def register() -> None:
    """Makes graphs entry points, once."""
    if not _registered:
        _registered.append(True)
        register_starter(fits, start)
