"""Jobs and their tasks: what a worker may do to a task, and what follows from it.

Everything here is a function from values to values; a store applies it inside one transaction, so that every backend
keeps the same rules. The transitions themselves stand in `core.lifecycle`.

A worker holds a task by a lease: a token and a time. The token is the fence: whoever does not hold the current one is
refused, however late or often it asks. The time only says when somebody else may take the task; a worker that is late
but was not replaced still counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from playhead.core.lifecycle import (
    JOB,
    REPLAY,
    TASK,
    JobEvent,
    JobStatus,
    OnFailure,
    ReplayEvent,
    TaskEvent,
    TaskStatus,
    advance,
    job_status,
    lost,
)
from playhead.core.protocol.shape import obj
from playhead.core.values import JSON, ErrorInfo, Replay, ReplayStatus

Beat: TypeAlias = Literal["ok", "cancel", "lost"]
"""What a heartbeat tells a worker about one task: go on, end it, or it is no longer yours."""

LONGEST_LEASE: Final = 3_600_000_000_000
"""One hour, ns. A lease that ends later than this from now was given by a clock that has been set back since."""

HELD: Final = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING})
_BAD: Final = frozenset({TaskStatus.FAILED, TaskStatus.TIMED_OUT, TaskStatus.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One piece of work. ``attempt`` counts claims; ``needs`` are tasks of the same job that must have ended well.

    ``labels`` are what a worker must offer, ``agent_version`` what it must be able to run. ``token`` stays after the
    end, so that an end that is sent twice is known.
    """

    id: str
    job_id: str
    kind: str
    created_at: int
    payload: JSON = None
    status: TaskStatus = TaskStatus.PENDING
    attempt: int = 0
    priority: int = 0  # higher first
    needs: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.ABORT
    agent_version: str | None = None
    labels: tuple[str, ...] = ()
    worker: str | None = None
    token: str | None = None
    lease_until: int | None = None
    claimed_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    cancel: bool = False  # somebody asked to end it
    error: ErrorInfo | None = None
    result: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A group of tasks. Its status is derived from theirs."""

    id: str
    kind: str
    created_at: int
    status: JobStatus = JobStatus.PENDING
    label: str | None = None
    idempotency_key: str | None = None
    cancel: bool = False
    ended_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker can take: at most ``limit`` tasks of these agent versions (None: any), kinds and labels."""

    worker: str
    limit: int = 1
    versions: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What follows from a change: the job as it is now, and the other tasks that changed with it."""

    job: Job
    tasks: tuple[Task, ...] = ()


def is_final(task: Task) -> bool:
    return TASK.is_final(task.status)


def has_ended(job: Job) -> bool:
    """Whether a job has ended, even if what failed in it could be tried again."""
    return job.status not in (JobStatus.PENDING, JobStatus.RUNNING)


def holds(task: Task, token: str) -> bool:
    """Whether the token is the one that the task is held by."""
    return task.status in HELD and task.token == token


def has_expired(task: Task, now: int) -> bool:
    """Whether a held task may be taken from its worker."""
    if task.status not in HELD or task.lease_until is None:
        return False
    return task.lease_until <= now or task.lease_until - now > LONGEST_LEASE


def fits(task: Task, offer: Offer) -> bool:
    """Whether a worker with this offer may run the task, dependencies aside."""
    return (
        task.status is TaskStatus.PENDING
        and (offer.versions is None or task.agent_version in offer.versions)
        and (offer.kinds is None or task.kind in offer.kinds)
        and (offer.job_id is None or task.job_id == offer.job_id)
        and set(task.labels) <= set(offer.labels)
    )


def is_ready(task: Task, tasks: Mapping[str, Task]) -> bool:
    """Whether every task that it needs has ended in a way that lets it run."""
    return all(need in tasks and _satisfied(tasks[need]) for need in task.needs)


def _satisfied(task: Task) -> bool:
    return task.status is TaskStatus.COMPLETED or (task.status in _BAD and task.on_failure is OnFailure.IGNORE)


def _hopeless(task: Task) -> bool:
    return is_final(task) and not _satisfied(task)


# what happens to a task


def claimed(task: Task, *, worker: str, token: str, now: int, until: int) -> Task:
    return replace(
        task,
        status=advance(TASK, task.status, TaskEvent.CLAIM),
        attempt=task.attempt + 1,
        worker=worker,
        token=token,
        lease_until=until,
        claimed_at=now,
        started_at=None,
    )


def started(task: Task, now: int) -> Task:
    """Running; a start that is sent twice changes nothing."""
    if task.status is TaskStatus.RUNNING:
        return task
    return replace(task, status=advance(TASK, task.status, TaskEvent.START), started_at=now)


def ended(task: Task, event: TaskEvent, now: int, *, error: ErrorInfo | None = None, result: JSON = None) -> Task:
    """The task after ``event``, with what came of it."""
    return replace(
        task,
        status=advance(TASK, task.status, event),
        ended_at=now,
        lease_until=None,
        error=error,
        result=task.result if result is None else result,
    )


def given_back(task: Task, event: TaskEvent, *, error: ErrorInfo | None = None) -> Task:
    """Pending again: released untouched (which uses up no attempt) or to be tried again."""
    return replace(
        task,
        status=advance(TASK, task.status, event),
        attempt=task.attempt - (event is TaskEvent.RELEASE),
        worker=None,
        token=None,
        lease_until=None,
        claimed_at=None,
        started_at=None,
        error=error,
    )


def after_loss(task: Task, now: int, error: ErrorInfo) -> Task:
    """After an infrastructure failure or a lease that ran out: tried again, abandoned, or canceled as was asked."""
    if task.cancel:
        return ended(task, TaskEvent.CANCEL, now, error=error)
    event = lost(task.attempt)
    return given_back(task, event, error=error) if event is TaskEvent.RETRY else ended(task, event, now, error=error)


def canceled(task: Task, now: int) -> Task:
    """A pending task ends at once; a held one is told with the next heartbeat; one that has ended stays."""
    if task.status in HELD:
        return replace(task, cancel=True)
    return task if is_final(task) else replace(ended(task, TaskEvent.CANCEL, now), cancel=True)


# what follows for the job


def consequences(job: Job, tasks: Sequence[Task], now: int) -> Changes:
    """What follows from the present state of a job's tasks, until nothing more does."""
    present = {task.id: task for task in tasks}
    aborting = job.cancel or any(t.status in _BAD and t.on_failure is OnFailure.ABORT for t in tasks)
    moved = True
    while moved:
        moved = False
        for task in list(present.values()):
            if is_final(task) or (task.cancel and task.status in HELD):
                continue
            if aborting or any(need not in present or _hopeless(present[need]) for need in task.needs):
                present[task.id], moved = canceled(task, now), True
    changed = tuple(present[task.id] for task in tasks if present[task.id] != task)
    return Changes(job=derived(job, present.values(), now), tasks=changed)


