"""Recordings made elsewhere become sessions: the table of formats, and one call that imports files.

Each module reads one family of formats and knows no other; what is common is in `playhead.core.assemble`.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playhead.core.assemble.records import Note, Settings
from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.protocol.openai_chat import read_tool
from playhead.core.values import JSON
from playhead.engine.documents import Document, Unreadable, files_of, read_file
from playhead.engine.import_report import ImportReport
from playhead.engine.imports import (
    Importing,
    ImportOptions,
    ImportStopped,
    OnExists,
    Planned,
    Reader,
    by_conversation,
)
from playhead.errors import UsageError
from playhead.importers import openai_chat, otlp, playhead_jsonl, swe_agent, tau2, tau_bench
from playhead.importers.detection import detect, is_whole
from playhead.store.ports import Store

__all__ = ["FORMATS", "ImportReport", "Importer", "import_paths", "list_formats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """What readers need to know of the import."""

    tools: Sequence[JSON] | None
    instance: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """One format: its name for ``--format``, what it is, and how to get a reader."""

    name: str
    about: str
    make: Callable[[ReaderOptions], Reader]


FORMATS: tuple[Importer, ...] = (
    Importer(
        name=playhead_jsonl.NAME,
        about="playhead's own JSON lines, or a bundle",
        make=lambda o: playhead_jsonl.PlayheadReader(),
    ),
    Importer(
        name=otlp.NAME,
        about="OpenTelemetry traces and logs with GenAI attributes, JSON or protobuf",
        make=lambda o: otlp.OtlpReader(),
    ),
    Importer(
        name=openai_chat.NAME,
        about="OpenAI chat transcripts, one file or JSON line each",
        make=lambda o: openai_chat.OpenAIChatReader(tools=o.tools, instance=o.instance, depth=o.depth),
    ),
    Importer(
        name=tau_bench.NAME,
        about="tau-bench results",
        make=lambda o: tau_bench.TauBenchReader(tools=o.tools, instance=o.instance, depth=o.depth),
    ),
    Importer(
        name=tau2.NAME,
        about="tau2 results: every simulation of a run",
        make=lambda o: tau2.Tau2Reader(tools=o.tools, instance=o.instance, depth=o.depth),
    ),
    Importer(
        name=swe_agent.NAME,
        about="SWE-agent trajectories",
        make=lambda o: swe_agent.SweAgentReader(tools=o.tools, instance=o.instance, depth=o.depth),
    ),
)


def list_formats() -> list[tuple[str, str]]:
    """(name, what it is) of each format that can be imported."""
    return [(f.name, f.about) for f in FORMATS]


def import_paths(
    store: Store,
    paths: Iterable[str | Path],
    *,
    format: str = "auto",
    agent: str | None = None,
    instance: str = "",
    group_by: Literal["trace", "conversation"] = "trace",
    tools: str | Path | Sequence[JSON] | None = None,
    dry_run: bool = False,
    limit: int | None = None,
    since: int | None = None,
    until: int | None = None,
    decode_json: Iterable[str] = (),
    on_exists: OnExists = "merge",
    keep_raw: Literal["none", "small", "all"] = "small",
    max_errors: int | None = None,
    progress: Callable[[ImportReport], None] | None = None,
) -> ImportReport:
    """Imports files and folders (``-`` is standard input) as one import.

    A bad record never stops the others: it is in the report, whose ``exit_code`` says how it went. Importing the same
    thing again changes nothing.

    Args:
        tools: tool schemas for sources that do not show them (OpenAI form), or a file that holds them.
        since: nanoseconds; only sessions that started at this time or later. ``until``: before it.
        decode_json: names of tools whose results are kept as text but are JSON.

    Raises:
        UsageError: no such file, format, or tool file.
        StoreError: the store cannot be written.
    """
    names = [f.name for f in FORMATS]
    if format != "auto" and format not in names:
        raise UsageError(f"there is no format {format!r}", hint=f"formats: auto, {', '.join(names)}")
    if group_by not in ("trace", "conversation"):
        raise UsageError(f"group_by is 'trace' or 'conversation', not {group_by!r}")
    settings = Settings(agent=agent, decode_json=frozenset(decode_json), keep_raw=keep_raw)
    options = ImportOptions(
        settings=settings, on_exists=on_exists, dry_run=dry_run, limit=limit, since=since, until=until,
        max_errors=max_errors, progress=progress,
    )  # fmt: skip
    given = ReaderOptions(tools=_tools(tools), instance=instance, depth=settings.payload_depth)
    run = _Run(Importing(store, options), given, format, group_by == "conversation")
    for name, named in list(files_of(paths)):
        if not run.file(name, named):
            return run.importing.report
    run.close()
    return run.importing.report


def _tools(tools: str | Path | Sequence[JSON] | None) -> list[JSON] | None:
    if tools is None:
        return None
    listed: Any = tools
    if isinstance(tools, str | Path):
        try:
            listed = json.loads(Path(tools).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read tools from {str(tools)!r}: {error}") from error
    if is_object(listed):
        listed = listed.get("tools")
    if not is_list(listed) or not all(is_object(t) for t in listed):
        raise UsageError("tools are a list of tool definitions in the form of the OpenAI API")
    return [read_tool(t) for t in listed]


class _Run:
    """One import over its files: gives each document to the reader of its format."""

    def __init__(self, importing: Importing, given: ReaderOptions, format: str, grouped: bool) -> None:
        self.importing = importing
        self._given, self._format, self._grouped = given, format, grouped
        self._readers: dict[str, Reader] = {}
        self._waiting: list[Planned] = []

    def file(self, name: str, named: bool) -> bool:
        """Imports one file; False when the import ends here."""
        seen: set[str] = set()
        unknown = 0
        try:
            for piece in read_file(name, is_whole=is_whole):
                if isinstance(piece, Document):
                    found = self._document(piece, seen)
                    unknown += not found
                elif isinstance(piece, Unreadable):
                    self._unreadable(piece, seen)
                else:
                    self._end(name, seen)
        except ImportStopped:
            return False
        except OSError as error:
            return self._failed(
                Note(code="unreadable", message=f"cannot read it: {error.strerror or error}", file=name)
            )
        if not seen and unknown:
            self._unknown(name, named)
        return True

    def close(self) -> None:
        try:
            for name, reader in self._readers.items():
                self._apply(name, reader.close(), None)
            if self._grouped:
                for plan in by_conversation(self._waiting):
                    self.importing.apply(self._name_of(plan), [plan])
        except ImportStopped:
            return

    def _name_of(self, plan: Planned) -> str:
        return next((r.format for r in [getattr(plan, "trace", None)] if r is not None), otlp.NAME)

    def _document(self, document: Document, seen: set[str]) -> bool:
        """Whether the document was of a known format, be it one that is read or one that is passed over."""
        name = self._format if self._format != "auto" else _format_of(document)
        if name is None:
            if seen:  # one strange line in a file of a known format
                self.importing.fail(min(seen), Note(
                    code="unknown_format", message="nothing shows its format", file=document.file,
                    position=document.position,
                ))  # fmt: skip
            return False
        counts = self.importing.report.of(name)
        if name not in seen:
            seen.add(name)
            counts.files += 1
            if name not in _BY_NAME:
                self._pass_over(name, document)
        counts.records += 1
        if name in _BY_NAME:
            self._apply(name, self._reader(name).add(document), document)
        return True

    def _pass_over(self, name: str, document: Document) -> None:
        message = f"recognised as {name}, which this version does not import"
        self.importing.report.skipped.add(Note(code="unsupported_format", message=message, file=document.file))

    def _apply(self, name: str, planned: Iterable[Planned], document: Document | None) -> None:
        if self._grouped:
            planned = self._held(planned)
        self.importing.apply(name, planned, document)

    def _held(self, planned: Iterable[Planned]) -> Iterable[Planned]:
        """Keeps plans until the end, when all traces of a conversation are known; notes pass."""
        for plan in planned:
            if isinstance(plan, Note):
                yield plan
            else:
                self._waiting.append(plan)

    def _reader(self, name: str) -> Reader:
        if name not in self._readers:
            self._readers[name] = _BY_NAME[name].make(self._given)
        return self._readers[name]

    def _unreadable(self, piece: Unreadable, seen: set[str]) -> None:
        note: Note | None = Note(
            code=piece.code, message=piece.message, file=piece.file, position=piece.position or None
        )
        for name in sorted(seen & set(self._readers)):
            note = note and self._readers[name].damaged(note)
        if note is not None:
            self.importing.fail(min(seen, default="unknown"), note)

    def _end(self, file: str, seen: set[str]) -> None:
        for name in seen & set(self._readers):
            self._apply(name, self._readers[name].end_of_file(file), None)

    def _failed(self, note: Note) -> bool:
        try:
            self.importing.fail("unknown", note)
        except ImportStopped:
            return False
        return True

    def _unknown(self, name: str, named: bool) -> None:
        note = Note(code="unknown_format", message="nothing in it shows a known format", file=name)
        self.importing.report.skipped.add(note)
        if named:
            self.importing.report.unknown.append(name)


_BY_NAME = {f.name: f for f in FORMATS}


def _format_of(document: Document) -> str | None:
    return detect(document) or (otlp.NAME if document.data is not None and otlp.claims(document) else None)
