"""LangChain messages: ``{lc, kwargs}`` constructors, ``{type, data}``, flat dicts, pairs, ``generations``."""

from typing import Any

from playhead.core.protocol import anthropic_messages, openai_chat
from playhead.core.protocol.parts import (
    Message,
    call,
    finish,
    message,
    reasoning,
    result,
    role,
    texts,
)
from playhead.core.protocol.shape import is_list, is_object, obj, objects

_TYPES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "chat": "user",
    "developer": "system",
}


def type_of(raw: dict[str, Any]) -> str | None:
    """The role that a message's type or constructor name stands for, None when it is no LangChain message."""
    named = raw.get("type")
    if named == "constructor" or (named is None and "lc" in raw):
        ids = raw.get("id")
        named = ids[-1] if is_list(ids) and ids else None
    if not isinstance(named, str):
        return None
    return _TYPES.get(named.removesuffix("Chunk").removesuffix("Message").lower())


def is_message(raw: dict[str, Any]) -> bool:
    return type_of(raw) is not None and is_object(_fields(raw)) and "content" in _fields(raw)


def _fields(raw: dict[str, Any]) -> dict[str, Any]:
    for holder in ("kwargs", "data"):
        if is_object(inner := raw.get(holder)):
            return inner
    return raw


def is_pair(raw: Any) -> bool:
    return is_list(raw) and len(raw) == 2 and isinstance(raw[0], str) and raw[0].lower() in _PAIR_ROLES


_PAIR_ROLES = {"system", "user", "human", "assistant", "ai", "tool", "developer"}


def read_pair(raw: list[Any]) -> Message:
    return message(role(raw[0]), openai_chat.read_content(raw[1]))


def read(raw: dict[str, Any]) -> list[Message]:
    who = type_of(raw) or "user"
    fields = _fields(raw)
    if who == "tool":
        content = openai_chat.plain_content(fields.get("content"))
        failed = fields.get("status") == "error"
        answer = result(fields.get("tool_call_id"), content, name=fields.get("name"), is_error=failed)
        return [message("tool", [answer])]
    if who != "assistant":
        return [message(who, openai_chat.read_content(fields.get("content")), name=fields.get("name"))]
    return [_read_ai(fields)]


def _read_ai(fields: dict[str, Any]) -> Message:
    more = obj(fields.get("additional_kwargs"))
    thought = more.get("reasoning_content")
    parts = [reasoning(thought)] if isinstance(thought, str) and thought else []
    content = fields.get("content")
    if is_list(content):
        parts += [p for p in anthropic_messages.read_content(content) if p["type"] != "tool_call" or "executor" in p]
    else:
        parts += texts([content] if isinstance(content, str) else [])
    calls = objects(fields.get("tool_calls")) or objects(more.get("tool_calls"))
    parts += [openai_chat.read_call(c) for c in calls]
    broken = objects(fields.get("invalid_tool_calls"))
    parts += [call(str(c.get("name") or ""), c.get("args"), c.get("id")) for c in broken]
    told = obj(fields.get("response_metadata"))
    reason = told.get("finish_reason", told.get("stop_reason"))
    return message("assistant", parts, name=fields.get("name"), finish_reason=finish(reason))


def read_generations(raw: dict[str, Any]) -> list[Message] | None:
    """The first generation of the first prompt."""
    first = raw["generations"]
    while is_list(first) and first:
        first = first[0]
    if not is_object(first):
        return None
    if is_object(said := first.get("message")) and is_message(said):
        return read(said)
    return [message("assistant", texts([str(first.get("text") or "")]))]
