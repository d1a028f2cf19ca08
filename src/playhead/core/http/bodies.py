"""The body of a request in the form that its key is made of."""

import re
from hashlib import sha256
from typing import Any

from playhead.core.canonical import NoKeyError, parse_json, to_stored
from playhead.core.http.url import is_form, pairs_of
from playhead.core.values import JSON

_PARAMETER = re.compile(r';\s*([\w!#$%&\'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
_JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json$|text/json$")


def body_form(body: bytes, content_type: str) -> JSON:
    """What a request's body is for its key: null, ``json``, ``form``, ``parts``, ``text``, or a digest of bytes.

    JSON is told by its type, or by text that is an object or array. A body that is not what its type says is text or
    bytes.
    """
    if not body:
        return None
    media = content_type.partition(";")[0].strip().lower()
    if media == "multipart/form-data":
        parts = _parts(body, parameters(content_type).get("boundary", ""))
        if parts is not None:
            return {"parts": parts}
    text = _text(body)
    if text is None:
        return {"sha256": sha256(body).hexdigest(), "bytes": len(body)}
    if media == "application/x-www-form-urlencoded" and is_form(text):
        return {"form": [list(pair) for pair in pairs_of(text)]}
    return _json(text, by_type=_JSON_TYPE.match(media) is not None) or {"text": text}


def parameters(header: str) -> dict[str, str]:
    """The parameters of a header such as ``multipart/form-data; boundary=x``, names in lower case."""
    return {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        for name, quoted, plain in _PARAMETER.findall(f";{header.partition(';')[2]}")
    }


def _json(text: str, *, by_type: bool) -> dict[str, JSON] | None:
    start = text.lstrip(" \t\r\n")[:1]
    if not by_type and start not in ("{", "["):
        return None
    try:
        return {"json": to_stored(parse_json(text))}
    except (NoKeyError, ValueError):
        return None


def _text(body: bytes) -> str | None:
    if b"\x00" in body:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _parts(body: bytes, boundary: str) -> list[JSON] | None:
    """The parts of a multipart body; None when it is none."""
    mark = b"--" + boundary.encode("utf-8", "surrogatepass")
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if not boundary or len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        return None
    parts: list[JSON] = []
    for piece in pieces[1:-1]:
        head, gap, content = piece.partition(b"\r\n\r\n")
        if not gap:
            return None
        parts.append(_part(head.decode("utf-8", "replace"), content))
    return parts


def _part(head: str, content: bytes) -> dict[str, Any]:
    lines = [line.partition(":") for line in head.split("\r\n") if ":" in line]
    fields = {name.strip().lower(): value.strip() for name, _, value in lines}
    said = parameters(fields.get("content-disposition", ""))
    part: dict[str, Any] = {"name": said.get("name", "")}
    if "filename" in said:
        part["filename"] = said["filename"]
    if "content-type" in fields:
        part["type"] = fields["content-type"]
    text = _text(content)
    return part | (
        {"text": text} if text is not None else {"sha256": sha256(content).hexdigest(), "size": len(content)}
    )
