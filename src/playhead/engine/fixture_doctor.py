"""What is wrong with a fixture folder: every file is opened, and nothing is run or written."""

import ast
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from playhead.core.fixture_file import Fixture
from playhead.core.fixture_notes import Note, notes_in
from playhead.core.values import JSON
from playhead.engine.fixture_file_checks import Looking, credentials_in_keys, file_checks
from playhead.engine.fixture_findings import FixtureCheck, failing, warning
from playhead.errors import FixtureFormatError, StoreError
from playhead.store.fixtures import FixtureFolder

_RECORD = "playhead fixtures run --mode record -- COMMAND"


@dataclass(slots=True)
class _Seen:
    """What the sets held, over all of them: by op or request."""

    good: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    bad: set[str] = field(default_factory=set[str])
    ops: set[str] = field(default_factory=set[str])
    notes: dict[str, Note] = field(default_factory=dict[str, Note])
    credentials: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def examine(
    folder: FixtureFolder, sets: Sequence[str] | None, looking: Looking, *, project: Path
) -> list[FixtureCheck]:
    """Every finding about the sets, those about ops that are fine included.

    Args:
        sets: None for all of them.
        project: the folder that paths of tests begin in.

    Raises:
        StoreError: the folder cannot be read.
    """
    try:
        if folder.root.exists():
            next(folder.root.iterdir(), None)
        names = folder.sets() if sets is None else list(sets)
        seen = _Seen()
        found = [*_warned(looking), *_folded(folder, names)]
        for name in names:
            found += _set(folder, name, looking, seen, project)
        found += _unfinished(folder, sets)
        found += _ops(folder, looking, seen, every_set=sets is None)
    except OSError as error:
        raise StoreError(f"{folder.root} cannot be read: {error.strerror}") from error
    if not any(folder.has_any(name) for name in names):
        found.append(failing("set.missing", str(folder.root), f"no fixtures in {folder.root}", f"record: {_RECORD}"))
    return found


def _warned(looking: Looking) -> Iterator[FixtureCheck]:
    for text in sorted(set(looking.redactor.warnings)):
        check = "secret.equal" if "same value" in text else "secret.short"
        yield warning(check, text.split()[0], text, "name another variable, or a longer value")


def _folded(folder: FixtureFolder, sets: Sequence[str]) -> Iterator[FixtureCheck]:
    """Names that are one on a system where case does not count."""
    files = [str(path.relative_to(folder.root)) for name in sets for path in folder.files(name)]
    folded: dict[str, str] = {}
    for name in [*sets, *files]:
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            message = f"{other} and {name} are one name where case does not count"
            yield failing("name.fold", name, message, "rename one")


def _set(folder: FixtureFolder, name: str, looking: Looking, seen: _Seen, project: Path) -> Iterator[FixtureCheck]:
    report = folder.report(name)
    again = str(report.get("command") or _RECORD)
    readable: list[Fixture] = []
    count = 0
    for path in folder.files(name):
        count += 1
        try:
            fixture = folder.read(path)
            value = folder.value(fixture, name)
        except FixtureFormatError as error:
            check = str(error.details.get("check") or "file.damaged")
            file = path.relative_to(folder.root).as_posix()
            fix = f"if the edit is meant: playhead fixtures rekey {file}" if check == "file.key" else ""
            fix = fix or f"delete it and record again: {again}"
            yield failing(check, file, looking.redactor.redact_text(error.message), fix)
            continue
        readable.append(fixture)
        findings = [_in_set(each, name, path.name) for each in file_checks(fixture, value, looking, again)]
        yield from findings
        seen.good[fixture.tool] += 1
        if any(each.level == "fail" for each in findings):
            seen.bad.add(fixture.tool)
        if fixture.kind == "op":
            seen.ops.add(fixture.tool)
            seen.credentials |= {(fixture.tool, argument) for argument in credentials_in_keys(fixture, looking)}
    yield from _gaps(readable, again)
    yield from _about_set(folder, name, report, count, project, looking)
    yield from (_in_set(each, name, each.subject) for each in _notes(report, readable, seen, again))


def _in_set(found: FixtureCheck, set_name: str, file: str) -> FixtureCheck:
    """A finding about a file with the set in the file's name: the same call in several sets has the same name."""
    if not set_name:
        return found
    whole = f"{set_name}/{file}"
    return replace(found, subject=whole, message=found.message.replace(file, whole), fix=found.fix.replace(file, whole))


