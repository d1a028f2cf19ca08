"""A model's answers: recorded whole, and given back as the framework's results or chunks."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from playhead.adapters.langgraph import codec, messages, objects
from playhead.core.canonical import from_stored
from playhead.core.protocol.parts import as_arguments
from playhead.core.protocol.shape import is_list, obj
from playhead.core.values import Native, Outcome
from playhead.engine import seam

_KEPT = ("content", "name", "id", "tool_calls", "invalid_tool_calls", "additional_kwargs", "response_metadata")


def whole(message: BaseMessage) -> AIMessage:
    """The message itself, or the message that a chunk stands for."""
    made = message_chunk_to_message(message) if isinstance(message, AIMessageChunk) else message
    assert isinstance(made, AIMessage)
    return made


def result(
    message: AIMessage, info: Any, output: Any = None, *, streamed: bool = False, partial: bool = False,
    cuts: Sequence[int] = (), closed: bool = False, first_chunk_at: int | None = None,
) -> seam.ModelResult:  # fmt: skip
    """What is kept of an answer.

    Args:
        info: the generation's own information (``finish_reason`` ...); ``output`` the result's.
        cuts: lengths of the text pieces in which a stream came; ``closed`` if the last one said that it was.
    """
    told: dict[str, Any] = {**obj(output), **obj(info), **message.response_metadata}
    served = told.get("model_name") or told.get("model")
    response_id = told.get("id") or message.id
    return seam.ModelResult(
        message=messages.answer(message, told.get("finish_reason") or told.get("stop_reason")),
        native=_native(message, obj(info), cuts, closed),
        usage=messages.usage(message),
        served=served if isinstance(served, str) else None,
        response_id=response_id if isinstance(response_id, str) else None,
        streamed=streamed,
        partial=partial,
        first_chunk_at=first_chunk_at,
    )


def _native(message: AIMessage, info: dict[str, Any], cuts: Sequence[int], closed: bool) -> Native:
    held = vars(message)
    data = {name: held[name] for name in _KEPT if held.get(name)}
    if message.usage_metadata is not None:
        data["usage_metadata"] = dict(message.usage_metadata)
    made: dict[str, Any] = {"response": objects.encode(data)}
    if info:
        made["info"] = objects.encode(info)
    if len(cuts) > 1 and isinstance(message.content, str) and sum(cuts) == len(message.content):
        made["cuts"] = list(cuts)
    if closed:
        made["closed"] = True
    return codec.envelope(made)


# --- back -----------------------------------------------------------------------------------------------------------


def message_of(answer: Outcome) -> AIMessage:
    """The answer again; from the normal form where the recording has none of ours (an import, another adapter)."""
    data = codec.held(answer)
    if "response" in data:
        return AIMessage(**{"content": "", **objects.decode(data["response"])})
    text: list[str] = []
    calls: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    for part in obj(answer.value).get("parts", ()):
        if part["type"] == "text":
            text.append(part["text"])
        elif part["type"] == "tool_call" and "executor" not in part:
            if "$invalid" in obj(part["arguments"]):
                broken.append({"name": part["name"], "args": as_arguments(part), "id": part["id"], "error": None})
            else:
                calls.append({"name": part["name"], "args": from_stored(part["arguments"]), "id": part["id"]})
    reason = obj(answer.value).get("finish_reason")
    told = {"finish_reason": reason} if reason else {}
    return AIMessage("".join(text), tool_calls=calls, invalid_tool_calls=broken, response_metadata=told)


def chat_result(answer: Outcome) -> ChatResult:
    info = codec.held(answer).get("info")
    message = message_of(answer)
    if info is None:
        return ChatResult(generations=[ChatGeneration(message=message)])
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=objects.decode(info))])


def chunks(answer: Outcome) -> Iterator[ChatGenerationChunk]:
    """The answer as a stream: text in the pieces in which it came, then the rest."""
    data, message = codec.held(answer), message_of(answer)
    info = objects.decode(data["info"]) if "info" in data else None
    yield from chunks_of(message, data.get("cuts", ()), info, closed=bool(data.get("closed")))


async def achunks(answer: Outcome) -> AsyncIterator[ChatGenerationChunk]:
    """`chunks`, for asyncio."""
    for chunk in chunks(answer):
        yield chunk


def chunks_of(
    message: AIMessage, cuts: Sequence[int] = (), info: Any = None, *, closed: bool = False
) -> Iterator[ChatGenerationChunk]:
    """A message in pieces. Whatever is no text comes with the last one; the framework adds one that says so."""
    start = 0
    content: Any = message.content
    for length in cuts[:-1] if isinstance(content, str) else ():
        piece = AIMessageChunk(content=content[start : start + length], id=message.id)
        yield ChatGenerationChunk(message=piece)
        start += length
    last = AIMessageChunk(
        content=content[start:] if isinstance(content, str) else content,
        id=message.id,
        name=message.name,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        tool_call_chunks=_call_chunks(message),
        chunk_position="last" if closed else None,
    )
    yield ChatGenerationChunk(message=last, generation_info=info)


def _call_chunks(message: AIMessage) -> list[Any]:
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return [
        {
            "name": call.get("name"),
            "args": call["args"] if isinstance(call.get("args"), str) else json.dumps(call.get("args") or {}),
            "id": call.get("id"),
            "index": index,
            "type": "tool_call_chunk",
        }
        for index, call in enumerate(calls)
    ]


def text_length(message: BaseMessage) -> int:
    """How much text a chunk carries; blocks count as one."""
    return len(message.content) if isinstance(message.content, str) else int(is_list(message.content))
