"""Snapshots: what the agent's thread hands to the writer thread without walking or encoding it.

A value handed over may be changed by the agent a moment later, so it is copied at once, but only copied: keys, stored
forms, redaction and JSON text are made by the writer. A snapshot is a pair (how, data):

- ``"value"``: an immutable value itself;
- ``"copy"``: a `marshal` copy of plain JSON-like data. `marshal` copies such data exactly (NaN, big integers, lone
  surrogates, tuples), refuses every subclass and foreign object, and is three times as fast as any walk. It takes
  objects with a buffer (arrays) for bytes, so what it took must also pass `orjson`, which refuses those;
- ``"stored"``: a value that has its stored form already (typed values, found by the slow path);
- ``"json"``: a `marshal` copy of something that is in stored form;
- ``"none"``: a value without a stored form; the data is the `NoKeyError` that says why;
- ``"text"``: arguments as a model wrote them, not yet parsed;
- ``"bound"``: (binder, `marshal` copy of args and kwargs) of a call made by code; the binder names the arguments.
"""

import marshal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import orjson

from playhead.core.canonical import NoKeyError, canonical_stored, from_stored, parse_emitted, to_stored
from playhead.core.values import JSON

How: TypeAlias = Literal["value", "copy", "stored", "json", "none", "text", "bound"]
Snapshot: TypeAlias = tuple[How, Any]

Binder: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any]], JSON]
"""Positional and keyword arguments to arguments by name, in stored form."""

NOTHING: Snapshot = ("value", None)
_IMMUTABLE = frozenset({type(None), bool, int, float, str})


def freeze(value: Any) -> Snapshot:
    """A snapshot of ``value``. Never raises."""
    if type(value) in _IMMUTABLE:
        return ("value", value)
    try:
        copy = marshal.dumps(value)
        orjson.dumps(value)
    except Exception:  # noqa: BLE001 - typed values, foreign objects, too deep, no encodable text: the slow path decides
        return _slow(value)
    return ("copy", copy)


def _slow(value: Any) -> Snapshot:
    try:
        return ("stored", to_stored(value))
    except NoKeyError as error:
        return ("none", error)
    except Exception as error:  # noqa: BLE001 - user code runs while objects are lowered
        return ("none", NoKeyError("unsupported_type", f"{type(value).__name__}: {type(error).__name__}"))


def freeze_stored(value: JSON) -> Snapshot:
    """A snapshot of something in stored form."""
    if type(value) in _IMMUTABLE:
        return ("stored", value)
    try:
        return ("json", marshal.dumps(value))
    except ValueError:  # nested too deep, or `Encoded` parts: whoever made it gave it away
        return ("stored", value)


def freeze_emitted(arguments: Any) -> Snapshot:
    """A snapshot of arguments as a model emitted them: JSON text, or an object of plain data."""
    if type(arguments) is str or type(arguments) is bytes:
        return ("text", arguments)
    return freeze(arguments)


def freeze_bound(binder: Binder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Snapshot:
    """A snapshot of a call made by code; it is bound when somebody needs the arguments."""
    try:
        call: Any = (args, kwargs)
        copy = marshal.dumps(call)
        orjson.dumps(call)
    except Exception:  # noqa: BLE001 - see freeze
        try:
            return ("stored", binder(args, kwargs))
        except NoKeyError as error:
            return ("none", error)
        except Exception as error:  # noqa: BLE001 - arguments that do not fit, or user code while they are lowered
            return ("none", NoKeyError("unsupported_type", f"{type(error).__name__} while binding"))
    return ("bound", (binder, copy))


def thaw(snapshot: Snapshot) -> JSON:
    """The stored form.

    Raises:
        NoKeyError: there is none.
    """
    how, data = snapshot
    return _THAW[how](data)


def _raise(error: NoKeyError) -> JSON:
    raise error


def _bound(data: tuple[Binder, bytes]) -> JSON:
    binder, copy = data
    args, kwargs = marshal.loads(copy)
    try:
        return binder(args, kwargs)
    except TypeError as error:
        raise NoKeyError("unsupported_type", f"the arguments do not fit: {error}") from error


_THAW: dict[str, Callable[[Any], JSON]] = {
    "value": to_stored,
    "copy": lambda copy: to_stored(marshal.loads(copy)),
    "stored": lambda stored: stored,
    "json": marshal.loads,
    "none": _raise,
    "text": parse_emitted,
    "bound": _bound,
}


def same_arguments(asked: Snapshot, seen: Snapshot) -> bool:
    """Whether a call that was seen is the one that was asked for; spelled-out defaults make no difference."""
    try:
        left, right = thaw(asked), thaw(seen)
        if seen[0] == "bound" and isinstance(left, dict):
            left = seen[1][0]((), from_stored(left))
        return canonical_stored(left) == canonical_stored(right)
    except Exception:  # noqa: BLE001 - no key, or arguments that do not fit the signature: another call
        return False


def weight(snapshot: Snapshot) -> int:
    """About how many bytes a snapshot holds, for free."""
    how, data = snapshot
    if how == "bound":
        return len(data[1])
    return len(data) if isinstance(data, str | bytes) else 64
