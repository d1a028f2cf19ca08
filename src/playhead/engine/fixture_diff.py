"""What differs between two states of fixtures: folders, sets, files, or a revision of version control."""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from playhead.core.fixture_file import Fixture, load
from playhead.core.match import Difference, differences
from playhead.core.values import JSON
from playhead.errors import NotFoundError, UsageError
from playhead.store.fixtures import FixtureFolder

Place: TypeAlias = tuple[str, str, str, str, int]
"""Set, kind, op or request, key and occurrence: what makes two files the same recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureDifference:
    """One recording on both sides. ``differences`` point into the outcome."""

    set_name: str
    kind: str
    tool: str
    occurrence: int
    file: str
    status: Literal["same", "changed", "new", "gone"]
    args: JSON = None
    differences: tuple[Difference, ...] = ()


def diff(before: Mapping[Place, Fixture], after: Mapping[Place, Fixture]) -> list[FixtureDifference]:
    """Every recording of either side, those that are the same too. When it was recorded does not count."""
    return [_one(place, before.get(place), after.get(place)) for place in sorted({*before, *after})]


def _one(place: Place, old: Fixture | None, new: Fixture | None) -> FixtureDifference:
    either = new or old
    assert either is not None
    found: tuple[Difference, ...] = ()
    status: Literal["same", "changed", "new", "gone"] = "gone" if new is None else "new"
    if old is not None and new is not None:
        found = tuple(differences(old.outcome, new.outcome))
        status = "changed" if found else "same"
    return FixtureDifference(
        set_name=place[0], kind=place[1], tool=place[2], occurrence=place[4], file=either.name, status=status,
        args=either.args, differences=found,
    )  # fmt: skip


def of_folder(folder: FixtureFolder, set_name: str | None = None) -> dict[Place, Fixture]:
    """The fixtures of a folder, or of one set, which then has no name: sets of other names can be compared with it.

    Raises:
        FixtureFormatError: a file is damaged.
    """
    if set_name is not None:
        return {_place("", fixture): fixture for fixture in map(folder.read, folder.files(set_name))}
    return {
        _place(name, fixture): fixture for name in folder.sets() for fixture in map(folder.read, folder.files(name))
    }


def of_file(path: Path) -> dict[Place, Fixture]:
    """One fixture, whatever its key: two files are compared as answers to one call.

    Raises:
        FixtureFormatError: the file is damaged.
    """
    fixture = load(path.read_bytes(), path.name)
    return {("", fixture.kind, fixture.tool, "", 1): fixture}


def of_revision(revision: str, folder: FixtureFolder) -> dict[Place, Fixture]:
    """The fixtures of a folder as a revision of git has them.

    Raises:
        UsageError: there is no git, or no such revision. NotFoundError: the folder is in no repository.
    """
    top = Path(_git(folder.root.parent, "rev-parse", "--show-toplevel").decode().strip())
    try:
        below = folder.root.resolve().relative_to(top.resolve()).as_posix()
    except ValueError:
        raise NotFoundError(f"{folder.root} is in no git repository") from None
    if revision.startswith("-"):
        raise UsageError(f"{revision!r} is no revision")
    listed = _git(top, "ls-tree", "-r", "-z", "--name-only", revision, "--", below)
    found: dict[Place, Fixture] = {}
    for name, path in _fixtures(listed.decode().split("\0"), below):
        fixture = load(_git(top, "show", f"{revision}:{path}"), path.rpartition("/")[2])
        found[_place(name, fixture)] = fixture
    return found


def _fixtures(paths: list[str], below: str) -> Iterator[tuple[str, str]]:
    for path in paths:
        place, _, file = path.rpartition("/")
        if file.startswith(("op.", "http.")) and file.endswith(".json") and "/." not in place.removeprefix(below):
            yield place.removeprefix(below).strip("/"), path


def _git(where: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=where, capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        raise UsageError(f"git {words[0]}: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout


def _place(name: str, fixture: Fixture) -> Place:
    return name, fixture.kind, fixture.tool, fixture.key, fixture.occurrence
