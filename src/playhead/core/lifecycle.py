"""Status tables of replays, tasks, jobs and experiment runs, and the one `advance`.

A table says for each status which event leads where; an event that is not in the row of a status is refused. Tasks are
driven by events of their own. A job's or experiment run's status is derived from its tasks and advanced to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from playhead.core.values import ReplayStatus
from playhead.errors import ConflictError

StateT = TypeVar("StateT", bound=StrEnum)
EventT = TypeVar("EventT", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Table(Generic[StateT, EventT]):
    """Transitions of one kind of thing, and the status that a new one has."""

    of: str
    initial: StateT
    rows: Mapping[StateT, Mapping[EventT, StateT]]

    def is_final(self, state: StateT) -> bool:
        """Whether nothing leads on from the status."""
        return not self.rows.get(state)


def advance(table: Table[StateT, EventT], state: StateT, event: EventT) -> StateT:
    """The status after the event.

    Raises:
        ConflictError: the event cannot happen to a thing of this status.
    """
    row = table.rows.get(state) or {}
    if event in row:
        return row[event]
    possible = ", ".join(sorted(row)) or f"none, {state} is final"
    raise ConflictError(f"a {table.of} that is {state} cannot {event}", hint=f"possible now: {possible}")


def _table(
    of: str, initial: StateT, events: type[EventT], rows: Mapping[StateT, Mapping[EventT, StateT]]
) -> Table[StateT, EventT]:
    return Table(of, initial, MappingProxyType({s: MappingProxyType(dict(row)) for s, row in rows.items()}))


# --- replay ---------------------------------------------------------------------------------------------------------


class ReplayEvent(StrEnum):
    START = "start"
    RESTART = "restart"  # its worker died; another one runs it from the top
    EVALUATE = "evaluate"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"


_ENDS: Mapping[ReplayEvent, ReplayStatus] = {
    ReplayEvent.FAIL: ReplayStatus.FAILED,
    ReplayEvent.CANCEL: ReplayStatus.CANCELED,
}

REPLAY: Final = _table(
    "replay",
    ReplayStatus.PENDING,
    ReplayEvent,
    {
        ReplayStatus.PENDING: {ReplayEvent.START: ReplayStatus.RUNNING, **_ENDS},
        ReplayStatus.RUNNING: {
            ReplayEvent.RESTART: ReplayStatus.RUNNING,
            ReplayEvent.EVALUATE: ReplayStatus.EVALUATING,
            **_ENDS,
        },
        ReplayStatus.EVALUATING: {
            ReplayEvent.RESTART: ReplayStatus.RUNNING,
            ReplayEvent.COMPLETE: ReplayStatus.COMPLETED,
            **_ENDS,
        },
        ReplayStatus.COMPLETED: {},
        ReplayStatus.FAILED: {},
        ReplayStatus.CANCELED: {},
    },
)


# --- task -----------------------------------------------------------------------------------------------------------


class TaskStatus(StrEnum):
    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    ABANDONED = "abandoned"


class TaskEvent(StrEnum):
    CLAIM = "claim"
    START = "start"
    COMPLETE = "complete"
    FAIL = "fail"
    TIME_OUT = "time_out"
    CANCEL = "cancel"
    RELEASE = "release"  # given back untouched: a worker that drains
    RETRY = "retry"  # an infrastructure failure or a lease that ended, with attempts left
    ABANDON = "abandon"  # the same, with none left


MAX_ATTEMPTS: Final = 3
"""Attempts after infrastructure failures; an agent's own failure is a result and is never tried again."""

_BACK: Mapping[TaskEvent, TaskStatus] = {
    TaskEvent.RELEASE: TaskStatus.PENDING,
    TaskEvent.RETRY: TaskStatus.PENDING,
    TaskEvent.ABANDON: TaskStatus.ABANDONED,
    TaskEvent.CANCEL: TaskStatus.CANCELED,
}

TASK: Final = _table(
    "task",
    TaskStatus.PENDING,
    TaskEvent,
    {
        TaskStatus.PENDING: {TaskEvent.CLAIM: TaskStatus.CLAIMED, TaskEvent.CANCEL: TaskStatus.CANCELED},
        TaskStatus.CLAIMED: {TaskEvent.START: TaskStatus.RUNNING, TaskEvent.FAIL: TaskStatus.FAILED, **_BACK},
        TaskStatus.RUNNING: {
            TaskEvent.COMPLETE: TaskStatus.COMPLETED,
            TaskEvent.FAIL: TaskStatus.FAILED,
            TaskEvent.TIME_OUT: TaskStatus.TIMED_OUT,
            **_BACK,
        },
        TaskStatus.COMPLETED: {},
        TaskStatus.FAILED: {},
        TaskStatus.TIMED_OUT: {},
        TaskStatus.CANCELED: {},
        TaskStatus.ABANDONED: {},
    },
)


def lost(attempt: int) -> TaskEvent:
    """What happens to a task whose ``attempt`` (1-based) ended by infrastructure failure or a lease that ran out."""
    return TaskEvent.RETRY if attempt < MAX_ATTEMPTS else TaskEvent.ABANDON


# --- job and experiment run -----------------------------------------------------------------------------------------


class JobStatus(StrEnum):
    """Of jobs and experiment runs."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class JobEvent(StrEnum):
    START = "start"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"
    RESUME = "resume"  # failed parts are tried again


def _job_table(of: str) -> Table[JobStatus, JobEvent]:
    ends = {
        JobEvent.COMPLETE: JobStatus.COMPLETED,
        JobEvent.FAIL: JobStatus.FAILED,
        JobEvent.CANCEL: JobStatus.CANCELED,
    }
    again = {JobEvent.RESUME: JobStatus.RUNNING}
    return _table(
        of,
        JobStatus.PENDING,
        JobEvent,
        {
            JobStatus.PENDING: {JobEvent.START: JobStatus.RUNNING, **ends},
            JobStatus.RUNNING: ends,
            JobStatus.COMPLETED: again if of == "experiment run" else {},
            JobStatus.FAILED: again,
            JobStatus.CANCELED: again if of == "experiment run" else {},
        },
    )


JOB: Final = _job_table("job")
EXPERIMENT: Final = _job_table("experiment run")


class OnFailure(StrEnum):
    """What the failure of a task does to its job."""

    ABORT = "abort"
    CONTINUE = "continue"
    IGNORE = "ignore"


_UNSUCCESSFUL = frozenset({TaskStatus.FAILED, TaskStatus.TIMED_OUT, TaskStatus.ABANDONED})


def job_status(tasks: Iterable[tuple[TaskStatus, OnFailure]]) -> JobStatus:
    """The status that a job has by its tasks; without any it is completed.

    A failure under ``abort`` fails the job at once, one under ``continue`` when everything else has ended, one under
    ``ignore`` never. A canceled task cancels a job that did not fail otherwise.
    """
    known = list(tasks)
    statuses = [status for status, _ in known]
    if any(s in _UNSUCCESSFUL and rule is OnFailure.ABORT for s, rule in known):
        return JobStatus.FAILED
    if any(not TASK.is_final(s) for s in statuses):
        return JobStatus.PENDING if all(s is TaskStatus.PENDING for s in statuses) else JobStatus.RUNNING
    if any(s in _UNSUCCESSFUL and rule is OnFailure.CONTINUE for s, rule in known):
        return JobStatus.FAILED
    return JobStatus.CANCELED if TaskStatus.CANCELED in statuses else JobStatus.COMPLETED
