"""Wraps the clients that are imported, and those that will be, while fixtures are in force."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from playhead.engine.import_hook import ImportHook
from playhead.engine.patching import Patches

_HOMES = {
    "httpx": "playhead.adapters.http.httpx_library",
    "httpx2": "playhead.adapters.http.httpx_library",
    "urllib3": "playhead.adapters.http.urllib3_library",
    "requests": "playhead.adapters.http.requests_library",
    "aiohttp": "playhead.adapters.http.aiohttp_library",
}


class _Active:
    """How many blocks want the clients wrapped, and what is wrapped for them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.count = 0
        self.patches: dict[str, Patches] = {}
        self.hook: ImportHook | None = None


_active = _Active()


@contextmanager
def intercepting() -> Generator[None]:
    """Requests of the clients ask the fixtures first, for the block; blocks may nest and overlap.

    No client is imported. One that is imported inside the block is wrapped then.

    Raises:
        ConfigError: a library is imported in a version that cannot be wrapped.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def intercept_for_good() -> None:
    """As `intercepting`, to the end of the process: what undoes it would find an interpreter that is half gone."""
    _enter()


def _enter() -> None:
    with _active.lock:
        _active.count += 1
        if _active.count > 1:
            return
        try:
            for name in _HOMES:
                if name in sys.modules:
                    _wrap(name)
        except BaseException:
            _leave()
            raise
        _active.hook = ImportHook({name: _wrapper(name) for name in _HOMES})
        _active.hook.start()


def _leave() -> None:
    with _active.lock:
        _active.count -= 1
        if _active.count:
            return
        if _active.hook is not None:
            _active.hook.stop()
            _active.hook = None
        for patches in _active.patches.values():
            patches.undo()
        _active.patches.clear()


def _wrapper(name: str) -> Callable[[], None]:
    return lambda: _wrap(name)


def _wrap(name: str) -> None:
    with _active.lock:
        module: Any = sys.modules[name]
        if _active.count and name not in _active.patches:
            patches = Patches()
            _active.patches[name] = patches
            import_module(_HOMES[name]).wrap(module, patches)
