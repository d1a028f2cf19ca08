"""What the declaration of an op says about its arguments and its result, as JSON Schema and as Python types.

pydantic and msgspec are imported when the first schema is asked for, never by a declaration.
"""

import collections.abc
import inspect
import sys
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from playhead.core.canonical import NoKeyError, digest, from_stored, to_stored
from playhead.core.protocol.shape import is_object
from playhead.core.schema import SchemaError, schema_errors, usable
from playhead.core.values import JSON
from playhead.engine.binding import FunctionBinder, comes_back, lowered, record_types
from playhead.engine.typed_dicts import portable
from playhead.errors import ConfigError

MISSING: Any = inspect.Parameter.empty
_STREAMS = (
    collections.abc.Generator, collections.abc.Iterator, collections.abc.Iterable,
    collections.abc.AsyncGenerator, collections.abc.AsyncIterator, collections.abc.AsyncIterable,
)  # fmt: skip


class Stored(NamedTuple):
    """A result in stored form, or why it has none."""

    value: JSON = None
    problem: str | None = None


class InputShape:
    """The arguments of an op.

    Args:
        schema: JSON Schema that the user gave in place of annotations.
        exclude: parameters that are no arguments.
    """

    def __init__(self, binder: FunctionBinder, schema: JSON, exclude: frozenset[str]) -> None:
        self._binder = binder
        self._given = schema
        self.parameters = {
            name: parameter for name, parameter in binder.signature.parameters.items() if name not in exclude
        }
        if schema is not None:
            annotated = [name for name in self.parameters if self.parameters[name].annotation is not MISSING]
            if annotated:
                raise ConfigError(f"input= and an annotation of {annotated[0]!r}: an op has one or the other")
            _usable("input", schema)

    @cached_property
    def schema(self) -> JSON:
        if self._given is not None:
            return self._given
        named = {name: each for name, each in self.parameters.items() if each.kind not in _VARIABLE}
        schemas, definitions = schemas_of({name: self._binder.hints.get(name, Any) for name in named})
        open_ended = any(each.kind is each.VAR_KEYWORD for each in self.parameters.values())
        schema: dict[str, JSON] = {
            "type": "object",
            "properties": schemas,
            "required": [name for name, each in named.items() if each.default is MISSING],
        }
        if not open_ended and len(named) == len(self.parameters):
            schema["additionalProperties"] = False
        return {**schema, "$defs": definitions} if definitions else schema

    @cached_property
    def schema_defaults(self) -> dict[str, Any]:
        """Defaults that only the given schema declares."""
        properties: Any = self._given.get("properties") if is_object(self._given) else None
        found = properties.items() if is_object(properties) else ()
        return {name: each["default"] for name, each in found if is_object(each) and "default" in each}

    @cached_property
    def defaults(self) -> dict[str, JSON]:
        """Every default that has a stored form."""
        found = {name: each.default for name, each in self.parameters.items() if each.default is not MISSING}
        stored: dict[str, JSON] = {}
        for name, value in (self.schema_defaults | found).items():
            try:
                stored[name] = to_stored(value, lower=lowered)
            except NoKeyError:
                continue
        return stored

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.schema)

    def make(self, name: str, plain: Any) -> Any:
        """A plain value as what the parameter is declared as.

        Raises:
            ValueError: it does not fit.
        """
        hint = self._binder.hints.get(name, MISSING)
        return plain if hint is MISSING or hint is Any else _as_declared(plain, hint)

    def errors(self, arguments: dict[str, JSON]) -> list[SchemaError]:
        """Where arguments in stored form do not fit, defaults filled in."""
        return schema_errors(self.schema, {**self.defaults, **arguments}, limit=100)


