"""OpenAI chat completions, as many servers speak it."""

from collections.abc import Iterable
from typing import Any

from playhead.core.protocol import usage
from playhead.core.protocol.forms import Event, Request, Response, merge_params, params_of
from playhead.core.protocol.parts import (
    Message,
    Part,
    as_arguments,
    as_text,
    as_url,
    call,
    finish,
    media,
    message,
    other,
    reasoning,
    reasoning_of,
    result,
    role,
    settle_ids,
    stored,
    text,
    text_of,
    texts,
)
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.core.values import JSON

NAME = "openai_chat"
_NOT_PARAMS = frozenset({"model", "messages", "tools", "tool_choice", "functions", "function_call"})
_PARAM_NAMES = {
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "stop": ("stop",),
    "stop_sequences": ("stop",),
}


# --- reading --------------------------------------------------------------------------------------------------------


def read_request(body: dict[str, Any]) -> Request:
    functions = [{"type": "function", "function": f} for f in objects(body.get("functions"))]
    choice = body.get("tool_choice", body.get("function_call"))
    return Request(
        model=body.get("model"),
        messages=settle_ids([m for raw in split(body) for m in read_raw(raw)]),
        tools=[read_tool(t) for t in objects(body.get("tools")) or functions],
        tool_choice=read_choice(choice),
        params=stored(params_of(body, without=_NOT_PARAMS)),
        stream=bool(body.get("stream")),
    )


def split(body: dict[str, Any]) -> list[Any]:
    """The raw messages of a request, for `read_raw`."""
    return objects(body.get("messages"))


def read_raw(raw: Any) -> list[Message]:
    """The normal messages of one raw message, read without its neighbours."""
    return settle_ids([read_message(raw)])


def stands_alone(body: dict[str, Any]) -> bool:
    """Whether each raw message says all about itself: not where calls have the old form, without ids."""
    return not any("function_call" in m for m in split(body))


def read_response(body: dict[str, Any]) -> Response:
    """The first choice of a response."""
    first = next(iter(objects(body.get("choices"))), obj(None))
    said = read_message(first.get("message") or {"role": "assistant"})
    reason = finish(first.get("finish_reason"))
    if reason:
        said["finish_reason"] = reason
    return Response(
        message=settle_ids([said])[0],
        model=body.get("model"),
        response_id=body.get("id"),
        usage=usage.openai(body.get("usage")),
        error=stored(body.get("error")),
    )


def read_message(raw: dict[str, Any]) -> Message:
    """One message; arguments, names and content in any of the spellings that servers and frameworks use."""
    who = role(raw.get("role"))
    if who == "tool":
        content = raw.get("content")
        parts = [result(raw.get("tool_call_id"), plain_content(content), name=raw.get("name"), is_error=_failed(raw))]
        return message("tool", parts)
    parts = [reasoning(t) for k in ("reasoning_content", "reasoning") if isinstance(t := raw.get(k), str) and t]
    parts += read_content(raw.get("content"))
    if isinstance(refusal := raw.get("refusal"), str) and refusal:
        parts.append(text(refusal))
    calls = objects(raw.get("tool_calls")) or ([{"function": f}] if is_object(f := raw.get("function_call")) else [])
    parts += [read_call(c) for c in calls]
    return message(who, parts, name=raw.get("name"), finish_reason=finish(raw.get("finish_reason")))


def _failed(raw: dict[str, Any]) -> bool:
    return raw.get("status") == "error" or raw.get("is_error") is True or raw.get("error") is True


def read_call(raw: dict[str, Any]) -> Part:
    function = next((f for k in ("function", "custom") if is_object(f := raw.get(k))), raw)
    arguments = function.get("arguments", function.get("input", function.get("args")))
    return call(str(function.get("name") or ""), arguments, raw.get("id"))


def plain_content(content: Any) -> Any:
    """A tool's answer: the text of text blocks, anything else as it stands."""
    if is_list(content) and all(is_object(p) and p.get("type") == "text" for p in content):
        return "".join(str(p.get("text") or "") for p in content)
    return content


def read_content(content: Any) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return texts([content])
    blocks = content if is_list(content) else [content]
    return [_read_block(b) if is_object(b) else text(str(b)) for b in blocks]


def _read_block(block: dict[str, Any]) -> Part:
    kind = block.get("type")
    if kind in ("text", "refusal") and isinstance(value := block.get(kind), str):
        return text(value)
    if kind == "image_url":
        image = block.get("image_url")
        return media(url=image.get("url") if is_object(image) else image)
    if kind == "input_audio" and is_object(sound := block.get("input_audio")):
        return media(media_type=f"audio/{sound.get('format')}", data=sound.get("data"))
    if kind == "file" and is_object(file := block.get("file")) and file.get("file_data"):
        return media(url=file["file_data"])
    return other(block)


def read_tool(raw: dict[str, Any]) -> JSON:
    function = f if is_object(f := raw.get("function")) else raw
    if raw.get("type", "function") != "function" or "name" not in function:
        return stored(raw)
    return tool(function)


def tool(function: dict[str, Any], schema: str = "parameters") -> JSON:
    """A tool in normal form; ``strict`` only where it is asked for."""
    made = {
        "name": function["name"],
        "description": function.get("description"),
        "parameters": stored(function.get(schema)),
    }
    return {**made, "strict": True} if function.get("strict") else made


