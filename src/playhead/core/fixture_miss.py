"""The text of a call that no fixture answers: what was asked, what is recorded nearest to it, and how to record it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.core.fixture_file import Fixture
from playhead.core.match import count_differences, differences
from playhead.core.miss import shown
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON
from playhead.errors import MissingFixtureError

_SHOWN = 5
_MANY = 1_000_000


class Recorded(NamedTuple):
    """A fixture of the same tool, by the name of its file."""

    file: str
    fixture: Fixture


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that has no answer. ``arguments`` are without secrets; ``count`` is how many answers its key has."""

    tool: str
    key: str
    arguments: JSON
    mode: str
    folder: str
    total: int
    command: str
    count: int = 0
    note: str = ""
    live: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values that came from calls which ran live in this run, with the tool, by `trace_of`."""


def missing(asked: Asked, reason: str, recorded: Sequence[Recorded]) -> MissingFixtureError:
    """The error of a miss. ``recorded``: what the folder holds of the tool."""
    near = _nearest(asked.arguments, recorded)
    lines = [
        _FIRST.get(reason, "no recording answers {tool}").format(
            tool=asked.tool, count=asked.count, folder=asked.folder, note=asked.note
        )
    ]
    lines.append(f"  asked    {shown(asked.arguments)}  key {asked.key[:18] or 'none'}")
    closest: dict[str, JSON] | None = None
    pointers: list[str] = []
    if near is not None:
        found = differences(near.fixture.args, asked.arguments)
        when = str(near.fixture.recorded.get("at") or "")[:10]
        lines.append(f"  closest  {near.file}{f', recorded {when}' if when else ''}")
        lines += [
            f"  differs  {each.pointer or '(all)'}  recorded {shown(each.left)}, asked {shown(each.right)}"
            for each in found[:_SHOWN]
        ]
        lines += [
            f"  differs  {each.pointer} came from live call {tool}"
            for each in found[:_SHOWN] if (tool := asked.live.get(trace_of(each.right)))
        ]  # fmt: skip
        if len(found) > _SHOWN:
            lines.append(f"  differs  at {len(found) - _SHOWN} more places")
        pointers = [each.pointer for each in found[:_SHOWN] if each.pointer]
        closest = {"file": near.file, "occurrence": near.fixture.occurrence, "differences": list(pointers)}
    lines.append(f"  folder   {asked.folder}: {_counted(len(recorded))} of {asked.tool}, {asked.total} in all")
    lines.append(f"  record   {asked.command}")
    if pointers and reason == "other_args":
        quoted = ", ".join(f'"{pointer}"' for pointer in pointers)
        lines.append(f"  or       ignore a field that always changes: ignore=[{quoted}]")
    lines.append(f"  Nothing was run: mode is {asked.mode}.")
    return MissingFixtureError(
        "\n".join(lines), tool=asked.tool, key=asked.key, reason=reason, closest=closest,
        folder=asked.folder, command=asked.command,
    )  # fmt: skip


def _counted(number: int) -> str:
    return f"{number} recording{'' if number == 1 else 's'}"


def trace_of(value: JSON) -> str:
    """What tells a value from others well enough to say where it came from; empty for what is too common."""
    if isinstance(value, str):
        return f"text {value}" if len(value) > 2 else ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"number {value}" if abs(value) > 9 else ""
    return ""


def traces_in(value: JSON) -> Iterator[str]:
    """The traces of everything in a value."""
    if is_object(value):
        for item in value.values():
            yield from traces_in(item)
    elif is_list(value):
        for item in value:
            yield from traces_in(item)
    elif trace := trace_of(value):
        yield trace


_FIRST = {
    "never_recorded": "{tool} was never recorded in {folder}",
    "used_up": "all {count} recorded answers of {tool} are used",
    "no_key": "the call of {tool} has no key: {note}",
    "not_recorded": "the recording run of {tool} failed here ({note}), which cannot be replayed",
    "default_changed": "a default of {tool} has changed ({note}): what is recorded was the answer to another call",
    "incomplete": "more of the answer of {tool} is asked for than was recorded",
    "truncated": "the recorded answer of {tool} was too large to be kept",
    "ambiguous": "equal calls of {tool} overlapped when they were recorded, and their answers differ",
}


def _nearest(arguments: JSON, recorded: Sequence[Recorded]) -> Recorded | None:
    """Fewest differing places, then the newest."""
    best: tuple[int, Recorded] | None = None
    newest_first = sorted(recorded, key=lambda each: str(each.fixture.recorded.get("at")), reverse=True)
    for each in newest_first:
        count = count_differences(each.fixture.args, arguments, best[0] if best else _MANY)
        if best is None or count < best[0]:
            best = (count, each)
    return best[1] if best else None
