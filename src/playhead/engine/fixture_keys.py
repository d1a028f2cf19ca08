"""New keys for fixtures whose arguments were edited, or that an older release made: planned first, then written.

A key is made again from the arguments that a file holds. Where those lost secrets that keys are not free of (what its
name or shape gave away, but no setting names), the file does not hold what the key was made of, and nothing can be done
but record again.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from playhead.core.canonical import NoKeyError
from playhead.core.fixture_file import NAMESPACES, Fixture, dump, file_name, load
from playhead.core.keys import KEY_VERSION, call_key
from playhead.core.redact import Redactor
from playhead.errors import FixtureFormatError
from playhead.store.fixture_writing import counted, write
from playhead.store.fixtures import FixtureFolder

_TAG = re.compile(r"\[REDACTED:([^\[\]]{1,200})\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """One file, and what it becomes; ``reason`` says why it stays as it is."""

    set_name: str
    file: str
    fixture: Fixture | None = None
    reason: str = ""


@dataclass(slots=True)
class RekeyPlan:
    changes: list[Rekeyed] = field(default_factory=list[Rekeyed])
    impossible: list[Rekeyed] = field(default_factory=list[Rekeyed])

    def apply(self, folder: FixtureFolder) -> None:
        """Writes the files under their new names, and removes the old ones.

        Raises:
            StoreError: they cannot be written. FixtureBusyError: somebody else is writing a set.
        """
        by_set: dict[str, list[Rekeyed]] = defaultdict(list)
        for change in self.changes:
            by_set[change.set_name].append(change)
        for name, changes in by_set.items():
            place = folder.place(name)
            with folder.claim(name):
                for change in changes:
                    if change.fixture is not None:
                        write(place / change.fixture.name, dump(change.fixture))
                kept = {change.fixture.name for change in changes if change.fixture is not None}
                for change in changes:
                    if change.file not in kept:
                        (place / change.file).unlink(missing_ok=True)
                if report := folder.report(name):
                    counted(place, report)


def plan_rekey(
    folder: FixtureFolder, paths: Iterable[Path], redactor: Redactor, is_configured: Callable[[str], bool]
) -> RekeyPlan:
    """What becomes of the files whose key, or whose name, is not the one that their arguments make.

    Args:
        is_configured: whether a name is that of a secret that keys are free of.
    """
    plan = RekeyPlan()
    changed: list[Rekeyed] = []
    for path in sorted(paths, key=lambda path: (str(path.parent), path.name.split(".")[:3], _number(path.name))):
        name = "" if path.parent == folder.root else "/".join(path.parent.relative_to(folder.root).parts)
        found = _rekeyed(name, path, redactor, is_configured)
        if found.reason:
            plan.impossible.append(found)
        elif found.fixture is not None:
            changed.append(found)
    moving = {(each.set_name, each.file) for each in changed}
    numbers: dict[tuple[str, str], int] = {}
    for each in changed:
        if each.fixture is not None:
            key = (each.set_name, each.fixture.key)
            number = numbers[key] = numbers.get(key, _staying(folder, each.set_name, each.fixture, moving)) + 1
            plan.changes.append(replace(each, fixture=replace(each.fixture, occurrence=number)))
    return plan


def _number(file: str) -> int:
    last = file.removesuffix(".json").rpartition(".")[2]
    return int(last) if last.isdigit() and len(last) < 10 else 1


def _staying(folder: FixtureFolder, set_name: str, fixture: Fixture, moving: set[tuple[str, str]]) -> int:
    """How many occurrences of a key stay what they are; others come after them."""
    number = 0
    while True:
        name = file_name(fixture.kind, fixture.tool, fixture.key, number + 1)
        if (set_name, name) in moving or not (folder.place(set_name) / name).exists():
            return number
        number += 1


def _rekeyed(
    set_name: str, path: Path, redactor: Redactor, is_configured: Callable[[str], bool]
) -> Rekeyed:  # fmt: skip
    """What one file becomes; neither fixture nor reason where it is right as it is."""
    same = Rekeyed(set_name=set_name, file=path.name)
    try:
        fixture = load(path.read_bytes(), path.name, any_key=True)
    except FixtureFormatError as error:
        return replace(same, reason=redactor.redact_text(error.message))
    try:
        key = key_again(fixture, is_configured)
    except NoKeyError as error:
        return replace(same, reason=f"its arguments have no key: {error}")
    if key is None:
        return replace(same, reason="its arguments lost secrets that are not configured; record it again")
    held = redactor.known_in(dump(fixture))
    if held:
        return replace(same, reason=f"it holds the value of {', '.join(held)}")
    if key == fixture.key and fixture.name == path.name:
        return same
    return replace(same, fixture=replace(fixture, key=key))


def key_again(fixture: Fixture, is_configured: Callable[[str], bool]) -> str | None:
    """The key that a file's arguments make today; None where they do not hold what it is made of.

    Raises:
        NoKeyError: the arguments have none.
    """
    hidden = any(place.startswith(("/args", "/scope")) for place in fixture.redacted)
    tags = _TAG.findall(f"{fixture.args} {fixture.scope}") if hidden and fixture.kind == "op" else []
    if not all(is_configured(tag.partition(".")[0]) for tag in tags):
        return None
    return call_key(fixture.tool, fixture.args, scope=fixture.scope, namespace=NAMESPACES[fixture.kind])


def is_older(fixture: Fixture) -> bool:
    """Whether another version of keys made this one."""
    version = fixture.key.partition(":")[0]
    return version.isdigit() and int(version) < KEY_VERSION