def read_choice(choice: Any) -> JSON:
    """``auto``, ``none``, ``required``, ``{"name": tool}``, or what the provider alone knows."""
    if is_object(choice):
        function = f if is_object(f := choice.get("function")) else choice
        if isinstance(name := function.get("name"), str):
            return {"name": name}
    return "required" if choice == "any" else stored(choice)


def read_stream(events: Iterable[Event]) -> dict[str, Any]:
    """The body that the same answer would have had without streaming."""
    body: dict[str, Any] = {}
    said: dict[str, Any] = {"role": "assistant", "content": None}
    reason = None
    for _, chunk in events:
        if not is_object(chunk):
            continue
        for key in ("id", "model", "created", "usage", "error", "system_fingerprint", "service_tier"):
            if chunk.get(key) is not None:
                body[key] = chunk[key]
        for choice in objects(chunk.get("choices")):
            if choice.get("index", 0) == 0:
                _add_delta(said, obj(choice.get("delta")))
                reason = choice.get("finish_reason") or reason
    for one in objects(said.get("tool_calls")):
        one.pop("index", None)
    return {**body, "object": "chat.completion", "choices": [{"index": 0, "message": said, "finish_reason": reason}]}


def _add_delta(said: dict[str, Any], delta: dict[str, Any]) -> None:
    for key in ("content", "refusal", "reasoning_content", "reasoning"):
        if isinstance(piece := delta.get(key), str):
            said[key] = (said.get(key) or "") + piece
    if is_object(old := delta.get("function_call")):
        _add_call(said.setdefault("function_call", {"name": "", "arguments": ""}), old)
    for piece in objects(delta.get("tool_calls")):
        calls = said.setdefault("tool_calls", [])
        index = piece.get("index", len(calls))
        made: dict[str, Any] | None = next((c for c in calls if c["index"] == index), None)
        if made is None:
            made = {"index": index, "id": None, "type": "function", "function": {"name": "", "arguments": ""}}
            calls.append(made)
        made["id"] = piece.get("id") or made["id"]
        _add_call(made["function"], obj(piece.get("function")))


def _add_call(made: dict[str, Any], piece: dict[str, Any]) -> None:
    for key in ("name", "arguments"):
        made[key] += piece.get(key) or ""


# --- writing --------------------------------------------------------------------------------------------------------


def write_message(said: Message) -> list[dict[str, Any]]:
    """The provider's messages for one of ours: a tool message gives one for each result."""
    if said["role"] == "tool":
        return [
            {"role": "tool", "tool_call_id": p["id"], "content": as_text(p["content"])}
            for p in said["parts"]
            if p["type"] == "tool_result"
        ]
    made: dict[str, Any] = {"role": said["role"], "content": _write_content(said)}
    calls = [p for p in said["parts"] if p["type"] == "tool_call" and "executor" not in p]
    if calls:
        made["tool_calls"] = [
            {"id": p["id"], "type": "function", "function": {"name": p["name"], "arguments": as_arguments(p)}}
            for p in calls
        ]
    return [made]


def _write_content(said: Message) -> Any:
    if not any(p["type"] == "media" for p in said["parts"]):
        return text_of(said) or None
    return [_write_part(p) for p in said["parts"] if p["type"] in ("text", "media")]


def _write_part(part: Part) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image_url", "image_url": {"url": as_url(part)}}


def write_response(answer: Response) -> dict[str, Any]:
    said = write_message(answer.message)[0]
    if thought := reasoning_of(answer.message):
        said["reasoning_content"] = thought
    reason = answer.finish_reason or ("tool_calls" if answer.calls else "stop")
    body = {
        "id": answer.response_id or "chatcmpl-recorded",
        "object": "chat.completion",
        "created": 0,
        "model": answer.model or "recorded",
        "choices": [{"index": 0, "message": said, "finish_reason": reason, "logprobs": None}],
    }
    return {**body, "usage": answer.usage.raw} if answer.usage and answer.usage.raw else body


def write_stream(body: dict[str, Any]) -> list[Event]:
    """The chunks of a body: a role, the text, each call in two pieces, the reason, the usage."""
    first = body["choices"][0]
    said = first["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{key: said[key]} for key in ("reasoning_content", "content", "refusal") if said.get(key)]
    for index, one in enumerate(objects(said.get("tool_calls"))):
        function = one["function"]
        start = {
            "index": index,
            "id": one["id"],
            "type": "function",
            "function": {"name": function["name"], "arguments": ""},
        }
        deltas.append({"tool_calls": [start]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
    head = {k: body[k] for k in ("id", "created", "model") if k in body} | {"object": "chat.completion.chunk"}
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": first.get("finish_reason")}]})
    if body.get("usage"):
        chunks.append({**head, "choices": [], "usage": body["usage"]})
    return [Event(None, c) for c in chunks] + [Event(None, "[DONE]")]


# --- editing --------------------------------------------------------------------------------------------------------


def with_model(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {**body, "model": name}


def with_system(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """All system and developer messages replaced by one, in the role that the request used."""
    messages = objects(body.get("messages"))
    old = [m for m in messages if role(m.get("role")) == "system"]
    said = {"role": old[0]["role"] if old else "system", "content": prompt}
    return {**body, "messages": [said, *(m for m in messages if role(m.get("role")) != "system")]}


def with_params(body: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    return merge_params(body, params, _PARAM_NAMES)
