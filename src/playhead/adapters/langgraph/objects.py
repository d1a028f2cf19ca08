"""Objects of the framework as plain data and back: messages, commands, sends, documents, tuples, maps with any keys.

``{"lc": kind, ...}`` stands for an object; ``kind`` is one of the few below and never names a class, so that decoding
makes nothing else. The id of the call that gave a value is left open and filled with the id of the call that gets it. A
message of the state that a tool was given says at which place it stood (``at``; ``id_at`` where only its id is that
one's): who gives it back in a replay gives back the message that stands there now, whose id was made anew.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from pydantic import BaseModel, TypeAdapter

from playhead.core.canonical import NoKeyError, from_stored, to_stored
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

TAG = "lc"
_THIS_CALL = {TAG: "call_id"}
_PLAIN = frozenset({str, int, float, bool, type(None)})


def graph_types() -> Any:
    """`langgraph.types` where the process has imported it."""
    return sys.modules.get("langgraph.types")


# --- to data --------------------------------------------------------------------------------------------------------


def encode(value: object, call_id: str | None = None, messages: Sequence[Any] = ()) -> JSON:
    """A value in stored form, with objects of the framework as data.

    Args:
        value: anything that a tool gives, or a graph.
        call_id: the id of the call that gives it.
        messages: those of the state that the call was given.

    Raises:
        NoKeyError: something in it has no stored form.
    """
    return to_stored(_Writer(call_id, messages).data(value))


class _Writer:
    """One encoding."""

    def __init__(self, call_id: str | None, messages: Sequence[Any]) -> None:
        self.call_id = call_id
        self.places = {message.id: (at, message) for at, message in enumerate(messages) if message.id is not None}

    def data(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        if isinstance(value, dict):
            return self._map(cast("dict[Any, Any]", value))
        if isinstance(value, list | tuple):
            made = [self.data(v) for v in cast("Sequence[Any]", value)]
            return made if isinstance(value, list) else {TAG: "tuple", "items": made}
        return self._object(value)

    def _map(self, value: Mapping[Any, Any]) -> Any:
        if all(type(key) is str for key in value) and TAG not in value:
            return {key: self.data(v) for key, v in value.items()}
        return {TAG: "map", "items": [[self.data(key), self.data(v)] for key, v in value.items()]}

    def _object(self, value: Any) -> Any:
        if isinstance(value, BaseMessage):
            return self._message(value)
        if isinstance(value, Document):
            return {TAG: "document", "text": value.page_content, "metadata": self.data(value.metadata), "id": value.id}
        types = graph_types()
        if types is not None and isinstance(value, types.Command):
            parts = {name: getattr(value, name) for name in ("graph", "update", "resume", "goto")}
            return {TAG: "command", **{name: self.data(part) for name, part in parts.items() if part is not None}}
        if types is not None and isinstance(value, types.Send):
            return {TAG: "send", "node": value.node, "arg": self.data(value.arg)}
        if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return {TAG: "record", "value": self.data(as_data(value))}
        return value  # typed values have stored forms of their own; anything else is refused there

    def _message(self, message: BaseMessage) -> Any:
        raw = message_to_dict(message)
        data = {name: v for name, v in raw["data"].items() if v not in (None, [], {}) or name == "content"}
        data.pop("type", None)
        if isinstance(message, ToolMessage):
            data["artifact"] = message.artifact
        made = {name: self.data(v) for name, v in data.items()}
        if self.call_id is not None and data.get("tool_call_id") == self.call_id:
            made["tool_call_id"] = _THIS_CALL
        at, stood = self.places.get(message.id, (None, None))
        place = {} if at is None else {"at" if message is stood or message == stood else "id_at": at}
        return {TAG: "message", "type": raw["type"], "data": made, **place}


def as_tuple(value: object) -> tuple[Any, ...]:
    """The value itself where it is a tuple, else an empty one."""
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else ()


def as_data(value: Any) -> Any:
    """A record (pydantic model, dataclass) as JSON-like data.

    Raises:
        NoKeyError: it holds something that pydantic cannot write.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("type[Any]", type(value)))
        return adapter.dump_python(value, mode="json")
    except Exception as error:
        raise NoKeyError("unsupported_type", f"{type(value).__name__}: {error}") from error


# --- and back -------------------------------------------------------------------------------------------------------


class _Here(NamedTuple):
    """Who gets what is decoded: the id of the call, and the messages of the state that it was given."""

    call_id: str | None
    messages: Sequence[Any]


def decode(stored: JSON, call_id: str | None = None, messages: Sequence[Any] = ()) -> Any:
    """What `encode` was given, fresh, for the call that gets it now. Records come back as data."""
    return _read(from_stored(stored), _Here(call_id, messages))


def _read(value: Any, here: _Here) -> Any:
    if is_list(value):
        return [_read(v, here) for v in value]
    if not is_object(value):
        return value
    made = _READERS.get(value[TAG]) if isinstance(value.get(TAG), str) else None
    if made is None:
        return {key: _read(v, here) for key, v in value.items()}
    return made(value, here)


def _message(value: Any, here: _Here) -> BaseMessage:
    place = value.get("at", value.get("id_at"))
    stands: Any = here.messages[place] if isinstance(place, int) and place < len(here.messages) else None
    if "at" in value and stands is not None and stands.type == value["type"]:
        return stands.model_copy()
    data = _read(value["data"], here)
    if stands is not None:
        data["id"] = stands.id
    if "tool_call_id" in data and data["tool_call_id"] is None:
        data["tool_call_id"] = ""
    return messages_from_dict([{"type": value["type"], "data": data}])[0]


def _map(value: Any, here: _Here) -> dict[Any, Any]:
    return {_read(key, here): _read(v, here) for key, v in value["items"]}


def _document(value: Any, here: _Here) -> Document:
    return Document(page_content=value["text"], metadata=_read(value["metadata"], here), id=value.get("id"))


def _command(value: Any, here: _Here) -> Any:
    parts = {name: _read(part, here) for name, part in value.items() if name != TAG}
    return graph_types().Command(**parts)


def _send(value: Any, here: _Here) -> Any:
    return graph_types().Send(value["node"], _read(value["arg"], here))


_READERS: dict[str, Callable[[Any, _Here], Any]] = {
    "call_id": lambda value, here: here.call_id,
    "tuple": lambda value, here: tuple(_read(v, here) for v in value["items"]),
    "map": _map,
    "message": _message,
    "document": _document,
    "command": _command,
    "send": _send,
    "record": lambda value, here: _read(value["value"], here),
}
