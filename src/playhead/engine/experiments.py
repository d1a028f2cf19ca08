"""Experiments as a client sees them: planned, started, followed, tried again, reported."""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from playhead.core.cohorts import parse_ref
from playhead.core.experiments.definition import UNCHANGED, Arm, Budget, ExperimentConfig, RunConfig
from playhead.core.experiments.runs import Experiment, ExperimentRun
from playhead.core.experiments.samples import CaseSamples, Sample
from playhead.core.jobs import Job, Task, has_ended, is_final, replay_id_of
from playhead.core.policy import LiveModel
from playhead.core.requests import EvaluatorConfig, ReplayCreateRequest
from playhead.core.values import JSON, NodeKind, Replay, ReplayStatus, Session, Usage
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS, Clock, IdSource
from playhead.engine.evaluators import DEFAULT, resolve
from playhead.engine.jobs import JobClient
from playhead.engine.models import ToolWriter
from playhead.engine.owner import is_gone, mark_abandoned
from playhead.engine.preflight import Plan, plan_replay
from playhead.engine.project import Project
from playhead.engine.replay_task import tasks_of
from playhead.engine.worker import Settings, Worker
from playhead.errors import NotFoundError, RefusedError, StoreBusyError, UsageError
from playhead.store.ports import Store

if TYPE_CHECKING:
    from playhead.core.gate.criteria import Criteria
    from playhead.core.gate.verdict import GateReport, Look

__all__ = ["Estimate", "ExperimentClient", "RunPlan"]

KIND = "experiment"
_PEEK = 0.1  # seconds between looks at a budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will take at most, by what its baselines took: replays, and of those with a live model money (US
    dollars) and tokens. ``unknown`` baselines do not say what they cost."""

    replays: int
    live: int
    money: float
    tokens: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A run that passed preflight, not stored yet. ``live_tools`` may run for real in some arm."""

    run: ExperimentRun
    plans: tuple[tuple[Arm, Plan], ...]
    budget: Budget
    estimate: Estimate
    live_tools: tuple[str, ...]
    warnings: tuple[str, ...]


