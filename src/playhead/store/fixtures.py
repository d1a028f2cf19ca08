"""The fixture folder: one outcome per file, named by key; sets are subfolders, the folder itself is the shared set.

Files are opened by name when they are asked for, never all at once. How they get there: `store.fixture_writing`.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from hashlib import sha256
from pathlib import Path

from playhead.core.canonical import parse_json
from playhead.core.fixtures.file import Fixture, file_name, load, safe
from playhead.core.fixtures.notes import Note, notes_in
from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON
from playhead.errors import FixtureFormatError, UsageError
from playhead.store.fixture_claim import claimed

MAX_BYTES = 64 * 2**20
REPORT = "recording.json"
_BODIES = "bodies"
_NO_NAME = frozenset('\\<>:"|?*')
_LONGEST = 200
"""Bytes of a part of a set's name; file systems end at 255, and the names of drafts are longer."""
_DIGEST = re.compile("[0-9a-f]{64}")


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
            UsageError: the name leads out of the folder, is no name on every system, or means something else here.
        """
        parts = [part for part in set_name.split("/") if part]
        if not all(map(_is_name, parts)):
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
            return load(path.read_bytes(), self._shown(path))
        except FixtureFormatError as error:
            error.details["file"] = str(path)
            raise
        except OSError as error:
            raise FixtureFormatError(f"{path} cannot be read: {error.strerror}", file=str(path)) from None

    def _shown(self, path: Path) -> str:
        """A file with its set: the same call in several sets has the same name."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name

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
            path = self.place(name) / _BODIES / digest
            if _DIGEST.fullmatch(digest) and path.exists():
                data = path.read_bytes()
                if sha256(data).hexdigest() == digest:
                    return parse_json(data)
        raise FixtureFormatError(f"{fixture.name}: its body bodies/{digest} is missing or changed", file=fixture.name)

    def notes(self, set_name: str) -> dict[str, Note]:
        """By key, why the last recording has nothing new for it; of the set before those of the shared set."""
        found: dict[str, Note] = {}
        for name in dict.fromkeys((set_name, "")):
            for note in notes_in(self.report(name)):
                found.setdefault(note.key, note)
        return found

    def sets(self) -> list[str]:
        """Every set, the shared one as an empty name: folders with fixtures, and empty ones."""
        found: list[str] = []
        for place, folders, names in os.walk(self.root):
            folders[:] = sorted(filter(_is_name, folders))
            if any(_is_fixture(name) or name == REPORT for name in names) or not (folders or Path(place) == self.root):
                found.append("/".join(Path(place).relative_to(self.root).parts))
        return sorted(found)

    def report(self, set_name: str) -> dict[str, JSON]:
        """What the last recording of a set noted; empty without one, or where it cannot be read."""
        try:
            report = parse_json((self.place(set_name) / REPORT).read_bytes())
        except (OSError, ValueError):
            return {}
        return report if is_object(report) else {}

    def claim(
        self, set_name: str, *, wait: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> AbstractContextManager[None]:
        """Moves into one set happen one after the other, whatever process they are of.

        Raises:
            FixtureBusyError: another process kept it for as long as ``wait`` seconds.
        """
        return claimed(self.place(set_name), wait=wait, sleep=sleep)


def set_part(text: str) -> str:
    """Text as a part of the name of a set."""
    shown = "".join(char if char.isprintable() and char not in _NO_NAME else "_" for char in text)
    short = shown.encode()[:_LONGEST].decode(errors="ignore").lstrip(".").rstrip(" .") or "_"
    return short if _is_name(short) else f"{short}_"


def _is_name(part: str) -> bool:
    return (
        part.isprintable() and not part.startswith(".") and part not in (_BODIES, REPORT)
        and part == part.rstrip(" .") and not set(part) & _NO_NAME and len(part.encode()) <= _LONGEST
    )  # fmt: skip


def _fixtures_in(place: Path) -> Iterator[Path]:
    """Files with the name of a fixture, in no order: the first of very many costs what the first of a few does."""
    if place.is_dir():
        with os.scandir(place) as entries:
            for entry in entries:
                if _is_fixture(entry.name):
                    yield place / entry.name


def _is_fixture(name: str) -> bool:
    return name.startswith(("op.", "http.")) and name.endswith(".json")
