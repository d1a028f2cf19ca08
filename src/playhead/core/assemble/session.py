"""The assembler: merged records in, one session with its nodes out. Every source goes through here.

Steps, each a module: merge records, grow the tree, sort kinds, order, join calls to requests, settle results, make
nodes, tell the session from them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from playhead.core.assemble.dialogue import DraftTurn, first_input, output_of, system_of, turns_of
from playhead.core.assemble.draft import Draft, grow
from playhead.core.assemble.emit import Emitter, small_raw
from playhead.core.assemble.ids import session_id
from playhead.core.assemble.joins import join
from playhead.core.assemble.kinds import sort_kinds
from playhead.core.assemble.merge import merge_records
from playhead.core.assemble.order import in_order, settle_parallel, with_rebuilt
from playhead.core.assemble.records import Note, Record, RecordError, Settings, Trace
from playhead.core.assemble.results import bounded, settle_result
from playhead.core.assemble.spelling import clean_name
from playhead.core.assemble.tally import Tally, tally_of
from playhead.core.totals import add_cost, add_usage
from playhead.core.values import (
    JSON,
    Conversation,
    ErrorInfo,
    Imported,
    Node,
    NodeKind,
    Origin,
    Session,
    SessionStatus,
    Turn,
    Verdict,
)

CONTENT_NOT_CAPTURED = "model_content_not_captured"
INPUTS_NOT_CAPTURED = "inputs_not_captured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A session as it is to be stored, and what was found out on the way."""

    session: Session
    nodes: tuple[Node, ...]
    verdicts: tuple[Verdict, ...] = ()
    tally: Tally
    notes: tuple[Note, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Run:
    """One trace on its way through the steps."""

    trace: Trace
    drafts: list[Draft]
    tally: Tally
    notes: list[Note] = field(default_factory=list[Note])

    @property
    def root(self) -> Draft | None:
        """The one step that holds all others, if there is one."""
        tops = [d for d in self.drafts if d.parent is None and not d.rebuilt]
        return tops[0] if len(tops) == 1 else None


def assemble(
    runs: Sequence[tuple[Trace, Sequence[Record]]],
    settings: Settings,
    *,
    identity: Trace | None = None,
    keep_id: str | None = None,
) -> Assembled:
    """One session of one trace, or of several that make one conversation (then ``identity`` names it).

    Args:
        keep_id: the id that the session has already in the store.

    Raises:
        RecordError: the records cannot be one session.
    """
    made = [_prepare(trace, records, settings) for trace, records in runs]
    made.sort(key=lambda run: _started(run.drafts))
    trace = identity or made[0].trace
    drafts = [d for run in made for d in run.drafts]
    if len(made) > 1 or identity is not None:
        for run in made:
            for draft in run.drafts:
                draft.trace = run.trace.external_id
    started = _started(drafts)
    own_id = keep_id or session_id(trace.format, trace.instance, trace.external_id, started)
    emitter = Emitter(session_id=own_id, trace=trace, settings=settings)
    nodes = emitter.nodes(drafts)
    tally = Tally()
    for run in made:
        tally.add(run.tally)
    tally_of(nodes, tally)
    session = _session(trace, made, nodes, emitter, settings)
    return Assembled(
        session=session,
        nodes=tuple(nodes),
        verdicts=tuple(v for run in made for v in run.trace.verdicts),
        tally=tally,
        notes=tuple(n for run in made for n in run.notes) + _content_notes(made, trace),
    )


def _prepare(trace: Trace, records: Iterable[Record], settings: Settings) -> _Run:
    notes: list[Note] = []
    merged = [_bounded(r, settings.payload_depth) for r in merge_records(records)]
    if not merged:
        raise RecordError("no_records", "nothing in it is a step of a session", trace.external_id)
    if len(merged) > settings.nodes:
        raise RecordError("too_large", f"more than {settings.nodes:,} nodes", trace.external_id)
    kinds = sort_kinds(grow(merged, settings.node_depth, notes), notes)
    ordered = in_order(kinds.drafts)
    joined = join(ordered, _trailing(trace))
    ordered = with_rebuilt(settle_parallel(ordered), joined.rebuilt)
    for draft in ordered:
        if draft.kind is NodeKind.TOOL_CALL:
            settle_result(draft, settings)
    tally = Tally(
        duplicates=kinds.dropped, inferred=kinds.inferred, rebuilt=len(joined.rebuilt), unanswered=joined.unanswered
    )
    return _Run(trace=trace, drafts=ordered, tally=tally, notes=notes)


def _bounded(record: Record, limit: int) -> Record:
    tool = record.tool
    if tool is not None:
        tool = replace(tool, arguments=bounded(tool.arguments, limit), result=bounded(tool.result, limit))
    late = record.started_at is not None and record.ended_at is not None and record.ended_at < record.started_at
    return replace(
        record,
        external_id=clean_name(record.external_id, 512),
        parent=clean_name(record.parent, 512) if record.parent else None,
        tool=tool,
        input=bounded(record.input, limit),
        output=bounded(record.output, limit),
        ended_at=record.started_at if late else record.ended_at,
    )


def _trailing(trace: Trace) -> Sequence[JSON]:
    """The messages of a transcript after its last answer."""
    messages = trace.transcript or ()
    last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
    return messages[last + 1 :]


def _started(drafts: Iterable[Draft]) -> int:
    return min((d.record.started_at or d.record.seen_at or 0 for d in drafts if not d.rebuilt), default=0)


# --- the session ----------------------------------------------------------------------------------------------------


def _session(
    trace: Trace, runs: Sequence[_Run], nodes: Sequence[Node], emitter: Emitter, settings: Settings
) -> Session:
    turns = _turns(runs)
    derived = trace.transcript is None and all(_own_input(r) is None for r in runs)
    inputs: JSON = turns[0].input if len(turns) == 1 else {"turns": [t.input for t in turns]}
    models = [n for n in nodes if n.kind is NodeKind.MODEL_CALL]
    starts = [n.started_at for n in nodes if n.started_at]
    conversation = next((c for r in runs if (c := _conversation(r))), None)
    reasons = _not_replayable(turns, models)
    metadata = _metadata(runs)
    if derived and inputs is not None:
        metadata["inputs_derived"] = True
    return Session(
        id=emitter.session_id,
        agent=settings.agent or _agent(trace, runs),
        started_at=min(starts, default=0),
        origin=Origin.IMPORT,
        status=_status(runs[-1]),
        ended_at=max((n.ended_at for n in nodes if n.ended_at), default=None),
        name=trace.name,
        inputs=inputs,
        system_prompt=next((s for r in runs if (s := _system(r)) is not None), None),
        output=turns[-1].output if turns else None,
        error=_error(runs[-1]),
        turns=_stored_turns(runs, turns, emitter),
        trailing_input=turns_of(trace.transcript, runs[0].drafts).trailing if trace.transcript is not None else None,
        conversation=Conversation(id=conversation) if conversation else None,
        usage=add_usage(n.model.usage for n in models if n.model),
        cost=add_cost(n.model.cost for n in models if n.model),
        tags=tuple(dict.fromkeys(t for r in runs for t in r.trace.tags)),
        metadata=metadata,
        not_replayable=reasons,
        imported=Imported(
            format=trace.format, instance=trace.instance, external_id=trace.external_id,
            file=trace.file, position=trace.position, raw=small_raw(trace.raw, settings),
        ),
        warnings=_warnings(runs),
    )  # fmt: skip


def _warnings(runs: Sequence[_Run]) -> tuple[str, ...]:
    told = [w for r in runs for w in (*r.trace.warnings, *(f"{n.code}: {n.message}" for n in r.notes))]
    return tuple(dict.fromkeys(told))


def _turns(runs: Sequence[_Run]) -> list[DraftTurn]:
    turns: list[DraftTurn] = []
    for run in runs:
        transcript = run.trace.transcript
        if transcript is not None:
            turns += turns_of(transcript, run.drafts).turns
            continue
        given = _own_input(run)
        if given is None:
            first = next((d for d in run.drafts if d.kind is NodeKind.MODEL_CALL), None)
            given = first_input(first) if first is not None else None
        turns.append(DraftTurn(given, _output(run), tuple(run.drafts)))
    return turns


def _stored_turns(runs: Sequence[_Run], turns: Sequence[DraftTurn], emitter: Emitter) -> tuple[Turn, ...]:
    """Turns are kept where the session is a dialogue; a session of one trace is its own turn."""
    if len(runs) == 1 and runs[0].trace.transcript is None:
        return ()
    return tuple(
        Turn(
            input=t.input,
            output=t.output,
            first_node=emitter.id_of(t.nodes[0]) if t.nodes else None,
            last_node=emitter.id_of(t.nodes[-1]) if t.nodes else None,
        )
        for t in turns
    )


def _own_input(run: _Run) -> JSON:
    if run.trace.input is not None:
        return run.trace.input
    root = run.root
    return root.record.input.value if root is not None and root.record.input is not None else None


def _output(run: _Run) -> JSON:
    root = run.root
    if run.trace.output is not None:
        return run.trace.output
    if root is not None and root.record.output is not None and root.kind is not NodeKind.TOOL_CALL:
        return root.record.output.value
    models = [d for d in run.drafts if d.kind is NodeKind.MODEL_CALL and _is_top(d)]
    facts = models[-1].record.model if models else None
    return output_of(facts.response) if facts is not None else None


def _is_top(draft: Draft) -> bool:
    return not any(a.kind is NodeKind.TOOL_CALL for a in draft.ancestors())


def _status(run: _Run) -> SessionStatus:
    if run.trace.status is not None:
        return SessionStatus(run.trace.status)
    root = run.root
    if root is None:
        models = [d for d in run.drafts if d.kind is NodeKind.MODEL_CALL]
        return SessionStatus.FAILED if models and models[-1].record.failed else SessionStatus.COMPLETED
    if root.record.failed:
        return SessionStatus.FAILED
    record = root.record
    never_ended = record.ended_at is None and (record.started_at is not None or record.partial)
    return SessionStatus.ABANDONED if never_ended else SessionStatus.COMPLETED


def _error(run: _Run) -> ErrorInfo | None:
    if _status(run) is not SessionStatus.FAILED:
        return None
    if run.root is not None:
        return run.root.record.error
    failed = [d.record.error for d in run.drafts if d.record.failed]
    return failed[-1] if failed else None


def _agent(trace: Trace, runs: Sequence[_Run]) -> str:
    agents = [d for r in runs for d in r.drafts if d.kind is NodeKind.AGENT_CALL]
    named = [d.record.agent for d in sorted(agents, key=lambda d: len(list(d.ancestors()))) if d.record.agent]
    top = next((d.record.name for d in agents if d.parent is None), None)
    services = [s for r in runs if isinstance(s := r.trace.metadata.get("service"), str)]
    own = [trace.agent, *named, top, trace.name, *services]
    return clean_name(next((name for name in own if name), trace.format))


def _conversation(run: _Run) -> str | None:
    return run.trace.conversation or next((d.record.conversation for d in run.drafts if d.record.conversation), None)


def _system(run: _Run) -> str | None:
    if run.trace.system_prompt is not None:
        return run.trace.system_prompt
    for draft in run.drafts:
        facts = draft.record.model
        if draft.kind is NodeKind.MODEL_CALL and facts is not None and facts.messages is not None:
            return system_of(facts.messages)
    return None


def _metadata(runs: Sequence[_Run]) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    for run in runs:
        metadata.update(run.trace.metadata)
    if len(runs) > 1:
        metadata["traces"] = [r.trace.external_id for r in runs]
    return metadata


def _not_replayable(turns: Sequence[DraftTurn], models: Sequence[Node]) -> tuple[str, ...]:
    reasons: list[str] = []
    if not turns or any(t.input is None for t in turns[:1]):
        reasons.append(INPUTS_NOT_CAPTURED)
    if models and all(n.model is not None and n.model.capture == "none" for n in models):
        reasons.append(CONTENT_NOT_CAPTURED)
    return tuple(reasons)


def _content_notes(runs: Sequence[_Run], trace: Trace) -> tuple[Note, ...]:
    """Names the setting of the source that would have captured the content."""
    for run in runs:
        for draft in run.drafts:
            facts = draft.record.model
            empty = facts is None or (facts.messages is None and facts.response is None)
            if draft.kind is NodeKind.MODEL_CALL and empty and draft.record.hint and not draft.record.failed:
                text = f"message content was not captured; at the source, set {draft.record.hint}"
                return (Note(code="content_not_captured", message=text, external_id=trace.external_id),)
    return ()
