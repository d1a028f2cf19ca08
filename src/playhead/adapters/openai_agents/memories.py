"""What a run remembers in the user's store of conversations is not touched by a replay, which has one of its own."""

from typing import Any

from agents.memory import SessionABC

from playhead.adapters.openai_agents import codec
from playhead.core.protocol.shape import is_list, obj
from playhead.core.values import JSON
from playhead.engine.replaying import ReplayState


class OwnMemory(SessionABC):
    """The conversation of one replay: it begins with what the recorded run read."""

    def __init__(self, original: Any, items: list[Any]) -> None:
        self.session_id = original.session_id
        self.session_settings = getattr(original, "session_settings", None)
        self._items = items

    async def get_items(self, limit: int | None = None) -> list[Any]:
        limit = limit if limit is not None else getattr(self.session_settings, "limit", None)
        return list(self._items) if limit is None else self._items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[Any]) -> None:
        self._items.extend(items)

    async def pop_item(self) -> Any:
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        self._items.clear()


def own(state: ReplayState, memory: Any) -> Any:
    """What a replay has in the place of a session memory: the same for the same conversation."""
    if isinstance(memory, OwnMemory):
        return memory
    # Programs open a conversation anew for each request; one in memory is its object's.
    place = getattr(memory, "db_path", None)
    place = id(memory) if str(place) == ":memory:" else str(place)
    key = ("openai_agents", memory.__class__, memory.session_id, place)
    return state.stand_in(key, memory, lambda: OwnMemory(memory, _recorded(state)))


def _recorded(state: ReplayState) -> list[Any]:
    if state.baseline is None:
        return []
    turns: list[JSON] = [turn.input for turn in state.baseline.turns[:1]]
    for inputs in (state.baseline.inputs, *turns):
        history = obj(inputs).get("message_history")
        if is_list(history):
            given = codec.decode_input({"message_history": history})
            return list(given) if is_list(given) else []
    return []
