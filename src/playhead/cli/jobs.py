"""``playhead job list | get | watch | cancel``, and how progress is told."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.core.jobs import Job, Task
from playhead.core.lifecycle import JobStatus
from playhead.errors import PlayheadError

_COLUMNS = ("id", "kind", "status", "label", "made", "took")
_TASK_COLUMNS = ("task", "status", "attempt", "replay", "started", "took", "worker", "error")
_CODES = {JobStatus.COMPLETED: 0, JobStatus.CANCELED: 130}


def list_jobs(
    *,
    context: Ctx,
    status: Literal["pending", "running", "completed", "failed", "canceled"] | None = None,
    kind: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Result:
    """List jobs, newest first.

    Args:
        status: In this status.
        kind: Of this kind, such as replay.
        limit: At most this many.
        cursor: Go on where the last page ended.
    """
    page = context.store.jobs.find(status=status, kind=kind, limit=limit, cursor=cursor)
    return Result(
        data=[shown.members(job) for job in page.items],
        items=True,
        next_cursor=page.next_cursor,
        text=[Table(_COLUMNS, [_row(job) for job in page.items], empty="no jobs; playhead replay create makes one")],
    )


def get(job: str = "last", /, *, context: Ctx, tasks: bool = False) -> Result:
    """Show a job and its tasks.

    With --tasks each task is shown with what went wrong.

    Args:
        job: Id, shortened id, last or last~N.
        tasks: Show its tasks.
    """
    jobs = context.store.jobs
    found = jobs.get(jobs.resolve(job))
    return _shown(found, jobs.tasks(found.id) if tasks else [])


def watch(job: str = "last", /, *, context: Ctx, timeout: float | None = None) -> Result:
    """Follow a job until it has ended.

    Each change of a task is one line on stderr.

    Exit code 0 when it completed, 1 when it failed, 130 when it was canceled.

    Args:
        job: Id, shortened id, last or last~N.
        timeout: Give up after this many seconds, with exit code 3.
    """
    from playhead.engine.jobs import JobClient

    client = JobClient(context.store)
    job_id = context.store.jobs.resolve(job)
    try:
        for task in client.watch(job_id, timeout=timeout):
            context.note(line(task))
    except TimeoutError as error:
        raise PlayheadError(str(error), hint="is a worker running? playhead worker start") from None
    found = client.get(job_id)
    return replace(_shown(found, client.tasks(job_id)), exit_code=_CODES.get(found.status, 1))


def cancel(job: str, /, *, context: Ctx) -> Result:
    """Cancel a job.

    What has not begun ends at once, what runs is ended by its worker.

    Args:
        job: Id, shortened id, last or last~N.
    """
    from playhead.engine.jobs import JobClient

    found = JobClient(context.store).cancel(job)
    return _shown(found, context.store.jobs.tasks(found.id))


@contextmanager
def progress(context: Context, job_id: str) -> Generator[None]:
    """Tells on stderr how the tasks of a job go, while the block runs."""
    from playhead.engine.jobs import JobClient

    over = threading.Event()

    def follow() -> None:
        try:
            for task in JobClient(context.store).watch(job_id):
                if over.is_set():
                    return
                if task.attempt:
                    context.note(line(task))
        except PlayheadError:
            return  # the store was closed, or the command fails by the same error

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
        thread.join(2.0)
    finally:
        over.set()


def line(task: Task) -> str:
    """A task as one line of progress."""
    again = f", attempt {task.attempt}" if task.attempt > 1 else ""
    why = f": {task.error.message}" if task.error is not None else ""
    return f"{task.kind} {_about(task)} {task.status.value}{again}{why}"


def _about(task: Task) -> str:
    from playhead.core.jobs import replay_id_of

    return replay_id_of(task) or task.id


def _shown(job: Job, tasks: list[Task]) -> Result:
    data = {**shown.members(job), **({"tasks": [shown.members(task) for task in tasks]} if tasks else {})}
    text: list[Block] = [Fields(list(_row(job).items()))]
    if tasks:
        text.append(Table(_TASK_COLUMNS, [_task_row(task) for task in tasks]))
    return Result(data=data, text=text)


def _row(job: Job) -> dict[str, object]:
    return {
        "id": job.id,
        "kind": job.kind,
        "status": job.status.value,
        "label": job.label,
        "made": shown.when(job.created_at),
        "took": shown.lasted(job.created_at, job.ended_at),
    }


def _task_row(task: Task) -> dict[str, object]:
    return {
        "task": task.id,
        "status": task.status.value,
        "attempt": task.attempt,
        "replay": _about(task),
        "started": shown.when(task.started_at),
        "took": None if task.started_at is None else shown.lasted(task.started_at, task.ended_at),
        "worker": task.worker,
        "error": shown.failure(task.error),
    }