class ExperimentClient:
    """Creates experiments and runs them."""

    def __init__(self, store: Store, project: Project, clock: Clock = SYSTEM_CLOCK, ids: IdSource = SYSTEM_IDS) -> None:
        self._store = store
        self._project = project
        self._clock = clock
        self._ids = ids

    def create(self, config: ExperimentConfig) -> Experiment:
        """Stores an experiment; evaluators without a version are those of now.

        Raises:
            NotFoundError: an evaluator is not known.
            ConflictError: the name is taken by another experiment.
        """
        named = resolve(self._store, config.evaluators or (DEFAULT,))
        kept = config.model_dump(mode="json", exclude_none=True) | {"evaluators": list(named)}
        made = Experiment(name=config.name, created_at=self._clock.now(), config=kept)
        return self._store.experiments.create(made)

    def get(self, name: str) -> Experiment:
        return self._store.experiments.get(name)

    def list(self) -> "list[Experiment]":
        """By name."""
        return [self._store.experiments.get(name) for name in self._store.experiments.names()]

    def run(self, run: str) -> ExperimentRun:
        """A run by id, shortened id, ``last`` or ``last~N``."""
        return self._store.experiments.run(self._store.experiments.resolve_run(run))

    def runs(self, experiment: str | None = None) -> "list[ExperimentRun]":
        """Newest first."""
        return self._store.experiments.runs(experiment)

    # starting

    def plan(self, name: str, config: RunConfig) -> RunPlan:
        """Preflight of every session of the cohort under every arm.

        A session that some arm cannot replay is left out of all of them, so that arms compare on the same cases.

        Raises:
            RefusedError: no session can be replayed; with the reasons.
        """
        experiment = self.get(name)
        arms = [Arm.model_validate(arm) for arm in experiment.config["arms"]]
        cohort = self._store.cohorts.find(*parse_ref(config.cohort))
        config = config.model_copy(update={"cohort": cohort.ref})
        mark_abandoned(self._store)
        plans: list[tuple[Arm, Plan]] = []
        refused: dict[str, str] = {}
        for id in cohort.members:
            try:
                plans += [(arm, self._planned(id, arm, experiment, config)) for arm in arms]
            except RefusedError as error:
                refused[id] = error.message
            except NotFoundError as error:
                if self._exists(id):
                    raise
                refused[id] = f"erased: {error.message}"
        if not plans:
            reasons = list(dict.fromkeys(refused.values()))
            raise RefusedError(reasons[0], hint=f"no session of {cohort.ref} can be replayed", reasons=reasons)
        run = ExperimentRun(
            id=self._ids(),
            experiment=name,
            created_at=self._clock.now(),
            cohort=cohort.ref,
            arms=experiment.config["arms"],
            evaluators=experiment.config["evaluators"],
            config=config.model_dump(mode="json"),
            members=tuple(id for id in cohort.members if id not in refused),
            refused=refused,
        )
        return RunPlan(
            run=run,
            plans=tuple(plans),
            budget=config.budget,
            estimate=_estimate(plans, config.repeats),
            live_tools=tuple(dict.fromkeys(tool for _, plan in plans for tool in plan.live_tools)),
            warnings=tuple(dict.fromkeys(text for _, plan in plans for text in plan.warnings)),
        )

    def _planned(self, session_id: str, arm: Arm, experiment: Experiment, config: RunConfig) -> Plan:
        request = ReplayCreateRequest(
            baseline_session_id=session_id,
            agent_version=arm.agent_version,
            override=arm.override,
            tool_policy=arm.tool_policy,
            model_policy=arm.model_policy,
            evaluators=tuple(
                EvaluatorConfig(evaluator=e["evaluator"], params=e.get("params") or {})
                for e in experiment.config["evaluators"]
            ),
            evaluate_baselines=config.evaluate_baselines,
            label=f"{experiment.name}/{arm.name}",
            timeout=config.timeout,
            isolation=config.isolation,
        )
        return plan_replay(
            self._store,
            request,
            default_policy=self._project.settings.tool_policy,
            writer=ToolWriter(self._project.settings.llm_model),
            owner_alive=lambda owner: not is_gone(owner),
            environment=os.environ,
            cohort=config.cohort,
        )

    def _exists(self, session_id: str) -> bool:
        try:
            self._store.sessions.get(session_id)
        except NotFoundError:
            return False
        return True

    def start(self, plan: RunPlan) -> ExperimentRun:
        """Stores a run and its job, for workers to do. Replays of one case follow one another, so that a run that is
        stopped has compared something."""
        job = Job(
            id=self._ids(), kind=KIND, created_at=self._clock.now(), label=plan.run.experiment,
            idempotency_key=f"experiment-run/{plan.run.id}",
        )  # fmt: skip
        run = replace(plan.run, job_ids=(job.id,))
        tasks: list[Task] = []
        replays: list[Replay] = []
        for repeat in range(run.repeats):
            for arm, one in plan.plans:
                first = repeat == 0 and arm.name == run.arm_names[0]
                made = self._replay(one, job, arm.name, repeat, baselines=first)
                tasks += tasks_of(one, [made], job.id, project=self._project, clock=self._clock, ids=self._ids)
                replays.append(made)
        self._store.experiments.save_run(run)
        self._store.jobs.create(job, tasks, replays)
        return run

    def _replay(self, plan: Plan, job: Job, arm: str, repeat: int, *, baselines: bool) -> Replay:
        made = plan.replays(self._clock, self._ids)[0]
        mode = made.evaluate_baselines if baselines else "none"  # once for each case is enough
        return replace(made, job_id=job.id, arm=arm, repeat=repeat, evaluate_baselines=mode)

    def retry(self, run: ExperimentRun) -> ExperimentRun:
        """Tries the replays that failed or were canceled again, as a job of their own; the others stay as they are.

        Raises:
            UsageError: none failed, or the last job has not ended.
        """
        if run.job_ids and not has_ended(self._store.jobs.get(run.job_ids[-1])):
            raise UsageError(f"run {run.id} has not ended", hint=f"playhead job watch {run.job_ids[-1]}")
        job = Job(id=self._ids(), kind=KIND, created_at=self._clock.now(), label=run.experiment)
        again: list[Task] = []
        replays: list[Replay] = []
        for task, replay in self._last_tasks(run).values():
            if replay.status not in (ReplayStatus.FAILED, ReplayStatus.CANCELED):
                continue
            made = _anew(replay, id=self._ids(), job_id=job.id, now=self._clock.now())
            replays.append(made)
            again.append(
                Task(
                    id=self._ids(),
                    job_id=job.id,
                    kind=task.kind,
                    created_at=self._clock.now(),
                    agent_version=task.agent_version,
                    on_failure=task.on_failure,
                    payload={**task.payload, "replay_id": made.id},
                )
            )
        if not again:
            raise UsageError(f"no replay of run {run.id} failed")
        self._store.jobs.create(job, again, replays)
        changed = replace(run, job_ids=(*run.job_ids, job.id), stopped=None)
        self._store.experiments.save_run(changed)
        return changed

    # following

    def wait(
        self, run: ExperimentRun, *, workers: int = 0, tell: Callable[[Task], None] = lambda _: None
    ) -> ExperimentRun:
        """Runs the last job of a run here, beside whatever workers there are, until it has ended.

        Args:
            workers: replays at a time, 0 one for each processor.
            tell: hears of each task that has ended here.

        A run that reaches its budget is ended, and says so in ``stopped``.
        """
        job_id = run.job_ids[-1]
        worker = Worker(self._store, self._project, Settings(concurrency=workers, job_id=job_id, tell=tell))
        with self._within_budget(run):
            worker.run(until=lambda: has_ended(self._store.jobs.get(job_id)))
        for _ in JobClient(self._store).watch(job_id):
            pass
        return self._store.experiments.run(run.id)

    @contextmanager
    def _within_budget(self, run: ExperimentRun) -> Generator[None]:
        """Ends the run when it has taken what it may, while the block runs."""
        limits = Budget.model_validate(run.config["budget"])
        if not limits.limits:
            yield
            return
        budget, over = _Budget(self._store, run, limits), threading.Event()

        def look() -> None:
            while not over.wait(_PEEK):
                try:
                    reached = budget.reached()
                    if reached is not None:
                        self._stop(run, reached)
                        return
                except StoreBusyError:
                    continue  # somebody holds the store locked; looked at again

        thread = threading.Thread(target=look, name="budget", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _stop(self, run: ExperimentRun, why: str) -> None:
        now = self._store.experiments.run(run.id)
        if now.stopped is None:
            self._store.experiments.save_run(replace(now, stopped=why))
            self._store.jobs.cancel(run.job_ids[-1], now=self._clock.now())

    def cancel(self, run: ExperimentRun) -> ExperimentRun:
        """Ends a run: what has not begun at once, the rest by its worker."""
        if run.job_ids and not has_ended(self._store.jobs.get(run.job_ids[-1])):
            self._stop(run, "canceled")
        return self._store.experiments.run(run.id)

    def status(self, run: ExperimentRun) -> str:
        """``pending, running, completed, failed`` or ``canceled``, by its last job."""
        return "pending" if not run.job_ids else self._store.jobs.get(run.job_ids[-1]).status.value

    def replays(self, run: ExperimentRun) -> "list[Replay]":
        """The replay of each case, arm and repeat; the last one where it was tried again."""
        return [replay for _, replay in self._last_tasks(run).values()]

    def report(self, run: ExperimentRun, *, against: ExperimentRun | None = None) -> JSON:
        """What a run showed so far (`core.experiments.report`).

        Raises:
            UsageError: ``against`` is of another cohort version.
        """
        from playhead.core.experiments.report import report  # most commands report nothing

        if against is not None and against.cohort != run.cohort:
            raise UsageError(
                f"run {against.id} is of cohort {against.cohort}, not {run.cohort}",
                hint="only runs of one cohort version compare",
            )
        return report(run, self._samples(run), None if against is None else self._samples(against))

    def gate(
        self, run: ExperimentRun, criteria: "Criteria | None" = None, *, earlier: "Sequence[Look]" = ()
    ) -> "GateReport":
        """Whether the changes of a run may ship (`core.experiments.gate`).

        Args:
            earlier: verdicts on this run before this one.
        """
        from playhead.core.experiments.gate import judge_experiment

        return judge_experiment(run, self._samples(run), criteria, earlier=earlier)

    def _last_tasks(self, run: ExperimentRun) -> dict[tuple[str, str | None, int | None], tuple[Task, Replay]]:
        found: dict[tuple[str, str | None, int | None], tuple[Task, Replay]] = {}
        for job_id in run.job_ids:
            for task in self._store.jobs.tasks(job_id):
                replay_id = replay_id_of(task)
                if replay_id is not None:
                    replay = self._store.replays.get(replay_id)
                    found[replay.baseline_session_id, replay.arm, replay.repeat] = (task, replay)
        return found

    def _samples(self, run: ExperimentRun) -> Sequence[CaseSamples]:
        by_case: dict[str, dict[str, list[Sample]]] = {id: {name: [] for name in run.arm_names} for id in run.members}
        for replay in self.replays(run):
            by_case[replay.baseline_session_id][replay.arm or UNCHANGED].append(self._sample(replay))
        return [CaseSamples(session_id=id, baseline=self._baseline(id), arms=arms) for id, arms in by_case.items()]

    def _sample(self, replay: Replay) -> Sample:
        session = None if replay.result_session_id is None else self._found(replay.result_session_id)
        return _sample(
            session,
            status=replay.status.value,
            replay_id=replay.id,
            error=None if replay.error is None else f"{replay.error.class_name}: {replay.error.message}",
            fidelity=None if replay.fidelity is None else replay.fidelity.kind.value,
            verdicts=replay.verdicts if replay.status is ReplayStatus.COMPLETED else (),
        )

    def _baseline(self, session_id: str) -> Sample | None:
        session = self._found(session_id)
        if session is None:
            return None
        return _sample(session, status=session.status.value, verdicts=tuple(self._store.sessions.verdicts(session_id)))

    def _found(self, session_id: str) -> Session | None:
        try:
            return self._store.sessions.get(session_id)
        except NotFoundError:
            return None


class _Budget:
    """What the replays of a run's last job have taken so far; each is counted once, when it has ended."""

    def __init__(self, store: Store, run: ExperimentRun, limits: Budget) -> None:
        self._store = store
        self._job_id = run.job_ids[-1]
        self._limits = limits
        self._counted: set[str] = set()
        self._money, self._tokens = Decimal(0), 0
        self._started = time.monotonic()

    def reached(self) -> str | None:
        """Which limit has been reached."""
        limits = self._limits
        if limits.minutes is not None and time.monotonic() - self._started > limits.minutes * 60:
            return f"budget: {limits.minutes:g} minutes"
        if limits.money is None and limits.tokens is None:
            return None
        self._count(task for task in self._store.jobs.tasks(self._job_id) if is_final(task))
        if limits.money is not None and self._money >= Decimal(str(limits.money)):
            return f"budget: {self._money} of {limits.money:g} US dollars"
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return f"budget: {self._tokens} of {limits.tokens} tokens"
        return None

    def _count(self, ended: Iterable[Task]) -> None:
        for task in ended:
            replay_id = replay_id_of(task)
            if task.id in self._counted or replay_id is None:
                continue
            self._counted.add(task.id)
            result = self._store.replays.get(replay_id).result_session_id
            if result is not None:
                session = self._store.sessions.get(result)
                self._money += Decimal(session.cost.amount) if session.cost is not None else 0
                self._tokens += tokens_of(session.usage) or 0


def tokens_of(usage: Usage | None) -> int | None:
    """All tokens of a session; None when nothing is known."""
    if usage is None:
        return None
    parts = (
        usage.input_uncached, usage.input_cache_read, usage.input_cache_write, usage.output_visible,
        usage.output_reasoning,
    )  # fmt: skip
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _sample(session: Session | None, **known: object) -> Sample:
    latency: float | None = None
    if session is not None and session.ended_at is not None:
        latency = (session.ended_at - session.started_at) / 1e6
    return Sample(
        session_id=None if session is None else session.id,
        cost=float(session.cost.amount) if session is not None and session.cost is not None else None,
        tokens=None if session is None else tokens_of(session.usage),
        latency=latency,
        **known,  # type: ignore[arg-type]
    )


def _anew(replay: Replay, *, id: str, job_id: str, now: int) -> Replay:
    """The same replay, not run yet."""
    return replace(
        replay, id=id, job_id=job_id, created_at=now, status=ReplayStatus.PENDING, idempotency_key=None,
        result_session_id=None, started_at=None, ended_at=None, error=None, ledger=(), fidelity=None, guard=None,
        verdicts=(),
    )  # fmt: skip


def _estimate(plans: Sequence[tuple[Arm, Plan]], repeats: int) -> Estimate:
    live = [plan.baseline for _, plan in plans if isinstance(plan.model_policy, LiveModel) and _asks_a_model(plan)]
    money = sum((Decimal(session.cost.amount) for session in live if session.cost is not None), Decimal(0))
    return Estimate(
        replays=len(plans) * repeats,
        live=len(live) * repeats,
        money=float(money) * repeats,
        tokens=sum(tokens_of(session.usage) or 0 for session in live) * repeats,
        unknown=sum(session.cost is None for session in live),
    )


def _asks_a_model(plan: Plan) -> bool:
    return any(node.kind is NodeKind.MODEL_CALL for node in plan.nodes)
