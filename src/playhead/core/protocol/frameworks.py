"""Message shapes of agent frameworks: AI SDK, Pydantic AI."""

from typing import Any

from playhead.core.protocol.genai import split_results
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
    texts,
)
from playhead.core.protocol.shape import is_list, is_object, objects

AI_SDK_PARTS = frozenset({"tool-call", "tool-result", "tool-error"})
"""Part types that only the AI SDK uses."""


# --- AI SDK ---------------------------------------------------------------------------------------------------------


def is_ai_sdk_call(raw: Any) -> bool:
    return is_object(raw) and "toolCallId" in raw and "toolName" in raw and ("input" in raw or "args" in raw)


def read_ai_sdk(raw: dict[str, Any]) -> list[Message]:
    """A message whose content is a list of parts."""
    return split_results(role(raw.get("role")), [_ai_sdk_part(p) for p in raw["content"] if is_object(p)])


def read_ai_sdk_answer(raw: dict[str, Any]) -> list[Message]:
    """``{text, toolCalls}``."""
    parts = texts([raw["text"]] if isinstance(raw.get("text"), str) else [])
    parts += [ai_sdk_call(c) for c in objects(raw.get("toolCalls"))]
    return [message("assistant", parts, finish_reason=finish(raw.get("finishReason")))]


def ai_sdk_call(raw: dict[str, Any]) -> Part:
    executor = "provider" if raw.get("providerExecuted") else None
    arguments = raw.get("input", raw.get("args"))
    return call(str(raw.get("toolName") or ""), arguments, raw.get("toolCallId"), executor=executor)


def _ai_sdk_part(part: dict[str, Any]) -> Part:
    match part.get("type"):
        case "text":
            return text(str(part.get("text") or ""))
        case "reasoning":
            return reasoning(str(part.get("text") or ""))
        case "tool-call":
            return ai_sdk_call(part)
        case "tool-result" | "tool-error":
            return _ai_sdk_result(part)
        case "image" | "file":
            value = part.get("data", part.get("image"))
            kind = part.get("mediaType", part.get("mimeType"))
            if isinstance(value, str):
                return media(media_type=kind, url=value) if ":" in value[:16] else media(media_type=kind, data=value)
            return other(part)
        case _:
            return other(part)


def _ai_sdk_result(part: dict[str, Any]) -> Part:
    value = part.get("output", part.get("result", part.get("error")))
    failed = part.get("type") == "tool-error" or part.get("isError") is True
    if is_object(value) and isinstance(kind := value.get("type"), str) and "value" in value:
        failed = failed or kind.startswith("error")
        value = value["value"]
    return result(part.get("toolCallId"), value, name=part.get("toolName"), is_error=failed)


# --- Pydantic AI ----------------------------------------------------------------------------------------------------


def is_pydantic_ai(raw: dict[str, Any]) -> bool:
    parts = raw.get("parts")
    return raw.get("kind") in ("request", "response") and is_list(parts)


def read_pydantic_ai(raw: dict[str, Any]) -> list[Message]:
    """A request gives a message for each part, a response gives one."""
    parts = [p for p in raw["parts"] if is_object(p)]
    if raw["kind"] == "response":
        reason = finish(raw.get("finish_reason"))
        return [message("assistant", [_said(p) for p in parts], finish_reason=reason)]
    made = [_asked(p) for p in parts]
    if isinstance(instructions := raw.get("instructions"), str) and instructions:
        made.insert(0, message("system", [text(instructions)]))
    return made


def _said(part: dict[str, Any]) -> Part:
    match part.get("part_kind"):
        case "text":
            return text(str(part.get("content") or ""))
        case "thinking":
            return reasoning(str(part.get("content") or ""), signature=part.get("signature"))
        case "tool-call":
            return call(_tool(part), part.get("args"), part.get("tool_call_id"))
        case "builtin-tool-call" | "native-tool-call":
            return call(_tool(part), part.get("args"), part.get("tool_call_id"), executor="provider")
        case "builtin-tool-return" | "native-tool-return":
            return result(part.get("tool_call_id"), part.get("content"), name=_tool(part), executor="provider")
        case _:
            return other(part)


def _tool(part: dict[str, Any]) -> str:
    return str(part.get("tool_name") or "")


def _asked(part: dict[str, Any]) -> Message:
    kind = part.get("part_kind")
    content = part.get("content")
    if kind == "system-prompt":
        return message("system", texts([str(content or "")]))
    if kind == "tool-return":
        failed = part.get("outcome") in ("failed", "retried")
        return message("tool", [result(part.get("tool_call_id"), content, name=part.get("tool_name"), is_error=failed)])
    if kind == "retry-prompt" and part.get("tool_name"):
        return message("tool", [result(part.get("tool_call_id"), content, name=_tool(part), is_error=True)])
    blocks = content if is_list(content) else [content]
    return message("user", [_user_part(b) for b in blocks if b is not None])


def _user_part(block: Any) -> Part:
    if not is_object(block):
        return text(str(block))
    if isinstance(url := block.get("url"), str):
        return media(media_type=block.get("media_type"), url=url)
    if isinstance(data := block.get("data"), str):
        return media(media_type=block.get("media_type"), data=data)
    return text(block["content"]) if isinstance(block.get("content"), str) else other(block)
