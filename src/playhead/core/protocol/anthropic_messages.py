"""Anthropic messages."""

from collections.abc import Iterable
from typing import Any

from playhead.core.protocol import usage
from playhead.core.protocol.forms import Event, Request, Response, merge_params, params_of
from playhead.core.protocol.genai import split_results
from playhead.core.protocol.openai_chat import plain_content, tool
from playhead.core.protocol.parts import (
    Message,
    Part,
    as_object,
    as_text,
    call,
    finish,
    json_or_text,
    media,
    message,
    other,
    reasoning,
    result,
    role,
    settle_ids,
    stored,
    text,
    texts,
)
from playhead.core.protocol.shape import is_object, obj, objects
from playhead.core.values import JSON

NAME = "anthropic_messages"
BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}
)
"""Block types that nobody else uses."""

_NOT_PARAMS = frozenset({"model", "messages", "system", "tools", "tool_choice"})
_PARAM_NAMES = {"stop": ("stop_sequences",), "max_completion_tokens": ("max_tokens",)}


# --- reading --------------------------------------------------------------------------------------------------------


def read_request(body: dict[str, Any]) -> Request:
    choice = body.get("tool_choice")
    params = params_of(body, without=_NOT_PARAMS)
    if is_object(choice) and choice.get("disable_parallel_tool_use"):
        params["parallel_tool_calls"] = False
    return Request(
        model=body.get("model"),
        messages=settle_ids([m for raw in split(body) for m in read_raw(raw)]),
        tools=[read_tool(t) for t in objects(body.get("tools"))],
        tool_choice=_read_choice(choice),
        params=stored(params),
        stream=bool(body.get("stream")),
    )


def split(body: dict[str, Any]) -> list[Any]:
    """The raw messages of a request, for `read_raw`; the system text is the first."""
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return [*system, *objects(body.get("messages"))]


def read_raw(raw: Any) -> list[Message]:
    """The normal messages of one raw message, read without its neighbours."""
    return settle_ids(read_message(raw))


def stands_alone(body: dict[str, Any]) -> bool:
    """Whether each raw message says all about itself: always, as this provider insists on ids."""
    return True


def _read_choice(choice: Any) -> JSON:
    if not is_object(choice):
        return stored(choice)
    kind = choice.get("type")
    if kind == "tool":
        return {"name": choice.get("name")}
    return "required" if kind == "any" else kind


def read_tool(raw: dict[str, Any]) -> JSON:
    return tool(raw, "input_schema") if "input_schema" in raw and "name" in raw else stored(raw)


def read_response(body: dict[str, Any]) -> Response:
    parts = read_content(body.get("content"))
    said = message("assistant", parts, finish_reason=finish(body.get("stop_reason")))
    return Response(
        message=settle_ids([said])[0],
        model=body.get("model"),
        response_id=body.get("id"),
        usage=usage.anthropic(body.get("usage")),
        error=stored(body.get("error")),
    )


def read_message(raw: dict[str, Any]) -> list[Message]:
    """One message; the results in a user message become messages of their own."""
    reason = finish(raw.get("stop_reason", raw.get("finish_reason")))
    return split_results(role(raw.get("role")), read_content(raw.get("content")), finish_reason=reason)


def read_content(content: Any) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return texts([content])
    return [_read_block(b) if is_object(b) else text(str(b)) for b in content]


def _read_block(block: dict[str, Any]) -> Part:
    kind = str(block.get("type"))
    if kind == "text":
        return text(str(block.get("text") or ""))
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        executor = None if kind == "tool_use" else "provider"
        return call(str(block.get("name") or ""), block.get("input"), block.get("id"), executor=executor)
    if kind.endswith("tool_result"):
        return _read_result(kind, block)
    if kind == "thinking":
        return reasoning(str(block.get("thinking") or ""), signature=block.get("signature"))
    if kind == "redacted_thinking":
        return reasoning("", encrypted=block.get("data"))
    return _read_media(block)


def _read_result(kind: str, block: dict[str, Any]) -> Part:
    return result(
        block.get("tool_use_id"),
        plain_content(block.get("content")),
        name=block.get("name"),
        is_error=block.get("is_error") is True,
        executor=None if kind == "tool_result" else "provider",
    )


def _read_media(block: dict[str, Any]) -> Part:
    source = block.get("source")
    if block.get("type") in ("image", "document") and is_object(source):
        if source.get("type") == "base64":
            return media(media_type=source.get("media_type"), data=source.get("data"))
        if source.get("type") == "url":
            return media(url=source.get("url"))
    return other(block)


