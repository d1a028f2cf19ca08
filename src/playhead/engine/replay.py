"""Re-runs a recorded session: makes the replay's state, starts the agent inside it, settles what came of it."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from playhead.core import codec
from playhead.core.cohorts import parse_ref
from playhead.core.compare import Comparison
from playhead.core.override import OverriddenInputs, override_inputs
from playhead.core.policy import HistoryConfig, HistoryModel
from playhead.core.redaction.redact import Redactor
from playhead.core.tape import Tape
from playhead.core.values import (
    JSON,
    ErrorInfo,
    Fidelity,
    LedgerRow,
    Node,
    NodeKind,
    OutcomeKind,
    Replay,
    ReplayStatus,
    Session,
    Verdict,
)
from playhead.engine.answers import RecordedAnswers
from playhead.engine.boundary import SessionScope
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.context import belongs_to, replaying
from playhead.engine.egress import EgressGuard, guarded
from playhead.engine.entry import Inputs, start
from playhead.engine.isolation.guard import Level, refusals
from playhead.engine.models import ToolWriter
from playhead.engine.preflight import Plan, offered_tools
from playhead.engine.recorder import Recorder
from playhead.engine.replay_processes import Told, listen, tell_above
from playhead.engine.replaying import ReplayState
from playhead.engine.settle import Settled, error_info, settle, unproven
from playhead.errors import PlayheadError, PolicyError, ReplayStop, StoreBusyError
from playhead.store.ports import Store

_kept = ExitStack()  # guards of a process that exists for one replay: they last as long as it


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """A settled inline replay: the stored replay, both sessions, and the comparison."""

    replay: Replay
    baseline: Session
    session: Session
    comparison: Comparison
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.replay.id

    @property
    def status(self) -> ReplayStatus:
        return self.replay.status

    @property
    def fidelity(self) -> Fidelity:
        return self.replay.fidelity or unproven("the replay never settled")

    @property
    def ledger(self) -> tuple[LedgerRow, ...]:
        return self.replay.ledger

    @property
    def error(self) -> ErrorInfo | None:
        """Why the replay failed; an agent's own failure is the session's error, not this one."""
        return self.replay.error

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the evaluators said about the result."""
        return self.replay.verdicts

    @property
    def output(self) -> JSON:
        """The result session's output, in stored form."""
        return self.session.output


def make_state(
    plan: Plan, replay: Replay, store: Store, *, recorder: Recorder, writer: ToolWriter | None
) -> ReplayState:
    """Loads the tape, once, so that no decision needs I/O."""
    secrets = recorder.secrets
    tape = Tape.build(plan.nodes, plan.policy, secrets=secrets, redact=recorder.redact)
    offered = offered_tools(plan.nodes)
    model = plan.model_policy
    on_miss = model.on_miss if isinstance(model, HistoryModel) else "fail"
    recorded = RecordedAnswers(plan.nodes, tape, plan.baseline, on_miss=on_miss)
    return ReplayState(
        tape=tape,
        baseline=plan.baseline,
        replay_id=replay.id,
        policy=plan.policy,
        model_policy=plan.model_policy,
        answers=recorded if isinstance(model, HistoryModel) else None,
        twin_of=recorded.twin_of,
        override=plan.override,
        widen=lambda tool, config: _newest(store, plan, tool, config),
        redact=recorder.redact,
        writer=writer,
        examples=cache(partial(_examples, plan.nodes)),
        output_schemas={n: t["output_schema"] for n, t in offered.items() if t.get("output_schema") is not None},
        parameters={name: tool.get("parameters") for name, tool in offered.items()},
        listings=None if plan.live_tools else [node for node in plan.nodes if node.kind is NodeKind.SPAN],
    )


def _newest(store: Store, plan: Plan, tool: str, config: HistoryConfig) -> Sequence[Node]:
    if config.scope == "agent":
        return store.sessions.newest_calls(tool, agent=plan.baseline.agent)
    if config.scope == "cohort_version" and plan.cohort is not None:
        members = store.cohorts.find(*parse_ref(plan.cohort)).members
        return store.sessions.newest_calls(tool, session_ids=members)
    return ()


def _examples(nodes: Sequence[Node], tool: str) -> list[tuple[JSON, JSON]]:
    return [
        (n.call.arguments, n.outcome.value)
        for n in nodes
        if n.call is not None and n.call.tool == tool and n.outcome is not None and n.outcome.kind is OutcomeKind.VALUE
    ]


