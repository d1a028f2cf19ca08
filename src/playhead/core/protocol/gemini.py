"""Gemini generateContent. Its calls often have no id, so theirs are made up from the position."""

from collections.abc import Iterable
from typing import Any

from playhead.core.protocol import usage
from playhead.core.protocol.forms import Event, Request, Response, merge_params, params_of
from playhead.core.protocol.genai import split_results
from playhead.core.protocol.openai_chat import tool
from playhead.core.protocol.parts import (
    Message,
    Part,
    as_object,
    call,
    finish,
    media,
    message,
    other,
    reasoning,
    result,
    role,
    settle_ids,
    stored,
    text,
)
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.core.values import JSON

NAME = "gemini"
_PARAM_NAMES = {
    "max_tokens": ("maxOutputTokens", "max_output_tokens"),
    "stop": ("stopSequences", "stop_sequences"),
    "top_p": ("topP", "top_p"),
    "top_k": ("topK", "top_k"),
    "presence_penalty": ("presencePenalty", "presence_penalty"),
    "frequency_penalty": ("frequencyPenalty", "frequency_penalty"),
}


def _at(raw: dict[str, Any], camel: str, snake: str) -> Any:
    return raw[camel] if camel in raw else raw.get(snake)


# --- reading --------------------------------------------------------------------------------------------------------


def read_request(body: dict[str, Any]) -> Request:
    """The request, whose model stands in the path. In a client's own form ``config`` holds what is beside contents."""
    config = _config(body)
    tools = objects(config.get("tools"))
    params = dict(_at(config, "generationConfig", "generation_config") or {})
    return Request(
        model=body.get("model"),
        messages=settle_ids([m for raw in split(body) for m in read_raw(raw)]),
        tools=[made for t in tools for made in _read_tools(t)],
        tool_choice=_read_choice(_at(config, "toolConfig", "tool_config")),
        params=stored(params_of(params, without=frozenset())),
    )


def _config(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, **body["config"]} if is_object(body.get("config")) else body


def split(body: dict[str, Any]) -> list[Any]:
    """The contents as raw messages, for `read_raw`; the system text is the first."""
    system = _at(_config(body), "systemInstruction", "system_instruction")
    if isinstance(system, str):
        system = {"parts": [{"text": system}]}
    contents = body.get("contents")
    if isinstance(contents, str):
        contents = [{"role": "user", "parts": [{"text": contents}]}]
    listed = objects(contents if is_list(contents) else [contents])
    return [{**system, "role": "system"}, *listed] if is_object(system) else list(listed)


def read_raw(raw: Any) -> list[Message]:
    """The normal messages of one content."""
    return read_message(raw)


def stands_alone(body: dict[str, Any]) -> bool:
    """Whether each raw message says all about itself: never, as results find their call by name and order."""
    return False


def _read_tools(raw: dict[str, Any]) -> list[JSON]:
    declared = _at(raw, "functionDeclarations", "function_declarations")
    if not is_list(declared):
        return [stored(raw)]
    made: list[JSON] = []
    for one in declared:
        schema = next((k for k in ("parametersJsonSchema", "parameters_json_schema") if k in one), "parameters")
        made.append(tool(one, schema))
    return made


def _read_choice(config: Any) -> JSON:
    calling = _at(config, "functionCallingConfig", "function_calling_config") if is_object(config) else None
    if not is_object(calling):
        return None
    allowed = _at(calling, "allowedFunctionNames", "allowed_function_names") or ()
    if len(allowed) == 1:
        return {"name": allowed[0]}
    mode = str(calling.get("mode") or "").lower()
    return {"any": "required"}.get(mode, mode or None)


def read_message(raw: dict[str, Any], finish_reason: str | None = None) -> list[Message]:
    """One content; function responses become tool messages."""
    parts = [_read_part(p) for p in objects(raw.get("parts"))]
    return split_results(role(raw.get("role") or "user"), parts, finish_reason=finish_reason)


def _read_part(part: dict[str, Any]) -> Part:
    if isinstance(part.get("text"), str):
        if part.get("thought"):
            return reasoning(part["text"], signature=_at(part, "thoughtSignature", "thought_signature"))
        return text(part["text"])
    if is_object(asked := _at(part, "functionCall", "function_call")):
        return call(str(asked.get("name") or ""), asked.get("args"), asked.get("id"))
    if is_object(given := _at(part, "functionResponse", "function_response")):
        return result(given.get("id"), given.get("response"), name=given.get("name"))
    if is_object(inline := _at(part, "inlineData", "inline_data")):
        return media(media_type=_at(inline, "mimeType", "mime_type"), data=inline.get("data"))
    if is_object(file := _at(part, "fileData", "file_data")):
        return media(media_type=_at(file, "mimeType", "mime_type"), url=_at(file, "fileUri", "file_uri"))
    return other(part)


