"""What every backend of the store can do. The ports stand above SQL: nothing here is a table or a column.

One conformance suite (`playhead.testing.conformance.store`) runs against every backend. All methods are synchronous
and safe to call from several threads; two processes may use one store at the same time. Errors are the `StoreError`
family, and `NotFoundError` / `AmbiguousIdError` for ids.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from playhead.core.evaluation import Evaluator
from playhead.core.jobs import Beat, Job, Offer, Task
from playhead.core.lifecycle import TaskEvent
from playhead.core.values import (
    JSON,
    AgentVersion,
    ErrorInfo,
    Node,
    Origin,
    Replay,
    Session,
    SessionStatus,
    Verdict,
)
from playhead.store.notices import Notices

if TYPE_CHECKING:  # suites and experiments are many models, and most commands have none
    from playhead.core.cohorts import Cohort
    from playhead.core.experiments.runs import Experiment, ExperimentRun
    from playhead.core.session_filter import Filter
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.label_log import LabelEntry
    from playhead.core.suites.suite import Case, Suite, ToolSchema
    from playhead.core.suites.trials import SuiteRun, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """Filters, joined by and. Lists mean any of; None means not asked. Newest first unless ``oldest_first``."""

    agents: tuple[str, ...] | None = None
    agent_version: str | None = None
    origins: tuple[Origin, ...] | None = None
    statuses: tuple[SessionStatus, ...] | None = None
    tags: tuple[str, ...] | None = None  # all of these
    conversation: str | None = None
    baseline_id: str | None = None
    since: int | None = None  # started at or after, ns
    until: int | None = None  # started before, ns
    ids: tuple[str, ...] | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])  # equal top-level members
    where: "Filter | None" = None  # a query of the language
    oldest_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``items`` of one page and the ``next_cursor`` to pass on, None at the end."""

    items: tuple[Any, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResult:
    session_id: str
    result: Literal["created", "updated", "unchanged"]


class SessionPort(Protocol):
    """Sessions and their nodes."""

    def begin(self, session: Session) -> None:
        """Store an open session. Doing it twice with one id changes nothing."""
        ...

    def append(self, session_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of an open session, durably when it returns; a node with a known id replaces it."""
        ...

    def finish(self, session: Session) -> None:
        """Store the final state of a session and compact its payloads. Tags and metadata that others gave it since it
        began stay."""
        ...

    def put(
        self, session: Session, nodes: Sequence[Node], verdicts: Sequence[Verdict] = (), *, on_exists: str = "replace"
    ) -> PutResult:
        """Store a whole session in one transaction (imports). An id that exists: ``replace`` it (``unchanged`` when the
        canonical content is equal, else ``updated`` with the revision raised), ``skip`` (unchanged), or ``fail``
        (`ConflictError`).

        What others added to the one that is replaced stays: its tags, metadata members that the new one does not have,
        and verdicts other than those of the source itself (`lookup.replacing`)."""
        ...

    def get(self, session_id: str) -> Session: ...

    def resolve(self, text: str, *, agent: str | None = None) -> str:
        """The full id for an id, a unique prefix or suffix of one (at least 4 characters; ids made at one time share
        their beginning), ``last`` (the newest session that is not a replay or probe) or ``last~N``."""
        ...

    def find(self, query: SessionQuery, *, limit: int = 50, cursor: str | None = None) -> Page: ...

    def count(self, query: SessionQuery) -> int: ...

    def nodes(
        self, session_id: str, *, payloads: bool = True, after_seq: int | None = None, limit: int | None = None
    ) -> list[Node]:
        """Nodes in start order. Without ``payloads`` no payload is read: ``inputs``, ``outcome.value``,
        ``outcome.native``, ``call.arguments``, ``model.usage.raw`` and ``imported.raw`` are None and ``attributes`` is
        empty."""
        ...

    def update(
        self,
        session_id: str,
        *,
        status: SessionStatus | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        metadata: Mapping[str, JSON] | None = None,
    ) -> Session: ...

    def delete(self, session_id: str, *, erase: bool = False) -> None:
        """Remove a session, its nodes and verdicts, and what nothing else refers to; from files their bytes too.

        One that a cohort version needs is refused (`ConflictError`), or with ``erase`` removed all the same: the
        cohort version still names it, and reports say that it is gone."""
        ...

    def by_external(self, format: str, instance: str, external_id: str) -> Session | None: ...

    def newest_calls(
        self, tool: str, *, agent: str | None = None, session_ids: Sequence[str] | None = None
    ) -> list[Node]:
        """For each key of ``tool``, the newest completed tool call with outcome kind ``value``, among the ``live`` and
        ``import`` sessions of ``agent`` or among ``session_ids``. With payloads."""
        ...

    def add_verdicts(self, session_id: str, verdicts: Sequence[Verdict], *, instead_of: Sequence[str] = ()) -> None:
        """Append verdicts; one with the same (evaluator, name) is replaced. Those of the evaluators ``instead_of`` go
        first, in the same transaction."""
        ...

    def verdicts(self, session_id: str) -> list[Verdict]: ...


class AgentPort(Protocol):
    def register(self, version: AgentVersion) -> AgentVersion:
        """Store a version, or give back the stored one with equal run spec and fingerprint (then nothing changes).
        ``number`` of a new one is the next of its agent, whatever was passed."""
        ...

    def get(self, version_id: str) -> AgentVersion: ...

    def find(self, agent: str, number: int | None = None) -> AgentVersion:
        """The version ``number``, or the newest."""
        ...

    def names(self) -> list[str]: ...

    def versions(self, agent: str) -> list[AgentVersion]: ...

    def set_capabilities(self, version_id: str, capabilities: Mapping[str, JSON]) -> AgentVersion: ...


class ReplayPort(Protocol):
    def create(self, replay: Replay) -> Replay:
        """Store a replay; one with the same idempotency key is given back instead and nothing is made."""
        ...

    def save(self, replay: Replay) -> None: ...

    def get(self, replay_id: str) -> Replay: ...

    def resolve(self, text: str) -> str: ...

    def find(
        self, *, baseline_session_id: str | None = None, status: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> Page: ...  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMade:
    """A job with its tasks and replays; not ``created`` when an idempotency key gave back what was there."""

    job: Job
    tasks: tuple[Task, ...]
    replays: tuple[Replay, ...] = ()
    created: bool = True


class JobPort(Protocol):
    """Jobs and tasks, by the rules of `core.jobs`. Times are the caller's.

    Whatever a worker sends may be sent twice. What it says with a token that is not (or no longer) the task's raises
    `LeaseLostError`. A replay task that ends takes its replay with it, in the same transaction.
    """

    def create(self, job: Job, tasks: Sequence[Task], replays: Sequence[Replay] = ()) -> JobMade:
        """Store a job, its tasks and the replays that they are about, all or nothing. A job with the same idempotency
        key is given back instead, with its tasks and replays."""
        ...

    def get(self, job_id: str) -> Job: ...

    def resolve(self, text: str) -> str: ...

    def find(
        self, *, status: str | None = None, kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page: ...

    def task(self, task_id: str) -> Task: ...

    def tasks(self, job_id: str) -> list[Task]:
        """In the order in which they were created."""
        ...

    def pending(self, offer: Offer) -> bool:
        """Whether `claim` might find something; cheap, takes no lock."""
        ...

    def claim(self, offer: Offer, *, token: str, now: int, until: int) -> list[Task]:
        """Take tasks, highest priority first, then oldest. With a token that claimed before: those tasks again."""
        ...

    def start(self, task_id: str, token: str, *, now: int, replay: Replay | None = None) -> Task:
        """The task runs; ``replay`` is stored with it."""
        ...

    def heartbeat(self, held: Mapping[str, str], *, until: int) -> dict[str, Beat]:
        """Keep tasks (id to token) until then, and learn what to do about each."""
        ...

    def save_replay(self, task_id: str, token: str, replay: Replay) -> None:
        """Store a replay on behalf of the attempt that holds the task."""
        ...

    def end(
        self,
        task_id: str,
        token: str,
        event: TaskEvent,
        *,
        now: int,
        error: ErrorInfo | None = None,
        result: JSON = None,
        replay: Replay | None = None,
    ) -> Task:
        """Complete, fail, time out, cancel or release a task; ``replay`` is stored with it."""
        ...

    def lose(self, task_id: str, token: str, *, now: int, error: ErrorInfo) -> Task:
        """An attempt ended by an infrastructure failure: the task is tried again while attempts are left."""
        ...

    def expire(self, *, now: int, error: ErrorInfo) -> list[Task]:
        """`lose` every task whose lease has ended; gives what became of them."""
        ...

    def held(self) -> list[Task]:
        """Tasks that some worker holds."""
        ...

    def cancel(self, job_id: str, *, now: int) -> Job:
        """Pending tasks end at once, held ones are told. A job that has ended stays as it is."""
        ...

    def pulse(self) -> int:
        """A number that changes when anybody else may have written; cheap enough to ask all the time."""
        ...

    def notices(self) -> Notices:
        """What waits until `pulse` may have changed. Whoever asked closes it."""
        ...


class EvaluatorPort(Protocol):
    """Registered evaluators. A version never changes."""

    def register(self, evaluator: Evaluator) -> Evaluator:
        """Store the next version of its name, whatever number was passed; the newest one where nothing changed."""
        ...

    def find(self, name: str, version: int | None = None) -> Evaluator:
        """The version, or the newest."""
        ...

    def names(self) -> list[str]: ...

    def versions(self, name: str) -> list[Evaluator]:
        """Oldest first; none of a name that is not known."""
        ...


class CohortPort(Protocol):
    """Named populations of sessions. A version never changes."""

    def create(self, cohort: "Cohort") -> "Cohort":
        """Store the next version of its name, whatever number was passed; the newest one where its members are the
        same."""
        ...

    def find(self, name: str, version: int | None = None) -> "Cohort":
        """The version, or the newest."""
        ...

    def names(self) -> list[str]: ...

    def versions(self, name: str) -> "list[Cohort]":
        """Oldest first; none of a name that is not known."""
        ...

    def holding(self, session_id: str) -> list[str]:
        """The cohort versions (``name@version``) that a session is a member of."""
        ...


class ExperimentPort(Protocol):
    """Experiments and their runs."""

    def create(self, experiment: "Experiment") -> "Experiment":
        """Store an experiment; one of the same name and configuration is given back instead.

        Raises:
            ConflictError: the name is taken by another configuration.
        """
        ...

    def get(self, name: str) -> "Experiment": ...

    def names(self) -> list[str]: ...

    def save_run(self, run: "ExperimentRun") -> None: ...

    def run(self, run_id: str) -> "ExperimentRun": ...

    def resolve_run(self, text: str) -> str:
        """The full id for an id, a unique part of one, ``last`` or ``last~N``."""
        ...

    def runs(self, experiment: str | None = None) -> "list[ExperimentRun]":
        """Newest first."""
        ...


class SuitePort(Protocol):
    """Suites, their runs, and the trials of these."""

    def names(self) -> list[str]: ...

    def put(self, contents: "Contents") -> None:
        """Store a whole suite in place of the one of its name, all or nothing."""
        ...

    def get(self, name: str) -> "Contents":
        """Cases in the order in which they came; logs from the oldest line."""
        ...

    def change(
        self,
        name: str,
        *,
        suite: "Suite | None" = None,
        cases: "Sequence[Case]" = (),
        tools: "Mapping[str, ToolSchema] | None" = None,
        labels: "Sequence[LabelEntry]" = (),
    ) -> None:
        """Replace the head, add or replace cases and tools by name, append to the log of labels; all or nothing."""
        ...

    def add_access(self, name: str, entry: Mapping[str, JSON]) -> JSON:
        """Append to the log of who read what is held back; the line follows from the one before (`core.access_log`)."""
        ...

    def remove(self, name: str) -> None:
        """Its runs stay."""
        ...

    def save_run(self, run: "SuiteRun") -> None: ...

    def run(self, run_id: str) -> "SuiteRun": ...

    def resolve_run(self, text: str) -> str:
        """The full id for an id, a part of one, ``last`` or ``last~N``."""
        ...

    def runs(self, suite: str | None = None) -> "list[SuiteRun]":
        """Newest first."""
        ...

    def add_trial(self, trial: "Trial", requests: Mapping[str, JSON] | None = None) -> None:
        """Store a trial, durably when it returns, with the requests that it names; one of its place is replaced."""
        ...

    def trials(self, run_id: str) -> "list[Trial]":
        """By case and number."""
        ...

    def add_request(self, digest: str, body: JSON) -> None:
        """Store a document (a request, a fuzz set) under its digest; one that is there stays as it is."""
        ...

    def request(self, digest: str) -> JSON: ...


class Store(Protocol):
    """One opened store. ``url`` says which; ``close`` may be called twice."""

    url: str
    sessions: SessionPort
    agents: AgentPort
    replays: ReplayPort
    jobs: JobPort
    evaluators: EvaluatorPort

    @property
    def suites(self) -> SuitePort:
        """Loaded at first use."""
        ...

    @property
    def cohorts(self) -> CohortPort:
        """Loaded at first use."""
        ...

    @property
    def experiments(self) -> ExperimentPort:
        """Loaded at first use."""
        ...

    def check(self) -> Iterator[str]:
        """Problems found (damaged rows, missing payloads, orphans), one text each; nothing when all is well."""
        ...

    def close(self) -> None: ...
