"""RFC 8785 text of stored JSON.

The quick way is orjson with sorted keys, which is right for most JSON. It is taken only after looking at what orjson
prints differently: floats (``1.0``, exponents), NaN as ``null``, integers beyond 2**53 - 1, member names outside
the basic plane (sorted by UTF-16 code units here, by code points there), Enum and UUID as plain text. The exact way
writes each value by itself.
"""

import math
import re
from typing import Any

import orjson

from playhead.core.byte_patterns import byte_set
from playhead.core.json_text import (
    EXACT_INT,
    MAX_DEPTH,
    MAX_INT_DIGITS,
    LongInteger,
    NoKeyError,
    floats_of,
    has_non_finite,
    marshalled,
    number_text,
    proves_depth,
    quoted,
)
from playhead.core.values import JSON

_SORTED = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_KEYLESS_TAG = re.compile(rb'\{"\$(?:float"|deep"|decimal":"-?[NI]|int":"-?[0-9]{4301})')
_WHOLE_FLOAT = re.compile(rb"(?<=[:,\[])(-?[0-9]+)\.0(?=[,}\]])")
_ASTRAL_NAME = re.compile(rb'[\xf0-\xf4](?:[^"\\]|\\.)*":')

# What in orjson's text asks for a closer look. A hit inside a string costs that look, no more.
_ASTRAL, _NULL, _TAG, _WHOLE, _EXPONENT = range(5)
_closer = byte_set(
    rb"[\xf0-\xf4]",  # sorts differently in a name
    rb"null",  # may have been NaN
    rb'\{"\$(?:float|deep|decimal|int)"',  # may be the tag of a value without a key
    rb"[:,\[]-?[0-9]+\.0[,}\]]",
    rb"[:,\[]-?[0-9]+(?:\.[0-9]+)?e[+-][0-9]+[,}\]]",
)


def canonical_stored(value: JSON) -> bytes:
    """The canonical text of a value that is already in stored form: tags and escapes are taken as they are.

    Raises:
        NoKeyError: it has none.
    """
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is not dict and kind is not list:
        return _exact(value)
    try:
        text = orjson.dumps(value, option=_SORTED)
        if not proves_depth(value, text):
            return _exact(value)
    except (TypeError, RecursionError):
        return _exact(value)
    hits = _closer.Match(text)
    return text if hits is None else _finished(value, text, hits) or _exact(value)


def _finished(value: Any, text: bytes, hits: list[int]) -> bytes | None:
    """orjson's sorted text made canonical, or None where that is not easy."""
    if _EXPONENT in hits or (_TAG in hits and _KEYLESS_TAG.search(text)):
        return None
    if _ASTRAL in hits and _ASTRAL_NAME.search(text):
        return None
    if _NULL in hits:
        proof = marshalled(value)
        if proof is None or has_non_finite(proof):
            return None
    return _without_fractions(value, text) if _WHOLE in hits else text


def _without_fractions(value: Any, text: bytes) -> bytes | None:
    """`text` with whole floats such as ``129.0`` as integers."""
    floats = floats_of(value)
    if floats is None or 0.0 in floats:  # -0.0 is 0
        return None
    text, found = _WHOLE_FLOAT.subn(rb"\1", text)
    # More found than there are: a string looked like one.
    return text if found == sum(map(float.is_integer, floats)) else None


def utf16(text: str) -> bytes:
    """Sort key for the order of UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _exact(value: JSON) -> bytes:
    try:
        return _text(value, 0).encode()
    except RecursionError:
        raise NoKeyError("too_deep") from None


def _text(value: Any, depth: int) -> str:
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return quoted(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is dict:
        return _object(value, depth + 1)
    if kind is list or kind is tuple:
        return _array(value, depth + 1)
    if isinstance(value, LongInteger):
        raise NoKeyError("int_too_long")
    return quoted(value) if isinstance(value, str) else _number(value, depth)


def _number(value: Any, depth: int) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoKeyError("non_finite")
        return number_text(value)
    if not isinstance(value, int):
        raise NoKeyError("unsupported_type", type(value).__name__)
    value = int.__int__(value)
    if -EXACT_INT <= value <= EXACT_INT:
        return str(value)
    return _object({"$int": int_text(value)}, depth + 1)


def int_text(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:
        raise NoKeyError("int_too_long") from None


def _array(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise NoKeyError("too_deep")
    texts: list[str] = []
    try:
        for item in value:
            texts.append(_text(item, depth))
    except NoKeyError as error:
        error.below(len(texts))
        raise
    return f"[{','.join(texts)}]"


def _object(value: dict[Any, Any], depth: int) -> str:
    if depth > MAX_DEPTH:
        raise NoKeyError("too_deep")
    if len(value) == 1:
        (name,) = value
        if name in _TAG_CHECKS:
            _TAG_CHECKS[name](value[name])
    texts: dict[str, str] = {}
    name = None
    try:
        for name in value:
            text = quoted(name)
            if text in texts:
                raise NoKeyError("duplicate_key")
            texts[text] = f"{text}:{_text(value[name], depth)}"
    except NoKeyError as error:
        _note_place(error, str(name), value)
        raise
    names = sorted(zip(map(utf16, value), texts.values(), strict=True))
    return "{" + ",".join([text for _, text in names]) + "}"


def _note_place(error: NoKeyError, name: str, value: dict[Any, Any]) -> None:
    """Notes the member of an object that holds what was refused; tags and escapes are no levels of the value."""
    if len(value) != 1 or not name.startswith("$"):
        error.below(name)
    elif name in ("$object", "$enum", "$set"):
        error.above()
    elif name == "$map":
        place = error.above()
        error.above()
        entry: Any = value[name][place] if isinstance(place, int) else None
        if isinstance(entry, list) and entry:
            error.below(entry[0] if isinstance(entry[0], str) else canonical_stored(entry[0]).decode())
    elif name not in TAGS:
        error.below(name.removeprefix("$"))


TAGS = frozenset(
    {"$int", "$float", "$datetime", "$date", "$time", "$duration", "$uuid", "$decimal", "$bytes", "$set", "$map"}
    | {"$enum", "$object", "$path", "$invalid", "$deep"}
)
"""Names of the tagged forms; every other object is what it looks like, once its escape is taken off."""


def _check_int(text: Any) -> None:
    if isinstance(text, str) and len(text.lstrip("-")) > MAX_INT_DIGITS:
        raise NoKeyError("int_too_long")


def _check_decimal(text: Any) -> None:
    if isinstance(text, str) and text.lstrip("-")[:1] in ("N", "I"):
        raise NoKeyError("non_finite")


def _check_float(_: Any) -> None:
    raise NoKeyError("non_finite")


def _check_deep(_: Any) -> None:
    raise NoKeyError("too_deep")


_TAG_CHECKS = {"$int": _check_int, "$decimal": _check_decimal, "$float": _check_float, "$deep": _check_deep}
