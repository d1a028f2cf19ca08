"""Wrapping methods of other people's classes, and taking it back: what `install()` of adapters is made of."""

import inspect
import threading
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, cast

from playhead.errors import RecordingError


class Patches:
    """Wrapped methods of classes and modules. ``active`` is false once they are undone.

    Where somebody else wrapped on top of ours meanwhile, ours stays in the middle: wrappers ask `active`, and do
    nothing more when it is false.
    """

    def __init__(self) -> None:
        self.active = True
        self._made: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Puts ``make(original)`` in the place of what ``owner`` itself has, else inherits, under a name."""
        held = _attributes(owner)
        original = held[name] if name in held else getattr(owner, name)
        made = make(original)
        self._made.append((owner, name, original, made))
        setattr(owner, name, made)

    def undo(self) -> None:
        self.active = False
        for owner, name, original, made in reversed(self._made):
            if _attributes(owner).get(name) is made:
                setattr(owner, name, original)
        self._made.clear()


_ANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _attributes(owner: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", vars(owner))


def require(package: str, page: str, hooks: Mapping[str, Any]) -> None:
    """Refuses to wrap a framework that lacks a hook. ``hooks``: the name of each, and whether it was found.

    Raises:
        RecordingError: a hook is not there, so nothing would be recorded.
    """
    missing = [name for name, found in hooks.items() if not found]
    if missing:
        raise RecordingError(
            f"{package} {_version(package)} has no {', '.join(missing)}: its calls would not be recorded",
            hint=f"use a version that docs/{page} names, or a newer playhead",
        )


def unknown_parameters(hook: Any, ours: Any) -> list[str]:
    """The parameters of a framework's hook that what we put in its place does not take."""
    theirs = getattr(hook, "__code__", None)
    code = getattr(ours, "__code__", None)
    if theirs is None or code is None or code.co_flags & _ANY == _ANY:
        return []
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [name for name in theirs.co_varnames[: theirs.co_argcount + theirs.co_kwonlyargcount] if name not in known]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(unknown version)"


class Activation:
    """The global form of one adapter: what `install()`, `uninstall()` and `is_installed()` of its package are.

    Args:
        package: the distribution that is wrapped.
        page: the page under docs/ that names its versions.
        hooks: what the wrapping takes, by name, and whether this version has it.
        wrap: wraps it.
        unwrap: takes back what is no patch.
    """

    def __init__(
        self, package: str, page: str, *, hooks: Callable[[], Mapping[str, Any]], wrap: Callable[[Patches], None],
        unwrap: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._package = package
        self._page = page
        self._hooks = hooks
        self._wrap = wrap
        self._unwrap = unwrap
        self._lock = threading.Lock()
        self._patches: Patches | None = None

    def install(self) -> None:
        """Sees the framework while a session is open; whether a run outside one opens its own is for
        `engine.zero_code` to say. Calling it again changes nothing.

        Raises:
            RecordingError: this version has not the hooks that recording takes.
        """
        with self._lock:
            if self._patches is not None:
                return
            require(self._package, self._page, self._hooks())
            patches = Patches()
            try:
                self._wrap(patches)
            except BaseException:
                patches.undo()
                raise
            self._patches = patches

    def uninstall(self) -> None:
        """Undoes `install`. Runs that have started keep what they have."""
        with self._lock:
            patches, self._patches = self._patches, None
            if patches is not None:
                patches.undo()
                if self._unwrap is not None:
                    self._unwrap()

    def is_installed(self) -> bool:
        """Whether `install` is in force."""
        return self._patches is not None
