"""Values to plain JSON and back: the one stored form, its version, and the reading of every older version.

`dump` and `load` work on JSON objects, `encode` and `decode` on their text. Members with the default value are left
out. Members that hold `JSON` pass through untouched, so a dumped value may hold `Encoded` parts until it is encoded.

`load` trusts nobody by default: unknown members, wrong types and newer formats are a `FormatError` that names the
place. A store reads its own rows with ``trusted=True``, which builds the value and checks nothing.
"""

import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

import orjson

from playhead.core.json_text import (
    NoKeyError,
    has_non_finite,
    marshalled,
    may_have_wide_integers,
    nesting,
    parse_json,
    pointer,
    render,
)
from playhead.core.values import JSON, Encoded
from playhead.errors import FormatError

FORMAT = 1
"""Version of the stored form that `dump` writes. Raised when a reader of the last version would misread it."""

Upgrade = Callable[[str, dict[str, JSON]], dict[str, JSON]]

_UPGRADES: dict[int, Upgrade] = {}
"""Format n -> function (class name, object in format n) -> object in format n + 1. It may not change its argument."""

_PLAIN = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SORTED = _PLAIN | orjson.OPT_SORT_KEYS
_DEEPEST = 240
"""Levels that every reader of the stored form is sure to manage."""

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    default: Any
    dump: Callable[[Any], JSON] | None
    load: Callable[[JSON], Any] | None
    inner: type | None  # the dataclass inside, for the search for unknown members


def dump(value: Any) -> dict[str, JSON]:
    """The JSON object of a session, node, verdict, agent version, replay or any part of one."""
    return _dumper(cast("type[Any]", type(value)))(value)


def load(cls: type[V], data: JSON, *, format: int = FORMAT, trusted: bool = False) -> V:
    """The value of a JSON object that was dumped in ``format``.

    Raises:
        FormatError: not such an object; ``details["at"]`` is the JSON pointer of the place.
    """
    if format != FORMAT:
        data = _upgraded(cls, data, format)
    if not trusted:
        return _validated(cls, data)
    return _built(cls, data)


def encode(value: JSON, *, sort_keys: bool = False) -> bytes:
    """JSON text of stored JSON; `Encoded` parts go in as they are, a float that is not finite in its tagged form.

    Raises:
        FormatError: not stored JSON, or nested too deeply to be read again.
    """
    try:
        text = orjson.dumps(value, _fragment, _SORTED if sort_keys else _PLAIN)
    except TypeError:  # wide integers, lone surrogates, deep nesting, or not JSON
        return _rendered(value)
    if b"null" in text and not _all_finite(value):  # what orjson makes of NaN
        return _rendered(value)
    return text


def _rendered(value: JSON) -> bytes:
    try:
        text = render(plain(value))
    except NoKeyError as error:
        raise FormatError(f"cannot be stored: {error}", at=error.no_key.at) from error
    if nesting(text.decode()) > _DEEPEST:
        raise FormatError(f"cannot be stored: nested more than {_DEEPEST} levels deep", at="")
    return text


def decode(text: bytes) -> JSON:
    """Inverse of `encode`; every integer is exact.

    Raises:
        FormatError: not JSON.
    """
    try:
        value = orjson.loads(text)
        return parse_json(text) if may_have_wide_integers(text) else value
    except ValueError:  # lone surrogates, wide integers in deep nesting, or not JSON
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", at="") from error


def plain(value: JSON) -> JSON:
    """A copy in which every `Encoded` is parsed. Walks with a stack of its own, so depth does not matter."""
    root: list[JSON] = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        box, place = todo.pop()
        held: JSON = box[place]
        if isinstance(held, Encoded):
            box[place] = decode(held.text)
        elif isinstance(held, dict):
            copied = dict(cast("dict[str, JSON]", held))
            box[place] = copied
            todo.extend((copied, name) for name in copied)
        elif isinstance(held, list | tuple):
            items = list(cast("list[JSON]", held))
            box[place] = items
            todo.extend((items, index) for index in range(len(items)))
    return root[0]