def read_response(body: dict[str, Any]) -> Response:
    first = next(iter(objects(body.get("candidates"))), obj(None))
    reason = finish(_at(first, "finishReason", "finish_reason"))
    said = message("assistant", [_read_part(p) for p in objects(obj(first.get("content")).get("parts"))])
    settle_ids([said])
    if reason:
        asked = any(p["type"] == "tool_call" for p in said["parts"])
        said["finish_reason"] = "tool_calls" if asked and reason == "stop" else reason
    return Response(
        message=said,
        model=_at(body, "modelVersion", "model_version"),
        response_id=_at(body, "responseId", "response_id"),
        usage=usage.gemini(_at(body, "usageMetadata", "usage_metadata")),
        error=stored(body.get("error")),
    )


def read_stream(events: Iterable[Event]) -> dict[str, Any]:
    """The body that the same answer would have had without streaming: neighbouring pieces of text become one."""
    body: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    reason = None
    for _, chunk in events:
        if not is_object(chunk):
            continue
        body |= {k: v for k, v in chunk.items() if k != "candidates"}
        for candidate in objects(chunk.get("candidates"))[:1]:
            reason = _at(candidate, "finishReason", "finish_reason") or reason
            for part in objects(obj(candidate.get("content")).get("parts")):
                _add_part(parts, part)
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason}
    return {**body, "candidates": [candidate]}


def _add_part(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    last = parts[-1] if parts else {}
    if "text" in part and "text" in last and part.get("thought") == last.get("thought"):
        parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
    else:
        parts.append(part)


# --- writing --------------------------------------------------------------------------------------------------------


def write_message(said: Message) -> list[dict[str, Any]]:
    who = "model" if said["role"] == "assistant" else "user"
    return [{"role": who, "parts": [w for p in said["parts"] for w in _write_part(p)]}]


def _write_part(part: Part) -> list[dict[str, Any]]:
    match part["type"]:
        case "text":
            return [{"text": part["text"]}]
        case "tool_call" if "executor" not in part:
            return [{"functionCall": {"name": part["name"], "args": as_object(part["arguments"])}}]
        case "tool_result" if "executor" not in part:
            content = as_object(part["content"])
            response = content if is_object(content) else {"result": content}
            return [{"functionResponse": {"name": part["name"], "response": response}}]
        case "media" if "data" in part:
            return [{"inlineData": {"mimeType": part["media_type"], "data": part["data"]}}]
        case _:
            return []


_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "error": "OTHER"}


def write_response(answer: Response) -> dict[str, Any]:
    reason = _REASONS.get(answer.finish_reason or "stop", "STOP")
    content = write_message(answer.message)[0]
    body = {
        "candidates": [{"index": 0, "content": content, "finishReason": reason}],
        "modelVersion": answer.model or "recorded",
        "responseId": answer.response_id or "recorded",
    }
    return {**body, "usageMetadata": answer.usage.raw} if answer.usage and answer.usage.raw else body


def write_stream(body: dict[str, Any]) -> list[Event]:
    """One chunk for each part, the last with the reason and the usage."""
    first = body["candidates"][0]
    parts = first["content"]["parts"]
    head = {k: v for k, v in body.items() if k not in ("candidates", "usageMetadata")}
    chunks = [{**head, "candidates": [{"index": 0, "content": {"role": "model", "parts": [p]}}]} for p in parts[:-1]]
    last = {**first, "content": {"role": "model", "parts": parts[-1:]}}
    return [Event(None, c) for c in [*chunks, {**body, "candidates": [last]}]]


# --- editing --------------------------------------------------------------------------------------------------------


def with_model(body: dict[str, Any], name: str) -> dict[str, Any]:
    """The body as it is: the model stands in the path (`providers.with_model_in_path`)."""
    return body


def with_system(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    rest = {k: v for k, v in body.items() if k not in ("systemInstruction", "system_instruction")}
    return {**rest, "systemInstruction": {"parts": [{"text": prompt}]}}


def with_params(body: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    key = "generation_config" if "generation_config" in body else "generationConfig"
    return {**body, key: merge_params(body.get(key) or {}, params, _PARAM_NAMES)}
