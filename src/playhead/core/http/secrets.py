"""Takes secrets out of a response before it is stored: across chunk borders, and inside JSON and forms sent as text."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from playhead.core.canonical import from_stored, render
from playhead.core.http.bodies import body_form
from playhead.core.http.request import header
from playhead.core.http.response import HttpAnswer, sorted_members
from playhead.core.http.url import form_text
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.redaction.redact import Redactor, StreamRedactor
from playhead.core.values import JSON


class CleanAnswer(NamedTuple):
    """``refused`` says why the response must not be recorded; None when it may."""

    answer: HttpAnswer
    refused: str | None = None


def without_secrets(answer: HttpAnswer, redactor: Redactor) -> CleanAnswer:
    """The response without secrets; what was taken out is replaced in the keys of later requests as well."""
    pairs: Any = redactor.redact([list(pair) for pair in answer.headers], outcome=True).value
    clean = replace(answer, headers=tuple((str(name), str(value)) for name, value in pairs))
    if answer.broken is not None:
        clean = replace(clean, broken=answer.broken._replace(message=redactor.redact_text(answer.broken.message)))
    content = answer.content()
    if not content:
        return CleanAnswer(clean)
    parts = [content] if answer.chunks is None else [chunk.data for chunk in answer.chunks]
    cleaned = _without_secrets(content, parts, header(answer.headers, "content-type") or "", redactor)
    if cleaned is None:
        return CleanAnswer(clean, "its body is not text and holds a secret")
    if answer.chunks is None:
        return CleanAnswer(replace(clean, body=cleaned[0]))
    chunks = tuple(chunk._replace(data=data) for chunk, data in zip(answer.chunks, cleaned, strict=True))
    return CleanAnswer(replace(clean, chunks=chunks))


def _without_secrets(
    content: bytes, parts: Sequence[bytes], content_type: str, redactor: Redactor
) -> list[bytes] | None:
    """As many parts as were given; None for bytes that are not text and hold a secret."""
    as_bytes: JSON = {"$bytes": b64encode(content).decode()}
    try:
        content.decode()
    except UnicodeDecodeError:
        found = redactor.redact(as_bytes, outcome=True)
        return None if found.pointers else list(parts)
    if b"\0" in content and redactor.redact(as_bytes, outcome=True).refused:  # UTF-16 may read as UTF-8
        return None
    fields = _fields(content, content_type)
    known = None if fields is None else redactor.redact(fields, outcome=True)  # teaches it what stands under names
    stream = StreamRedactor(redactor, outcome=True)
    for part in parts:
        stream.feed(part)
    cleaned = [cast("bytes", part) for part in stream.finish()]
    if known is not None and known.pointers and _fields(b"".join(cleaned), content_type) != known.value:
        # what is too short to be searched for in text was found by its name: the body is made anew of its fields
        return [_written(known.value, form="json" not in content_type), *[b"" for _ in parts[1:]]]
    return cleaned


def _fields(content: bytes, content_type: str) -> JSON:
    """The part of a body whose member names matter; None when it has none."""
    form = body_form(content, content_type)
    return form.get("json", form.get("form")) if is_object(form) else None


def _written(fields: JSON, *, form: bool) -> bytes:
    if form and is_list(fields):
        return form_text(fields).encode()
    return render(sorted_members(from_stored(fields)))
