"""How fixtures get into their folder: below ``.partial/`` first, then moved by a plan that is written before.

All occurrences of a key that a run recorded replace all older ones; keys that it did not record keep theirs. Whoever
comes next finishes a move that was interrupted. A process that runs for another one (`playhead fixtures run`) hands its
files over instead, and the other puts them in use when the whole command has succeeded.
"""

import errno
import json
import os
import shutil
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from playhead.core.canonical import render
from playhead.core.fixtures.file import Fixture, document_text, dump, file_name, load, safe
from playhead.core.fixtures.notes import merged_notes
from playhead.core.values import JSON
from playhead.errors import StoreError, UsageError
from playhead.store.fixtures import REPORT, FixtureFolder

LARGE = 256 * 2**10
_PARTIAL = ".partial"
_MOVES = "moves.json"
_HANDED = "handed.json"


class FixtureWriter:
    """What one run recorded. Nothing of it is in use before `finish`.

    Args:
        only_last: keeps one recording per key, the newest.
    """

    def __init__(self, folder: FixtureFolder, set_name: str, run: str, *, only_last: bool = False) -> None:
        self.folder = folder
        self.only_last = only_last
        self.set_name = set_name
        self.place = folder.root / _PARTIAL / safe(run)
        self._recorded: list[tuple[int, Fixture]] = []
        self.kept: Mapping[str, int] = {}
        """Occurrences of a key that answered in this run, and stay: what it recorded of the key comes after them."""

    def __len__(self) -> int:
        return len(self._recorded)

    def add(self, order: int, fixture: Fixture) -> None:
        """Keeps an outcome. ``order``: when its call began; occurrences of a key are numbered by it in the end.

        Raises:
            StoreError: it cannot be written.
        """
        fixture = self._with_body(fixture)
        self._recorded.append((order, fixture))
        write(self.place / f"{order:06d}.{fixture.name}", dump(fixture))

    def _with_body(self, fixture: Fixture) -> Fixture:
        if "value" not in fixture.outcome:
            return fixture
        data = render(fixture.outcome["value"])
        if len(data) <= LARGE:
            return fixture
        mark: dict[str, JSON] = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
        if len(data) > self.folder.max_bytes:
            return replace(fixture, outcome={"kind": "value", "truncated": mark})
        write(self.place / "bodies" / str(mark["sha256"]), data)
        return replace(fixture, outcome={"kind": "value", "body": mark})

    def finish(self, report: dict[str, JSON]) -> None:
        """Moves everything into place.

        Raises:
            FixtureBusyError: somebody else is writing the set. StoreError: it cannot be written.
        """
        target = self.folder.place(self.set_name)
        with self.folder.claim(self.set_name), _as_store_error(target):
            numbered = self._numbered()
            for source, fixture in numbered:
                write(self.place / source, dump(fixture))
            keys = {(f.kind, f.tool, f.key): f.occurrence for _, f in numbered}  # in order: the highest stays
            recorded = {key for _, _, key in keys}
            plan: dict[str, JSON] = {
                "set": self.set_name,
                "moves": [[source, fixture.name] for source, fixture in numbered],
                "bodies": sorted(path.name for path in (self.place / "bodies").glob("*")),
                "keys": [[*key, count] for key, count in keys.items()],
                "report": merged_notes(report, self.folder.report(self.set_name), recorded),
            }
            write(self.place / _MOVES, document_text(plan))
            _move(target, self.place, plan)

    def _numbered(self) -> list[tuple[str, Fixture]]:
        place = self.folder.place(self.set_name)
        numbers: dict[str, int] = {}
        found: list[tuple[str, Fixture]] = []
        recorded = sorted(self._recorded, key=lambda each: each[0])
        if self.only_last:
            recorded = list({fixture.key: (order, fixture) for order, fixture in recorded}.values())
        for order, fixture in recorded:
            if fixture.key not in numbers and (place / fixture.name).exists() and not self.only_last:
                numbers[fixture.key] = self.kept.get(fixture.key, 0)
            number = numbers[fixture.key] = numbers.get(fixture.key, 0) + 1
            found.append((f"{order:06d}.{fixture.name}", replace(fixture, occurrence=number)))
        return found

    def abandon(self, report: dict[str, JSON]) -> None:
        """Leaves the files where they are, for inspection; the older ones stay in use."""
        if self.place.exists():
            write(self.place / REPORT, document_text({**report, "complete": False}))

    def hand_over(self, report: dict[str, JSON]) -> Path:
        """Leaves the files, and what is to become of them, to the process that this one runs for."""
        handed: dict[str, JSON] = {
            "set": self.set_name,
            "only_last": self.only_last,
            "kept": dict(self.kept),
            "files": [f"{order:06d}.{fixture.name}" for order, fixture in self._recorded],
            "report": report,
        }
        write(self.place / _HANDED, document_text(handed))
        return self.place