def read_stream(events: Iterable[Event]) -> dict[str, Any]:
    """The body that the same answer would have had without streaming."""
    body: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for _, event in events:
        if not is_object(event):
            continue
        match event.get("type"):
            case "message_start":
                body = dict(obj(event.get("message")))
            case "content_block_start":
                blocks[event["index"]] = dict(obj(event.get("content_block")))
            case "content_block_delta":
                _add_delta(blocks.setdefault(event["index"], {"type": "text"}), obj(event.get("delta")))
            case "message_delta":
                body |= obj(event.get("delta"))
                counts = {k: v for k, v in obj(event.get("usage")).items() if v is not None}
                body["usage"] = {**obj(body.get("usage")), **counts}
            case "error":
                body["error"] = event.get("error")
            case _:
                pass
    return {**body, "content": [_finished(blocks[i]) for i in sorted(blocks)]}


_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "_json"),
}


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if delta.get("type") == "citations_delta":
        block["citations"] = [*objects(block.get("citations")), delta.get("citation")]
        return
    source, target = _PIECES.get(str(delta.get("type")), (None, None))
    if source is not None and target is not None:
        block[target] = (block.get(target) or "") + (delta.get(source) or "")


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    emitted = block.pop("_json", None)
    return {**block, "input": json_or_text(emitted)} if emitted else block


# --- writing --------------------------------------------------------------------------------------------------------


def write_message(said: Message) -> list[dict[str, Any]]:
    """The provider's message for one of ours; results go under the user."""
    who = "user" if said["role"] == "tool" else said["role"]
    return [{"role": who, "content": [b for p in said["parts"] for b in _write_part(p)]}]


def _write_part(part: Part) -> list[dict[str, Any]]:
    match part["type"]:
        case "text":
            return [{"type": "text", "text": part["text"]}] if part["text"] else []
        case "tool_call":
            kind = "server_tool_use" if "executor" in part else "tool_use"
            return [{"type": kind, "id": part["id"], "name": part["name"], "input": as_object(part["arguments"])}]
        case "tool_result":
            block = {"type": "tool_result", "tool_use_id": part["id"], "content": as_text(part["content"])}
            return [{**block, "is_error": True} if part.get("is_error") else block]
        case "reasoning" if "signature" in part:
            return [{"type": "thinking", "thinking": part["text"], "signature": part["signature"]}]
        case "media":
            return [{"type": "image", "source": _write_source(part)}]
        case _:
            return []


def _write_source(part: Part) -> dict[str, Any]:
    if "url" in part:
        return {"type": "url", "url": part["url"]}
    return {"type": "base64", "media_type": part["media_type"], "data": part["data"]}


_STOP_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def write_response(answer: Response) -> dict[str, Any]:
    reason = answer.finish_reason or ("tool_calls" if answer.calls else "stop")
    return {
        "id": answer.response_id or "msg_recorded",
        "type": "message",
        "role": "assistant",
        "model": answer.model or "recorded",
        "content": write_message(answer.message)[0]["content"],
        "stop_reason": _STOP_REASONS.get(reason, "end_turn"),
        "stop_sequence": None,
        "usage": (answer.usage and answer.usage.raw) or {"input_tokens": 0, "output_tokens": 0},
    }


def write_stream(body: dict[str, Any]) -> list[Event]:
    """The events of a body: each block starts empty and gets its content in one piece."""
    counts = obj(body.get("usage"))
    start: dict[str, Any] = {
        **body,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**counts, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(body["content"]):
        empty, deltas = _pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": body.get("stop_reason"), "stop_sequence": body.get("stop_sequence")}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": counts.get("output_tokens", 0)}})
    events.append({"type": "message_stop"})
    return [Event(e["type"], e) for e in events]


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            pieces = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            if block.get("signature"):
                pieces.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, pieces
        case "tool_use" | "server_tool_use":
            emitted = as_text(stored(block["input"]))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": emitted}]
        case _:
            return block, []


# --- editing --------------------------------------------------------------------------------------------------------


def with_model(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {**body, "model": name}


def with_system(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """The system text replaced, that of system messages in the list included."""
    messages = [m for m in objects(body.get("messages")) if role(m.get("role")) != "system"]
    return {**body, "system": prompt, "messages": messages}


def with_params(body: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    return merge_params(body, params, _PARAM_NAMES)
