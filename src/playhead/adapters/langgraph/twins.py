"""Twins: an object that is another object in all but its class.

A twin shares the very state of its original (fields, private attributes, caches): what one of them changes, the other
has. Its class is made from the original's class with a few methods replaced, so ``isinstance`` and every other method
are the original's. Nothing of the user's objects or classes is changed.
"""

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

T = TypeVar("T")

_STATE = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_lock = threading.Lock()
_classes: WeakKeyDictionary[type, type] = WeakKeyDictionary()

Replace = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From a method of the original's class to the twin's."""


def is_twin(value: object) -> bool:
    return "__playhead_twin__" in type(value).__dict__


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """What a twin does in its own way.

    Args:
        root: the framework's class.
        always: methods that every twin replaces.
        own: methods that are replaced where the original's class has them itself, not from ``root``. The framework asks
            by identity whether a class has them.
        fields: fields that a twin reads in its own way, though it shares them.
    """

    root: type
    always: Mapping[str, Replace]
    own: Mapping[str, Replace]
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


def twin(original: T, methods: Methods) -> T:
    """A twin of ``original``; itself where it is one."""
    if is_twin(original):
        return original
    cls = cast("type[Any]", type(original))
    made = cast("type[Any]", _classes.get(cls) or _made(cls, methods))
    new = object.__new__(made)
    for name in _STATE:
        object.__setattr__(new, name, getattr(original, name))
    return new


def _made(cls: type, methods: Methods) -> type:
    with _lock:
        known = _classes.get(cls)
        if known is None:
            members: dict[str, Any] = {
                "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__playhead_twin__": True,
            }  # fmt: skip
            for name, replace in {**methods.always, **methods.own}.items():
                own = getattr(cls, name)
                if name in methods.always or own is not getattr(methods.root, name):
                    members[name] = functools.wraps(own)(replace(own))
            known = type(cls)(cls.__name__, (cls,), members)
            for name, descriptor in methods.fields.items():
                setattr(known, name, descriptor)  # after the class is made: its making would take it for a field
            _classes[cls] = known
        return known
