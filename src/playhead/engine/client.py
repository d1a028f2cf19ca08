"""The product as an object: one opened store, and what can be done over it."""

import os
from pathlib import Path
from types import TracebackType

from playhead.core.jobs import Job, has_ended
from playhead.core.requests import ReplayCreateRequest
from playhead.core.values import ErrorInfo, Fidelity, Replay, ReplayStatus, RunSpec, Verdict
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.engine.cohorts import CohortClient
from playhead.engine.evaluator_client import EvaluatorClient
from playhead.engine.experiments import ExperimentClient
from playhead.engine.jobs import JobClient
from playhead.engine.models import ToolWriter
from playhead.engine.owner import is_gone, mark_abandoned
from playhead.engine.preflight import Plan, plan_replay
from playhead.engine.project import Project, find_project
from playhead.engine.replay_task import work_of
from playhead.engine.worker import Settings, Worker
from playhead.errors import RefusedError
from playhead.store.ports import AgentPort, JobMade, Page, SessionPort, Store

__all__ = ["Client", "ReplayClient", "ReplayHandle", "open_client"]

_WORTH_A_ZYGOTE = 3
"""Tasks from which on importing the agent once and forking pays in a worker that ends with the job."""


_STAND_BACK = 0.02
"""Seconds in which an idle worker, which may have the agent loaded, is first at a job that somebody waits for."""


class ReplayHandle:
    """A stored replay and its job. The members are as of the last `refresh` or `wait`.

    A request with ``repeats`` makes several, all of one job: ``replays``. The members are those of the first.
    """

    def __init__(self, store: Store, project: Project, made: JobMade) -> None:
        self._store = store
        self._project = project
        self.created = made.created
        self.job = made.job
        self.replays = made.replays

    @property
    def replay(self) -> Replay:
        return self.replays[0]

    @property
    def id(self) -> str:
        return self.replay.id

    @property
    def job_id(self) -> str:
        return self.job.id

    @property
    def status(self) -> ReplayStatus:
        return self.replay.status

    @property
    def baseline_session_id(self) -> str:
        return self.replay.baseline_session_id

    @property
    def result_session_id(self) -> str | None:
        """The session that the replay recorded, once it is settled."""
        return self.replay.result_session_id

    @property
    def error(self) -> ErrorInfo | None:
        return self.replay.error

    @property
    def fidelity(self) -> Fidelity | None:
        return self.replay.fidelity

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.replay.verdicts

    def refresh(self) -> "ReplayHandle":
        """Reads the replays and the job again."""
        self.job = self._store.jobs.get(self.job.id)
        self.replays = tuple(self._store.replays.get(replay.id) for replay in self.replays)
        return self

    def wait(self, timeout: float | None = None, *, embedded: bool = True, concurrency: int = 0) -> "ReplayHandle":
        """Waits until every replay has ended, and gives itself with what came of them.

        Args:
            embedded: run the job here, unless another worker takes it; without, somebody else has to.
            concurrency: replays that run here at a time; 0 means one for each processor.

        Raises:
            TimeoutError: they had not ended after ``timeout`` seconds; what ran here was given back.
        """
        if embedded:
            self._work(timeout, concurrency)
        for _ in JobClient(self._store).watch(self.job.id, timeout=timeout):
            pass
        return self.refresh()

    def _work(self, timeout: float | None, concurrency: int) -> None:
        count = len(self.replays)
        slots = min(count, concurrency or os.cpu_count() or 1)
        warm = count >= _WORTH_A_ZYGOTE
        settings = Settings(concurrency=slots, job_id=self.job.id, warm=warm, stand_back=_STAND_BACK)
        worker = Worker(self._store, self._project, settings)
        try:
            worker.run(until=lambda: has_ended(self._store.jobs.get(self.job.id)), seconds=timeout)
        except TimeoutError:
            raise TimeoutError(f"job {self.job.id} has not ended after {timeout:g} s") from None


