"""Canonical JSON: the only meaning of "the same value". RFC 8785 over typed, tagged forms.

Two ways in, for the two shapes a value can have:

- a *Python value* as user code holds it: `canonical(value)`; user objects that look like a tag are escaped;
- its *stored form*, plain JSON made by `to_stored` or `parse_emitted`: `canonical_stored(json)`, `digest(json)`; tags
  and escapes are taken as they are, nothing is escaped again.

``canonical(value) == canonical_stored(to_stored(value))`` for every value that has both. JSON pointers in
`NoKeyError` name places in the value: tags and escapes do not count as members.
"""

from hashlib import sha256

import orjson

from playhead.core.jcs import canonical_stored
from playhead.core.json_text import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    LongInteger,
    NoKeyError,
    floats_of,
    marshalled,
    may_have_wide_integers,
    parse_json,
    proves_depth,
    render,
)
from playhead.core.stored import Lower, from_stored, register_type, to_stored, walk
from playhead.core.values import JSON

__all__ = [
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "LongInteger",
    "Lower",
    "NoKeyError",
    "canonical",
    "canonical_stored",
    "digest",
    "from_stored",
    "parse_emitted",
    "parse_json",
    "register_type",
    "render",
    "to_stored",
]


def _may_need_tags(text: bytes) -> bool:
    """Whether the values of JSON text may differ from their stored form: escapes, integers that a double rounds."""
    return b"$" in text or b"\\u0024" in text or may_have_wide_integers(text, 16)


def canonical(value: object) -> bytes:
    """The canonical text of a Python value.

    Raises:
        NoKeyError: it has none.
    """
    text = _quick(value)
    return canonical_stored(walk(value)) if text is None else text


def _quick(value: object) -> bytes | None:
    """The text of a Python value that is plain JSON and its own stored form; None for any other."""
    if marshalled(value) is None:
        return None
    try:
        text = canonical_stored(value)
    except NoKeyError:
        return None
    # With a tag or an escape in it, it is not sure whose that is; in large values tuples may hide levels.
    return text if b'{"$' not in text and (text.count(b"[") <= MAX_DEPTH or floats_of(value) is not None) else None


def digest(stored: JSON) -> bytes:
    """The sha256 (32 bytes) of the canonical text of a stored form."""
    return sha256(canonical_stored(stored)).digest()


def parse_emitted(arguments: object) -> JSON:
    """What a model emitted as a call's arguments, in stored form.

    Text is parsed; blank text and None are ``{}``; text that is not JSON is kept as ``{"$invalid": text}``, JSON
    nested too deeply as ``{"$deep": text}`` (stored, but without key). Anything else was parsed by others.

    Raises:
        NoKeyError: `arguments` is not text and has no stored form.
    """
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        return _parse_emitted(arguments)
    if isinstance(arguments, bytes | bytearray):
        return _parse_emitted(arguments.decode("utf-8", "replace"))
    return to_stored(arguments)


def _parse_emitted(text: str) -> JSON:
    if not text.strip(" \t\r\n"):
        return {}
    try:
        raw = text.encode("utf-8", "surrogatepass")
        if not _may_need_tags(raw):
            value = orjson.loads(raw)
            if proves_depth(value, raw):
                return value  # it is its own stored form
    except ValueError:
        pass
    try:
        return to_stored(parse_json(text))
    except NoKeyError:
        return {"$deep": text}
    except ValueError:
        return {"$invalid": text}