def _gaps(readable: list[Fixture], again: str) -> Iterator[FixtureCheck]:
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for fixture in readable:
        numbers[fixture.tool, fixture.key].add(fixture.occurrence)
    for (tool, key), there in sorted(numbers.items()):
        missing = min(set(range(1, max(there))) - there, default=None)
        if missing is not None:
            message = f"{tool} {key[2:18]}: occurrence {max(there)} without occurrence {missing}"
            yield failing("file.gap", tool, message, f"record again: {again}")


def _about_set(
    folder: FixtureFolder, name: str, report: dict[str, JSON], count: int, project: Path, looking: Looking
) -> Iterator[FixtureCheck]:
    label = name or "(shared)"
    held = looking.redactor.known_in(json.dumps(report, ensure_ascii=False))
    if held:
        message = f"{label}: value of {', '.join(held)} in recording.json"
        yield failing("file.secret", label, message, "delete the file, rotate the secret, record again")
    counted = report.get("files")
    if isinstance(counted, int) and counted != count:
        message = f"{label}: recording.json counts {counted} files, {count} found"
        yield failing("set.count", label, message, "take them from version control, or record again")
    if not count and name:
        yield warning("set.empty", label, f"{label}: folder without recordings", "remove: playhead fixtures prune")
    if report.get("complete") is False:
        why = report.get("incomplete") or "unknown reason"
        message = f"{label}: its recording run did not finish ({why})"
        yield warning("set.incomplete", label, message, "record again")
    test = report.get("test")
    if isinstance(test, str) and test and not has_test(project, test):
        yield warning("set.orphan", label, f"{label}: no test {test} any more", "remove: playhead fixtures prune")


def has_test(project: Path, node: str) -> bool:
    """Whether the file of a test's node id has the names that it says. What cannot be looked at counts as there."""
    file, *names = node.split("::")
    path = project / file
    if not path.exists():
        return False
    if path.suffix != ".py" or not names:
        return True
    try:
        body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    except (SyntaxError, ValueError, OSError):
        return True
    for name in names:
        plain = name.partition("[")[0]
        found = next((each for each in body if getattr(each, "name", None) == plain), None)
        if found is None:
            return False
        if isinstance(found, ast.ClassDef) and found.bases:
            return True  # its tests may stand in another class
        body = found.body if isinstance(found, ast.ClassDef) else []
    return True


def _notes(report: dict[str, JSON], readable: list[Fixture], seen: _Seen, again: str) -> Iterator[FixtureCheck]:
    files = {fixture.key: fixture.name for fixture in reversed(readable)}
    for note in notes_in(report):
        file = files.get(note.key)
        if note.superseded and file is not None:
            message = f"{file}: re-recording on {note.at[:10]} failed ({note.reason}); this answer is older"
            yield warning("file.superseded", file, message, f"record again: {again}")
        seen.notes.setdefault(note.tool, note)


def _unfinished(folder: FixtureFolder, sets: Sequence[str] | None) -> Iterator[FixtureCheck]:
    """What failed or killed runs left for inspection."""
    for place in sorted((folder.root / ".partial").glob("*/")) if sets is None else ():
        label = f".partial/{place.name}"
        message = f"{label}: its recording run did not finish; nothing of it is in use"
        yield warning("set.incomplete", label, message, "look at it, then remove it: playhead fixtures prune")


def _ops(folder: FixtureFolder, looking: Looking, seen: _Seen, *, every_set: bool) -> Iterator[FixtureCheck]:
    for tool, argument in sorted(seen.credentials):
        message = f"{tool}: argument {argument} is part of the key as a hash; configure it as a secret"
        yield warning("op.credential", tool, message, "name its variable under secrets in the settings")
    for tool, count in sorted(seen.good.items()):
        if tool not in seen.bad:
            message = f"{tool}: {count} recording{'s' if count > 1 else ''}, all fit"
            yield FixtureCheck(check="op.recorded", level="pass", subject=tool, message=message)
    for tool in sorted({*seen.notes, *((looking.ops or ()) if every_set else ())} - set(seen.good)):
        note = seen.notes.get(tool)
        if note is not None:
            message = f"{tool}: the recording run failed ({note.reason}); nothing to replay"
            yield failing("op.environment", tool, message, f"record it: {_RECORD}")
        else:
            message = f"{tool}: no recorded fixture in {folder.root}"
            yield failing("op.none", tool, message, f"record it: {_RECORD}")
