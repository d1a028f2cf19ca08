"""Messages as lists of typed parts: OTel GenAI, our own normal form, and Microsoft's ``contents``."""

from typing import Any

from playhead.core.protocol.parts import (
    Message,
    Part,
    call,
    finish,
    media,
    message,
    other,
    reasoning,
    result,
    role,
    text,
)
from playhead.core.protocol.shape import is_object


def read(raw: dict[str, Any]) -> list[Message]:
    """``{"role", "parts": [{"type", ...}]}``; results become tool messages, whatever the role says."""
    listed = raw.get("parts") if "parts" in raw else raw.get("contents")
    parts = [_read_part(p) if is_object(p) else text(str(p)) for p in listed or ()]
    who = role(getattr(raw.get("role"), "value", raw.get("role")))
    return split_results(who, parts, finish_reason=finish(raw.get("finish_reason")), name=raw.get("name"))


def split_results(
    who: str, parts: list[Part], *, finish_reason: str | None = None, name: str | None = None
) -> list[Message]:
    """A tool message for each result, and a message of ``who`` for what is left.

    Results that the provider gave itself stay beside their call.
    """
    results = [p for p in parts if p["type"] == "tool_result" and "executor" not in p]
    rest = [p for p in parts if p not in results]
    made = [message("tool", [p]) for p in results]
    if rest or not results:
        who = "assistant" if who == "tool" and any(p["type"] == "tool_call" for p in rest) else who
        made.append(message(who, rest, finish_reason=finish_reason, name=name))
    return made


def _read_part(part: dict[str, Any]) -> Part:
    kind = part.get("type")
    if kind == "text":
        return text(str(part.get("content", part.get("text")) or ""))
    if kind in ("tool_call", "function_call"):
        return call(
            str(part.get("name") or ""),
            part.get("arguments", part.get("args")),
            part.get("id", part.get("call_id")),
            executor=part.get("executor"),
        )
    if kind in ("tool_call_response", "tool_result", "function_result"):
        return _read_result(part)
    if kind in ("reasoning", "thinking", "text_reasoning"):
        return reasoning(str(part.get("content", part.get("text")) or ""), signature=part.get("signature"))
    return _read_media(part)


def _read_result(part: dict[str, Any]) -> Part:
    value = next((part[k] for k in ("response", "result", "content") if k in part), None)
    return result(
        part.get("id", part.get("call_id")),
        value,
        name=part.get("name"),
        is_error=part.get("is_error") is True or part.get("exception") is not None,
        executor=part.get("executor"),
    )


def _read_media(part: dict[str, Any]) -> Part:
    kind = part.get("type")
    media_type = part.get("mime_type", part.get("media_type"))
    if kind in ("blob", "media", "data") and isinstance(data := part.get("content", part.get("data")), str):
        return media(media_type=media_type, data=data)
    if kind in ("uri", "media", "image-url") and isinstance(url := part.get("uri", part.get("url")), str):
        return media(media_type=media_type, url=url)
    return dict(part) if kind == "other" and "value" in part else other(part)
