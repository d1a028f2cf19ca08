"""The worker: claims tasks, runs each in a process of its own, keeps its leases and reports.

It needs nothing but the store. One thread claims and sends heartbeats, one thread per running task waits for that
task's process. The store tells when somebody has written; looking for work is then one cheap question.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from playhead.core.jobs import Offer, Task, has_expired
from playhead.core.values import ErrorInfo
from playhead.engine.child import Control
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS, Clock, IdSource
from playhead.engine.jobs import Looks
from playhead.engine.lasting import patiently
from playhead.engine.owner import is_gone, own_name
from playhead.engine.project import Project
from playhead.engine.replay_task import KIND, Runner
from playhead.engine.settle import error_info
from playhead.engine.warm import Zygotes
from playhead.engine.watching import Reason
from playhead.errors import AgentProcessError, PlayheadError, StoreBusyError
from playhead.store.notices import Notices
from playhead.store.ports import Store

LEASE = 15.0
"""Seconds that a worker may be silent before others take its tasks."""

_SWEEP = 1.0
_LOOKS = 4  # a process of an attempt that was lost may live, and record, a moment longer
_RECENT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker takes and how.

    ``versions`` are ids of agent versions, None any; ``job_id`` limits it to one job; ``warm`` lets it fork replays
    from a process that has imported their agent; ``tell`` hears of each task that has ended; ``stand_back`` are
    seconds that other workers have to be first.
    """

    concurrency: int = 0
    versions: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    job_id: str | None = None
    lease: float = LEASE
    warm: bool = True
    tell: Callable[[Task], None] = lambda _: None
    stand_back: float = 0.0

    @property
    def slots(self) -> int:
        return self.concurrency or os.cpu_count() or 1


@dataclass(slots=True)
class _Running:
    task: Task
    control: Control
    thread: threading.Thread | None = None


@dataclass(slots=True)
class Tally:
    """What a worker did."""

    ended: int = 0
    refused: int = 0
    errors: list[str] = field(default_factory=list[str])


