"""Jobs as a client sees them."""

import time
from collections.abc import Iterator
from contextlib import closing

from playhead.core.jobs import HELD, Job, Task, has_ended
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.lasting import patiently
from playhead.store.notices import Notices
from playhead.store.ports import Page, Store

__all__ = ["JobClient", "Looks"]

_QUICK, _SLOW, _SLOWEST = 0.002, 0.02, 1.0  # seconds between two looks; the last where writes are told of


class JobClient:
    """Reads, follows and cancels jobs."""

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock

    def get(self, job: str) -> Job:
        """A job by id, shortened id, ``last`` or ``last~N``."""
        return self._store.jobs.get(self._store.jobs.resolve(job))

    def list(
        self, *, status: str | None = None, kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page:
        """Jobs, newest first."""
        return self._store.jobs.find(status=status, kind=kind, limit=limit, cursor=cursor)

    def tasks(self, job: str) -> "list[Task]":
        """The tasks of a job, in order."""
        return self._store.jobs.tasks(self._store.jobs.resolve(job))

    def cancel(self, job: str) -> Job:
        """Ends what has not begun at once and asks the rest to end; a job that has ended stays as it is."""
        return self._store.jobs.cancel(self._store.jobs.resolve(job), now=self._clock.now())

    def watch(self, job: str, *, timeout: float | None = None) -> Iterator[Task]:
        """Tasks of a job as they are now, then each again when its status changes, until the job has ended.

        Raises:
            TimeoutError: it had not ended after ``timeout`` seconds.
        """
        job_id = self._store.jobs.resolve(job)
        until = None if timeout is None else time.monotonic() + timeout
        seen: dict[str, tuple[str, int]] = {}
        with closing(patiently(self._store.jobs.notices)) as notices:
            looks, pulse = Looks(notices), -1
            while True:
                now = patiently(self._store.jobs.pulse)
                if now != pulse:
                    pulse = now
                    ended = has_ended(patiently(lambda: self._store.jobs.get(job_id)))
                    tasks = patiently(lambda: self._store.jobs.tasks(job_id))
                    for task in tasks:
                        state = (task.status.value, task.attempt)
                        if seen.get(task.id) != state:
                            seen[task.id] = state
                            yield task
                    if ended and all(task.status not in HELD for task in tasks):
                        return
                if until is not None and time.monotonic() > until:
                    raise TimeoutError(f"job {job_id} has not ended after {timeout:g} s")
                looks.pause(None if until is None else until - time.monotonic())


class Looks:
    """When to look for what is new: as soon as something was written, and then often for a while, since the notice may
    come before what it is about."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._slow = _SLOWEST if notices.tells else _SLOW
        self._growth = 1.5 if notices.tells else 1.01
        self._next = _QUICK

    def pause(self, most: float | None = None) -> None:
        """Waits until the next look is due, or ``most`` seconds."""
        seconds = self._next if most is None else max(0.0, min(self._next, most))
        told = self._notices.wait(seconds)
        self._next = _QUICK if told else min(self._next * self._growth, self._slow)
