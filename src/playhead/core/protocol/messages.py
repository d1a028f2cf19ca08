"""Recognises messages by their keys, whoever wrote them and whatever the field was called that held them."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from playhead.core.json_text import NoKeyError
from playhead.core.protocol import (
    anthropic_messages,
    frameworks,
    gemini,
    genai,
    langchain,
    openai_chat,
    openai_responses,
)
from playhead.core.protocol.parts import Message, finish, json_or_text, message, settle_ids, text
from playhead.core.protocol.shape import is_list, is_object, named, objects
from playhead.core.values import JSON


def detect(value: Any, *, role: str = "assistant") -> list[Message] | None:
    """The messages in ``value`` in normal form, None when it has no known shape or cannot be stored (too deep).

    ``value`` is plain JSON (not stored form), or such JSON in a string, once or twice. Whole requests and responses
    are searched for their messages. ``role`` is the one of messages whose shape names none. A text that is not JSON
    is not a shape: the caller knows whose text it is.
    """
    try:
        found = _read(unwrap(value), role)
    except (NoKeyError, RecursionError):
        return None
    return settle_ids(found) if found else None


def unwrap(value: Any) -> Any:
    """JSON in a string, once or twice, parsed; any other text as it is."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{", '"'):
            break
        value = json_or_text(value)
    return value


def offered_tools(value: Any) -> list[JSON]:
    """Tool definitions that stand among messages, under role tool (some handlers put them there)."""
    listed = unwrap(value)
    return [
        openai_chat.read_tool(m["content"])
        for m in (listed if is_list(listed) else ())
        if is_object(m) and _is_definition(m)
    ]


_PLACEHOLDER = re.compile(r"\s*(\[tool(-result)?: [^\]]*\]\s*)+")


def has_placeholders(messages: Sequence[Message]) -> bool:
    """Whether a text only stands for a call or result that the source left out, such as ``[tool: x]``."""
    return any(p["type"] == "text" and _PLACEHOLDER.fullmatch(p["text"]) for m in messages for p in m["parts"]) or any(
        isinstance(p.get("content"), str) and _PLACEHOLDER.fullmatch(p["content"]) for m in messages for p in m["parts"]
    )


# --- lists ----------------------------------------------------------------------------------------------------------


def _read(value: Any, role: str) -> list[Message] | None:
    if is_object(value):
        return _read_one(value, role)
    if not is_list(value) or not value:
        return None
    if all(_is_function_call(v) for v in value):
        return [message("assistant", [openai_chat.read_call(v) for v in value])]
    if all(frameworks.is_ai_sdk_call(v) for v in value):
        return [message("assistant", [frameworks.ai_sdk_call(v) for v in value])]
    if any(_is_item(v) for v in value):
        return openai_responses.read_items(value)
    if all(_is_block(v) for v in value):
        return genai.split_results(role, anthropic_messages.read_content(value))
    if len(value) == 1 and is_list(value[0]) and not langchain.is_pair(value[0]):
        return _read(value[0], role)
    return _read_each(value, role)


def _read_each(values: list[Any], role: str) -> list[Message] | None:
    made: list[Message] = []
    for value in values:
        if langchain.is_pair(value):
            made.append(langchain.read_pair(value))
            continue
        found = _read_one(value, role) if is_object(value) else None
        if found is None:
            return None
        made += found
    return made


def _is_function_call(raw: Any) -> bool:
    return is_object(raw) and is_object(f := raw.get("function")) and "name" in f and "arguments" in f


def _is_item(raw: Any) -> bool:
    if not is_object(raw):
        return False
    kind = named(raw, "type")
    if kind == "function_call":
        return "call_id" in raw or "arguments" in raw
    return kind in openai_responses.ITEMS or (kind == "message" and isinstance(raw.get("content"), list | str))


def _is_block(raw: Any) -> bool:
    if not is_object(raw) or "role" in raw:
        return False
    kind = named(raw, "type")
    return kind in anthropic_messages.BLOCKS or (kind == "text" and isinstance(raw.get("text"), str))


# --- one message, or what holds messages ----------------------------------------------------------------------------

_Reader: TypeAlias = Callable[[dict[str, Any], str], list[Message] | None]


def _read_one(raw: dict[str, Any], role: str) -> list[Message] | None:
    for fits, reader in _SHAPES:
        if fits(raw):
            return reader(raw, role)
    return None


def _is_definition(raw: dict[str, Any]) -> bool:
    content = raw.get("content")
    if raw.get("role") != "tool" or not is_object(content):
        return False
    return "parameters" in (f if is_object(f := content.get("function")) else content)


def _is_typed_parts(raw: dict[str, Any]) -> bool:
    parts = raw.get("parts", raw.get("contents"))
    return "role" in raw and is_list(parts) and all(is_object(p) and "type" in p for p in parts)


def _is_gemini(raw: dict[str, Any]) -> bool:
    parts = raw.get("parts")
    return is_list(parts) and all(is_object(p) and not {"type", "part_kind"} & set(p) for p in parts)


