"""OpenAI responses."""

from collections.abc import Iterable
from typing import Any

from playhead.core.protocol import usage
from playhead.core.protocol.forms import Event, Request, Response, merge_params, params_of
from playhead.core.protocol.openai_chat import read_choice, read_tool
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
from playhead.core.protocol.shape import is_list, is_object, named, obj, objects

NAME = "openai_responses"
_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "tool_search_call",
    }
)
_LOCAL = frozenset({"apply_patch_call", "computer_call", "local_shell_call"})
"""Tools of the provider's that run where the agent does: called and answered like functions."""
_LOCAL_RESULTS = frozenset(f"{kind}_output" for kind in _LOCAL)
ITEMS = _CALLS | _RESULTS | _LOCAL | _LOCAL_RESULTS | _HOSTED | {"reasoning", "item_reference", "compaction"}
"""Item types that nobody else uses at this place."""

_NOT_PARAMS = frozenset({"model", "input", "instructions", "tools", "tool_choice", "include", "background"})
_PARAM_NAMES = {"max_tokens": ("max_output_tokens",), "max_completion_tokens": ("max_output_tokens",)}


# --- reading --------------------------------------------------------------------------------------------------------


def read_request(body: dict[str, Any]) -> Request:
    return Request(
        model=body.get("model"),
        messages=settle_ids([m for raw in split(body) for m in read_raw(raw)]),
        tools=[read_tool(t) for t in objects(body.get("tools"))],
        tool_choice=read_choice(body.get("tool_choice")),
        params=stored(params_of(body, without=_NOT_PARAMS)),
        stream=bool(body.get("stream")),
    )


def split(body: dict[str, Any]) -> list[Any]:
    """The items of a request as raw messages, for `read_raw`: what the model said without a break is one."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    if isinstance(body.get("instructions"), str):
        items.insert(0, {"role": "system", "content": body["instructions"]})
    made: list[list[dict[str, Any]]] = []
    for item in items:
        if made and _said(item) and _said(made[-1][-1]):
            made[-1].append(item)
        else:
            made.append([item])
    return made


def _said(item: dict[str, Any]) -> bool:
    return role(item["role"]) == "assistant" if "role" in item else named(item, "type") not in _RESULTS | _LOCAL_RESULTS


def read_raw(raw: Any) -> list[Message]:
    """The normal messages of one raw message, read without its neighbours."""
    return settle_ids(read_items(raw))


def stands_alone(body: dict[str, Any]) -> bool:
    """Whether each raw message says all about itself: always, as this provider insists on ids."""
    return True


def read_items(items: Iterable[Any]) -> list[Message]:
    """Items as messages: what the model said without a break is one message."""
    made: list[Message] = []
    for item in items:
        if not is_object(item):
            continue
        who, parts = _read_item(item)
        if who == "assistant" and made and made[-1]["role"] == "assistant":
            made[-1]["parts"] += parts
        else:
            made.append(message(who, parts))
    return made


def _read_item(item: dict[str, Any]) -> tuple[str, list[Part]]:
    kind = named(item, "type")
    if kind in _CALLS:
        return "assistant", [call(str(item.get("name") or ""), item.get("arguments", item.get("input")), _id(item))]
    if kind in _RESULTS:
        return "tool", [result(_id(item), _read_output(item.get("output")), name=item.get("name"))]
    if kind in _LOCAL:
        return "assistant", [call(*local_call(item), _id(item))]
    if kind in _LOCAL_RESULTS:
        return "tool", [result(_id(item), item.get("output"), name=str(kind).removesuffix("_call_output"))]
    if kind == "reasoning":
        return "assistant", [_read_reasoning(item)]
    if kind in _HOSTED:
        return "assistant", _read_hosted(str(kind), item)
    if "role" in item:
        return role(item["role"]), _read_content(item.get("content"))
    return "assistant", [other(item)]


def local_call(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call that the provider defines and the agent runs."""
    given = item.get("operation") or item.get("action") or {"actions": item.get("actions")}
    arguments = {name: value for name, value in obj(given).items() if value is not None}
    return str(named(item, "type")).removesuffix("_call"), arguments