class OutputShape:
    """The result of an op, or the items of its stream.

    Args:
        schema: JSON Schema that the user gave in place of an annotation.
    """

    def __init__(self, binder: FunctionBinder, schema: JSON, *, stream: bool) -> None:
        self._binder = binder
        self._given = schema
        self._stream = stream
        annotated = binder.signature.return_annotation is not MISSING
        if schema is not None:
            if annotated:
                raise ConfigError("output= and a return annotation: an op has one or the other")
            _usable("output", schema)

    @cached_property
    def hint(self) -> Any:
        """The declared type; `MISSING` without one."""
        hint = self._binder.hints.get("return", MISSING)
        if self._stream and typing.get_origin(hint) in _STREAMS:
            hint = (*typing.get_args(hint), MISSING)[0]
        return MISSING if hint is Any else hint

    @cached_property
    def schema(self) -> JSON:
        if self._given is not None or self.hint is MISSING:
            return self._given
        schemas, definitions = schemas_of({"result": self.hint})
        result: Any = schemas["result"]
        return {**result, "$defs": definitions} if definitions else result

    @cached_property
    def fingerprint(self) -> str | None:
        return None if self.schema is None else fingerprint(self.schema)

    def errors(self, stored: JSON) -> list[SchemaError]:
        return [] if self.schema is None else schema_errors(self.schema, stored)

    def store(self, value: Any) -> Stored:
        """The stored form, through the declared type where there is one."""
        one_type = self.hint is not MISSING and len(record_types(self.hint)) == 1
        try:
            stored = to_stored(value, lower=lowered if one_type else None)
        except NoKeyError as error:
            return Stored(problem=f"it has no stored form: {error}")
        except Exception as error:  # noqa: BLE001 - a to_json or a property of the user
            return Stored(problem=f"it has no stored form: {type(error).__name__}: {error}")
        if not one_type and not comes_back(stored):
            return Stored(
                problem=f"it holds an undeclared class: declare it, or playhead.register_type ({_kind(value)})"
            )
        return Stored(stored)

    def make(self, stored: JSON) -> Any:
        """A fresh value of the declared type.

        Raises:
            ValueError: it does not fit the type.
        """
        plain = from_stored(stored)
        return plain if self.hint is MISSING else _as_declared(plain, self.hint)


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def fingerprint(schema: JSON) -> str:
    return f"sha256:{digest(schema).hex()}"


def _usable(name: str, schema: JSON) -> None:
    if not usable(schema):
        raise ConfigError(f"{name}= is no JSON Schema that can be used", hint="a JSON object in the 2020-12 dialect")


def _kind(value: Any) -> str:
    return type(value).__name__


def _is_msgspec(hint: Any) -> bool:
    return "msgspec" in sys.modules and any(hasattr(each, "__struct_fields__") for each in record_types(hint))


def schemas_of(hints: Mapping[str, Any]) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """A schema per name, and the definitions that they share. A type without a schema allows everything."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    schemas: dict[str, JSON] = {}
    definitions: dict[str, JSON] = {}
    adapters: list[tuple[str, Any, Any]] = []
    for name, hint in hints.items():
        schemas[name] = {}
        if _is_msgspec(hint):
            import msgspec

            (schemas[name],), found = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
            definitions |= found
            continue
        try:
            adapter: Any = TypeAdapter(portable(hint))
            adapter.json_schema(mode="serialization")
        except (PydanticUserError, TypeError, NameError):
            continue
        adapters.append((name, "serialization", adapter))
    found_schemas, shared = TypeAdapter.json_schemas(adapters)
    schemas |= {str(name): found for (name, _), found in found_schemas.items()}
    definitions |= shared.get("$defs", {})
    return schemas, definitions


def _as_declared(plain: Any, hint: Any) -> Any:
    if _is_msgspec(hint):
        import msgspec

        return msgspec.convert(plain, hint)
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: Any = TypeAdapter(portable(hint))
    except (PydanticUserError, TypeError, NameError):
        return plain
    return adapter.validate_python(plain)


def problems(errors: Sequence[SchemaError], most: int = 5) -> str:
    """The places and what is wrong there, in one line."""
    lines = [f"{each.pointer or '/'}: {each.message}" for each in errors[:most]]
    return "; ".join([*lines, f"and {len(errors) - most} more"] if len(errors) > most else lines)
