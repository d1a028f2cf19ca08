"""What is wrong with a fixture folder: every file is opened, and nothing is run or written."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from playhead.core.fixture_file import Fixture, dump
from playhead.core.fixture_notes import notes_in
from playhead.core.redact import Redactor
from playhead.errors import FixtureFormatError
from playhead.store.fixtures import FixtureFolder

_DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureCheck:
    """One finding. ``subject`` is a file, a set or a tool."""

    check: str
    level: Literal["pass", "warn", "fail"]
    subject: str
    message: str
    fix: str = ""


def examine(
    folder: FixtureFolder, sets: list[str], redactor: Redactor, *, now: float, max_age_days: int | None = None
) -> list[FixtureCheck]:
    """Every finding about the sets, those about tools that are fine included.

    Args:
        now: seconds since the epoch.
        max_age_days: recordings that are older are warned about.
    """
    found: list[FixtureCheck] = list(_names(sets))
    for name in sets:
        found += _set(folder, name, redactor, now, max_age_days)
    return found


def _set(
    folder: FixtureFolder, name: str, redactor: Redactor, now: float, max_age: int | None
) -> Iterator[FixtureCheck]:
    readable: list[Fixture] = []
    damaged = 0
    for path in folder.files(name):
        try:
            fixture = folder.read(path)
            folder.value(fixture, name)
        except FixtureFormatError as error:
            version = "written by a newer playhead" in error.message
            damaged += 1
            yield FixtureCheck(
                check="file.version" if version else "file.damaged", level="fail", subject=path.name,
                message=error.message, fix="delete it and record again",
            )  # fmt: skip
            continue
        readable.append(fixture)
        yield from _file(fixture, redactor, now, max_age)
    yield from _gaps(readable)
    yield from _report(folder, name, readable, len(readable) + damaged)
    for tool, count in sorted(Counter(each.tool for each in readable).items()):
        yield FixtureCheck(check="op.recorded", level="pass", subject=tool, message=f"{tool}: {count} recordings")


def _file(fixture: Fixture, redactor: Redactor, now: float, max_age: int | None) -> Iterator[FixtureCheck]:
    held = redactor.known_in(dump(fixture))
    if held:
        yield FixtureCheck(
            check="file.secret", level="fail", subject=fixture.name, message=f"holds the value of {', '.join(held)}",
            fix="delete the file, rotate the secret, record again",
        )  # fmt: skip
    age = _age(fixture, now)
    if max_age is not None and age is not None and age > max_age:
        message = f"recorded {age} days ago, limit {max_age}"
        yield FixtureCheck(check="file.age", level="warn", subject=fixture.name, message=message, fix="record again")


def _age(fixture: Fixture, now: float) -> int | None:
    try:
        return int((now - datetime.fromisoformat(str(fixture.recorded.get("at"))).timestamp()) // _DAY)
    except ValueError:
        return None


def _gaps(readable: list[Fixture]) -> Iterator[FixtureCheck]:
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for fixture in readable:
        numbers[fixture.tool, fixture.key].add(fixture.occurrence)
    for (tool, key), there in sorted(numbers.items()):
        missing = min(set(range(1, max(there))) - there, default=None)
        if missing is not None:
            message = f"{tool} {key[2:18]}: occurrence {max(there)} without occurrence {missing}"
            yield FixtureCheck(check="file.gap", level="fail", subject=tool, message=message, fix="record again")


def _report(folder: FixtureFolder, name: str, readable: list[Fixture], count: int) -> Iterator[FixtureCheck]:
    report = folder.report(name)
    label = name or "(shared)"
    counted = report.get("files")
    if isinstance(counted, int) and counted != count:
        message = f"recording.json counts {counted} files, {count} found"
        yield FixtureCheck(check="set.count", level="fail", subject=label, message=message, fix="record again")
    keys = {fixture.key: fixture.name for fixture in readable}
    for note in notes_in(report):
        tool, reason = note.tool, note.reason
        file = keys.get(note.key)
        if note.superseded and file is not None:
            message = f"re-recording on {note.at[:10]} failed ({reason}); this answer is older"
            yield FixtureCheck(check="file.superseded", level="warn", subject=file, message=message, fix="record again")
        elif all(fixture.tool != tool for fixture in readable):
            message = f"{tool}: the recording run failed ({reason}); nothing to replay"
            yield FixtureCheck(check="op.environment", level="fail", subject=tool, message=message, fix="record again")


def _names(sets: list[str]) -> Iterator[FixtureCheck]:
    folded: dict[str, str] = {}
    for name in sets:
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            message = f"{other} and {name} are one name where case does not count"
            yield FixtureCheck(check="name.fold", level="fail", subject=name, message=message, fix="rename one")