def _all_finite(value: JSON) -> bool:
    proof = marshalled(value)  # refuses `Encoded` parts, so values that hold some are walked
    return _finite_in(value) if proof is None else not has_non_finite(proof) or _finite_in(value)


def _finite_in(value: JSON) -> bool:
    todo: list[JSON] = [value]
    while todo:
        held: JSON = todo.pop()
        if isinstance(held, float):
            if not math.isfinite(held):
                return False
        elif isinstance(held, dict):
            todo.extend(cast("dict[str, JSON]", held).values())
        elif isinstance(held, list | tuple):
            todo.extend(cast("list[JSON]", held))
    return True


def _fragment(value: object) -> orjson.Fragment:
    if isinstance(value, Encoded):
        return orjson.Fragment(value.text)
    raise TypeError(f"not stored JSON: {type(value).__name__}")


# Classes to members


@cache
def _members(cls: type) -> tuple[_Member, ...]:
    hints = typing.get_type_hints(cls)
    return tuple(_member(f.name, _default(f), hints[f.name]) for f in fields(cls))


@cache
def _by_name(cls: type) -> dict[str, _Member]:
    return {member.name: member for member in _members(cls)}


def _default(f: Any) -> Any:
    if f.default_factory is not MISSING:
        return f.default_factory()
    return f.default


def _member(name: str, default: Any, hint: Any) -> _Member:
    if hint is float or float in typing.get_args(hint):
        return _Member(name, default, None, _float, None)
    hint = _not_none(hint)
    if typing.get_origin(hint) is tuple:
        item = _not_none(typing.get_args(hint)[0])
        if is_dataclass(item):
            assert isinstance(item, type)
            return _Member(name, default, lambda held: [dump(i) for i in held], _tuple_of(item), item)
        return _Member(name, default, list, tuple, None)
    if isinstance(hint, type) and issubclass(hint, Enum):
        by_value = {item.value: item for item in hint}
        return _Member(name, default, lambda held: held.value, by_value.__getitem__, None)
    if isinstance(hint, type) and is_dataclass(hint):
        return _Member(name, default, dump, lambda data: _built(hint, data), hint)
    return _Member(name, default, None, None, None)


def _float(held: JSON) -> Any:
    """A number, which `encode` tagged where it is not finite."""
    if isinstance(held, dict):
        tagged = cast("dict[str, JSON]", held).get("$float")
        return _NOT_FINITE.get(str(tagged), cast("JSON", held))
    return held


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _tuple_of(item: type) -> Callable[[JSON], Any]:
    def build(data: list[dict[str, JSON]]) -> tuple[Any, ...]:
        return tuple([_built(item, part) for part in data])

    return build


def _not_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        rest = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return rest[0] if len(rest) == 1 else object
    return hint


@cache
def _dumper(cls: type) -> Callable[[Any], dict[str, JSON]]:
    """A function written out for the class, several times faster than a loop over its members."""
    lines = ["def dump_one(value):", "    out = {}"]
    scope: dict[str, Any] = {}
    for number, member in enumerate(_members(cls)):
        scope[f"default{number}"] = member.default
        scope[f"convert{number}"] = member.dump
        changed = "is not None" if member.default is None else f"!= default{number}"
        held = "held" if member.dump is None else f"convert{number}(held)"
        if member.default is MISSING:
            lines += [f"    held = value.{member.name}", f"    out[{member.name!r}] = {held}"]
        else:
            lines += [f"    held = value.{member.name}", f"    if held {changed}: out[{member.name!r}] = {held}"]
    exec("\n".join([*lines, "    return out"]), scope)
    return scope["dump_one"]


