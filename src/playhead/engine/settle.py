"""Settling a replay: ledger, comparison, fidelity and final status, once the agent has ended."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from playhead.core.compare import Comparison, compare, lost_output
from playhead.core.fidelity import fidelity
from playhead.core.policy import HistoryConfig, HistoryModel, StaticConfig, ToolPolicy
from playhead.core.tape import base_config
from playhead.core.values import (
    OUTPUT_NOT_STORED,
    ErrorInfo,
    Fidelity,
    FidelityKind,
    LedgerRow,
    Node,
    NodeKind,
    Replay,
    ReplayStatus,
    Session,
)
from playhead.engine.active import RecordingEnded, ReplayState
from playhead.engine.clock import Clock
from playhead.errors import ModelAccessError, NothingServedError, OverrideNotAppliedError, PlayheadError

_ANSWERED = frozenset({"served", "covered", "rejected"})
_NOT_REACHED = frozenset(
    {
        "APIConnectionError", "ConnectError", "ConnectTimeout", "ConnectionError", "ConnectionRefusedError",
        "EgressBlockedError", "gaierror",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A settled replay with the comparison behind its fidelity."""

    replay: Replay
    comparison: Comparison


def settle(
    replay: Replay,
    state: ReplayState,
    baseline: Session,
    baseline_nodes: Sequence[Node],
    result: Session,
    result_nodes: Sequence[Node],
    *,
    fork: bool,
    guard: str,
    extra: Iterable[LedgerRow] = (),
    clock: Clock,
) -> Settled:
    """The final state of a replay whose agent has ended.

    ``extra`` are rows from outside the seam, such as refused connections.
    """
    from_history = isinstance(state.model_policy, HistoryModel)
    no_models = not any(n.kind is NodeKind.MODEL_CALL for n in (*baseline_nodes, *result_nodes))
    output = from_history or (no_models and not fork)  # a live model may say something else
    comparison = compare(
        baseline,
        baseline_nodes,
        result,
        result_nodes,
        ignore=ignored(state.policy, tools_of((*baseline_nodes, *result_nodes))),
        models=from_history,
        output=output or baseline.status is not result.status,
    )
    made = _answered_by_itself(comparison, result_nodes)
    unused = [row for row in leftovers(state) if row.tool is not None or row.from_node not in made]
    ledger = (*state.ledger, *unused, *extra)
    ledger += tuple(_unseen_stop(state, ledger))
    lost = output and (lost_output(baseline) or lost_output(result))
    judged = fidelity(
        comparison,
        ledger,
        compared=_compared(baseline_nodes, from_history),
        doubts=[f"{OUTPUT_NOT_STORED}, so it was not compared"] if lost else [],
    )
    error = _unreached(ledger, baseline_nodes, result_nodes) or _error(state, ledger, baseline_nodes, result, fork)
    final = replace(
        replay,
        status=ReplayStatus.FAILED if error else ReplayStatus.COMPLETED,
        result_session_id=result.id,
        ended_at=clock.now(),
        error=error,
        ledger=ledger,
        fidelity=judged,
        guard=guard,
    )
    return Settled(replay=final, comparison=comparison)


def _answered_by_itself(comparison: Comparison, result_nodes: Sequence[Node]) -> set[str]:
    """Recorded model calls that the agent answered itself again, such as by a hook of its own: nobody had to decide."""
    own = {n.id for n in result_nodes if n.model is not None and n.model.provenance is None}
    return {baseline for baseline, result in comparison.aligned if result in own}


def _unseen_stop(state: ReplayState, ledger: Sequence[LedgerRow]) -> Iterator[LedgerRow]:
    """A row for a stop that no call's own row shows: whatever stopped a replay stands in its ledger."""
    stop = state.latch
    shown = any(row.by in ("missed", "stopped", "stale", "ambiguous") for row in ledger)
    if stop is not None and not isinstance(stop, RecordingEnded) and not shown:
        yield LedgerRow(kind="note", by="stopped", detail=stop.error.message)


def tools_of(nodes: Iterable[Node]) -> set[str]:
    """The tools that were called."""
    return {n.call.tool for n in nodes if n.call is not None}


def ignored(policy: ToolPolicy, tools: Iterable[str]) -> dict[str, Sequence[str]]:
    """The pointers that a policy takes out of matching, for each of the tools."""
    configs = {tool: base_config(policy.config_for(tool)) for tool in tools}
    return {
        tool: config.ignore
        for tool, config in configs.items()
        if isinstance(config, HistoryConfig | StaticConfig) and config.ignore
    }


def leftovers(state: ReplayState) -> list[LedgerRow]:
    """A row for each recorded call that nothing asked for, under model history of the model too."""
    models = state.answers.leftovers() if state.answers is not None else ()
    rows = [
        LedgerRow(
            kind="leftover",
            by="unused",
            tool=r.tool,
            arguments=r.arguments,
            key=r.key,
            path=r.path,
            occurrence=r.occurrence,
            from_session=r.session_id,
            from_node=r.node_id,
        )
        for r in state.tape.leftovers()
    ]
    rows += [
        LedgerRow(
            kind="leftover",
            by="unused",
            detail=f"model call {m.number}",
            key=m.key,
            path=m.path,
            from_session=m.node.session_id,
            from_node=m.node.id,
        )
        for m in models
    ]
    return rows


