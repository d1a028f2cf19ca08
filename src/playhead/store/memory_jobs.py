"""Jobs in memory."""

import threading
from collections.abc import Callable, Mapping, Sequence

from playhead.core import jobs
from playhead.core.codec import decode, dump, encode, load
from playhead.core.jobs import Beat, Job, Offer, Task
from playhead.core.lifecycle import TaskEvent, TaskStatus
from playhead.core.values import JSON, ErrorInfo, Replay
from playhead.errors import ConflictError, NotFoundError
from playhead.store import job_steps, lookup
from playhead.store.notices import Notices
from playhead.store.ports import JobMade, Page, ReplayPort


class MemoryJobs:
    """Jobs and tasks as JSON text, in order of creation; its own `Rows`."""

    def __init__(self, lock: threading.RLock, replays: ReplayPort, page: Callable[..., Page]) -> None:
        self._lock = lock
        self._replays = replays
        self._page = page
        self._jobs: dict[str, bytes] = {}
        self._tasks: dict[str, bytes] = {}
        self._writes = 0

    # rows

    def task_row(self, task_id: str) -> Task | None:
        text = self._tasks.get(task_id)
        return None if text is None else load(Task, decode(text), trusted=True)

    def put_task(self, task: Task) -> None:
        self._writes += 1
        self._tasks[task.id] = encode(dump(task))

    def job_row(self, job_id: str) -> Job | None:
        text = self._jobs.get(job_id)
        return None if text is None else load(Job, decode(text), trusted=True)

    def put_job(self, job: Job) -> None:
        self._writes += 1
        self._jobs[job.id] = encode(dump(job))

    # port

    def create(self, job: Job, tasks: Sequence[Task], replays: Sequence[Replay] = ()) -> JobMade:
        with self._lock:
            known = self._by_key(job.idempotency_key)
            if known is not None:
                return JobMade(job=known, tasks=tuple(self.tasks(known.id)), replays=self._of(known.id), created=False)
            job_steps.check(job, tasks, replays)
            if job.id in self._jobs or any(task.id in self._tasks for task in tasks):
                raise ConflictError(f"job {job.id!r} exists, or a task of it")
            made = self._add_replays(replays)
            self.put_job(job)
            for task in tasks:
                self.put_task(task)
            return JobMade(job=self.get(job.id), tasks=tuple(self.tasks(job.id)), replays=made)

    def _add_replays(self, replays: Sequence[Replay]) -> tuple[Replay, ...]:
        for replay in replays:
            if _there(self._replays, replay):
                raise ConflictError(f"replay {replay.id!r} exists, or one with the same idempotency key")
        return tuple(self._replays.create(replay) for replay in replays)

    def _by_key(self, key: str | None) -> Job | None:
        return next((j for j in self._all() if key is not None and j.idempotency_key == key), None)

    def _of(self, job_id: str) -> tuple[Replay, ...]:
        ids = [jobs.replay_id_of(task) for task in self.tasks(job_id)]
        return tuple(self._replays.get(id) for id in ids if id is not None)

    def get(self, job_id: str) -> Job:
        with self._lock:
            found = self.job_row(job_id)
        if found is None:
            raise NotFoundError(f"no job {job_id!r}")
        return found

    def resolve(self, text: str) -> str:
        with self._lock:
            ids = [job.id for job in self._all()]
        return lookup.resolve(
            text,
            "job",
            nth_newest=lambda n: ids[n] if n < len(ids) else None,
            fitting=lambda part: [id for id in ids if id.startswith(part) or id.endswith(part)],
        )

    def find(
        self, *, status: str | None = None, kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page:
        with self._lock:
            found = [job for job in self._all() if status in (None, job.status) and kind in (None, job.kind)]
        return self._page(found, _place, limit, cursor, False)

    def _all(self) -> list[Job]:
        found = [load(Job, decode(text), trusted=True) for text in self._jobs.values()]
        return sorted(found, key=lambda job: (job.created_at, job.id), reverse=True)

    def task(self, task_id: str) -> Task:
        with self._lock:
            found = self.task_row(task_id)
        if found is None:
            raise NotFoundError(f"no task {task_id!r}")
        return found

    def tasks(self, job_id: str) -> list[Task]:
        with self._lock:
            return [task for task in self._every() if task.job_id == job_id]

    def _every(self) -> list[Task]:
        return [load(Task, decode(text), trusted=True) for text in self._tasks.values()]

    def pending(self, offer: Offer) -> bool:
        with self._lock:
            return any(jobs.fits(task, offer) for task in self._every())

    def claim(self, offer: Offer, *, token: str, now: int, until: int) -> list[Task]:
        with self._lock:
            every = self._every()
            again = [task for task in every if task.status is TaskStatus.CLAIMED and task.token == token]
            if again:
                return again
            known = {task.id: task for task in every}
            fitting = [task for task in every if jobs.fits(task, offer) and jobs.is_ready(task, known)]
            chosen = sorted(fitting, key=lambda t: (-t.priority, t.created_at, t.id))[: max(offer.limit, 0)]
            taken = [jobs.claimed(task, worker=offer.worker, token=token, now=now, until=until) for task in chosen]
            for task in taken:
                self.put_task(task)
            job_steps.begun(_Rows(self, self._replays), taken, now)
            return taken

    def start(self, task_id: str, token: str, *, now: int, replay: Replay | None = None) -> Task:
        with self._lock:
            return job_steps.start(_Rows(self, self._replays), task_id, token, now, replay)

    def heartbeat(self, held: Mapping[str, str], *, until: int) -> dict[str, Beat]:
        with self._lock:
            return job_steps.heartbeat(_Rows(self, self._replays), held, until)

    def save_replay(self, task_id: str, token: str, replay: Replay) -> None:
        with self._lock:
            job_steps.save_replay(_Rows(self, self._replays), task_id, token, replay)

    def end(
        self, task_id: str, token: str, event: TaskEvent, *, now: int, error: ErrorInfo | None = None,
        result: JSON = None, replay: Replay | None = None,
    ) -> Task:  # fmt: skip
        with self._lock:
            return job_steps.end(_Rows(self, self._replays), task_id, token, event, now, error, result, replay)

    def lose(self, task_id: str, token: str, *, now: int, error: ErrorInfo) -> Task:
        with self._lock:
            return job_steps.lose(_Rows(self, self._replays), task_id, token, now, error)

    def expire(self, *, now: int, error: ErrorInfo) -> list[Task]:
        with self._lock:
            return job_steps.expire(_Rows(self, self._replays), self.held(), now, error)

    def held(self) -> list[Task]:
        with self._lock:
            return [task for task in self._every() if task.status in jobs.HELD]

    def cancel(self, job_id: str, *, now: int) -> Job:
        with self._lock:
            return job_steps.cancel(_Rows(self, self._replays), job_id, now)

    def pulse(self) -> int:
        return self._writes

    def notices(self) -> Notices:
        return Notices()


class _Rows:
    """`job_steps.Rows` over the dictionaries."""

    def __init__(self, held: MemoryJobs, replays: ReplayPort) -> None:
        self._held = held
        self._replays = replays
        self.task = held.task_row
        self.put_task = held.put_task
        self.job = held.job_row
        self.put_job = held.put_job
        self.tasks = held.tasks

    def replay(self, replay_id: str) -> Replay | None:
        try:
            return self._replays.get(replay_id)
        except NotFoundError:
            return None

    def put_replay(self, replay: Replay) -> None:
        self._replays.save(replay)

    def is_open(self, job_id: str) -> bool:
        return any(not jobs.is_final(task) for task in self.tasks(job_id))

    def is_needed(self, task_id: str) -> bool:
        task = self.task(task_id)
        return task is not None and any(task_id in other.needs for other in self.tasks(task.job_id))


def _place(job: Job) -> lookup.Place:
    return lookup.Place(job.created_at, job.id)


def _there(replays: ReplayPort, replay: Replay) -> bool:
    page = replays.find(limit=1_000_000)
    return any(
        r.id == replay.id or (replay.idempotency_key is not None and r.idempotency_key == replay.idempotency_key)
        for r in page.items
    )