def take_over(folder: FixtureFolder, places: Iterable[Path], run: str, *, incomplete: str | None = None) -> int:
    """Puts in use what processes handed over, in their order, and tells how many fixtures these are.

    Args:
        incomplete: why the run that they belong to did not end well, where it is put in use all the same.

    Raises:
        FixtureBusyError: somebody else is writing a set. StoreError: it cannot be written.
    """
    writers: dict[str, FixtureWriter] = {}
    reports: dict[str, dict[str, JSON]] = {}
    done: list[Path] = []
    number = 0
    for place in places:
        handed = json.loads((place / _HANDED).read_bytes())
        name = str(handed["set"])
        writer = writers.setdefault(name, FixtureWriter(folder, name, run, only_last=handed["only_last"]))
        writer.kept = {key: max(handed["kept"].get(key, 0), writer.kept.get(key, 0))
                       for key in {**handed["kept"], **writer.kept}}  # fmt: skip
        report = reports.setdefault(name, {**handed["report"], "not_recorded": [], "hosts": []})
        report["not_recorded"] = [*report["not_recorded"], *handed["report"]["not_recorded"]]
        report["hosts"] = sorted({*report["hosts"], *handed["report"]["hosts"]})
        for file in sorted(handed["files"]):
            number += 1
            fixture = load((place / file).read_bytes(), file.partition(".")[2])
            writer.add(number, fixture)
        for body in (place / "bodies").glob("*"):
            write(writer.place / "bodies" / body.name, body.read_bytes())
        done.append(place)
    for name, writer in writers.items():
        report = reports[name]
        if incomplete is not None:
            report |= {"complete": False, "incomplete": incomplete}
        if len(writer) or report["not_recorded"]:
            writer.finish(report)
    for place in done:
        discard(place)
    return number


def recover(folder: FixtureFolder) -> None:
    """Finishes moves that an earlier process began and did not end."""
    for moves in sorted((folder.root / _PARTIAL).glob(f"*/{_MOVES}")):
        with suppress(ValueError, KeyError, TypeError, OSError, UsageError):
            plan = json.loads(moves.read_text("utf-8"))
            _check_names(plan)
            with folder.claim(str(plan["set"])):
                if moves.exists():  # else whoever had the claim has ended it, and others may have recorded since
                    _move(folder.place(str(plan["set"])), moves.parent, plan)


def _check_names(plan: dict[str, JSON]) -> None:
    """A plan that came from elsewhere, with a checkout say, must not lead out of the folder.

    Raises:
        ValueError: it does.
    """
    moves: Any = plan["moves"]
    bodies: Any = plan["bodies"]
    keys: Any = plan["keys"]
    names = [*bodies, *(name for pair in moves for name in pair), *(key for _, _, key, _ in keys)]
    names += [kind for kind, _, _, _ in keys]
    if not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ValueError("a name leads out of the folder")


def counted(target: Path, report: Mapping[str, JSON]) -> None:
    """Writes the report of a set with the number of files that are there now."""
    total = sum(1 for path in target.glob("*.json") if path.name != REPORT)
    write(target / REPORT, document_text({"complete": True, **report, "files": total}))


def _move(target: Path, source: Path, plan: dict[str, JSON]) -> None:
    """Carries a plan out. Every step may have been done before."""
    target.mkdir(parents=True, exist_ok=True)
    if plan["bodies"]:
        (target / "bodies").mkdir(exist_ok=True)
    for name in plan["bodies"]:
        _replace(source / "bodies" / name, target / "bodies" / name)
    for name, final in plan["moves"]:
        _replace(source / name, target / final)
    for kind, tool, key, count in plan["keys"]:
        number = count + 1
        while (old := target / file_name(kind, tool, key, number)).exists():
            old.unlink()
            number += 1
    counted(target, plan["report"])
    discard(source)


def discard(source: Path) -> None:
    """Removes what stands below ``.partial/``, and that folder with its last one."""
    shutil.rmtree(source, ignore_errors=True)
    with suppress(OSError):
        if all(path.name == ".gitignore" for path in source.parent.iterdir()):  # no other run is under way, or left
            (source.parent / ".gitignore").unlink(missing_ok=True)
            source.parent.rmdir()


def _replace(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)


def write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all, readable by its owner only.

    Raises:
        StoreError: it cannot be written.
    """
    with _as_store_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.parent.name == _PARTIAL:
            (path.parent.parent / ".gitignore").write_text("*\n")
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        handle = os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


@contextmanager
def _as_store_error(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        full = " (no space left)" if error.errno == errno.ENOSPC else ""
        raise StoreError(f"{path} cannot be written: {error.strerror}{full}") from error
