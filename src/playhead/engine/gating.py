"""What answers a call in a replay: the decision is the core's, carrying it out is here, in both colours.

Everything here fails closed: an exception of ours is latched as a stop. A decision is taken under the replay's lock;
models and waits run outside it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from playhead.core.claim import Claim
from playhead.core.decide import decide
from playhead.core.model_failure import ModelFailures
from playhead.core.policy import (
    CallView,
    Decision,
    ErrorResult,
    Generate,
    HistoryConfig,
    Inject,
    LLMConfig,
    RunLive,
    Serve,
    Stop,
)
from playhead.core.tape import base_config
from playhead.core.values import JSON, LedgerRow, Outcome, OutcomeKind, Provenance
from playhead.engine.models import ToolRequest
from playhead.engine.replaying import Ended, ModelView, RecordingEnded, ReplayState
from playhead.errors import MissError, PlayheadError, RecordingError, ReplayStop, StaleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the seam does with a call: gives ``outcome``, or lets it run live where that is None."""

    outcome: Outcome | None
    provenance: Provenance
    row: int
    delay_ms: int = 0
    config: LLMConfig | None = None  # an outcome still to be written by a model
    stands_for: str | None = None  # of a model call: the recorded one that answers it, or that asked the same


def answer_tool(state: ReplayState, call: CallView, node_id: Callable[[], str]) -> Answer:
    """Decides a tool call, writes its ledger row and covers what a given answer hides.

    Raises:
        ReplayStop: the policy says stop, a stop is latched already, or something here went wrong.
    """
    try:
        with state.lock:
            state.check()
            _widen(state, call.tool)
            claim = state.tape.claim(call)
            decision = decide(state.policy, call, state.tape)
            answer = _act(state, call, decision, node_id())
            if answer.outcome is not None or answer.config is not None:
                _cover(state, call, claim)
            return replace(answer, row=_note_claim(state, answer.row, claim.occurrence))
    except ReplayStop:
        raise
    except Exception as error:
        raise broken(state, error, f"deciding tool call {call.tool!r}") from error


def _cover(state: ReplayState, call: CallView, claim: Claim) -> None:
    """What was recorded inside a call does not happen when an answer is given: rows say so."""
    for one in state.tape.cover(call.ref):
        state.note(
            LedgerRow(
                kind="tool", by="covered", tool=one.tool, arguments=one.arguments, key=one.key, path=one.path,
                occurrence=one.occurrence, from_session=one.session_id, from_node=one.node_id,
            )
        )  # fmt: skip
    if state.answers is None or claim.recording is None:
        return
    for model in state.answers.cover(claim.recording.child_path):
        node = model.node
        state.note(
            LedgerRow(
                kind="model", by="covered", tool=node.model.requested if node.model else None, key=model.key,
                path=model.path, from_session=node.session_id, from_node=node.id,
            )
        )  # fmt: skip


def broken(state: ReplayState, error: Exception, doing: str) -> ReplayStop:
    """The latched stop for a mistake of ours: in a replay nothing unclear goes live."""
    if isinstance(error, PlayheadError):
        return state.stop(error)
    return state.stop(RecordingError(f"playhead failed while {doing}: {type(error).__name__}: {error}"))


def generate(state: ReplayState, answer: Answer, request: ToolRequest) -> Outcome:
    """Waits and writes what the answer still lacks, and gives the outcome."""
    if answer.delay_ms:
        time.sleep(answer.delay_ms / 1000)
    if answer.config is None:
        assert answer.outcome is not None
        return answer.outcome
    try:
        if state.writer is None:
            raise RecordingError(f"no model may write a result for {request.tool!r} here")
        return state.writer.write(answer.config, request)
    except Exception as error:
        raise _unwritten(state, answer, error, request.tool) from error


async def generate_async(state: ReplayState, answer: Answer, request: ToolRequest) -> Outcome:
    """`generate`, for asyncio."""
    if answer.delay_ms:
        await asyncio.sleep(answer.delay_ms / 1000)
    if answer.config is None:
        assert answer.outcome is not None
        return answer.outcome
    try:
        if state.writer is None:
            raise RecordingError(f"no model may write a result for {request.tool!r} here")
        return await state.writer.write_async(answer.config, request)
    except Exception as error:
        raise _unwritten(state, answer, error, request.tool) from error


def _unwritten(state: ReplayState, answer: Answer, error: Exception, tool: str) -> ReplayStop:
    amend(state, answer.row, by="stopped", detail=str(error)[:500])
    return broken(state, error, f"writing a result for {tool!r}")


def answer_model(state: ReplayState, view: ModelView) -> Answer:
    """Answers a model call from history, or lets it go out.

    Raises:
        ReplayStop: the request is not in the recording, the recording ends here, or a stop is latched.
    """
    try:
        with state.lock:
            state.check()
            row = _row("model", "live", tool=view.requested, key=view.key, path=view.path, node_id=view.ref)
            failed = _failed(state, view, row)
            if failed is not None:
                return failed
            if state.answers is None:
                twin = None if state.twin_of is None else state.twin_of(view)
                return replace(_answer(state, row, Provenance(by="live"), None), stands_for=twin)
            decision = state.answers.decide(view)
            match decision:
                case Serve():
                    made = _from(row, decision.provenance, by="served", marks=decision.marks)
                    answer = _answer(state, made, decision.provenance, decision.outcome)
                    return replace(answer, stands_for=decision.provenance.node_id)
                case RunLive(missed=missed):
                    made = replace(row, by="live" if missed is None else "missed", detail=missed)
                    return _answer(state, made, Provenance(by="live", detail=missed), None)
                case Ended():
                    state.note(LedgerRow(kind="note", by="note", detail=decision.detail))
                    raise state.latch_with(RecordingEnded(decision))
                case Stop():
                    state.note(replace(row, by=_stopped_by(decision.reason), detail=decision.message))
                    raise state.stop(_error(decision, view.requested, view.key))
    except ReplayStop:
        raise
    except Exception as error:
        raise broken(state, error, "deciding a model call") from error