def _id(item: dict[str, Any]) -> Any:
    return item.get("call_id", item.get("id"))


def _read_output(output: Any) -> Any:
    """A tool's answer: the text of text blocks, anything else as it stands."""
    if is_list(output) and all(is_object(p) and p.get("type") == "input_text" for p in output):
        return "".join(str(p.get("text") or "") for p in output)
    return output


def _read_reasoning(item: dict[str, Any]) -> Part:
    told = [*objects(item.get("summary")), *objects(item.get("content"))]
    words = "\n\n".join(str(t.get("text") or "") for t in told if is_object(t))
    return reasoning(words, id=item.get("id"), encrypted=item.get("encrypted_content"))


def _read_hosted(kind: str, item: dict[str, Any]) -> list[Part]:
    name = str(item.get("name") or kind.removesuffix("_call"))
    arguments = item.get("arguments", item.get("action"))
    if arguments is None:
        arguments = {k: item[k] for k in ("queries", "query", "code") if k in item}
    made = [call(name, arguments, item.get("id"), executor="provider")]
    given = next((item[k] for k in ("output", "outputs", "results", "result") if item.get(k) is not None), None)
    if given is not None or item.get("error") is not None:
        failed = item.get("error") is not None
        content = item["error"] if failed else given
        made.append(result(item.get("id"), content, name=name, is_error=failed, executor="provider"))
    return made


def _read_content(content: Any) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return texts([content])
    blocks = content if is_list(content) else [content]
    return [_read_block(b) if is_object(b) else text(str(b)) for b in blocks]


def _read_block(block: dict[str, Any]) -> Part:
    kind = block.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return text(str(block.get("text") or ""))
    if kind == "refusal":
        return text(str(block.get("refusal") or ""))
    if kind == "input_image" and isinstance(url := block.get("image_url"), str):
        return media(url=url)
    if kind == "input_file" and isinstance(data := block.get("file_data", block.get("file_url")), str):
        return media(url=data)
    return other(block)


def read_response(body: dict[str, Any]) -> Response:
    items = read_items(objects(body.get("output")))
    said = message("assistant", [p for m in items for p in m["parts"]])
    settle_ids([said])
    reason = _reason(body, said)
    if reason:
        said["finish_reason"] = reason
    return Response(
        message=said,
        model=body.get("model"),
        response_id=body.get("id"),
        usage=usage.openai(body.get("usage")),
        error=stored(body.get("error")),
    )


def _reason(body: dict[str, Any], said: Message) -> str | None:
    status = body.get("status")
    if status == "incomplete":
        return finish(obj(body.get("incomplete_details")).get("reason")) or "other"
    if status == "completed":
        return "tool_calls" if any(p["type"] == "tool_call" and "executor" not in p for p in said["parts"]) else "stop"
    return finish(status) if status in ("failed", "cancelled") else None


def read_stream(events: Iterable[Event]) -> dict[str, Any]:
    """The body that the same answer would have had without streaming; of a cut stream, what had arrived."""
    body: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    for _, event in events:
        if not is_object(event):
            continue
        kind = event.get("type")
        if is_object(whole := event.get("response")):
            body = whole
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                return body
        elif kind in ("response.output_item.added", "response.output_item.done"):
            items[event["output_index"]] = dict(obj(event.get("item")))
        elif kind == "error":
            body = {**body, "status": "failed", "error": event.get("error") or event}
        elif isinstance(event.get("delta"), str) and event.get("output_index") in items:
            _add_delta(items[event["output_index"]], str(kind), event["delta"])
    return {**body, "output": [items[i] for i in sorted(items)]}


def _add_delta(item: dict[str, Any], kind: str, piece: str) -> None:
    if kind == "response.function_call_arguments.delta":
        item["arguments"] = (item.get("arguments") or "") + piece
    elif kind == "response.output_text.delta":
        content = item["content"] = item.get("content") or [{"type": "output_text", "text": ""}]
        content[-1]["text"] += piece


# --- writing --------------------------------------------------------------------------------------------------------


