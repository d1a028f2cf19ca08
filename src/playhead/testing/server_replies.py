"""What scripted model servers answer, written in the form of each provider."""

import gzip
import json
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from playhead.core.protocol import anthropic_messages, gemini, openai_chat, openai_responses, parts, sse
from playhead.core.protocol.forms import Response
from playhead.core.values import Usage

Encoding: TypeAlias = Literal["gzip", "deflate"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model asks for. ``arguments`` as text are emitted as they are, even if they do not parse."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer.

    Attributes:
        usage: the provider's own usage object; left out, a small fixed one of that provider.
        body: the whole response body (or the error body), in place of one made from the fields above.
        status: anything but 200 gives an error body, ``headers`` such as ``{"retry-after": "0"}`` beside it.
        encoding: how the body is compressed; a stream is flushed after every event.
        cut_after: the connection breaks after that many events of a stream, or bytes of a plain body.
        hold: a stream waits before event ``hold_after`` until this is set, 30 s at most.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    body: Mapping[str, Any] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    encoding: Encoding | None = None
    cut_after: int | None = None
    hold: threading.Event | None = None
    hold_after: int = 1


_FORMS: dict[str, Any] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic_messages": anthropic_messages,
    "gemini": gemini,
}

_USAGE: dict[str, Any] = {
    "openai_chat": {
        "prompt_tokens": 20,
        "completion_tokens": 5,
        "total_tokens": 25,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
    "openai_responses": {
        "input_tokens": 20,
        "output_tokens": 5,
        "total_tokens": 25,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 2},
    },
    "anthropic_messages": {
        "input_tokens": 16,
        "output_tokens": 5,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 0,
    },
    "gemini": {
        "promptTokenCount": 20,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 4,
    },
}

_IDS = {"openai_chat": "chatcmpl", "openai_responses": "resp", "anthropic_messages": "msg", "gemini": "gem"}


def chunks_of(form: str, reply: Reply, step: int, *, streamed: bool) -> Iterator[bytes]:
    """The reply in the provider's form: one chunk for each event of a stream, else one for the whole body."""
    if reply.status != 200:
        error = {"type": "scripted_error", "message": f"scripted status {reply.status}"}
        yield _json(reply.body or {"type": "error", "error": error})
        return
    body = dict(reply.body) if reply.body is not None else _body(form, reply, step)
    if not streamed:
        yield _json(body)
        return
    compress = None if reply.encoding is None else zlib.compressobj(wbits=31 if reply.encoding == "gzip" else 15)
    for event in _FORMS[form].write_stream(body):
        chunk = sse.write(event)
        yield chunk if compress is None else compress.compress(chunk) + compress.flush(zlib.Z_SYNC_FLUSH)
    if compress is not None:
        yield compress.flush()


def _body(form: str, reply: Reply, step: int) -> dict[str, Any]:
    said = parts.texts([reply.text])
    if reply.reasoning:
        signature = {"signature": "signed"} if form == "anthropic_messages" else {}
        said.insert(0, parts.reasoning(reply.reasoning, **signature))
    for index, one in enumerate(reply.calls):
        arguments = one.arguments if isinstance(one.arguments, str) else dict(one.arguments)
        said.append(parts.call(one.name, arguments, one.id or f"call_{step}_{index}"))
    answer = Response(
        message=parts.message("assistant", said, finish_reason=reply.finish_reason),
        model=reply.model or "scripted-1",
        response_id=f"{_IDS[form]}_{step}",
        usage=Usage(raw=dict(reply.usage) if reply.usage is not None else _USAGE[form]),
    )
    return _FORMS[form].write_response(answer)


def encoded(body: bytes, encoding: Encoding | None) -> bytes:
    """The body compressed as a whole."""
    if encoding is None:
        return body
    return gzip.compress(body, mtime=0) if encoding == "gzip" else zlib.compress(body)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