def _failed(state: ReplayState, view: ModelView, row: LedgerRow) -> Answer | None:
    """The scripted failure of a request, written down with the recorded call that it hides."""
    wanted = state.model_policy.inject
    if wanted is None:
        return None
    if state.model_failures is None:
        state.model_failures = ModelFailures(wanted)
    outcome = state.model_failures.answer(view.key or view.ref)
    if outcome is None:
        return None
    hidden = None if state.answers is None else state.answers.hides(view)
    made = replace(row, by="injected", detail=wanted.kind)
    if hidden is not None:
        made = replace(made, from_session=hidden.session_id, from_node=hidden.id)
    return _answer(state, made, Provenance(by="injected", detail=wanted.kind), outcome)


def amend(state: ReplayState, row: int, **changes: JSON) -> None:
    """Changes a ledger row that is already written."""
    with state.lock:
        state.ledger[row] = replace(state.ledger[row], **changes)


def mark(state: ReplayState, row: int, *marks: str) -> None:
    """Adds marks to a ledger row."""
    with state.lock:
        amend(state, row, marks=(*state.ledger[row].marks, *marks))


# decisions to rows and answers


def _widen(state: ReplayState, tool: str) -> None:
    config = base_config(state.policy.config_for(tool))
    wide = isinstance(config, HistoryConfig) and config.scope != "baseline"
    if not wide or tool in state.widened or state.widen is None:
        return
    assert isinstance(config, HistoryConfig)
    state.tape.add_wide(tool, state.widen(tool, config))
    state.widened.add(tool)


def _act(state: ReplayState, call: CallView, decision: Decision, node_id: str) -> Answer:
    row = _row("tool", "live", tool=call.tool, key=call.key, path=call.path, node_id=node_id, arguments=call.arguments)
    match decision:
        case Serve():
            by = "static" if decision.provenance.by == "static" else "served"
            made = _from(row, decision.provenance, by=by, marks=decision.marks)
            return _answer(state, made, decision.provenance, decision.outcome, delay_ms=decision.delay_ms)
        case RunLive(missed=missed):
            made = replace(row, by="live" if missed is None else "missed", detail=missed)
            marks = () if missed is None else ("live",)
            return _answer(state, replace(made, marks=marks), Provenance(by="live", detail=missed), None)
        case ErrorResult():
            outcome = Outcome(kind=OutcomeKind.RESULT_ERROR, value=decision.message)
            made = replace(row, by="missed", detail=decision.missed, marks=(decision.reason,))
            return _answer(state, made, Provenance(by="missed", detail=decision.reason), outcome)
        case Generate():
            made = replace(row, by="generated", detail=decision.config.model)
            return _answer(state, made, Provenance(by="generated"), None, config=decision.config)
        case Inject():
            made = replace(row, by="injected", detail=decision.kind)
            if decision.hides is not None:
                made = replace(made, from_session=decision.hides.session_id, from_node=decision.hides.node_id)
            return _answer(state, made, Provenance(by="injected", detail=decision.kind), decision.outcome)
        case Stop():
            state.note(replace(row, by=_stopped_by(decision.reason), detail=decision.message))
            raise state.stop(_error(decision, call.tool, call.key))


def _answer(
    state: ReplayState, row: LedgerRow, provenance: Provenance, outcome: Outcome | None, *, delay_ms: int = 0,
    config: LLMConfig | None = None,
) -> Answer:  # fmt: skip
    return Answer(outcome=outcome, provenance=provenance, row=state.note(row), delay_ms=delay_ms, config=config)


def _note_claim(state: ReplayState, row: int, occurrence: int) -> int:
    amend(state, row, occurrence=occurrence)
    return row


def _from(
    row: LedgerRow, provenance: Provenance, *, by: Literal["served", "static"], marks: tuple[str, ...]
) -> LedgerRow:
    return replace(
        row,
        by=by,
        from_session=provenance.session_id,
        from_node=provenance.node_id,
        detail=provenance.detail,
        marks=tuple(dict.fromkeys((*(("loose",) if provenance.loose else ()), *marks))),
    )


def _row(
    kind: Literal["tool", "model"], by: Literal["live"], *, tool: str | None, key: str | None, path: tuple[str, ...],
    node_id: str, arguments: JSON = None,
) -> LedgerRow:  # fmt: skip
    return LedgerRow(kind=kind, by=by, tool=tool, key=key, path=path, node_id=node_id, arguments=arguments)


def _stopped_by(reason: str) -> Literal["missed", "stale", "ambiguous"]:
    if reason == "stale":
        return "stale"
    return "ambiguous" if reason == "ambiguous" else "missed"


def _error(stop: Stop, tool: str | None, key: str | None) -> PlayheadError:
    kind = StaleError if stop.reason == "stale" else MissError
    return kind(stop.message, tool=tool, key=key, reason=stop.reason, closest=stop.closest)
