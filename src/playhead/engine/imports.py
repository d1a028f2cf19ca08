"""Imports into a store: plans made by readers are assembled, merged with what is there, and written whole.

A reader (see `playhead.importers`) turns documents into plans; nothing here knows a format.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from playhead.core.assemble.records import Note, Record, RecordError, Settings, Trace
from playhead.core.assemble.restore import combined, restore
from playhead.core.assemble.session import Assembled, assemble
from playhead.core.assemble.tally import Tally, tally_of
from playhead.core.assemble.transcript import continues
from playhead.core.totals import add_cost
from playhead.core.values import AgentVersion, Node, NodeKind, Origin, Replay, Session, Verdict
from playhead.engine.documents import Document
from playhead.engine.import_report import ImportReport
from playhead.engine.pricing import price
from playhead.errors import ConflictError, FormatError, NotFoundError
from playhead.store.content import content_digest
from playhead.store.lookup import replacing
from playhead.store.ports import PutResult, SessionPort, SessionQuery, Store

GROUP_LIMIT = 1000
FOREIGN = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError, FormatError)
"""What reading foreign data may raise when a member is of another kind than anybody writes."""

OnExists: TypeAlias = Literal["merge", "skip", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One session to be assembled from the records of its trace, or of the traces of one conversation."""

    runs: Sequence[tuple[Trace, Sequence[Record]]]
    identity: Trace | None = None
    warnings: Sequence[Note] = ()

    @property
    def trace(self) -> Trace:
        return self.identity or self.runs[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePlan:
    """A session that is complete as it stands, with its ids."""

    session: Session
    nodes: Sequence[Node]
    verdicts: Sequence[Verdict] = ()
    version: AgentVersion | None = None
    replays: Sequence[Replay] = ()
    format: str
    file: str
    position: str = ""


Planned: TypeAlias = "Plan | NativePlan | Note"


class PlainReader:
    """What a reader does that keeps nothing between documents."""

    def end_of_file(self, file: str) -> Iterable[Planned]:
        return ()

    def damaged(self, note: Note) -> Note | None:
        return note

    def close(self) -> Iterable[Planned]:
        return ()


class Reader(Protocol):
    """Reads one format. It may keep what belongs together until more of it comes, in bounded memory."""

    def add(self, document: Document) -> Iterable[Planned]:
        """The plans that a document completes. A `Note` is an error of a record.

        Raises:
            RecordError: the document as a whole is not usable.
        """
        ...

    def end_of_file(self, file: str) -> Iterable[Planned]: ...

    def damaged(self, note: Note) -> Note | None:
        """A place of the file cannot be read. Gives back the error to report, None when it is reported already."""
        ...

    def close(self) -> Iterable[Planned]:
        """Everything that is still kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the person who imports decides. Times are nanoseconds, compared with when a session started."""

    settings: Settings = field(default_factory=Settings)
    on_exists: OnExists = "merge"
    dry_run: bool = False
    limit: int | None = None
    since: int | None = None
    until: int | None = None
    max_errors: int | None = None
    progress: Callable[[ImportReport], None] | None = None


def told(error: Exception) -> str:
    """An error of foreign data in words."""
    return f"a member is not what it should be ({type(error).__name__}: {str(error)[:200]})"


class ImportStopped(Exception):  # noqa: N818 - an end, not an error
    """The import ends here because an option says so; what was written stays."""


class Importing:
    """One import: applies plans to a store and keeps the report."""

    def __init__(self, store: Store, options: ImportOptions) -> None:
        self.report = ImportReport(dry_run=options.dry_run)
        self._store = store
        self._sessions: SessionPort = store.sessions
        self._options = options
        self._seen: dict[str, tuple[str, Tally]] = {}  # sessions that may come again in this import

    def apply(self, format: str, planned: Iterable[Planned], document: Document | None = None) -> None:
        """Writes what a reader planned. A failing session is reported and does not stop the others.

        Raises:
            ImportStopped: by an option.
        """
        stream = iter(planned)
        while True:
            try:
                plan = next(stream)
            except StopIteration:
                return
            except RecordError as error:
                self.fail(format, _placed(error, document))
                return
            except FOREIGN as error:
                self.fail(format, _placed(RecordError("undecodable", told(error)), document))
                return
            if isinstance(plan, Note):
                self.fail(format, _note_in(plan, document))
            else:
                self._apply_one(format, plan)

    def _apply_one(self, format: str, plan: Plan | NativePlan) -> None:
        try:
            self._put(format, plan)
        except RecordError as error:
            self.fail(format, _located(error, plan))
        except FOREIGN as error:
            self.fail(format, _located(RecordError("undecodable", told(error)), plan))
        except ConflictError as error:
            self.fail(format, _located(RecordError("exists", error.message, _external(plan)), plan))
        if self._options.progress is not None:
            self._options.progress(self.report)

    def fail(self, format: str, note: Note) -> None:
        self.report.of(format).failed += 1
        self.report.errors.add(note)
        limit = self._options.max_errors
        if limit is not None and self.report.failed >= limit:
            self.report.stopped = True
            raise ImportStopped

    def _put(self, format: str, plan: Plan | NativePlan) -> None:
        stored = self._stored(plan)
        if stored is not None and self._options.on_exists == "skip":
            self._count(format, PutResult(session_id=stored.id, result="unchanged"), Tally(), ())
            return
        if stored is not None and self._options.on_exists == "fail":
            raise RecordError("exists", f"session {stored.id!r} is in the store already", _external(plan))
        made = self._made(plan, stored)
        if not self._wanted(made.session):
            return
        self._refuse_another(made, stored, plan)
        warnings = plan.warnings if isinstance(plan, Plan) else ()
        self._count(format, self._write(made, stored), made.tally, (*warnings, *made.notes))
        if isinstance(plan, NativePlan) and not self._options.dry_run:
            self._replays(plan)
        limit = self._options.limit
        if limit is not None and self.report.sessions >= limit:
            self.report.stopped = True
            raise ImportStopped

    def _stored(self, plan: Plan | NativePlan) -> Session | None:
        if isinstance(plan, NativePlan):
            try:
                return self._sessions.get(plan.session.id)
            except NotFoundError:
                return None
        trace = plan.trace
        known = self._sessions.by_external(trace.format, trace.instance, trace.external_id)
        return known or self._grown(trace)

    def _grown(self, trace: Trace) -> Session | None:
        """The stored transcript that this one, from the same file, begins with: a log that has grown."""
        source = trace.metadata.get("source_file")
        if source is None or trace.transcript is None:
            return None
        query = SessionQuery(origins=(Origin.IMPORT,), metadata={"source_file": source})
        for session in self._sessions.find(query).items:
            if session.imported is None or session.imported.format != trace.format:
                continue
            if self._continues(trace, session):
                return session
        return None

    def _continues(self, trace: Trace, stored: Session) -> bool:
        """Whether a transcript begins with the whole of a stored one."""
        models = [n for n in self._sessions.nodes(stored.id) if n.kind is NodeKind.MODEL_CALL and n.outcome]
        last = models[-1] if models else None
        if trace.transcript is None or last is None or last.outcome is None:
            return False
        return continues(trace.transcript, last.inputs, last.outcome.value)

    def _replays(self, plan: NativePlan) -> None:
        """The replays that came with a session, unless they are here."""
        for replay in plan.replays:
            try:
                self._store.replays.get(replay.id)
            except NotFoundError:
                self._store.replays.create(replay)

    def _with_version(self, plan: NativePlan) -> Session:
        """The session, with the agent version that came with it under the id that it has in this store."""
        if plan.version is None or self._options.dry_run:
            return plan.session
        return replace(plan.session, agent_version=self._store.agents.register(plan.version).id)

    def _made(self, plan: Plan | NativePlan, stored: Session | None) -> Assembled:
        if isinstance(plan, NativePlan):
            return Assembled(
                session=self._with_version(plan),
                nodes=tuple(plan.nodes),
                verdicts=tuple(plan.verdicts),
                tally=tally_of(plan.nodes),
            )
        if stored is None:
            return _priced(assemble(plan.runs, self._options.settings, identity=plan.identity))
        runs = plan.runs
        if not plan.trace.whole:
            held = self._sessions.nodes(stored.id), self._sessions.verdicts(stored.id)
            runs = combined(restore(stored, *held), plan.runs)
        made = assemble(runs, self._options.settings, identity=plan.identity, keep_id=stored.id)
        return _placed_as(_priced(made), stored)

    def _refuse_another(self, made: Assembled, stored: Session | None, plan: Plan | NativePlan) -> None:
        """A whole record that comes twice in one import with different content: importing again would never settle.

        Raises:
            RecordError: it is one; what came first stays.
        """
        whole = isinstance(plan, NativePlan) or (
            plan.trace.whole and not (stored and self._continues(plan.trace, stored))
        )
        if stored is None or not whole or stored.id not in self._seen or self._options.dry_run:
            return
        held = self._sessions.nodes(stored.id), self._sessions.verdicts(stored.id)
        would_be = replacing(stored, held[1], made.session, made.verdicts)
        if content_digest(stored, *held) != content_digest(would_be.session, made.nodes, would_be.verdicts):
            raise RecordError(
                "duplicate_record", f"session {stored.id!r} came before in this import, with other content",
                _external(plan),
            )  # fmt: skip

    def _wanted(self, session: Session) -> bool:
        options = self._options
        early = options.since is not None and session.started_at < options.since
        late = options.until is not None and session.started_at >= options.until
        if early or late:
            self.report.skipped.add(Note(
                code="outside_times", message="started outside the times asked for",
                external_id=session.imported.external_id if session.imported else session.id,
            ))  # fmt: skip
        return not (early or late)

    def _write(self, made: Assembled, stored: Session | None) -> PutResult:
        if not self._options.dry_run:
            return self._sessions.put(made.session, made.nodes, made.verdicts)
        if stored is None:
            return PutResult(session_id=made.session.id, result="created")
        verdicts = self._sessions.verdicts(stored.id)
        would_be = replacing(stored, verdicts, made.session, made.verdicts)
        same = content_digest(stored, self._sessions.nodes(stored.id), verdicts) == content_digest(
            would_be.session, made.nodes, would_be.verdicts
        )
        return PutResult(session_id=stored.id, result="unchanged" if same else "updated")

    def _count(self, format: str, put: PutResult, tally: Tally, notes: Iterable[Note]) -> None:
        """A session that one import writes twice (its records came far apart) counts once, as it ended up."""
        counts = self.report.of(format)
        before = self._seen.get(put.session_id)
        if before is None:
            setattr(counts, put.result, getattr(counts, put.result) + 1)
            self.report.keep_id(put.session_id)
        else:
            counts.tally.subtract(before[1])
        counts.tally.add(tally)
        self._seen[put.session_id] = (put.result, tally)
        for note in notes:
            self.report.warnings.add(note)


def _priced(made: Assembled) -> Assembled:
    """Costs that the source does not tell, from the price table."""
    nodes = tuple(_priced_node(n) for n in made.nodes)
    cost = add_cost(n.model.cost for n in nodes if n.model is not None)
    made.tally.cost = cost
    return replace(made, nodes=nodes, session=replace(made.session, cost=cost))


def _priced_node(node: Node) -> Node:
    model = node.model
    if model is None or model.cost is not None or model.usage is None:
        return node
    cost = price(model.usage, model.served or model.requested, model.provider)
    return node if cost is None else replace(node, model=replace(model, cost=cost))


def _placed_as(made: Assembled, stored: Session) -> Assembled:
    """A session keeps the place where it was first found, as long as it has the same identity."""
    imported, known = made.session.imported, stored.imported
    if imported is None or known is None or imported.external_id != known.external_id:
        return made
    imported = replace(imported, file=known.file, position=known.position)
    return replace(made, session=replace(made.session, imported=imported))


def _external(plan: Plan | NativePlan) -> str:
    return plan.session.id if isinstance(plan, NativePlan) else plan.trace.external_id


def _located(error: RecordError, plan: Plan | NativePlan) -> Note:
    place = plan if isinstance(plan, NativePlan) else plan.trace
    return Note(
        code=error.code, message=error.message, external_id=error.external_id or _external(plan), file=place.file,
        position=error.position or place.position,
    )  # fmt: skip


def _placed(error: RecordError, document: Document | None) -> Note:
    note = Note(code=error.code, message=error.message, external_id=error.external_id, position=error.position)
    return _note_in(note, document)


def _note_in(note: Note, document: Document | None) -> Note:
    if document is None or note.file is not None:
        return note
    at = note.position or ""
    place = f"{document.position}{at}" if at.startswith("/") and not document.position.isdigit() else document.position
    return replace(note, file=document.file, position=place or at or None)


def by_conversation(plans: Iterable[Planned]) -> Iterator[Planned]:
    """Plans of one conversation as one plan, a turn for each trace. Transcripts and traces without one stay alone."""
    groups: dict[tuple[str, str, str], list[Plan]] = {}
    for plan in plans:
        named = _conversation(plan) if isinstance(plan, Plan) else None
        if named is None or not isinstance(plan, Plan):
            yield plan
        else:
            trace = plan.trace
            owner = trace.instance or str(trace.metadata.get("service") or "")
            groups.setdefault((trace.format, owner, named), []).append(plan)
    for (format, owner, named), held in groups.items():
        runs = [run for plan in held for run in plan.runs]
        warnings = [note for plan in held for note in plan.warnings]
        if len(runs) > GROUP_LIMIT:
            message = f"conversation {named!r} has {len(runs):,} traces, the limit is {GROUP_LIMIT:,}"
            yield Note(code="too_large", message=message, external_id=named)
            continue
        named_so = Trace(format=format, instance=owner, external_id=f"conversation:{named}", conversation=named)
        yield Plan(runs=runs, identity=named_so, warnings=warnings)


def _conversation(plan: Plan) -> str | None:
    trace, records = plan.runs[0]
    if trace.transcript is not None:
        return None
    return trace.conversation or next((r.conversation for r in records if r.conversation), None)
