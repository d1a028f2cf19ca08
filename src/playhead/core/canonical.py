"""Canonical JSON: the only meaning of "the same value". RFC 8785 over typed, tagged forms.

Two ways in, for the two shapes a value can have:

- a *Python value* as user code holds it: `canonical(value)`; user objects that look like a tag are escaped;
- its *stored form*, plain JSON made by `to_stored` or `parse_emitted`: `canonical_stored(json)`, `digest(json)`; tags
  and escapes are taken as they are, nothing is escaped again.

``canonical(value) == canonical_stored(to_stored(value))`` for every value that has both. JSON pointers in
`NoKeyError` name places in the value: tags and escapes do not count as members.
"""

from hashlib import sha256

from playhead.core.jcs import canonical_stored
from playhead.core.json_text import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    LongInteger,
    NoKeyError,
    parse_json,
    render,
)
from playhead.core.stored import Lower, from_stored, register_type, to_stored
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


def canonical(value: object) -> bytes:
    """The canonical text of a Python value.

    Raises:
        NoKeyError: it has none.
    """
    return canonical_stored(to_stored(value))


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
    if isinstance(arguments, bytes | bytearray | memoryview):
        arguments = bytes(arguments).decode("utf-8", "replace")
    if not isinstance(arguments, str):
        return to_stored(arguments)
    if not arguments.strip(" \t\r\n"):
        return {}
    try:
        return to_stored(parse_json(arguments))
    except NoKeyError:
        return {"$deep": arguments}
    except ValueError:
        return {"$invalid": arguments}
