"""Python values <-> stored form: plain JSON in which typed values have tagged forms and user data is escaped."""

import dataclasses
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import PurePath, PurePosixPath
from typing import Any, NamedTuple, cast
from uuid import UUID

import orjson

from playhead.core.jcs import canonical_stored, int_text, utf16
from playhead.core.json_text import (
    EXACT_INT,
    MAX_DEPTH,
    LongInteger,
    NoKeyError,
    decimal_text,
    has_non_finite,
    has_surrogate,
    joined,
    marshalled,
    non_finite_name,
    proves_depth,
    render,
)
from playhead.core.values import JSON
from playhead.errors import ConflictError

Lower = Callable[[object], object]
"""Called for a value that is no JSON type; returns what to store in its place, or `NotImplemented`."""

_STRICT = (
    orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_NAMES = frozenset({str})
_FRACTION = re.compile(r"(\.\d*?)0+(?=\D|$)")


class _Registered(NamedTuple):
    cls: type
    to_json: Callable[[Any], object]
    from_json: Callable[[Any], object]


_by_class: dict[type, _Registered] = {}
_by_name: dict[str, _Registered] = {}


def register_type(cls: type, to_json: Callable[[Any], object], from_json: Callable[[Any], object]) -> None:
    """Gives instances of exactly `cls` a stored form that `from_stored` turns into instances again.

    ``to_json`` may return anything that has a stored form. The class's name is part of recordings.

    Raises:
        ConflictError: another class of that name is registered.
    """
    entry = _Registered(cls, to_json, from_json)
    known = _by_name.get(cls.__name__)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConflictError(
            f"a type named {cls.__name__!r} is registered already: {known.cls.__module__}.{known.cls.__qualname__}",
            hint="give one of the two classes another name",
        )
    if known is not None:
        _by_class.pop(known.cls, None)
    _by_class[cls] = _by_name[cls.__name__] = entry
    _writer_for.cache_clear()


def to_stored(value: object, *, lower: Lower | None = None) -> JSON:
    """A fresh copy of `value` in stored form.

    Values that are not finite are stored although they have no key. Records (dataclass, msgspec, pydantic) are
    tagged with their class name unless `lower` says otherwise.

    Raises:
        NoKeyError: no stored form (``unsupported_type``, ``cycle``, ``too_deep``, ``out_of_range`` ...).
    """
    proof = marshalled(value)
    if proof is not None:
        copied = _copied(value, proof)
        if copied is not None:
            return copied
    return walk(value, lower)


def _copied(value: object, proof: bytes) -> JSON:
    """A copy of plain JSON that is its own stored form; None for any other, and for null."""
    try:
        text = orjson.dumps(value, option=_STRICT)
        if b'{"$' in text or (b"null" in text and has_non_finite(proof)):
            return None
        copy = orjson.loads(text)
    except (TypeError, ValueError):
        return None
    return copy if proves_depth(copy, text) else None


def walk(value: object, lower: Lower | None = None) -> JSON:
    """`to_stored` without its quick way, for values known to need the walk."""
    try:
        return _Walk(lower).value(value, 0)
    except RecursionError:
        raise NoKeyError("too_deep") from None


class _Walk:
    """One conversion. ``open`` holds the ids of the containers being walked, to find cycles."""

    __slots__ = ("lower", "open")

    def __init__(self, lower: Lower | None) -> None:
        self.lower = lower
        self.open: set[int] = set()

    def value(self, value: Any, depth: int) -> JSON:
        kind = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            return value if value.isascii() or not has_surrogate(value) else joined(value)
        if value is None or kind is bool:
            return value
        if kind is int and -EXACT_INT <= value <= EXACT_INT:
            return value
        if kind is float and math.isfinite(value):
            return value
        if kind is dict:
            return self.mapping(value, depth)
        if kind is list or kind is tuple:
            return self.array(value, depth)
        return self.typed(value, depth)

    def typed(self, value: Any, depth: int) -> JSON:
        kind = type(value)  # pyright: ignore[reportUnknownVariableType]
        if self.lower is not None and kind not in _BUILTIN:
            lowered = self.lower(value)
            if lowered is not NotImplemented and lowered is not value:
                return self.value(lowered, depth)
        return _writer_for(cast("Any", kind))(self, value, depth)

    def array(self, value: Iterable[Any], depth: int) -> list[JSON]:
        self.enter(value, depth)
        items: list[JSON] = []
        try:
            for item in value:
                items.append(self.value(item, depth + 1))
        except NoKeyError as error:
            error.below(len(items))
            raise
        self.open.discard(id(value))
        return items

    def mapping(self, value: Mapping[Any, Any], depth: int) -> JSON:
        simple = _NAMES.issuperset(map(type, value))
        if not simple and not all([isinstance(name, str) for name in value]):
            return self.pairs(value, depth)
        members = self.members(value, depth, simple and "".join(value).isascii())
        if len(members) == 1:
            ((name, item),) = members.items()
            if name.startswith("$"):
                return {f"${name}": item}
        return members

    def members(self, value: Mapping[str, Any], depth: int, simple: bool) -> dict[str, JSON]:
        """`simple` says that all names are plain ASCII text."""
        self.enter(value, depth)
        members: dict[str, JSON] = {}
        name = ""
        try:
            for name, item in value.items():
                member = name if simple else _text(name)
                if not simple and member in members:
                    raise NoKeyError("duplicate_key")
                members[member] = item if type(item) is str and item.isascii() else self.value(item, depth + 1)
        except NoKeyError as error:
            error.below(_text(name))
            raise
        self.open.discard(id(value))
        return members

    def pairs(self, value: Mapping[Any, Any], depth: int) -> JSON:
        self.enter(value, depth + 2)
        pairs: dict[bytes, list[JSON]] = {}
        for name, item in value.items():
            stored = self.value(name, depth + 3)
            text = sort_text(stored)
            try:
                if text in pairs:
                    raise NoKeyError("duplicate_key")
                pairs[text] = [stored, self.value(item, depth + 3)]
            except NoKeyError as error:
                error.below(stored if isinstance(stored, str) else render(stored).decode())
                raise
        self.open.discard(id(value))
        return {"$map": [pairs[text] for text in sorted(pairs)]}

    def set(self, value: Set[Any], depth: int) -> JSON:
        self.enter(value, depth + 1)
        items = {sort_text(stored): stored for stored in [self.value(item, depth + 2) for item in value]}
        self.open.discard(id(value))
        return {"$set": [items[text] for text in sorted(items)]}

    def record(self, name: str, fields: Any, value: object, depth: int) -> JSON:
        self.enter(value, depth + 2)
        form = self.value(fields, depth + 2)
        self.open.discard(id(value))
        return {"$object": [name, form]}

    def enter(self, value: object, depth: int) -> None:
        if id(value) in self.open:
            raise NoKeyError("cycle")
        if depth >= MAX_DEPTH:
            raise NoKeyError("too_deep")
        self.open.add(id(value))


def sort_text(stored: JSON) -> bytes:
    """Orders members of sets and maps: by canonical text in UTF-16 order, also where a value has none."""
    try:
        text = canonical_stored(stored)
    except NoKeyError:
        text = render(stored)
    return utf16(text.decode())


def _text(value: str) -> str:
    plain = str.__str__(value)
    return joined(plain) if has_surrogate(plain) else plain


_Writer = Callable[[_Walk, Any, int], JSON]


def _tag(name: str, text_of: Callable[[Any], str]) -> _Writer:
    def write(_: _Walk, value: Any, depth: int) -> JSON:
        if depth >= MAX_DEPTH:
            raise NoKeyError("too_deep")
        return {name: text_of(value)}

    return write


def _datetime_text(value: datetime) -> str:
    if type(value) is not datetime:
        value = _plain_datetime(value)
    if value.utcoffset() is None:
        return _short_fraction(value.replace(tzinfo=None).isoformat())
    if value.tzinfo is UTC:
        return _short_fraction(value.isoformat()[:-6]) + "Z"
    try:
        return _short_fraction(value.astimezone(UTC).replace(tzinfo=None).isoformat()) + "Z"
    except OverflowError:
        raise NoKeyError("out_of_range", "its UTC instant is outside the years 1 to 9999") from None


def _plain_datetime(value: Any) -> datetime:
    """The datetime that an instance of a subclass stands for; refuses not-a-time values and nanoseconds."""
    try:
        plain = datetime.combine(date(value.year, value.month, value.day), value.timetz())
    except (TypeError, ValueError):
        raise NoKeyError("unsupported_type", type(value).__name__) from None
    if getattr(value, "nanosecond", 0):
        raise NoKeyError("unsupported_type", f"{type(value).__name__} with nanoseconds")
    return plain


def _time_text(value: time) -> str:
    if value.utcoffset() is None:
        return _short_fraction(value.replace(tzinfo=None).isoformat())
    text = _short_fraction(value.isoformat())
    return text.removesuffix("+00:00") + "Z" if value.utcoffset() == timedelta(0) else text


def _short_fraction(text: str) -> str:
    if "." not in text:
        return text
    return _FRACTION.sub(lambda found: found[1] if found[1] != "." else "", text)


def _duration_text(value: timedelta) -> str:
    micros = (value.days * 86400 + value.seconds) * 10**6 + value.microseconds
    whole, fraction = divmod(abs(micros), 10**6)
    text = f"{whole}.{fraction:06d}".rstrip("0").rstrip(".")
    return f"-{text}" if micros < 0 else text


def _decimal(value: Decimal) -> str:
    if value.is_finite():
        return decimal_text(value)
    return "NaN" if value.is_nan() else "-Infinity" if value.is_signed() else "Infinity"


def _bytes_text(value: Any) -> str:
    return b64encode(bytes(value)).decode()


def _write_int(_: _Walk, value: Any, depth: int) -> JSON:
    plain = int.__int__(value)
    if -EXACT_INT <= plain <= EXACT_INT:
        return plain
    return _tag("$int", int_text)(_, plain, depth)


def _write_float(_: _Walk, value: Any, depth: int) -> JSON:
    plain = float.__float__(value)
    return plain if math.isfinite(plain) else _tag("$float", non_finite_name)(_, plain, depth)


def _write_enum(walk: _Walk, value: Any, depth: int) -> JSON:
    known = _by_class.get(value.__class__)
    inner = value.value if known is None else known.to_json(value)
    return {"$enum": [type(value).__name__, walk.value(inner, depth + 2)]}


def _write_registered(walk: _Walk, value: Any, depth: int) -> JSON:
    known = _by_class[type(value)]
    return walk.record(type(value).__name__, known.to_json(value), value, depth)


def _write_secret(walk: _Walk, value: Any, depth: int) -> JSON:
    raise NoKeyError("unsupported_type", f"{type(value).__name__}: a secret has no stored form")


def _refuse(_: _Walk, value: Any, depth: int) -> JSON:
    raise NoKeyError("unsupported_type", type(value).__name__)


def _record_writer(fields_of: Callable[[Any], dict[str, Any]]) -> _Writer:
    def write(walk: _Walk, value: Any, depth: int) -> JSON:
        try:
            fields = fields_of(value)
        except AttributeError as error:
            raise NoKeyError("unsupported_type", f"{type(value).__name__}: {error}") from None
        return walk.record(type(value).__name__, fields, value, depth)

    return write


def _dataclass_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _struct_fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


def _model_fields(value: Any) -> dict[str, Any]:
    return {**value.__dict__, **(getattr(value, "__pydantic_extra__", None) or {})}


_BUILTIN = frozenset({int, float, set, frozenset, datetime, date, time, timedelta, UUID, Decimal, bytes, bytearray})

# In this order: the first class that fits an instance writes it. A datetime is a date, an enum member may be text.
_WRITERS: tuple[tuple[type | tuple[type, ...], _Writer], ...] = (
    (LongInteger, _tag("$int", str.__str__)),
    (str, lambda _, value, __: _text(value)),
    (int, _write_int),
    (Enum, _write_enum),
    (float, _write_float),
    (Mapping, _Walk.mapping),
    ((list, tuple), _Walk.array),
    (Set, _Walk.set),
    (datetime, _tag("$datetime", _datetime_text)),
    (date, _tag("$date", lambda value: date(value.year, value.month, value.day).isoformat())),
    (time, _tag("$time", _time_text)),
    (timedelta, _tag("$duration", _duration_text)),
    (UUID, _tag("$uuid", str)),
    (Decimal, _tag("$decimal", _decimal)),
    ((bytes, bytearray, memoryview), _tag("$bytes", _bytes_text)),
    (PurePath, _tag("$path", PurePath.as_posix)),
)


@lru_cache(maxsize=1024)
def _writer_for(cls: Any) -> _Writer:
    if cls in _by_class:
        return _write_enum if issubclass(cls, Enum) else _write_registered
    for kinds, writer in _WRITERS:
        if issubclass(cls, kinds):
            return writer
    if hasattr(cls, "get_secret_value"):
        return _write_secret
    if dataclasses.is_dataclass(cls):
        return _record_writer(_dataclass_fields)
    if hasattr(cls, "__struct_fields__"):
        return _record_writer(_struct_fields)
    if hasattr(cls, "__pydantic_fields__"):
        return _record_writer(_model_fields)
    return _refuse


def from_stored(value: JSON) -> Any:
    """The Python value of a stored form, as a fresh copy.

    Objects and enum members of classes that are not registered become the plain value inside; a tag that is not
    known, or whose content is not what it says, stays as it is.
    """
    try:
        return _decode(value)
    except RecursionError:
        raise NoKeyError("too_deep") from None


def _decode(value: Any) -> Any:
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is list:
        return [_decode(item) for item in value]
    if kind is not dict:
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if type(name) is str and name.startswith("$"):
            return _decode_tag(name, inner)
    return {name: _decode(item) for name, item in value.items()}


def _decode_tag(name: str, inner: Any) -> Any:
    if name.startswith("$$"):
        return {name[1:]: _decode(inner)}
    reader = _READERS.get(name)
    if reader is not None:
        try:
            return reader(inner)
        except (ValueError, TypeError, ArithmeticError, LookupError):
            pass
    return {name: _decode(inner)}


def _read_datetime(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _read_duration(text: str) -> timedelta:
    whole, _, fraction = text.lstrip("-").partition(".")
    micros = int(whole) * 10**6 + int(fraction.ljust(6, "0") or "0")
    return timedelta(microseconds=-micros if text.startswith("-") else micros)


def _read_set(items: list[Any]) -> set[Any]:
    return {_hashable(_decode(item)) for item in items}


def _read_map(pairs: list[Any]) -> dict[Any, Any]:
    return {_hashable(_decode(name)): _decode(item) for name, item in pairs}


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(map(_hashable, cast("list[Any]", value)))
    return frozenset(cast("set[Any]", value)) if isinstance(value, set) else value


def _read_named(named: list[Any]) -> Any:
    name, form = named
    known = _by_name.get(name)
    return _decode(form) if known is None else known.from_json(_decode(form))


_READERS: dict[str, Callable[[Any], Any]] = {
    "$int": int,
    "$float": lambda text: {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[text],
    "$datetime": _read_datetime,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$duration": _read_duration,
    "$uuid": UUID,
    "$decimal": Decimal,
    "$bytes": lambda text: b64decode(text, validate=True),
    "$set": _read_set,
    "$map": _read_map,
    "$enum": _read_named,
    "$object": _read_named,
    "$path": PurePosixPath,
}
