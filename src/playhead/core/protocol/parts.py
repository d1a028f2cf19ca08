"""The pieces of the normal form. Every provider form and message shape is built from these, and nowhere by hand."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from playhead.core.canonical import parse_emitted, parse_json, render, to_stored
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

Part: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}

_FINISH = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "pause_turn": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "error": "error",
    "failed": "error",
    "malformed_function_call": "error",
}


def role(value: object) -> str:
    """The normal role; an unknown one is the user's."""
    return ROLES.get(str(value).lower(), "user")


def finish(reason: object) -> str | None:
    """One of ``stop``, ``tool_calls``, ``length``, ``content_filter``, ``error``, ``other``; None stays None."""
    if not isinstance(reason, str) or not reason:
        return None
    return _FINISH.get(reason.lower().replace("-", "_"), "other")


def stored(value: Any) -> JSON:
    """Plain JSON of a provider in stored form: what looks like a tag is escaped.

    Raises:
        NoKeyError: it nests deeper than anything that was parsed as JSON text.
    """
    return to_stored(value)


def text(value: str) -> Part:
    return {"type": "text", "text": value}


def texts(values: Iterable[str]) -> list[Part]:
    """A text part for each that is not empty."""
    return [text(v) for v in values if v]


def call(name: str, arguments: JSON, id: JSON = None, *, executor: str | None = None) -> Part:
    """A tool call; ``arguments`` as the provider gave them. ``executor="provider"`` when the provider ran it itself."""
    part: Part = {"type": "tool_call", "id": id, "name": name, "arguments": emitted(arguments)}
    return part if executor is None else {**part, "executor": executor}


def result(
    id: JSON,
    content: Any,
    *,
    name: str | None = None,
    is_error: bool = False,
    executor: str | None = None,
) -> Part:
    """A tool's answer; ``content`` is plain JSON."""
    part: Part = {"type": "tool_result", "id": id, "name": name, "content": stored(content)}
    if is_error:
        part["is_error"] = True
    return part if executor is None else {**part, "executor": executor}


def reasoning(value: str, **more: Any) -> Part:
    """The model's thinking. ``more``: what the provider needs to see it again (signature, id, encrypted)."""
    return {"type": "reasoning", "text": value, **{k: stored(v) for k, v in more.items() if v is not None}}


def media(*, media_type: str | None = None, data: str | None = None, url: str | None = None) -> Part:
    """An image, sound or file, as base64 ``data`` or ``url``. A ``data:`` URL becomes data."""
    if url is not None and url.startswith("data:") and ";base64," in url:
        head, data = url.split(";base64,", 1)
        media_type, url = head[5:] or media_type, None
    return {"type": "media", "media_type": media_type, **({"url": url} if data is None else {"data": data})}


def other(value: Any) -> Part:
    return {"type": "other", "value": stored(value)}


def message(role: str, parts: list[Part], *, finish_reason: str | None = None, name: str | None = None) -> Message:
    made: Message = {"role": role, "parts": parts}
    if name:
        made["name"] = name
    if finish_reason:
        made["finish_reason"] = finish_reason
    return made


def calls_of(message: Message) -> list[Part]:
    """The tool calls that the agent has to answer, in order: not those that the provider ran."""
    return [p for p in message["parts"] if p["type"] == "tool_call" and "executor" not in p]


def text_of(message: Message) -> str:
    return "".join(p["text"] for p in message["parts"] if p["type"] == "text")


class _Waiting(NamedTuple):
    """A call without an answer yet: which response asked, the id as the provider showed it, the call."""

    turn: int
    shown: JSON
    call: Part


def reasoning_of(message: Message) -> str:
    return "\n\n".join(p["text"] for p in message["parts"] if p["type"] == "reasoning" and p["text"])


def settle_ids(messages: list[Message]) -> list[Message]:
    """Gives calls without an id, or with one that repeats inside its response, an id made up from their position.

    A result finds its call by the id that the provider showed, else by name, else by order; the latest response that
    fits counts. It gets the call's id and, where missing, its name. Changes the messages, which the caller has just
    built, and returns them.
    """
    waiting: list[_Waiting] = []
    for turn, each in enumerate(messages):
        if each["role"] == "assistant":
            waiting += _settle_calls(turn, each)
        for part in each["parts"]:
            if part["type"] == "tool_result" and "executor" not in part:
                _settle_result(part, waiting)
    return messages


def _settle_calls(turn: int, response: Message) -> list[_Waiting]:
    made: list[_Waiting] = []
    for index, part in enumerate(calls_of(response)):
        shown = part["id"]
        if shown in (None, "") or any(shown == before.shown for before in made):
            part["id"] = f"call:{index}"
        made.append(_Waiting(turn, shown or None, part))
    return made


def _settle_result(part: Part, waiting: list[_Waiting]) -> None:
    shown, name = part["id"] or None, part["name"]
    fitting = [w for w in waiting if _answers(shown, name, w)]
    if not fitting:
        return
    found = next(w for w in fitting if w.turn == fitting[-1].turn)
    waiting.remove(found)
    part["id"] = found.call["id"]
    part["name"] = name or found.call["name"]


def _answers(shown: JSON, name: str | None, call: _Waiting) -> bool:
    if shown is not None:
        return shown in (call.shown, call.call["id"])
    return name in (None, call.call["name"])


# --- JSON in and out ------------------------------------------------------------------------------------------------


def emitted(arguments: Any) -> JSON:
    """Arguments as the model emitted them, object or JSON text, in stored form."""
    return parse_emitted(arguments)


def json_or_text(value: str) -> Any:
    """Plain JSON, or the text itself where it is none."""
    try:
        return parse_json(value)
    except ValueError:
        return value


def as_object(value: JSON) -> Any:
    """Plain JSON of a stored value, as a provider would show it; arguments that never parsed are their text."""
    return parse_json(as_text(value)) if not isinstance(value, str) else value


def as_text(content: JSON) -> str:
    """A stored value as a model sees it: a text as it is, anything else as JSON text."""
    return content if isinstance(content, str) else render(plain(content)).decode()


def as_arguments(part: Part) -> str:
    """The JSON text of a call's arguments; those that never parsed, or nest too deeply, come back as they were."""
    arguments = part["arguments"]
    if is_object(arguments) and list(arguments) in (["$invalid"], ["$deep"]):
        (text,) = arguments.values()
        return text
    return render(plain(arguments)).decode()


def as_url(part: Part) -> str:
    return part["url"] if "url" in part else f"data:{part['media_type']};base64,{part['data']}"


def plain(value: JSON) -> Any:
    """A stored value as plain JSON: escapes undone, a tagged value as what its tag holds."""
    if is_list(value):
        return [plain(v) for v in value]
    if not is_object(value):
        return value
    if len(value) == 1:
        (key, only), *_ = value.items()
        if key.startswith("$$"):
            return {key[1:]: plain(only)}
        if key == "$int":
            return int(only)
        if key.startswith("$"):
            return plain(only)
    return {k: plain(v) for k, v in value.items()}


def parsed_text(content: JSON) -> JSON:
    """Stored JSON of a text that is a JSON object or list; anything else as it is."""
    if not isinstance(content, str) or content.lstrip()[:1] not in ("{", "["):
        return content
    return content if isinstance(parsed := json_or_text(content), str) else stored(parsed)
