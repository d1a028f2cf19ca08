"""`install()`: the clients of `httpx` and `httpx2`, those imported already and those imported later.

A library that the user's code never imports is never imported here. Until both are there, a finder that finds nothing
itself waits at the front of ``sys.meta_path`` for the first import of one of them; it leaves when it has seen both.
"""

import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from playhead.adapters.wire.clients import Library

_NAMES = ("httpx", "httpx2")
_lock = threading.RLock()
_wrapped: dict[str, Library] = {}


def install() -> None:
    """Records the model calls of every client while a session is open. Calling it again changes nothing."""
    with _lock:
        for name in _NAMES:
            if _is_ready(name):
                _wrap(sys.modules[name])
        if len(_wrapped) < len(_NAMES) and _waiting not in sys.meta_path:
            sys.meta_path.insert(0, _waiting)


def uninstall() -> None:
    """Undoes `install`. Requests under way are recorded to their end."""
    with _lock:
        if _waiting in sys.meta_path:
            sys.meta_path.remove(_waiting)
        for library in _wrapped.values():
            library.unwrap()
        _wrapped.clear()


def is_installed() -> bool:
    """Whether clients are wrapped, or will be when they are imported."""
    return bool(_wrapped) or _waiting in sys.meta_path


def _is_ready(name: str) -> bool:
    return hasattr(sys.modules.get(name), "AsyncClient")


def _wrap(module: ModuleType) -> None:
    library = _wrapped.setdefault(module.__name__, Library(module))
    library.wrap()
    if len(_wrapped) == len(_NAMES) and _waiting in sys.meta_path:
        sys.meta_path.remove(_waiting)


class _Waiting:
    """Sees the first import of a library, lets the real finders do it, and wraps the module when it is there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _NAMES or path is not None:
            return None
        spec = _found(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _found(name: str, path: Sequence[str] | None, target: ModuleType | None) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is not _waiting and (spec := finder.find_spec(name, path, target)) is not None:
            return spec
    return None


class _Loader(importlib.abc.Loader):
    """The real loader, followed by wrapping."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        with _lock:
            if _waiting in sys.meta_path and _is_ready(module.__name__):
                _wrap(module)


_waiting: Any = _Waiting()
