"""Driver `agent`: the user's own code is replayed from each case's source session, and the turn is found in it.

One replay serves every case of its session. Tools get the recorded results, and an error where nothing was recorded;
the model is asked live (with another name where the run names one), or answers from the recording.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from playhead.core.canonical import NoKeyError
from playhead.core.evaluation import tool_calls
from playhead.core.policy import HistoryConfig, HistoryModel, LiveModel, ReplayOverride, ToolPolicy
from playhead.core.protocol import parts
from playhead.core.protocol.request import digests
from playhead.core.protocol.shape import is_object, obj
from playhead.core.requests import ReplayCreateRequest
from playhead.core.suites.contents import Contents
from playhead.core.suites.flags import conduct_flags
from playhead.core.suites.messages import history
from playhead.core.suites.suite import Case, case_digest, trial_seed
from playhead.core.suites.trials import SuiteRun, Trial, TrialStep
from playhead.core.values import JSON, Node, NodeKind, OutcomeKind, Replay, ReplayStatus, RunSpec
from playhead.engine.client import ReplayClient
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.project import Project
from playhead.engine.suites.asks import ask_of_node
from playhead.engine.suites.run import Limits, Progress, stored_request, todo
from playhead.errors import PlayheadError, UsageError
from playhead.store.ports import Store

RECORDED = "recorded"


def execute_agent(
    store: Store,
    project: Project,
    contents: Contents,
    run: SuiteRun,
    cases: Sequence[Case],
    *,
    run_spec: RunSpec | None = None,
    limits: Limits | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
    clock: Clock = SYSTEM_CLOCK,
) -> SuiteRun:
    """Replays the sessions of the cases whose trials are not done, and stores a trial for each case.

    Args:
        run_spec: how to start the agent, where that is not its recorded version's own.

    Raises:
        UsageError: a case has no source session.
    """
    without = [case.id for case in cases if case.source.session is None]
    if without:
        raise UsageError(f"case {without[0]!r} has no source session to replay", hint="--driver turn needs none")
    store.suites.save_run(run)
    left = todo(store, run)
    progress = Progress(of=len(left))
    done = False
    try:
        by_session: dict[str, list[Case]] = {}
        for case in cases:
            by_session.setdefault(str(case.source.session), []).append(case)
        for session, own in by_session.items():
            numbers = sorted({n for id, n in left if id in {case.id for case in own}})
            if numbers:
                work = _Replays(store, project, contents, run, run_spec, limits or Limits(), clock)
                for trial, requests in work.trials(session, own, numbers, set(left)):
                    store.suites.add_trial(trial, requests)
                    progress.done += 1
                    progress.errors += trial.status == "error"
                    tell(progress)
        done = True
    finally:
        ended = replace(
            run, status="completed" if done else "stopped", stopped_by=None if done else "an interruption",
            ended_at=clock.now(),
        )  # fmt: skip
        store.suites.save_run(ended)
    return ended


class _Replays:
    """The replays of one session, and what they say about its cases."""

    def __init__(
        self, store: Store, project: Project, contents: Contents, run: SuiteRun, spec: RunSpec | None, limits: Limits,
        clock: Clock,
    ) -> None:  # fmt: skip
        self.store, self.project, self.contents, self.run = store, project, contents, run
        self.spec, self.limits, self.clock = spec, limits, clock

    def trials(
        self, session: str, cases: Sequence[Case], numbers: Sequence[int], wanted: set[tuple[str, int]]
    ) -> list[tuple[Trial, dict[str, JSON]]]:
        found: list[tuple[Trial, dict[str, JSON]]] = []
        try:
            replays: Sequence[Replay | str] = self._replayed(session, len(numbers))
        except PlayheadError as error:
            replays = [error.message] * len(numbers)
        for n, replay in zip(numbers, replays, strict=True):
            found += [self._trial(case, n, replay) for case in cases if (case.id, n) in wanted]
        return found

    def _replayed(self, session: str, count: int) -> Sequence[Replay]:
        live = self.run.model != RECORDED
        request = ReplayCreateRequest(
            baseline_session_id=session,
            tool_policy=ToolPolicy(default=HistoryConfig(on_miss="error_result")),
            model_policy=LiveModel() if live else HistoryModel(),
            override=ReplayOverride(model=self.run.model) if live and self.run.model != "as recorded" else None,
            repeats=count,
            label=f"suite {self.run.suite}",
            force=True,
        )
        client = ReplayClient(self.store, self.project)
        handle = client.create(request, run_spec=self.spec)
        return handle.wait(concurrency=self.limits.concurrency).replays

    def _trial(self, case: Case, n: int, replay: Replay | str) -> tuple[Trial, dict[str, JSON]]:
        base = Trial(
            run=self.run.id, case=case.id, n=n, seed=trial_seed(self.run.seed, case.id, n),
            case_digest=case_digest(case, self.contents.tools), started_at=self.clock.now(), ended_at=self.clock.now(),
        )  # fmt: skip
        if isinstance(replay, str):
            return replace(base, status="error", error=replay[:1000]), {}
        if replay.result_session_id is None:
            why = replay.error.message if replay.error is not None else "the replay recorded nothing"
            return replace(base, status="error", error=why[:1000]), {}
        session = self.store.sessions.get(replay.result_session_id)
        nodes = self.store.sessions.nodes(session.id)
        models = _answers(nodes)
        place = _turn(case, models)
        base = replace(base, session=session.id)
        if place is None:
            why = "prefix diverged" if replay.error is None else f"prefix diverged: {replay.error.message}"
            return replace(base, status="error", error=why[:1000]), {}
        since = models[place].seq
        calls = [node for node in tool_calls(nodes) if node.seq > since]
        flags = conduct_flags(calls, self.contents.suite.effects, repeat_ok=case.repeat_ok)
        base = replace(base, extra={"flags": list(flags)} if flags else None)
        return _made(base, models[place:], failed=replay.status is ReplayStatus.FAILED)


def _answers(nodes: Sequence[Node]) -> list[Node]:
    """The model calls that were answered, in order."""
    ordered = sorted(nodes, key=lambda n: n.seq)
    return [
        n
        for n in ordered
        if n.kind is NodeKind.MODEL_CALL
        and n.outcome is not None
        and n.outcome.kind is OutcomeKind.VALUE
        and is_object(n.outcome.value)
    ]


def _turn(case: Case, models: Sequence[Node]) -> int | None:
    """The place of the model call whose request is the case's history; call ids do not count."""
    try:
        wanted = digests(history(case))
        for place, node in enumerate(models):
            if digests(obj(node.inputs).get("messages") or ()) == wanted:
                return place
    except NoKeyError:
        return None
    return None


def _made(base: Trial, models: Sequence[Node], *, failed: bool) -> tuple[Trial, dict[str, JSON]]:
    steps: list[TrialStep] = []
    requests: dict[str, JSON] = {}
    final: str | None = None
    for number, node in enumerate(models):
        assert node.outcome is not None
        message: Any = node.outcome.value
        name, body = stored_request(ask_of_node(node, number))
        requests[name] = body
        model = node.model
        steps.append(
            TrialStep(
                request=name, message=message, purpose="turn" if number == 0 else "loop",
                usage=model.usage if model else None,
                cost=model.cost.amount if model and model.cost else None,
                served=model.served if model else None,
                latency_ms=None if node.ended_at is None else (node.ended_at - node.started_at) / 1_000_000,
            )
        )  # fmt: skip
        if not parts.calls_of(message):
            final = parts.text_of(message)
            break
    ended = "stopped" if failed and final is None else "answer" if final is not None else "turns"
    return replace(base, steps=tuple(steps), final=final, ended=ended), requests