@cache
def _builder(cls: type) -> Callable[[Mapping[str, JSON]], Any]:
    """A function written out for the class, as `_dumper`. It fills the slots, as the ``__init__`` of a frozen dataclass
    does at several times the cost."""
    names = frozenset(f.name for f in fields(cls))
    scope: dict[str, Any] = {"cls": cls, "names": names, "new": object.__new__, "absent": MISSING, "refuse": _refuse}
    lines = ["def build_one(data):", "    if not names.issuperset(data): refuse(cls, names, data)"]
    lines += ["    get = data.get", "    value = new(cls)"]
    for number, (member, field) in enumerate(zip(_members(cls), fields(cls), strict=True)):
        made = field.default_factory is not MISSING
        scope[f"default{number}"] = field.default_factory if made else member.default
        scope[f"convert{number}"] = member.load
        scope[f"set{number}"] = getattr(cls, member.name).__set__
        convert = [f"if held is not None: held = convert{number}(held)"] if member.load is not None else []
        if member.default is MISSING:
            body = [f"held = data[{member.name!r}]", *convert]
        else:
            default = f"if held is absent: held = default{number}{'()' if made else ''}"
            body = [f"held = get({member.name!r}, absent)", default, *(f"el{line}" for line in convert)]
        lines += [f"    {line}" for line in (*body, f"set{number}(value, held)")]
    exec("\n".join([*lines, "    return value"]), scope)
    return scope["build_one"]


def _refuse(cls: type, names: frozenset[str], data: Mapping[str, JSON]) -> None:
    raise TypeError(f"{cls.__name__} has no member {next(name for name in data if name not in names)!r}")


def _built(cls: type[V], data: Mapping[str, JSON]) -> V:
    return _builder(cls)(data)


# Data from elsewhere


def _upgraded(cls: type, data: JSON, format: int) -> JSON:
    if format > FORMAT:
        raise FormatError(
            f"this was written in format {format}; this playhead reads up to format {FORMAT}",
            hint="upgrade playhead",
            at="",
        )
    for version in range(format, FORMAT):
        if version not in _UPGRADES:
            raise FormatError(f"unknown format {version!r}", at="")
        data = _UPGRADES[version](cls.__name__, data)
    return data


@cache
def _adapter(cls: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def _validated(cls: type[V], data: JSON) -> V:
    from pydantic import ValidationError

    unknown = _unknown(cls, data, "")
    if unknown is not None:
        raise FormatError(f"{cls.__name__}: unknown member at {unknown}", at=unknown)
    try:
        return _adapter(cls).validate_python(_untagged(cls, data))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        if all(p["type"] == "string_unicode" for p in problems):
            return _built(cls, data)  # lone surrogates, which pydantic refuses and recordings may hold
        at = pointer(problems[0]["loc"])
        message = f"{cls.__name__}: {problems[0]['msg']} at {at or 'the top'}"
        raise FormatError(message, at=at, problems=[(pointer(p["loc"]), p["msg"]) for p in problems]) from error


def _untagged(cls: type, data: JSON) -> JSON:
    """The data with tagged floats as floats, where floats are declared."""
    if isinstance(data, list):
        return [_untagged(cls, item) for item in cast("list[JSON]", data)]
    if not isinstance(data, Mapping):
        return data
    members = _by_name(cls)
    out = dict(cast("Mapping[str, JSON]", data))
    for name, held in out.items():
        member = members[name]
        if member.load is _float:
            out[name] = _float(held)
        elif member.inner is not None:
            out[name] = _untagged(member.inner, held)
    return out


def _unknown(cls: type, data: JSON, at: str) -> str | None:
    """The pointer of the first member that the class does not have."""
    if not isinstance(data, Mapping):
        return None
    members = _by_name(cls)
    for name, held in cast("Mapping[str, JSON]", data).items():
        if name not in members:
            return at + pointer((name,))
        inner = members[name].inner
        if inner is None:
            continue
        here = at + pointer((name,))
        items: list[tuple[str, JSON]] = [(here, held)]
        if isinstance(held, list):
            items = [(f"{here}/{index}", item) for index, item in enumerate(cast("list[JSON]", held))]
        for place, item in items:
            found = _unknown(inner, item, place)
            if found is not None:
                return found
    return None