class Worker:
    """Runs tasks of a store until it is told to stop. `run` blocks; the other methods may be called from anywhere,
    signal handlers included."""

    def __init__(
        self, store: Store, project: Project, settings: Settings, *, clock: Clock = SYSTEM_CLOCK,
        ids: IdSource = SYSTEM_IDS,
    ) -> None:  # fmt: skip
        self._store = store
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self.name = f"{own_name()}:{ids()[-6:]}"
        self.tally = Tally()
        self._zygotes = Zygotes() if settings.warm and hasattr(os, "fork") else None
        self._runner = Runner(store=store, project=project, zygotes=self._zygotes, clock=clock)
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._notices = Notices()  # those of the store, once it runs
        self._draining = False
        self._until_empty = False
        self._pulse: int = -1
        self._claimed_last = False
        self._next_beat = self._next_sweep = 0.0
        self._lost: list[tuple[Task, int]] = []

    def drain(self) -> None:
        """Takes no more tasks and stops when those that run have ended."""
        self._draining = True
        self._notices.wake()

    def release(self) -> None:
        """Gives back what runs, untouched, and stops."""
        self._draining = True
        self._end_all("released")
        self._notices.wake()

    def run(
        self, *, until_empty: bool = False, until: Callable[[], bool] | None = None, seconds: float | None = None
    ) -> Tally:
        """Works until it is drained; with ``until_empty`` also when nothing is left to claim, with ``until`` when
        that is so.

        Raises:
            TimeoutError: it was not over after ``seconds``; what ran was given back.
        """
        self._until_empty = until_empty
        deadline = None if seconds is None else time.monotonic() + seconds
        self._notices = notices = patiently(self._store.jobs.notices)
        looks = Looks(notices)
        try:
            if self._settings.job_id is None:
                self._find_lost()
            time.sleep(self._settings.stand_back)
            patiently(self._sweep)
            while not self._is_over(until):
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"not over after {seconds:g} s")
                if not self._step():
                    looks.pause(self._until_due(deadline))
        finally:
            self._stop()
            notices.close()
        return self.tally

    def _until_due(self, deadline: float | None) -> float:
        """Seconds until there is something to do that no write tells of."""
        due = [self._next_sweep]
        due += [self._next_beat] if self._running else []
        due += [deadline] if deadline is not None else []
        return min(due) - time.monotonic()

    def _is_over(self, until: Callable[[], bool] | None) -> bool:
        if self._running:
            return False
        if self._draining or (self._until_empty and not self._claimed_last):
            return self._draining or not self._store.jobs.pending(self._offer(1))
        return until is not None and until()

    def _step(self) -> bool:
        now = time.monotonic()
        try:
            if self._running and now >= self._next_beat:
                self._next_beat = now + self._settings.lease / 3
                self._beat()
            if now >= self._next_sweep:
                self._next_sweep = now + min(_SWEEP, self._settings.lease / 3)
                self._sweep()
                self._pulse = -1
            return self._claim()
        except StoreBusyError:
            return False  # somebody holds the store locked; the leases wait with everything else

    # claiming

    def _offer(self, limit: int) -> Offer:
        wanted = self._settings
        return Offer(
            worker=self.name, limit=limit, versions=wanted.versions, kinds=(KIND,), labels=wanted.labels,
            job_id=wanted.job_id,
        )  # fmt: skip

    def _claim(self) -> bool:
        free = self._settings.slots - len(self._running)
        if self._draining or free <= 0:
            return False
        pulse = self._store.jobs.pulse()
        if pulse == self._pulse and not self._claimed_last:
            return False
        offer = self._offer(free)
        self._pulse, self._claimed_last = pulse, False
        if not self._store.jobs.pending(offer):
            return False
        now = self._clock.now()
        until = now + int(self._settings.lease * 1e9)
        for task in self._store.jobs.claim(offer, token=self._ids(), now=now, until=until):
            self._claimed_last = True
            self._begin(task)
        return self._claimed_last

    def _begin(self, task: Task) -> None:
        running = _Running(task, Control())
        with self._lock:
            self._running[task.id] = running
        running.thread = threading.Thread(target=self._work, args=(running,), name=f"task-{task.id[-6:]}", daemon=True)
        running.thread.start()

    def _work(self, running: _Running) -> None:
        try:
            done = self._runner.run(running.task, running.control)
            if done is None:
                self.tally.refused += 1
            else:
                self.tally.ended += 1
                self._settings.tell(done)
        except Exception as error:  # noqa: BLE001 - one task must not take the worker down
            self._give_up(running.task, error)
        finally:
            with self._lock:
                self._running.pop(running.task.id, None)
            self._claimed_last = True
            self._notices.wake()

    def _give_up(self, task: Task, error: Exception) -> None:
        """A failure of ours, or of the store: the task is tried again."""
        self.tally.errors.append(f"{type(error).__name__}: {error}")
        known = error if isinstance(error, PlayheadError) else AgentProcessError(f"{type(error).__name__}: {error}")
        try:
            self._store.jobs.lose(task.id, task.token or "", now=self._clock.now(), error=error_info(known))
        except PlayheadError as again:  # then its lease ends by itself
            self.tally.errors.append(str(again))

    # leases

    def _beat(self) -> None:
        held = {id: one.task.token or "" for id, one in list(self._running.items())}
        until = self._clock.now() + int(self._settings.lease * 1e9)
        for task_id, beat in self._store.jobs.heartbeat(held, until=until).items():
            running = self._running.get(task_id)
            if running is not None and beat != "ok":
                running.control.end("canceled" if beat == "cancel" else "lost")

    def _sweep(self) -> None:
        """Takes tasks from workers that are silent, or dead and of this machine."""
        jobs, now = self._store.jobs, self._clock.now()
        held = jobs.held()
        if any(task.id in self._running and has_expired(task, now) for task in held):
            self._beat()  # the clock was set, or the machine slept: our own tasks are still ours
        error = error_info(AgentProcessError("its worker went away", hint="the next worker tries it again"))
        for task in held:
            if task.worker is not None and task.worker != self.name and is_gone(task.worker.rpartition(":")[0]):
                self._runner.clear_away(task, before=now)  # first: it is done again if we do not live to say the rest
                self._lose(task, error)
        self._lost += [(task, _LOOKS) for task in jobs.expire(now=now, error=error)]
        for task, _ in self._lost:
            self._runner.clear_away(task)
        self._lost = [(task, looks - 1) for task, looks in self._lost if looks > 1]

    def _find_lost(self) -> None:
        """Looks once for what a worker before us lost and did not live to clear away."""
        for status in ("running", "failed", "completed"):
            for job in self._store.jobs.find(status=status, limit=_RECENT).items:
                again = [task for task in self._store.jobs.tasks(job.id) if task.attempt > 1]
                self._lost += [(task, 1) for task in again]

    def _lose(self, task: Task, error: ErrorInfo) -> None:
        try:
            self._store.jobs.lose(task.id, task.token or "", now=self._clock.now(), error=error)
        except PlayheadError:
            return  # another worker was first
        self._lost.append((task, _LOOKS))

    # stopping

    def _end_all(self, reason: Reason) -> None:
        for running in list(self._running.values()):
            running.control.end(reason)

    def _stop(self) -> None:
        self._end_all("released")
        for running in list(self._running.values()):
            if running.thread is not None:
                running.thread.join(30.0)
        if self._zygotes is not None:
            self._zygotes.close()
