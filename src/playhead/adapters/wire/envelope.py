"""What is kept of a response beside the normal message, to give it again: status, headers, body or chunks."""

import sys
from dataclasses import dataclass, field
from typing import Any

from playhead.core.canonical import render
from playhead.core.protocol import sse
from playhead.core.protocol.forms import Response
from playhead.core.protocol.parts import json_or_text, plain, stored
from playhead.core.protocol.providers import FORMS
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON, ErrorInfo, Native, Outcome, OutcomeKind
from playhead.engine.seam import exception_of

CODEC = "wire"
VERSION = 1
KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id")
"""Headers that clients act on. All others stay unrecorded, credentials and cookies among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A response to give to the client. ``chunks`` are those of a stream, else the body in one piece.

    ``broken`` is what ended the stream early when it was recorded.
    """

    status: int
    headers: dict[str, str]
    chunks: list[bytes] = field(default_factory=list[bytes])
    broken: ErrorInfo | None = None


def native(
    form: str,
    status: int,
    headers: dict[str, str],
    *,
    body: Any = None,
    chunks: list[str] | None = None,
    broken: bool = False,
) -> Native:
    """The envelope of a response: its plain JSON body (or text, where it is no JSON), or its chunks as text.

    ``broken``: the connection broke after the last chunk.
    """
    data: dict[str, JSON] = {"form": form, "status": status, "headers": dict(headers)}
    if chunks is None:
        data["body"] = stored(body)
    else:
        data["chunks"] = list(chunks)
        data["broken"] = broken
    return Native(codec=CODEC, version=VERSION, data=data)


def served(outcome: Outcome, form: str, model: str | None, *, stream: bool) -> Served | None:
    """The response that an outcome stands for; None when only an exception can stand for it.

    What the wire recorded comes back as it was. An outcome from elsewhere (an import, another adapter, another
    provider's form), or a plain answer where a stream is asked for, is written in the form of the request.
    """
    found = outcome.native
    if found is not None and found.codec == CODEC and found.version == VERSION and is_object(found.data):
        return _again(found.data, outcome, form, stream=stream)
    if outcome.kind is OutcomeKind.VALUE:
        body = FORMS[form].write_response(Response(message=outcome.value, model=model))
        return _written(form, body, {}, stream=stream)
    return _failure(outcome.error)


def _again(data: dict[str, Any], outcome: Outcome, form: str, *, stream: bool) -> Served:
    status, headers, chunks = int(data["status"]), dict(data["headers"]), data.get("chunks")
    if status >= 400:
        return Served(status=status, headers=headers, chunks=[_body_bytes(data.get("body"))])
    same = data["form"] == form
    broken = outcome.error if data.get("broken") else None
    if is_list(chunks):
        if same and stream:
            parts = [str(c).encode("utf-8", "surrogatepass") for c in chunks]
            return Served(status=status, headers=headers, chunks=parts, broken=broken)
        body = FORMS[data["form"]].read_stream(sse.read("".join(chunks).encode("utf-8", "surrogatepass")))
    elif same and not stream:
        return Served(status=status, headers=headers, chunks=[_body_bytes(data.get("body"))])
    else:
        body = plain(data.get("body"))
    if not same:
        body = FORMS[form].write_response(FORMS[data["form"]].read_response(body))
    return _written(form, body, headers, stream=stream)


def _written(form: str, body: dict[str, Any], headers: dict[str, str], *, stream: bool) -> Served:
    if not stream:
        return Served(status=200, headers=headers | {"content-type": "application/json"}, chunks=[render(body)])
    events = [sse.write(e) for e in FORMS[form].write_stream(body)]
    return Served(status=200, headers=headers | {"content-type": "text/event-stream"}, chunks=events)


def _failure(error: ErrorInfo | None) -> Served | None:
    """A failure with a status comes as a response, so that the client raises its own exception for it."""
    if error is None or error.status is None or error.status < 400:
        return None
    headers = {"content-type": "application/json"}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    body = {"type": "error", "error": {"type": error.class_name, "message": error.message, "code": error.code}}
    return Served(status=error.status, headers=headers, chunks=[render(body)])


def raised(outcome: Outcome, module: str) -> Exception:
    """What the client's library raises for a failure that no response stands for: for a scripted timeout its own, which
    clients try again."""
    info = outcome.error
    own: Any = getattr(sys.modules.get(module), "ReadTimeout", None)
    if own is not None and info is not None and (info.module, info.class_name) == ("builtins", "TimeoutError"):
        return own(info.message)
    return exception_of(outcome)


def _body_bytes(body: JSON) -> bytes:
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else render(plain(body))


def http_failure(status: int, content: bytes, headers: dict[str, str], module: str) -> tuple[ErrorInfo, Any]:
    """A refused attempt as a failure, and its body."""
    body = json_or_text(content.decode("utf-8", "replace"))
    told: Any = body.get("error", body) if is_object(body) else None
    message = told.get("message") if is_object(told) else told
    info = ErrorInfo(
        class_name="HTTPStatusError",
        module=module,
        message=f"status {status}" + (f": {message}" if isinstance(message, str) and message else ""),
        status=status,
        code=told.get("code") if is_object(told) and isinstance(told.get("code"), str | int) else None,
        retryable=status in (408, 409, 429) or status >= 500,
        retry_after=_seconds(headers.get("retry-after")),
    )
    return info, body


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
