"""What the marker says about a test, and which set of fixtures is the test's own."""

import difflib
import inspect
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest

from playhead.adapters.fixtures import fixtures
from playhead.core.fixtures.file import safe
from playhead.core.fixtures.modes import parse_mode
from playhead.engine.fixtures.calls import FixtureOptions
from playhead.errors import UsageError

OPTIONS = tuple(
    name for name in inspect.signature(fixtures).parameters if name not in ("dir", "strict", "save", "test")
)
_SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The marker of a test, read. ``own``: the set belongs to this test alone."""

    mode: str | None
    own: bool
    options: FixtureOptions


def read_marker(item: pytest.Item) -> Marked:
    """The options of a test: markers of the function count before those of its class and module.

    Raises:
        UsageError: an option that is not known, or a value that is none.
    """
    said: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("playhead"))):
        if marker.args:
            raise UsageError(f"the marker playhead takes options by name, not {marker.args[0]!r}", hint="set=...")
        said |= marker.kwargs
    for name in said:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(OPTIONS)}"
            raise UsageError(f"unknown option {name!r} of the marker playhead", hint=hint)
    mode, name = said.pop("mode", None), said.pop("set", None)
    if not isinstance(mode, str | None) or not isinstance(name, str | None):
        raise UsageError("mode and set of the marker playhead are text")
    parse_mode(mode or "")
    try:
        options = fixtures(set=set_of(item.nodeid) if name is None else "" if name == _SHARED else name, **said).options
    except TypeError as error:
        raise UsageError(f"the marker playhead: {error}") from None
    return Marked(mode=mode, own=name is None, options=options)


def set_of(nodeid: str) -> str:
    """The set of a test: module path with dots, then its name; with a digest of the id where that had to change."""
    path, *names = nodeid.split("::") if "[" not in nodeid else _with_parameters(nodeid)
    modules = [part for part in path.removesuffix(".py").split("/") if part] or ["session"]
    changed = any(safe(part) != part for part in (*modules, *names))
    name = ".".join(map(safe, names))
    return f"{'.'.join(map(safe, modules))}/{name}{'-' + sha256(nodeid.encode()).hexdigest()[:6] if changed else ''}"


def _with_parameters(nodeid: str) -> list[str]:
    """The parts of a node id whose parameters may hold the mark between parts."""
    plain, _, parameters = nodeid.partition("[")
    *parts, last = plain.split("::")
    return [*parts, f"{last}[{parameters}"]
