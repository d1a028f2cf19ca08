"""The fixture folder: one outcome per file, named by key; sets are subfolders, the folder itself is the shared set.

A run writes below ``.partial/`` and moves its files into place when it has succeeded: all occurrences of a key replace
all older ones, keys that were not called keep theirs. The list of moves is written first, so whoever comes next
finishes a move that was interrupted. Files are opened by name when they are asked for, never all at once.
"""

import errno
import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import psutil

from playhead.core.canonical import parse_json, render
from playhead.core.fixture_file import Fixture, document_text, dump, file_name, load, safe
from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON
from playhead.errors import FixtureBusyError, FixtureFormatError, StoreError, UsageError

LARGE = 256 * 2**10
MAX_BYTES = 64 * 2**20
_PARTIAL = ".partial"
_MOVES = "moves.json"
_CLAIM = ".claim"
_REPORT = "recording.json"
_DIGEST = re.compile("[0-9a-f]{64}")
_WAIT = 30.0
_PAUSE = 0.05


class FixtureFolder:
    """A folder of fixtures. ``root`` need not exist: nothing is made by reading.

    Args:
        root: the folder.
        max_bytes: values above are kept as size and digest, and never served.
    """

    def __init__(self, root: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.root = root
        self.max_bytes = max_bytes

    def place(self, set_name: str) -> Path:
        """The folder of a set; an empty name is the shared set.

        Raises:
            UsageError: the name leads out of the folder.
        """
        parts = [part for part in set_name.split("/") if part]
        if any(part in (".", "..") or part.startswith(".") or os.sep in part for part in parts):
            raise UsageError(f"{set_name!r} is no name of a set", hint="use letters, digits, - _ . and /")
        return self.root.joinpath(*parts)

    # reading

    def has_any(self, set_name: str) -> bool:
        """Whether the set or the shared set holds a fixture."""
        return any(next(_fixtures_in(self.place(name)), None) is not None for name in {set_name, ""})

    def files(self, set_name: str) -> Iterator[Path]:
        """The fixture files of one set, by name."""
        yield from sorted(_fixtures_in(self.place(set_name)))

    def find(self, set_name: str, kind: str, tool: str, key: str, occurrence: int) -> Fixture | None:
        """An occurrence of a key in the set, else in the shared set: the first that has the key at all.

        Raises:
            FixtureFormatError: the file is damaged.
        """
        for name in dict.fromkeys((set_name, "")):
            first = self.place(name) / file_name(kind, tool, key)
            if first.exists():
                path = first.with_name(file_name(kind, tool, key, occurrence))
                return self.read(path) if path.exists() else None
        return None

    def count(self, set_name: str, kind: str, tool: str, key: str) -> int:
        """How many occurrences of a key there are where `find` looks."""
        for name in dict.fromkeys((set_name, "")):
            place, number = self.place(name), 0
            while (place / file_name(kind, tool, key, number + 1)).exists():
                number += 1
            if number:
                return number
        return 0

    def of_tool(self, set_name: str, kind: str, tool: str, limit: int = 200) -> list[tuple[str, Fixture]]:
        """File names and fixtures of one tool in the set and the shared set; damaged files are left out."""
        found: list[tuple[str, Fixture]] = []
        for name in dict.fromkeys((set_name, "")):
            for path in self.files(name):
                if path.name.startswith(f"{kind}.{safe(tool)}.") and len(found) < limit:
                    with suppress(FixtureFormatError):
                        fixture = self.read(path)
                        found += [(path.name, fixture)] if fixture.tool == tool else []
        return found

    def read(self, path: Path) -> Fixture:
        """The fixture of a file, whose large value is not read yet.

        Raises:
            FixtureFormatError: it is damaged.
        """
        try:
            return load(path.read_bytes(), path.name)
        except FixtureFormatError as error:
            error.details["file"] = str(path)
            raise
        except OSError as error:
            raise FixtureFormatError(f"{path} cannot be read: {error.strerror}", file=str(path)) from None

    def value(self, fixture: Fixture, set_name: str) -> JSON:
        """The value of an outcome, read from its own file where it is large.

        Raises:
            FixtureFormatError: that file is missing or changed.
        """
        body = fixture.outcome.get("body")
        if not is_object(body):
            return fixture.outcome.get("value")
        digest = str(body.get("sha256"))
        for name in dict.fromkeys((set_name, "")):
            path = self.place(name) / "bodies" / digest
            if _DIGEST.fullmatch(digest) and path.exists():
                data = path.read_bytes()
                if sha256(data).hexdigest() == digest:
                    return parse_json(data)
        raise FixtureFormatError(f"{fixture.name}: its body bodies/{digest} is missing or changed", file=fixture.name)

    def not_recorded(self, set_name: str, key: str) -> str | None:
        """Why the last recording has nothing for a key, if it tried."""
        for name in dict.fromkeys((set_name, "")):
            for each in self.report(name).get("not_recorded") or ():
                if is_object(each) and each.get("key") == key:
                    return str(each.get("reason"))
        return None

    def report(self, set_name: str) -> dict[str, JSON]:
        """What the last recording of a set noted; empty without one, or where it cannot be read."""
        try:
            report = parse_json((self.place(set_name) / _REPORT).read_bytes())
        except (OSError, ValueError):
            return {}
        return report if is_object(report) else {}

    # writing

    def writer(self, set_name: str, run: str, *, only_last: bool = False) -> "FixtureWriter":
        """``only_last`` keeps one recording per key, the newest."""
        return FixtureWriter(self, set_name, run, only_last=only_last)

    def recover(self) -> None:
        """Finishes moves that an earlier process began and did not end."""
        for moves in sorted((self.root / _PARTIAL).glob(f"*/{_MOVES}")):
            with suppress(ValueError, KeyError, TypeError, OSError):
                plan = json.loads(moves.read_text("utf-8"))
                with self.claim(str(plan["set"])):
                    _move(self.place(str(plan["set"])), moves.parent, plan)

    @contextmanager
    def claim(
        self, set_name: str, *, wait: float = _WAIT, sleep: Callable[[float], None] = time.sleep
    ) -> Generator[None]:
        """Moves into one set happen one after the other, whatever process they are of.

        Raises:
            FixtureBusyError: another process kept it for as long as ``wait`` seconds.
        """
        path = self.place(set_name) / _CLAIM
        path.parent.mkdir(parents=True, exist_ok=True)
        mine = {"host": socket.gethostname(), "pid": os.getpid(), "at": _started(os.getpid())}
        fresh = path.with_name(f"{_CLAIM}.{os.getpid()}.{threading.get_ident()}")
        fresh.write_text(json.dumps(mine))
        left = wait
        try:
            while not _linked(fresh, path):  # which appears whole or not at all
                if _is_abandoned(path):
                    path.unlink(missing_ok=True)
                elif left <= 0:
                    raise FixtureBusyError(
                        f"{path.parent} is being written by {_owner(path)}", hint="wait for it, or end it"
                    )
                else:
                    left -= _PAUSE
                    sleep(_PAUSE)
        finally:
            fresh.unlink(missing_ok=True)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


class FixtureWriter:
    """What one run recorded. Nothing of it is in use before `finish`."""

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
        _write(self.place / f"{order:06d}.{fixture.name}", dump(fixture))

    def _with_body(self, fixture: Fixture) -> Fixture:
        if "value" not in fixture.outcome:
            return fixture
        data = render(fixture.outcome["value"])
        if len(data) <= LARGE:
            return fixture
        mark: dict[str, JSON] = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
        if len(data) > self.folder.max_bytes:
            return replace(fixture, outcome={"kind": "value", "truncated": mark})
        _write(self.place / "bodies" / str(mark["sha256"]), data)
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
                _write(self.place / source, dump(fixture))
            keys = {(f.kind, f.tool, f.key): f.occurrence for _, f in numbered}  # in order: the highest stays
            plan = {
                "set": self.set_name,
                "moves": [[source, fixture.name] for source, fixture in numbered],
                "bodies": sorted(path.name for path in (self.place / "bodies").glob("*")),
                "keys": [[*key, count] for key, count in keys.items()],
                "report": report,
            }
            _write(self.place / _MOVES, document_text(plan))
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
            _write(self.place / _REPORT, document_text({**report, "complete": False}))


def _fixtures_in(place: Path) -> Iterator[Path]:
    """Files with the name of a fixture, in no order: the first of very many costs what the first of a few does."""
    if place.is_dir():
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(("op.", "http.")) and entry.name.endswith(".json"):
                    yield place / entry.name


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
    total = sum(1 for path in target.glob("*.json") if path.name != _REPORT)
    _write(target / _REPORT, document_text({**plan["report"], "files": total, "complete": True}))
    shutil.rmtree(source, ignore_errors=True)
    with suppress(OSError):
        (source.parent / ".gitignore").unlink(missing_ok=True)
        source.parent.rmdir()  # when no other run is under way


def _replace(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)


def _write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all, readable by its owner only."""
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


def _linked(fresh: Path, path: Path) -> bool:
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    return True


def _started(pid: int) -> float | None:
    """When a process began, which tells it from a later one of the same number."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def _is_abandoned(path: Path) -> bool:
    """Whether the process of a claim has ended; one of another host, or one not readable yet, has not."""
    claim = _read_claim(path)
    if claim is None or claim.get("host") != socket.gethostname():
        return False
    started = _started(int(claim.get("pid", 0)))
    return started is None or abs(started - float(claim.get("at") or started)) > 1


def _read_claim(path: Path) -> dict[str, JSON] | None:
    try:
        claim = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return claim if is_object(claim) else None


def _owner(path: Path) -> str:
    claim = _read_claim(path) or {}
    return f"process {claim.get('pid', 'unknown')} on {claim.get('host', 'an unknown host')}"


__all__: Sequence[str] = ["LARGE", "MAX_BYTES", "FixtureFolder", "FixtureWriter"]