def execute(
    plan: Plan,
    replay: Replay,
    target: Any,
    *,
    store: Store,
    recorder: Recorder,
    writer: ToolWriter | None = None,
    model_hosts: frozenset[str] = frozenset(),
    whole_process: bool = False,
    to_the_end: bool = False,
    outer: Level | None = None,
    save: Callable[[Replay], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Settled, Session]:
    """Runs one replay in this process, from the top to settlement, and saves it.

    Args:
        model_hosts: hosts that count as model endpoints beside those that a model call reaches by itself.
        whole_process: the guard binds every thread (a process made for this replay), else this context's.
        to_the_end: the process ends with the replay: no guard comes down, and nothing that is left of the agent runs.
        outer: the level that the guard around this process reached, where there is one.
        save: stores the replay; an attempt of a job may be refused.

    Raises:
        PlayheadError: only for what went wrong before the agent started; everything later is in the replay.
    """
    save = save or store.replays.save
    if replay.status is ReplayStatus.PENDING:
        replay = replace(replay, status=ReplayStatus.RUNNING, started_at=clock.now())
        save(replay)
    state = make_state(plan, replay, store, recorder=recorder, writer=writer)
    given = inputs_of(plan)
    inputs = Inputs(plan.baseline, given.inputs)
    rows: list[LedgerRow] = []
    with ExitStack() as stack:
        stack.enter_context(replaying(state, to_the_end=to_the_end))
        level = guard_replay(
            _kept if to_the_end else stack, plan, state, rows, model_hosts, whole_process, outer or Level(name="python")
        )
        scope = SessionScope(plan.baseline.agent, recorder=recorder, version=replay.agent_version)
        try:
            _run(scope, state, given, lambda: start(target, inputs))
        except KeyboardInterrupt:
            save(replace(replay, status=ReplayStatus.CANCELED, ended_at=clock.now()))
            raise
    rows += [_blocked(host) for host in refusals(outer)] if outer is not None else []
    redactor = scope.active.redactor if scope.active is not None else recorder.secrets
    settled, result = conclude(plan, replay, state, recorder=recorder, redactor=redactor, guard=level, rows=rows)
    save(settled.replay)
    return settled, result


def conclude(
    plan: Plan, replay: Replay, state: ReplayState, *, recorder: Recorder, redactor: Redactor, guard: str,
    rows: Sequence[LedgerRow],
) -> tuple[Settled, Session]:  # fmt: skip
    """The settled replay of a run that has ended, not saved yet, and its session.

    Raises:
        StoreError: the session did not reach the store.
    """
    wait_until_stored(recorder)
    listen(state)
    sessions = recorder.store.sessions
    result = sessions.get(state.sessions[0])
    settled = settle(
        replay, state, plan.baseline, plan.nodes, result, sessions.nodes(result.id), fork=plan.fork, guard=guard,
        extra=rows, clock=recorder.clock,
    )  # fmt: skip
    return replace(settled, replay=without_secrets(settled.replay, redactor)), result


def wait_until_stored(recorder: Recorder, seconds: float = 100.0) -> None:
    """Flushes until everything is in the store: another process may hold its lock for a while.

    Raises:
        StoreBusyError: it still does.
    """
    until = recorder.clock.tick() + int(seconds * 1e9)
    while not recorder.flush():
        if recorder.clock.tick() > until:
            raise StoreBusyError(f"store {recorder.store.url} took nothing for {seconds:g} s")
        time.sleep(0.1)


def without_secrets(replay: Replay, redactor: Redactor) -> Replay:
    """The replay as it may be written: miss texts, diffs and process output quote what the agent saw."""
    clean = codec.load(Replay, redactor.redact(codec.dump(replay)).value, trusted=True)
    return replace(clean, id=replay.id, baseline_session_id=replay.baseline_session_id)


def inputs_of(plan: Plan) -> OverriddenInputs:
    """What the agent starts with. Where the inputs show no prompt, a framework's boundary replaces its own."""
    try:
        return override_inputs(plan.override, plan.baseline.inputs)
    except PolicyError:
        return OverriddenInputs(inputs=plan.baseline.inputs)


def _run(scope: SessionScope, state: ReplayState, given: OverriddenInputs, agent: Callable[[], Any]) -> None:
    """Runs the agent inside its session. What it raises is its own result; what we latched is in the state."""
    try:
        with scope as active:
            if active is not None and given.effective is not None:
                active.effective_prompt = given.effective
                state.override_hits["prompt"] += given.changed
            scope.output = agent()
    except ReplayStop as stop:
        if state.latch is None:
            raise stop.error from stop
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the agent's own end, kept in its session by the boundary
        return


def guard_replay(
    stack: ExitStack, plan: Plan, state: ReplayState, rows: list[LedgerRow], hosts: frozenset[str], whole: bool,
    outer: Level,
) -> str:  # fmt: skip
    """Puts the guard up when no tool can go live; gives the level that the ledger names."""
    if plan.live_tools:
        return "none: live tools are allowed"

    def blocked(host: str) -> None:
        rows.append(_blocked(host))
        if state.detached:
            tell_above(Told("blocked", None, host))

    live_model = not isinstance(plan.model_policy, HistoryModel) or plan.model_policy.on_miss == "live"
    guard = EgressGuard(
        allow_models=live_model,
        allow_hosts=(hosts if live_model else frozenset[str]()) | outer.hosts,
        loopback=outer.loopback,
        applies=None if whole else lambda: belongs_to(state),
        on_block=blocked,
        on_process=lambda name: rows.extend(_unbound(name, outer)),
    )

    def latched(_: ReplayStop) -> None:
        guard.latched = True

    state.on_latch = latched
    stack.enter_context(guarded(guard))
    rows += [_blocked(f"{peer}, open since before the replay") for peer in outer.severed]
    return str(outer)


def _blocked(host: str) -> LedgerRow:
    return LedgerRow(kind="egress", by="blocked", detail=host)


def _unbound(program: str, outer: Level) -> list[LedgerRow]:
    """Says that a program runs outside the guard, unless the outer guard binds it too."""
    if outer.name not in ("none", "python"):
        return []
    return [LedgerRow(kind="note", by="note", detail=f"started {program}, which the guard inside Python does not bind")]


def failed(replay: Replay, error: PlayheadError, clock: Clock = SYSTEM_CLOCK) -> Replay:
    """The replay, failed before or outside its run."""
    return replace(
        replay,
        status=ReplayStatus.FAILED,
        error=error_info(error),
        ended_at=clock.now(),
        fidelity=replay.fidelity or unproven("the replay did not run to its end"),
    )
