"""`install()`: the clients of `httpx` and `httpx2`, as far as they are imported.

A library that the user's code does not import is never imported here; who wants one seen that is imported later calls
`install` again then, as `playhead.install()` does.
"""

import sys
import threading

from playhead.adapters.wire.clients import Library

_NAMES = ("httpx", "httpx2")
_lock = threading.Lock()
_wrapped: dict[str, Library] = {}


def install() -> None:
    """Records the model calls of every client while a session is open. Calling it again changes nothing."""
    with _lock:
        for name in _NAMES:
            module = sys.modules.get(name)
            if name not in _wrapped and hasattr(module, "AsyncClient"):
                _wrapped[name] = Library(module)
                _wrapped[name].wrap()


def uninstall() -> None:
    """Undoes `install`. Requests under way are recorded to their end."""
    with _lock:
        for library in _wrapped.values():
            library.unwrap()
        _wrapped.clear()


def is_installed() -> bool:
    """Whether the clients of a library are wrapped."""
    return bool(_wrapped)
