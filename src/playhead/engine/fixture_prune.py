"""What of a fixture folder nothing needs any more: planned first, then removed."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from playhead.core.protocol.shape import is_object
from playhead.engine.fixture_doctor import has_test
from playhead.engine.ops import Op
from playhead.errors import FixtureFormatError
from playhead.store.fixture_writing import counted, discard
from playhead.store.fixtures import FixtureFolder

_UNDER_WAY = 3600
"""Seconds since the last write after which a run that left files below ``.partial/`` is taken to be over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needless:
    """A file or folder that can go, and why. ``kind``: ``test``, ``op``, ``empty``, ``body`` or ``run``."""

    kind: str
    path: Path
    reason: str


def plan_prune(
    folder: FixtureFolder, *, project: Path, ops: Mapping[str, Op] | None, now: float
) -> list[Needless]:  # fmt: skip
    """What can go: sets of tests that are gone, files of ops that are gone, empty sets, bodies of nothing, and what
    failed runs left for inspection.

    Args:
        project: the folder that paths of tests begin in.
        ops: the declared ops; None where they are not known, and no file goes for its op.
        now: seconds since the epoch.
    """
    found: list[Needless] = []
    for name in folder.sets():
        found += _of_set(folder, name, project, ops)
    for place in sorted((folder.root / ".partial").glob("*/")):
        written = max((path.stat().st_mtime for path in (place, *place.rglob("*"))), default=0.0)
        if now - written > _UNDER_WAY:
            found.append(Needless(kind="run", path=place, reason="what a run recorded that failed or was ended"))
    return found


def _of_set(folder: FixtureFolder, name: str, project: Path, ops: Mapping[str, Op] | None) -> Iterator[Needless]:
    place = folder.place(name)
    test = folder.report(name).get("test")
    if name and isinstance(test, str) and test and not has_test(project, test):
        yield Needless(kind="test", path=place, reason=f"no test {test} any more")
        return
    bodies: set[str] = set()
    whole = True
    staying = 0
    for path in folder.files(name):
        try:
            fixture = folder.read(path)
        except FixtureFormatError:  # the doctor's business: nothing goes that cannot be read
            whole = False
            staying += 1
            continue
        if ops and fixture.kind == "op" and fixture.tool not in ops:
            yield Needless(kind="op", path=path, reason=f"no op {fixture.tool} any more")
            continue
        staying += 1
        body = fixture.outcome.get("body")
        if is_object(body):
            bodies.add(str(body.get("sha256")))
    if whole:
        for path in sorted((place / "bodies").glob("*")):
            if path.name not in bodies:
                yield Needless(kind="body", path=path, reason="no fixture has this body")
    if name and not staying and not folder.report(name).get("not_recorded"):
        yield Needless(kind="empty", path=place, reason="no recordings in it")


def prune(folder: FixtureFolder, plan: list[Needless]) -> None:
    """Carries a plan out; folders that are empty then go as well."""
    for each in plan:
        if each.kind == "run":
            discard(each.path)
        elif each.path.is_dir():
            _remove_set(folder, each.path)
        else:
            each.path.unlink(missing_ok=True)
    for place in {each.path.parent for each in plan if each.kind == "op"}:
        name = "/".join(place.relative_to(folder.root).parts)
        if place.is_dir() and (report := folder.report(name)):
            with folder.claim(name):
                counted(place, report)


def _remove_set(folder: FixtureFolder, place: Path) -> None:
    """Removes a set but not sets inside it, and folders above that hold nothing else."""
    for path in list(place.iterdir()):
        if path.name == "bodies":
            shutil.rmtree(path)
        elif not path.is_dir():
            path.unlink()
    with suppress(OSError):
        while place != folder.root:
            place.rmdir()
            place = place.parent
