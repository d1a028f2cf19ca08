"""The stored form of a response, and the response that a stored form stands for.

A stored response is ``{"status", "headers", ...}`` with at most one of ``json``, ``text``, ``b64`` (a body) and
``chunks`` (a stream). ``json`` is used only where writing it gives the very bytes back. A stream that its reader left
early has ``"complete": false``; one that broke has ``"broken": {"class", "message"}``, the client's own error.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from playhead.core.canonical import NoKeyError, from_stored, parse_json, render, to_stored
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

KEPT_HEADERS = ("content-type", "retry-after", "link", "etag", "location", "last-modified", "x-ratelimit-*")
_NEVER_KEPT = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})


class Chunk(NamedTuple):
    """A piece of a stream, ``t`` seconds after the head of the response."""

    t: float
    data: bytes


class Broken(NamedTuple):
    """The read error of the client in the middle of a body."""

    class_name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """A response without content encoding. ``body`` is None for one that has none, or that came as ``chunks``."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    chunks: tuple[Chunk, ...] | None = None
    complete: bool = True
    broken: Broken | None = None

    def content(self) -> bytes:
        """The whole body, however it came."""
        return self.body or b"" if self.chunks is None else b"".join(chunk.data for chunk in self.chunks)


def has_no_body(method: str, status: int) -> bool:
    """Whether a response has no body by the rules of HTTP, whatever its headers say."""
    return method.upper() == "HEAD" or status < 200 or status in (204, 205, 304)


def kept(headers: Iterable[tuple[str, str]], extra: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The headers that are stored, names in lower case. What describes the transfer is never among them."""
    wanted = [name.lower() for name in (*KEPT_HEADERS, *extra)]
    pairs = [(name.lower(), value) for name, value in headers]
    return [pair for pair in pairs if pair[0] not in _NEVER_KEPT and any(_fits(pair[0], name) for name in wanted)]


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


# writing


def store(answer: HttpAnswer) -> dict[str, JSON]:
    """The stored form of a response, which `read` turns into an equal one."""
    value: dict[str, JSON] = {"status": answer.status, "headers": [list(pair) for pair in answer.headers]}
    if answer.chunks is not None:
        value["chunks"] = [{"t": round(chunk.t, 6), **_text_or_base64(chunk.data)} for chunk in answer.chunks]
    elif answer.body is not None:
        value.update(_body(answer.body))
    if not answer.complete:
        value["complete"] = False
    if answer.broken is not None:
        value["broken"] = {"class": answer.broken.class_name, "message": answer.broken.message}
    return value


def _body(body: bytes) -> dict[str, JSON]:
    try:
        stored = to_stored(parse_json(body))
        if _written(stored) == body:
            return {"json": stored}
    except (NoKeyError, ValueError):
        pass  # nested too deeply, or no JSON
    return _text_or_base64(body)


def _written(stored: JSON) -> bytes:
    """The body that stored JSON stands for: members sorted, as fixture files hold them."""
    return render(sorted_members(from_stored(stored)))


def sorted_members(value: Any) -> Any:
    """JSON with the members of every object in the order of their names."""
    if is_object(value):
        return {name: sorted_members(value[name]) for name in sorted(value)}
    return [sorted_members(item) for item in value] if is_list(value) else value


def _text_or_base64(data: bytes) -> dict[str, JSON]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"b64": b64encode(data).decode()}


# reading


def read(value: JSON) -> HttpAnswer:
    """The response of a stored form.

    Raises:
        ValueError: it is none; the text says what is wrong and where.
    """
    if not is_object(value):
        raise ValueError("an HTTP response is an object with status and headers")
    members = value
    status = members.get("status")
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
        raise ValueError(f"/status is {status!r}, not a status code")
    bodies = [name for name in ("json", "text", "b64", "chunks") if name in members]
    if len(bodies) > 1:
        raise ValueError(f"a response has one body, this has {' and '.join(bodies)}")
    chunks = _read_chunks(members["chunks"]) if "chunks" in members else None
    body = _read_body(members, "") if bodies and chunks is None else None
    return HttpAnswer(
        status=status,
        headers=_read_headers(members.get("headers", [])),
        body=body,
        chunks=chunks,
        complete=members.get("complete") is not False,
        broken=_read_broken(members.get("broken")),
    )


def _read_headers(pairs: Any) -> tuple[tuple[str, str], ...]:
    if not is_list(pairs):
        raise ValueError("/headers is not a list of names and values")
    for place, pair in enumerate(pairs):
        if not is_list(pair) or [type(text) for text in pair] != [str, str]:
            raise ValueError(f"/headers/{place} is not a name and a value")
    return tuple((name, text) for name, text in pairs)


def _read_body(members: dict[str, Any], at: str) -> bytes:
    if "json" in members:
        return _written(members["json"])
    if "text" in members:
        if not isinstance(members["text"], str):
            raise ValueError(f"{at}/text is not text")
        return members["text"].encode("utf-8", "surrogatepass")
    try:
        return b64decode(members["b64"], validate=True)
    except (binascii.Error, ValueError, TypeError, KeyError):
        raise ValueError(f"{at}/b64 is not base64") from None


def _read_chunks(chunks: Any) -> tuple[Chunk, ...]:
    if not is_list(chunks):
        raise ValueError("/chunks is not a list")
    found: list[Chunk] = []
    for place, chunk in enumerate(chunks):
        t = chunk.get("t") if is_object(chunk) else None
        if not isinstance(t, int | float):
            raise ValueError(f"/chunks/{place} is not a chunk with its time")
        found.append(Chunk(float(t), _read_body({"b64": None, **chunk}, f"/chunks/{place}")))
    return tuple(found)


def _read_broken(broken: Any) -> Broken | None:
    return Broken(str(broken.get("class", "")), str(broken.get("message", ""))) if is_object(broken) else None