_LEADS: Final = {
    JobStatus.RUNNING: JobEvent.START,
    JobStatus.COMPLETED: JobEvent.COMPLETE,
    JobStatus.FAILED: JobEvent.FAIL,
    JobStatus.CANCELED: JobEvent.CANCEL,
}


def derived(job: Job, tasks: Iterable[Task], now: int) -> Job:
    """The job with the status that its tasks give it. A final one stays as it is."""
    wanted = job_status((task.status, task.on_failure) for task in tasks)
    if wanted is job.status or wanted is JobStatus.PENDING or job.status not in (JobStatus.PENDING, JobStatus.RUNNING):
        return job
    status = advance(JOB, job.status, _LEADS[wanted])
    return replace(job, status=status, ended_at=None if status is JobStatus.RUNNING else now)


# what follows for the replay of a task


def replay_id_of(task: Task) -> str | None:
    """The replay that a task is about."""
    found = obj(task.payload).get("replay_id")
    return found if isinstance(found, str) else None


def replay_after(task: Task, stored: Replay) -> Replay | None:
    """The replay of a task that has ended without one of its own: canceled, or failed. None when nothing changes."""
    if REPLAY.is_final(stored.status) or not is_final(task):
        return None
    if task.status is TaskStatus.CANCELED:
        return replace(stored, status=advance(REPLAY, stored.status, ReplayEvent.CANCEL), ended_at=task.ended_at)
    if task.status is TaskStatus.COMPLETED:
        return None
    status = advance(REPLAY, stored.status, ReplayEvent.FAIL)
    return replace(stored, status=status, ended_at=task.ended_at, error=task.error)


def restarted(stored: Replay, now: int) -> Replay:
    """The replay as its next attempt begins: from the top, with nothing of an attempt before."""
    event = ReplayEvent.START if stored.status is ReplayStatus.PENDING else ReplayEvent.RESTART
    return replace(
        stored,
        status=advance(REPLAY, stored.status, event),
        started_at=now,
        result_session_id=None,
        ledger=(),
        fidelity=None,
        guard=None,
        verdicts=(),
        error=None,
    )
