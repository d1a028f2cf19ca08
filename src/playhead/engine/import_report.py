"""What an import did: numbers per format, what was skipped, and every error and warning with its place."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead.core.assemble.records import Note
from playhead.core.assemble.tally import Tally
from playhead.core.codec import dump
from playhead.core.values import JSON

KEPT = 100
"""Errors, warnings and skipped files that a report lists; the rest is counted."""

_IDS = 100_000


@dataclass(slots=True, kw_only=True)
class FormatCounts:
    files: int = 0
    records: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    tally: Tally = field(default_factory=Tally)

    @property
    def sessions(self) -> int:
        return self.created + self.updated + self.unchanged


@dataclass(slots=True, kw_only=True)
class Notes:
    """The first of many notes, and the number of all by code."""

    first: list[Note] = field(default_factory=list[Note])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, note: Note) -> None:
        if len(self.first) < KEPT:
            self.first.append(note)
        self.counts[note.code] = self.counts.get(note.code, 0) + 1

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __iter__(self) -> Iterator[Note]:
        return iter(self.first)

    def to_json(self) -> list[JSON]:
        return [_note(n) for n in self.first]


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """``session_ids`` are those created, updated or unchanged, in order. ``unknown`` are named files of no format."""

    formats: dict[str, FormatCounts] = field(default_factory=dict[str, FormatCounts])
    errors: Notes = field(default_factory=Notes)
    warnings: Notes = field(default_factory=Notes)
    skipped: Notes = field(default_factory=Notes)
    unknown: list[str] = field(default_factory=list[str])
    session_ids: list[str] = field(default_factory=list[str])
    dry_run: bool = False
    stopped: bool = False  # by --limit or --max-errors

    def of(self, format: str) -> FormatCounts:
        return self.formats.setdefault(format, FormatCounts())

    def keep_id(self, session_id: str) -> None:
        if len(self.session_ids) < _IDS:
            self.session_ids.append(session_id)

    def _sum(self, name: str) -> int:
        return sum(getattr(counts, name) for counts in self.formats.values())

    @property
    def created(self) -> int:
        return self._sum("created")

    @property
    def updated(self) -> int:
        return self._sum("updated")

    @property
    def unchanged(self) -> int:
        return self._sum("unchanged")

    @property
    def failed(self) -> int:
        """Records or sessions that could not be imported."""
        return len(self.errors)

    @property
    def sessions(self) -> int:
        return self._sum("sessions")

    @property
    def tally(self) -> Tally:
        whole = Tally()
        for counts in self.formats.values():
            whole.add(counts.tally)
        return whole

    @property
    def exit_code(self) -> int:
        """0: everything imported, or skipped on purpose; 1: some records failed; 2: a named file of no format;
        3: a file that cannot be read."""
        if "unreadable" in self.errors.counts:
            return 3
        if self.unknown:
            return 2
        return 1 if self.failed else 0

    def to_json(self) -> dict[str, JSON]:
        return {
            "sessions": self.sessions,
            "created": self.created,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "dry_run": self.dry_run,
            "stopped": self.stopped,
            "formats": {name: _counts(counts) for name, counts in sorted(self.formats.items())},
            "skipped": self.skipped.to_json(),
            "skipped_counts": self.skipped.counts,
            "warnings": self.warnings.to_json(),
            "warning_counts": self.warnings.counts,
            "errors": self.errors.to_json(),
            "error_counts": self.errors.counts,
            "session_ids": self.session_ids,
        }


def _counts(counts: FormatCounts) -> dict[str, JSON]:
    tally = counts.tally
    usage = dump(tally.usage) if tally.usage is not None else None
    if usage is not None:
        usage.pop("raw", None)
    return {
        "files": counts.files,
        "records": counts.records,
        "sessions": counts.sessions,
        "created": counts.created,
        "updated": counts.updated,
        "unchanged": counts.unchanged,
        "failed": counts.failed,
        "nodes": dict(tally.nodes),
        "duplicates": tally.duplicates,
        "inferred": tally.inferred,
        "joined": dict(tally.joined),
        "rebuilt": tally.rebuilt,
        "unanswered": tally.unanswered,
        "fidelity": dict(tally.marks),
        "outcomes": dict(tally.outcomes),
        "error_hints": tally.error_hints,
        "capture": dict(tally.capture),
        "usage": usage,
        "cost": tally.cost.amount if tally.cost is not None else None,
    }


def _note(note: Note) -> dict[str, JSON]:
    """``line`` for a place in JSON lines, ``pointer`` for one inside a JSON document."""
    made: dict[str, JSON] = {"code": note.code, "message": note.message}
    if note.file is not None:
        made["file"] = note.file
    if note.position:
        is_line = note.position.isdigit()
        made["line" if is_line else "pointer"] = int(note.position) if is_line else note.position
    if note.external_id:
        made["external_id"] = note.external_id
    return made
