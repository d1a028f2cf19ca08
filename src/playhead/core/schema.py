"""Validation of stored JSON against JSON Schema, without any access to the outside.

Typed values are shown to the schema as the JSON that they are usually written as; what a schema says about such a
value itself is not counted, because a decimal may be declared as text or number. Places that redaction changed do not
count either: the tag stands for a value that was valid. A schema that cannot be used says nothing.
"""

from functools import lru_cache
from json import dumps
from typing import Any, NamedTuple, TypeAlias

from jsonschema_rs import ValidationError, validator_for

from playhead.core.jcs import TAGS
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

_TAG = "[REDACTED:"
_TOO_DEEP = 200
_CAPITALS = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


class SchemaError(NamedTuple):
    pointer: str
    message: str


def schema_errors(schema: JSON, value: JSON, *, limit: int = 5) -> list[SchemaError]:
    """The first ``limit`` places where ``value`` does not fit ``schema``; none without a usable schema."""
    validator = _validator(schema)
    if validator is None:
        return []
    lowered = _Lowered()
    try:
        shown = lowered.lower(value, ())
        found: list[SchemaError] = []
        for error in validator.iter_errors(shown):
            path = tuple(error.instance_path)
            if path in lowered.uncertain or _hides(error.instance):
                continue
            found.append(SchemaError(_pointer(path), error.message))
            if len(found) >= limit:
                break
        return found
    except _UnshowableError as error:
        return [SchemaError(_pointer(error.path), "cannot be checked: it is nested too deep")]


def first_error(schema: JSON, value: JSON) -> SchemaError | None:
    """The first place where ``value`` does not fit, None when it fits."""
    return next(iter(schema_errors(schema, value, limit=1)), None)


def usable(schema: JSON) -> bool:
    """Whether the schema is one that values can be checked against."""
    return _validator(schema) is not None


def _validator(schema: JSON) -> Any:
    if not isinstance(schema, dict | bool):
        return None
    try:
        text = dumps(schema, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
    return _compiled(_Schema(text, schema))


class _Schema:
    """A schema that is hashed by its text."""

    __slots__ = ("schema", "text")

    def __init__(self, text: str, schema: JSON) -> None:
        self.text = text
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=512)
def _compiled(schema: _Schema) -> Any:
    for one in (schema.schema, _spelled(schema.schema)):
        try:
            return validator_for(one, offline=True)
        except (ValidationError, ValueError, TypeError):
            continue
    return None


def _spelled(schema: JSON) -> Any:
    """A schema in JSON Schema's own words. Gemini's declarations have names of types in capitals, and ``nullable``."""
    if is_list(schema):
        return [_spelled(item) for item in schema]
    if not is_object(schema):
        return schema
    made = {name: _spelled(what) for name, what in schema.items()}
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _CAPITALS:
        made["type"] = [kind.lower(), "null"] if schema.get("nullable") is True else kind.lower()
    return made


_Path: TypeAlias = tuple[str | int, ...]


class _UnshowableError(Exception):
    def __init__(self, path: _Path) -> None:
        super().__init__()
        self.path = path


class _Lowered:
    """Turns stored form into plain JSON; remembers where typed values stood."""

    def __init__(self) -> None:
        self.uncertain: set[_Path] = set()

    def lower(self, value: JSON, path: _Path) -> Any:
        if len(path) > _TOO_DEEP:
            raise _UnshowableError(path[:3])
        if is_object(value):
            return self._object(value, path)
        if is_list(value):
            return [self.lower(item, (*path, i)) for i, item in enumerate(value)]
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode() if not value.isascii() else value
        return value

    def _object(self, value: dict[str, Any], path: _Path) -> Any:
        if len(value) == 1:
            name, inner = next(iter(value.items()))
            if name.startswith("$$"):
                return {name[1:]: self.lower(inner, (*path, name[1:]))}
            if name in TAGS:
                return self._typed(name, inner, path)
        return {self.lower(k, ()): self.lower(v, (*path, k)) for k, v in value.items()}

    def _typed(self, name: str, inner: Any, path: _Path) -> Any:
        if name == "$int" and isinstance(inner, str) and len(inner) <= 4300:
            return int(inner)
        if name in ("$set", "$object", "$enum") and is_list(inner):
            if name == "$set":
                return [self.lower(item, (*path, i)) for i, item in enumerate(inner)]
            return self.lower(inner[-1], path) if inner else None
        self.uncertain.add(path)
        return inner if isinstance(inner, str | int | float | bool) else None


def _hides(instance: Any) -> bool:
    """Whether redaction changed this very value, or the member names of this object."""
    if isinstance(instance, str):
        return _TAG in instance
    return is_object(instance) and any(_TAG in name for name in instance)


def _pointer(path: _Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