def _compared(nodes: Sequence[Node], from_history: bool) -> int:
    """How many baseline calls an unchanged replay is measured by: a live model's own calls prove nothing."""
    kinds = {NodeKind.TOOL_CALL, NodeKind.MODEL_CALL} if from_history else {NodeKind.TOOL_CALL}
    return sum(n.kind in kinds for n in nodes)


def _error(
    state: ReplayState, ledger: Sequence[LedgerRow], baseline_nodes: Sequence[Node], result: Session, fork: bool
) -> ErrorInfo | None:
    if state.latch is not None and not isinstance(state.latch, RecordingEnded):
        return error_info(state.latch.error)
    missing = [f for f in _fields(state) if not state.override_hits[f]]
    if missing:
        return error_info(
            OverrideNotAppliedError(
                f"the override of {', '.join(missing)} changed nothing: no model call or input took it"
                f"{_own_failure(result)}",
                hint="mend what the agent failed with"
                if result.error is not None
                else "check that the agent's model seam is one that playhead wraps, and the names in a model map",
            )
        )
    calls = sum(
        n.kind is NodeKind.TOOL_CALL and n.call is not None and n.call.source != "provider" for n in baseline_nodes
    )
    served = sum(row.kind == "tool" and row.by in _ANSWERED for row in ledger)
    if calls and not served and not fork:
        return error_info(
            NothingServedError(
                f"nothing was served although the baseline has {calls} tool call(s){_own_failure(result)}",
                hint="is the agent under test the one that was recorded, and are its tools wrapped?",
            )
        )
    return None


def _unreached(
    ledger: Sequence[LedgerRow], baseline_nodes: Sequence[Node], result_nodes: Sequence[Node]
) -> ErrorInfo | None:
    """Of a replay whose live model was never reached: it says nothing of the change, whatever the agent made of it."""
    if any(row.kind == "model" and row.by not in ("live", "unused") for row in ledger):
        return None
    found = [_connection_failed(n) for n in result_nodes if n.kind is NodeKind.MODEL_CALL]
    before = [_connection_failed(n) is not None for n in baseline_nodes if n.kind is NodeKind.MODEL_CALL]
    if not found or None in found or (before and all(before)):
        return None
    return error_info(
        ModelAccessError(
            f"the model was never reached: {found[-1]}",
            hint="a model server of your own, on this machine too, stands in the setting model_endpoints as host:port",
        )
    )


def _connection_failed(node: Node) -> str | None:
    """What was said by a connection to a model that came to nothing; None where anybody answered."""
    error = node.outcome.error if node.outcome is not None else None
    chain: list[ErrorInfo] = []
    while error is not None:
        chain.append(error)
        error = error.cause
    if any(one.status is not None for one in chain):
        return None
    return next((f"{one.class_name}: {one.message}" for one in chain if one.class_name in _NOT_REACHED), None)


def _own_failure(result: Session) -> str:
    error = result.error
    return f": the agent failed first, with {error.class_name}: {error.message}" if error is not None else ""


def _fields(state: ReplayState) -> list[str]:
    return list(state.override.model_dump(exclude_none=True)) if state.override else []


def error_info(error: PlayheadError) -> ErrorInfo:
    """A playhead error as it is kept with a replay; ``code`` decides the exit code later."""
    return ErrorInfo(
        class_name=type(error).__name__,
        module=type(error).__module__,
        message=error.message,
        code=error.code,
        attributes={"hint": error.hint} if error.hint else None,
    )


def exit_code(replay: Replay, *, fork: bool, fail_on_verdict: bool = False) -> int:
    """0 as asked, 1 the answer is no, 2 refused, 3 infrastructure, 4 unproven (an unchanged replay only)."""
    if replay.status is ReplayStatus.FAILED:
        return _CODES.get(str(replay.error.code) if replay.error else "", 3)
    if replay.status is ReplayStatus.CANCELED:
        return 130
    if replay.status is not ReplayStatus.COMPLETED:
        return 3
    if fail_on_verdict and any(v.passed is False for v in replay.verdicts):
        return 1
    if fork:
        return 0
    if replay.fidelity is None:
        return 4
    return {FidelityKind.FAITHFUL: 0, FidelityKind.DIVERGED: 1, FidelityKind.UNPROVEN: 4}[replay.fidelity.kind]


_CODES = {
    "miss": 1, "missing_fixture": 1, "stale": 1, "recording": 1, "nothing_served": 1, "override_not_applied": 1,
    "usage": 2, "config": 2, "policy_invalid": 2, "not_found": 2, "entry_point": 2, "refused": 2,
}  # fmt: skip


def unproven(reason: str) -> Fidelity:
    """The fidelity of a replay that never came to compare anything."""
    return Fidelity(kind=FidelityKind.UNPROVEN, reasons=(reason,))