def write_message(said: Message) -> list[dict[str, Any]]:
    """The provider's items for one message."""
    made: list[dict[str, Any]] = []
    thought = reasoning_of(said)
    for part in said["parts"]:
        if part["type"] == "tool_call" and "executor" not in part:
            made.append(
                {"type": "function_call", "call_id": part["id"], "name": part["name"], "arguments": as_arguments(part)}
            )
        elif part["type"] == "tool_result" and "executor" not in part:
            made.append({"type": "function_call_output", "call_id": part["id"], "output": as_text(part["content"])})
    if said["role"] == "tool":
        return made
    summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}
    return ([summary] if thought else []) + _write_said(said) + made


def _write_said(said: Message) -> list[dict[str, Any]]:
    if said["role"] == "assistant":
        block: dict[str, Any] = {"type": "output_text", "text": text_of(said), "annotations": []}
        return [{"type": "message", "role": "assistant", "content": [block]}] if block["text"] else []
    blocks = [_write_part(p) for p in said["parts"] if p["type"] in ("text", "media")]
    return [{"type": "message", "role": said["role"], "content": blocks}]


def _write_part(part: Part) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    return {"type": "input_image", "image_url": as_url(part), "detail": "auto"}


def write_response(answer: Response) -> dict[str, Any]:
    items = [
        {**item, "id": f"item_{index}", "status": "completed"}
        for index, item in enumerate(write_message(answer.message))
    ]
    body = {
        "id": answer.response_id or "resp_recorded",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if answer.finish_reason == "length" else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if answer.finish_reason == "length" else None,
        "instructions": None,
        "metadata": {},
        "model": answer.model or "recorded",
        "output": items,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }
    return {**body, "usage": answer.usage.raw} if answer.usage and answer.usage.raw else body


def write_stream(body: dict[str, Any]) -> list[Event]:
    """The events of a body, each item with its content in one piece."""
    started: dict[str, Any] = {**body, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": started}]
    events.append({"type": "response.in_progress", "response": started})
    for index, item in enumerate(body["output"]):
        events += [{**e, "output_index": index} for e in _item_events(item)]
    end = "response.incomplete" if body.get("status") == "incomplete" else "response.completed"
    events.append({"type": end, "response": body})
    return [Event(e["type"], {**e, "sequence_number": n}) for n, e in enumerate(events)]


def _item_events(item: dict[str, Any]) -> list[dict[str, Any]]:
    here = {"item_id": item.get("id")}
    added: dict[str, Any] = {**item, "status": "in_progress"}
    inner: list[dict[str, Any]] = []
    if item["type"] == "function_call":
        added["arguments"] = ""
        inner = [
            {"type": "response.function_call_arguments.delta", **here, "delta": item["arguments"]},
            {"type": "response.function_call_arguments.done", **here, "arguments": item["arguments"]},
        ]
    elif item["type"] == "message":
        added["content"] = []
        for place, block in enumerate(item["content"]):
            inner += [{**e, **here, "content_index": place} for e in _block_events(block)]
    return [
        {"type": "response.output_item.added", "item": added},
        *inner,
        {"type": "response.output_item.done", "item": item},
    ]


def _block_events(block: dict[str, Any]) -> list[dict[str, Any]]:
    if block.get("type") != "output_text":
        return [{"type": "response.content_part.added", "part": block}]
    return [
        {"type": "response.content_part.added", "part": {**block, "text": ""}},
        {"type": "response.output_text.delta", "delta": block["text"], "logprobs": []},
        {"type": "response.output_text.done", "text": block["text"], "logprobs": []},
        {"type": "response.content_part.done", "part": block},
    ]


# --- editing --------------------------------------------------------------------------------------------------------


def with_model(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {**body, "model": name}


def with_system(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """The instructions replaced, and no system or developer item left that could shadow them."""
    given = body.get("input")
    if is_list(given):
        given = [i for i in given if not (is_object(i) and "role" in i and role(i["role"]) == "system")]
    return {**body, "instructions": prompt, "input": given}


def with_params(body: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    return merge_params(body, params, _PARAM_NAMES)
