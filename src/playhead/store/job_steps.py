"""What happens to stored jobs, step by step, for every backend: each function runs inside one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from playhead.core import jobs
from playhead.core.jobs import HELD, Beat, Job, Task
from playhead.core.lifecycle import OnFailure, TaskEvent, TaskStatus
from playhead.core.values import JSON, ErrorInfo, Replay
from playhead.errors import ConflictError, LeaseLostError, NotFoundError, UsageError


class Rows(Protocol):
    """The rows of one transaction."""

    def task(self, task_id: str) -> Task | None: ...

    def put_task(self, task: Task) -> None: ...

    def tasks(self, job_id: str) -> list[Task]: ...

    def job(self, job_id: str) -> Job | None: ...

    def put_job(self, job: Job) -> None: ...

    def replay(self, replay_id: str) -> Replay | None: ...

    def put_replay(self, replay: Replay) -> None: ...

    def is_open(self, job_id: str) -> bool:
        """Whether a task of the job has not ended."""
        ...

    def is_needed(self, task_id: str) -> bool:
        """Whether a task needs this one."""
        ...


def check(job: Job, tasks: Sequence[Task], replays: Sequence[Replay]) -> None:
    """Refuses what does not belong together.

    Raises:
        UsageError: tasks of another job, dependencies outside of it, or a replay that names another job.
    """
    ids = {task.id for task in tasks}
    for task in tasks:
        if task.job_id != job.id or not ids.issuperset(task.needs) or task.id in task.needs:
            raise UsageError(f"task {task.id!r} does not belong to job {job.id!r}, or needs what is not in it")
    if len(ids) != len(tasks) or any(replay.job_id != job.id for replay in replays):
        raise UsageError(f"tasks and replays of job {job.id!r} must be its own, each once")


def start(rows: Rows, task_id: str, token: str, now: int, replay: Replay | None) -> Task:
    task = jobs.started(_held(rows, task_id, token), now)
    rows.put_task(task)
    if replay is not None:
        rows.put_replay(replay)
    return task


def heartbeat(rows: Rows, held: Mapping[str, str], until: int) -> dict[str, Beat]:
    found: dict[str, Beat] = {}
    for task_id, token in held.items():
        task = rows.task(task_id)
        if task is None or not jobs.holds(task, token):
            found[task_id] = "lost"
            continue
        rows.put_task(replace(task, lease_until=until))
        found[task_id] = "cancel" if task.cancel else "ok"
    return found


def save_replay(rows: Rows, task_id: str, token: str, replay: Replay) -> None:
    _held(rows, task_id, token)
    rows.put_replay(replay)


def end(
    rows: Rows, task_id: str, token: str, event: TaskEvent, now: int, error: ErrorInfo | None, result: JSON,
    replay: Replay | None,
) -> Task:  # fmt: skip
    known = _known(rows, task_id)
    if event is TaskEvent.RELEASE:
        task = jobs.given_back(_held(rows, task_id, token), event)
        return _changed(rows, jobs.canceled(task, now) if known.cancel else task, now)
    if known.token == token and jobs.is_final(known):
        return known  # sent twice, or canceled meanwhile: what was stored first counts
    task = jobs.ended(_held(rows, task_id, token), event, now, error=error, result=result)
    if replay is not None:
        rows.put_replay(replay)
    return _changed(rows, task, now)


def lose(rows: Rows, task_id: str, token: str, now: int, error: ErrorInfo) -> Task:
    known = _known(rows, task_id)
    if known.token == token and jobs.is_final(known):
        return known
    return _changed(rows, jobs.after_loss(_held(rows, task_id, token), now, error), now)


def expire(rows: Rows, held: Sequence[Task], now: int, error: ErrorInfo) -> list[Task]:
    return [_changed(rows, jobs.after_loss(task, now, error), now) for task in held if jobs.has_expired(task, now)]


def cancel(rows: Rows, job_id: str, now: int) -> Job:
    job = rows.job(job_id)
    if job is None:
        raise NotFoundError(f"no job {job_id!r}")
    if jobs.has_ended(job) or not rows.is_open(job_id):
        return job
    job = replace(job, cancel=True)
    rows.put_job(job)
    return _follow(rows, job, now)


def begun(rows: Rows, claimed: Sequence[Task], now: int) -> None:
    """Jobs run from their first claimed task on."""
    for job_id in {task.job_id for task in claimed}:
        job = rows.job(job_id)
        if job is not None:
            moved = jobs.derived(job, [task for task in claimed if task.job_id == job_id], now)
            if moved != job:
                rows.put_job(moved)


def _known(rows: Rows, task_id: str) -> Task:
    task = rows.task(task_id)
    if task is None:
        raise NotFoundError(f"no task {task_id!r}")
    return task


def _held(rows: Rows, task_id: str, token: str) -> Task:
    task = _known(rows, task_id)
    if not jobs.holds(task, token):
        state = f"it is {task.status}" if task.status not in HELD else f"{task.worker} holds it"
        raise LeaseLostError(
            f"task {task_id!r} is no longer this attempt's: {state}", hint="its result is refused", status=task.status
        )
    return task


def _changed(rows: Rows, task: Task, now: int) -> Task:
    """Stores a task that has ended or was given back, and what follows from it."""
    rows.put_task(task)
    _settle_replay(rows, task)
    ended_badly = jobs.is_final(task) and task.status is not TaskStatus.COMPLETED
    matters = ended_badly and (task.on_failure is OnFailure.ABORT or task.status is TaskStatus.CANCELED)
    if matters or (ended_badly and rows.is_needed(task.id)) or not rows.is_open(task.job_id):
        job = rows.job(task.job_id)
        if job is None:
            raise ConflictError(f"task {task.id!r} has lost its job {task.job_id!r}")
        _follow(rows, job, now)
    return rows.task(task.id) or task


def _follow(rows: Rows, job: Job, now: int) -> Job:
    changes = jobs.consequences(job, rows.tasks(job.id), now)
    for task in changes.tasks:
        rows.put_task(task)
        _settle_replay(rows, task)
    if changes.job != job:
        rows.put_job(changes.job)
    return changes.job


def _settle_replay(rows: Rows, task: Task) -> None:
    replay_id = jobs.replay_id_of(task)
    stored = rows.replay(replay_id) if replay_id is not None and jobs.is_final(task) else None
    settled = jobs.replay_after(task, stored) if stored is not None else None
    if settled is not None:
        rows.put_replay(settled)