def _content_types(raw: dict[str, Any]) -> set[str | None]:
    return {named(b, "type") for b in objects(raw.get("content"))}


def _is_anthropic(raw: dict[str, Any]) -> bool:
    types = _content_types(raw)
    image = any(is_object(b) and is_object(b.get("source")) for b in objects(raw.get("content")))
    return ("role" in raw) and (bool(types & anthropic_messages.BLOCKS) or image)


def _is_ai_sdk(raw: dict[str, Any]) -> bool:
    return "role" in raw and bool(_content_types(raw) & frameworks.AI_SDK_PARTS)


def _is_chat(raw: dict[str, Any]) -> bool:
    return "role" in raw and any(k in raw for k in ("content", "tool_calls", "function_call"))


def _read_chat(raw: dict[str, Any], role: str) -> list[Message] | None:
    """A chat message. One whose content is a list of calls, also as text, is the model's request for them."""
    content = raw.get("content")
    listed = unwrap(content) if isinstance(content, str) and raw["role"] in ("assistant", "tool") else content
    if is_list(listed) and listed and all(_is_function_call(c) and "id" in c for c in listed):
        calls = [openai_chat.read_call(c) for c in listed]
        return [message("assistant", calls, finish_reason=finish(raw.get("finish_reason")))]
    return [openai_chat.read_message(raw)]


def _read_choices(raw: dict[str, Any], role: str) -> list[Message] | None:
    first = raw["choices"][:1]
    return _read_one(first[0], role) if first and is_object(first[0]) else None


def _read_choice(raw: dict[str, Any], role: str) -> list[Message] | None:
    said = openai_chat.read_message({"role": "assistant", **raw["message"]})
    if reason := finish(raw.get("finish_reason")):
        said["finish_reason"] = reason
    return [said]


def _read_messages(raw: dict[str, Any], role: str) -> list[Message] | None:
    if isinstance(raw.get("system"), str | list):
        return anthropic_messages.read_request(raw).messages
    return _read(raw["messages"], role)


def _read_candidate(raw: dict[str, Any], role: str) -> list[Message] | None:
    return [gemini.read_response({"candidates": [raw]}).message]


def _read_output(raw: dict[str, Any], role: str) -> list[Message] | None:
    return [openai_responses.read_response({"status": "completed", **raw}).message]


def _has(key: str, kind: type | tuple[type, ...]) -> Callable[[dict[str, Any]], bool]:
    return lambda raw: isinstance(raw.get(key), kind) and bool(raw[key])


def _is_output(raw: dict[str, Any]) -> bool:
    output = raw.get("output")
    return is_list(output) and bool(output) and (raw.get("object") == "response" or any(map(_is_item, output)))


def _is_candidate(raw: dict[str, Any]) -> bool:
    content = raw.get("content")
    return is_object(content) and is_list(content.get("parts"))


def _is_answer(raw: dict[str, Any]) -> bool:
    calls = raw.get("tool_calls")
    return "role" not in raw and is_list(calls) and bool(calls) and all(is_object(c) for c in calls)


_SHAPES: list[tuple[Callable[[dict[str, Any]], bool], _Reader]] = [
    (langchain.is_message, lambda raw, role: langchain.read(raw)),
    (frameworks.is_pydantic_ai, lambda raw, role: frameworks.read_pydantic_ai(raw)),
    (_is_definition, lambda raw, role: []),
    (_is_typed_parts, lambda raw, role: genai.read(raw)),
    (_is_gemini, lambda raw, role: gemini.read_message(raw)),
    (_is_ai_sdk, lambda raw, role: frameworks.read_ai_sdk(raw)),
    (_is_anthropic, lambda raw, role: anthropic_messages.read_message(raw)),
    (_is_item, lambda raw, role: openai_responses.read_items([raw])),
    (_has("message", dict), _read_choice),
    (_has("choices", list), _read_choices),
    (_has("generations", list), lambda raw, role: langchain.read_generations(raw)),
    (_has("candidates", list), lambda raw, role: [gemini.read_response(raw).message]),
    (_is_candidate, _read_candidate),
    (_has("contents", (list, str)), lambda raw, role: gemini.read_request(raw).messages),
    (_is_output, _read_output),
    (_has("messages", list), _read_messages),
    (_has("input", list), lambda raw, role: openai_responses.read_request(raw).messages),
    (_is_chat, _read_chat),
    (_has("toolCalls", list), lambda raw, role: frameworks.read_ai_sdk_answer(raw)),
    (frameworks.is_ai_sdk_call, lambda raw, role: [message(role, [frameworks.ai_sdk_call(raw)])]),
    (_is_answer, lambda raw, role: [openai_chat.read_message({"role": "assistant", **raw})]),
    (_is_block, lambda raw, role: genai.split_results(role, anthropic_messages.read_content([raw]))),
    (_has("text", str), lambda raw, role: [message(role, [text(raw["text"])])] if len(raw) == 1 else None),
]
"""Shapes in the order of trial, the telling ones first."""
