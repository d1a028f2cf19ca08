"""Arguments of Python functions in stored form: for keys of tools, and for inputs of agents.

A tool's arguments are bound by name, as passed, without what equals its default. An agent's inputs are complete,
defaults included, so that a replay starts it the same although a default has changed since.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from playhead.core.canonical import NoKeyError, from_stored, to_stored
from playhead.core.keys import bind
from playhead.core.values import JSON
from playhead.engine.snapshot import Snapshot, freeze_bound


class Inputs(NamedTuple):
    """Inputs of a run, and why it cannot be started again with them, if so."""

    snapshot: Snapshot
    not_replayable: tuple[str, ...] = ()


class FunctionBinder:
    """Binds calls of one function. Callable as the binder of a snapshot.

    Args:
        exclude: parameters that are never arguments, beside ``self`` and ``cls`` of a method.
    """

    def __init__(self, function: Callable[..., Any], exclude: Collection[str] = ()) -> None:
        self._function = function
        self.signature = inspect.signature(function)
        self._exclude = frozenset(exclude) | _receiver(function, self.signature)

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JSON:
        """The arguments by name in stored form.

        Raises:
            TypeError: they do not fit the signature.
            NoKeyError: one has no stored form.
        """
        bound = bind(self.signature, args, kwargs, exclude=self._exclude)
        if not self._lowered:
            return to_stored(bound)
        return {name: self._stored(name, value) for name, value in bound.items()}

    def _stored(self, name: str, value: Any) -> JSON:
        try:
            return to_stored(value, lower=self._lower(name))
        except NoKeyError as error:
            error.below(name)
            raise

    def _lower(self, name: str) -> Callable[[object], object] | None:
        return lowered if name in self._lowered else None

    @cached_property
    def hints(self) -> dict[str, Any]:
        """Annotations, where they can be resolved."""
        try:
            return typing.get_type_hints(inspect.unwrap(self._function))
        except Exception:  # noqa: BLE001 - names that exist only for type checkers
            return {}

    @cached_property
    def _lowered(self) -> frozenset[str]:
        """Parameters declared with exactly one record type: their values are stored as plain objects."""
        return frozenset(name for name, hint in self.hints.items() if name != "return" and len(record_types(hint)) == 1)

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Inputs:
        """The inputs of a run that is a call of the function."""
        snapshot = freeze_bound(self._whole, args, kwargs)
        if snapshot[0] == "bound":
            return Inputs(snapshot)
        stored: dict[str, JSON] = {}
        problems: list[str] = []
        try:
            values = self._with_defaults(args, kwargs)
        except TypeError:  # the call itself will say so
            return Inputs(("stored", None), ("the arguments do not fit the function",))
        for name, value in values.items():
            try:
                stored[name] = to_stored(value)
            except NoKeyError as problem:
                problems.append(f"input {name!r} cannot be stored: {problem}")
                continue
            if not comes_back(stored[name]):
                kind = type(value).__name__
                problems.append(
                    f"input {name!r} ({kind}) cannot be made again: register it with playhead.register_type"
                )
        return Inputs(("stored", stored), tuple(problems))

    def _whole(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JSON:
        stored: dict[str, JSON] = {}
        for name, value in self._with_defaults(args, kwargs).items():
            try:
                stored[name] = to_stored(value)
            except NoKeyError:  # only a default can be without stored form here; the function has it anyway
                continue
        return stored

    def _with_defaults(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            if name in self._exclude:
                continue
            if kind is inspect.Parameter.VAR_KEYWORD:
                values.update(value)
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                values[name] = value
            elif value:
                values[name] = list(value)
        return values


def _receiver(function: Callable[..., Any], signature: inspect.Signature) -> frozenset[str]:
    first = next(iter(signature.parameters), None)
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    is_method = bool(owner) and not owner.endswith("<locals>") and not inspect.ismethod(function)
    return frozenset({first}) if first in ("self", "cls") and is_method else frozenset()


def record_types(hint: Any) -> set[type]:
    """Dataclasses, pydantic models and msgspec structs named by an annotation, at any depth of its arguments."""
    found: set[type] = set()
    todo = [hint]
    while todo:
        one = todo.pop()
        if isinstance(one, type) and not isinstance(one, types.GenericAlias) and is_record(one):
            found.add(one)
        todo.extend(arg for arg in typing.get_args(one) if not isinstance(arg, str))
    return found


def is_record(cls: type) -> bool:
    return any(hasattr(cls, name) for name in ("__dataclass_fields__", "__pydantic_fields__", "__struct_fields__"))


def lowered(value: object) -> object:
    """A record as a plain mapping of its members, anything else as `NotImplemented`."""
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(cls)}
    if hasattr(cls, "__pydantic_fields__"):
        extra: dict[str, Any] = getattr(value, "__pydantic_extra__", None) or {}
        return {**vars(value), **extra}
    if hasattr(cls, "__struct_fields__"):
        return {name: getattr(value, name) for name in getattr(cls, "__struct_fields__", ())}
    return NotImplemented


def comes_back(stored: JSON) -> bool:
    """Whether reading a stored form gives the value that was stored: not so for classes that nobody registered."""
    try:
        return to_stored(from_stored(stored)) == stored
    except Exception:  # noqa: BLE001 - a from_json of the user
        return False