class ReplayClient:
    """Plans, creates and reads replays."""

    def __init__(self, store: Store, project: Project) -> None:
        self._store = store
        self._project = project

    @property
    def writer(self) -> ToolWriter:
        """What writes results for the llm policy, with the project's model."""
        return ToolWriter(self._project.settings.llm_model)

    def plan(
        self, request: ReplayCreateRequest, *, run_spec: RunSpec | None = None, inline: bool = False,
        settle_dead: bool = True, cohort: str | None = None,
    ) -> Plan:  # fmt: skip
        """Preflight: what a replay would do, or why it may not.

        Args:
            run_spec: how to start the agent, where that is not the version's own.
            inline: the caller brings the agent itself.
            settle_dead: look first for sessions whose process died.
            cohort: the cohort version of the experiment run that the replay is part of.

        Raises:
            RefusedError: with every reason in ``details["reasons"]``.
        """
        if settle_dead:
            mark_abandoned(self._store)
        return plan_replay(
            self._store,
            request,
            run_spec=run_spec,
            default_policy=self._project.settings.tool_policy,
            writer=self.writer,
            owner_alive=lambda owner: not is_gone(owner),
            inline=inline,
            environment=os.environ,
            cohort=cohort,
        )

    def create(self, request: ReplayCreateRequest | Plan, *, run_spec: RunSpec | None = None) -> ReplayHandle:
        """Stores a replay and its job, for a worker to run; with a known idempotency key gives back the stored ones.

        Raises:
            RefusedError: preflight said no.
        """
        plan = request if isinstance(request, Plan) else self.plan(request, run_spec=run_spec)
        if plan.run_spec is None:
            raise RefusedError("no agent to run", hint="give an entry point")
        if self._store.url.startswith("memory"):
            raise RefusedError("a store in memory cannot be shared with a child process", hint="replay inline")
        replays = plan.replays(SYSTEM_CLOCK, SYSTEM_IDS)
        work = work_of(plan, replays, project=self._project, clock=SYSTEM_CLOCK, ids=SYSTEM_IDS)
        return ReplayHandle(self._store, self._project, self._store.jobs.create(work.job, work.tasks, work.replays))

    def get(self, replay: str) -> Replay:
        """A replay by id, shortened id, ``last`` or ``last~N``."""
        return self._store.replays.get(self._store.replays.resolve(replay))

    def job(self, replay: str) -> Job | None:
        """The job of a replay; None for one that ran inline."""
        job_id = self.get(replay).job_id
        return None if job_id is None else self._store.jobs.get(job_id)

    def list(
        self, *, baseline_session_id: str | None = None, status: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> Page:  # fmt: skip
        """Replays, newest first."""
        return self._store.replays.find(
            baseline_session_id=baseline_session_id, status=status, limit=limit, cursor=cursor
        )


class Client:
    """An opened store with everything over it; a context manager that closes it.

    Attributes:
        store: the ports themselves.
        sessions: recorded sessions. agents: agents and their versions. replays: re-runs. jobs: what workers do.
        evaluators: built-in and registered ones.
        cohorts: named populations of sessions. experiments: changes, run over cohorts.
    """

    def __init__(self, store: Store, project: Project) -> None:
        self.store = store
        self.project = project
        self.sessions: SessionPort = store.sessions
        self.agents: AgentPort = store.agents
        self.evaluators = EvaluatorClient(store)
        self.replays = ReplayClient(store, project)
        self.jobs = JobClient(store)
        self.cohorts = CohortClient(store)
        self.experiments = ExperimentClient(store, project)

    def worker(self, settings: Settings | None = None) -> Worker:
        """A worker over this store; its ``run`` blocks until it is drained."""
        return Worker(self.store, self.project, settings or Settings())

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_client(url: str | None = None, *, create: bool = True) -> Client:
    """Opens the project's store, found upwards as ``.playhead/``; ``url`` or ``PLAYHEAD_URL`` name another.

    Args:
        url: ``sqlite:///path``, a path, or ``memory:``.
        create: make the store when it is not there.

    Raises:
        UsageError: a URL that cannot be used, or no store there. StoreError: it cannot be opened.
    """
    project = find_project(Path.cwd(), url=url)
    return Client(project.open_store(create=create), project)
