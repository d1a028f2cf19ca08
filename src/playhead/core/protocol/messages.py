"""Recognises messages by their keys, whoever wrote them and whatever the field was called that held them."""

from collections.abc import Callable
from typing import Any

from playhead.core.protocol import genai, openai_chat
from playhead.core.protocol.parts import Message, Part, message, settle_ids
from playhead.core.values import JSON


def detect(value: Any, *, role: str = "assistant") -> list[Message] | None:
    """The messages in ``value`` in normal form, None when it has no known shape.

    ``value`` is plain JSON (not stored form), or such JSON in a string, once or twice. Whole requests and responses
    are searched for their messages. ``role`` is the one of messages whose shape names none. A text that is not JSON
    is not a shape: the caller knows whose text it is.
    """
    found = _read(unwrap(value), role)
    return settle_ids(found) if found else None


def unwrap(value: Any) -> Any:
    """JSON in a string, once or twice, parsed; any other text as it is."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{", '"'):
            break
        parsed = _parsed(value)
        if not isinstance(parsed, dict | list | str):
            break
        value = parsed
    return value


def _parsed(value: str) -> Any:
    from playhead.core.canonical import parse_json

    try:
        return parse_json(value)
    except ValueError:
        return None


def _read(value: Any, role: str) -> list[Message] | None:
    if isinstance(value, dict):
        return _read_one(value, role)
    if not isinstance(value, list) or not value:
        return None
    if all(_is_function_call(v) for v in value):
        return [message("assistant", [openai_chat.read_call(v) for v in value])]
    read = [_read_one(v, role) if isinstance(v, dict) else None for v in value]
    return None if None in read else [m for one in read if one for m in one]


def _read_one(raw: dict[str, Any], role: str) -> list[Message] | None:
    for fits, reader in _SHAPES:
        if fits(raw):
            return reader(raw, role)
    return None


# --- shapes ---------------------------------------------------------------------------------------------------------


def _is_function_call(raw: Any) -> bool:
    return isinstance(raw, dict) and isinstance(f := raw.get("function"), dict) and "name" in f and "arguments" in f


def _is_parts(raw: dict[str, Any]) -> bool:
    parts = raw.get("parts", raw.get("contents"))
    return isinstance(parts, list) and all(isinstance(p, dict) and "type" in p for p in parts) and "role" in raw


def _is_chat(raw: dict[str, Any]) -> bool:
    return "role" in raw and ("content" in raw or "tool_calls" in raw or "function_call" in raw)


def _read_parts(raw: dict[str, Any], role: str) -> list[Message] | None:
    return genai.read(raw)


def _read_chat(raw: dict[str, Any], role: str) -> list[Message] | None:
    return [openai_chat.read_message(raw)]


_SHAPES: list[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any], str], list[Message] | None]]] = [
    (_is_parts, _read_parts),
    (_is_chat, _read_chat),
]

__all__ = ["JSON", "Message", "Part", "detect", "unwrap"]
