"""Attempts at replays: what they start from, what ends them, and what becomes of those that do not count."""

import dataclasses
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.jobs import Offer
from playhead.core.lifecycle import TaskStatus
from playhead.core.values import ErrorInfo, Origin, Replay, ReplayStatus, Session, SessionStatus
from playhead.engine import lasting
from playhead.engine.attempt import SUPERSEDED, Attempt, supersede_attempts
from playhead.engine.client import Client
from playhead.engine.owner import own_name
from playhead.engine.worker import Settings, Worker
from playhead.errors import LeaseLostError, StoreBusyError

REQUEST = playhead.ReplayCreateRequest(baseline_session_id="last")


def wait_for(found: Callable[[], Any], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def running(worker: Worker) -> Generator[None]:
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.release()
        thread.join(60)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_wait_with_a_time_gives_back_what_still_runs_here(client: Client, desk: Path, repeats: int):
    (desk / "harm").write_text("time.sleep(600)")
    handle = client.replays.create(REQUEST.model_copy(update={"repeats": repeats}))
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match="has not ended after 2 s"):
        handle.wait(2)
    assert time.monotonic() - begun < 120
    assert {(t.status, t.attempt) for t in client.jobs.tasks(handle.job_id)} == {(TaskStatus.PENDING, 0)}


@pytest.mark.parametrize("warm", [True, False])
def test_what_the_import_of_an_agent_set_up_is_there_in_its_replays(
    client: Client, working: Callable[..., Worker], desk: Path, warm: bool
):
    with (desk / "desk.py").open("a") as source:
        source.write(f"\nos.environ['DESK'] = 'set by the import'\nos.chdir({str(desk.parent)!r})\n")
    (desk / "harm").write_text(f"assert os.environ['DESK'] and os.getcwd() == {str(desk.parent)!r}")
    working(warm=warm)
    done = client.replays.create(REQUEST).wait(60, embedded=False)
    assert (done.error, done.status) == (None, ReplayStatus.COMPLETED)


def test_settings_that_changed_count_for_the_next_replay_of_a_warm_worker(
    client: Client, working: Callable[..., Worker], desk: Path
):
    working()

    def project_of_result() -> str | None:
        done = client.replays.create(REQUEST).wait(60, embedded=False)
        assert done.result_session_id is not None
        return client.sessions.get(done.result_session_id).project

    assert project_of_result() == "default"
    time.sleep(0.1)  # a child is forked ahead by then
    (desk / ".playhead" / "config.toml").write_text('project = "changed"')
    assert project_of_result() == "changed"


def test_a_store_that_is_locked_for_a_while_loses_nothing(desk: Path):
    """Longer than the lease, and many times as long as one call waits: as a minute is of the five seconds that a call
    waits where nothing else is set."""
    (desk / ".playhead" / "config.toml").write_text("busy_timeout = 0.2")
    (desk / "harm").write_text(f"open({str(desk / 'runs')!r}, 'w').close(); time.sleep(0.5)")
    with playhead.open() as impatient:
        handle = impatient.replays.create(REQUEST)
        with running(impatient.worker(Settings(concurrency=1, lease=1.0))):
            wait_for((desk / "runs").exists)
            lock = sqlite3.connect(desk / ".playhead" / "store.db", isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusyError):
                impatient.jobs.cancel(handle.job_id)
            time.sleep(2.5)
            lock.execute("ROLLBACK")
            lock.close()
            done = handle.wait(60, embedded=False)
            assert (done.error, done.status) == (None, ReplayStatus.COMPLETED)
            assert list(impatient.store.check()) == []


def test_patience_with_a_locked_store_is_longer_than_a_minute():
    assert lasting.LONGEST_WAIT > 60


# --- sessions of dead attempts ---------------------------------------------------------------------------------------


@pytest.fixture
def gone() -> str:
    """The owner name of a process that has ended."""
    code = "from playhead.engine.owner import own_name; print(own_name())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def recorded(client: Client, replay: Replay, *, status: SessionStatus, owner: str | None = None) -> str:
    """A session of an attempt at a replay, as its process left it."""
    fields: dict[str, Any] = {"id": f"s-{time.time_ns()}", "agent": "desk", "started_at": time.time_ns()}
    known = {"origin": Origin.REPLAY, "replay_id": replay.id, "baseline_id": replay.baseline_session_id}
    client.sessions.begin(session := Session(**fields, **known, owner=owner))
    if status is not SessionStatus.OPEN:
        client.sessions.finish(dataclasses.replace(session, status=status, owner=None, ended_at=time.time_ns()))
    return session.id


def counts(client: Client, session_id: str) -> bool:
    session = client.sessions.get(session_id)
    assert (SUPERSEDED in session.tags) == (session.status is SessionStatus.ABANDONED)
    return SUPERSEDED not in session.tags


def test_while_a_replay_goes_on_only_what_certainly_died_is_marked(client: Client, gone: str):
    replay = client.replays.create(REQUEST).replay
    dead = recorded(client, replay, status=SessionStatus.OPEN, owner=gone)
    runs = recorded(client, replay, status=SessionStatus.OPEN, owner=own_name())
    has_not_told_yet = recorded(client, replay, status=SessionStatus.COMPLETED)
    assert supersede_attempts(client.store, replay.id) == [dead]
    assert [counts(client, id) for id in (dead, runs, has_not_told_yet)] == [False, True, True]


def test_once_a_replay_has_ended_only_its_result_counts(client: Client):
    replay = client.replays.create(REQUEST).replay
    other, result = (recorded(client, replay, status=SessionStatus.COMPLETED) for _ in range(2))
    done = dataclasses.replace(replay, status=ReplayStatus.COMPLETED, result_session_id=result)
    client.store.replays.save(done)
    assert supersede_attempts(client.store, replay.id) == [other]
    assert supersede_attempts(client.store, replay.id) == []
    assert (counts(client, result), counts(client, other)) == (True, False)


def test_the_session_of_an_attempt_is_marked_even_if_who_finds_it_dead_dies_too(
    client: Client, gone: str, monkeypatch: pytest.MonkeyPatch
):
    """A worker died while its replay was being evaluated. The worker that finds out marks before it says that the task
    is lost, so whoever comes after it finds the same again."""
    handle = client.replays.create(REQUEST)
    (task,) = client.store.jobs.claim(Offer(worker=f"{gone}:w"), token="t", now=time.time_ns(), until=2**62)
    session_id = recorded(client, handle.replay, status=SessionStatus.COMPLETED)
    begun = dataclasses.replace(
        handle.replay, status=ReplayStatus.EVALUATING, result_session_id=session_id, started_at=time.time_ns()
    )
    client.store.jobs.start(task.id, "t", now=time.time_ns(), replay=begun)

    class DiedError(BaseException):
        pass

    def dies(*_: object, **__: object) -> None:
        raise DiedError

    with monkeypatch.context() as dying:
        dying.setattr(client.store.jobs, "lose", dies)
        with pytest.raises(DiedError):
            client.worker(Settings(concurrency=1)).run(until_empty=True)
    assert not counts(client, session_id)
    client.worker(Settings(concurrency=1, warm=False)).run(until_empty=True)
    done = handle.refresh()
    assert (done.status, client.jobs.tasks(handle.job_id)[0].attempt) == (ReplayStatus.COMPLETED, 2)
    assert done.result_session_id != session_id
    assert not counts(client, session_id)
    assert client.sessions.verdicts(session_id) == []


def test_who_is_late_is_refused_and_its_session_marked(client: Client):
    handle = client.replays.create(REQUEST)
    offer, now = Offer(worker="w"), time.time_ns()
    (task,) = client.store.jobs.claim(offer, token="first", now=now, until=now + 1)
    client.store.jobs.expire(now=now + 2, error=ErrorInfo(class_name="E", message="late"))
    client.store.jobs.claim(offer, token="second", now=now, until=2**62)
    session_id = recorded(client, handle.replay, status=SessionStatus.COMPLETED)
    late = dataclasses.replace(handle.replay, status=ReplayStatus.COMPLETED, result_session_id=session_id)
    with pytest.raises(LeaseLostError):
        Attempt(client.store, task.id, "first").save(late)
    assert not counts(client, session_id)
    assert handle.refresh().result_session_id is None


def test_a_lease_of_a_clock_that_was_set_back_is_no_lease(client: Client):
    """A worker of a machine whose clock was a day ahead took the task; then the clock was corrected."""
    handle = client.replays.create(REQUEST)
    day = 86_400_000_000_000
    tomorrow = time.time_ns() + day
    client.store.jobs.claim(Offer(worker="elsewhere:1:1:w"), token="t", now=tomorrow, until=tomorrow + 15 * 10**9)
    client.worker(Settings(concurrency=1, warm=False)).run(until_empty=True)
    assert handle.refresh().status is ReplayStatus.COMPLETED


@pytest.mark.parametrize("hours", [-30, 30])
def test_a_clock_that_jumps_while_a_replay_runs_changes_nothing_of_its_end(client: Client, desk: Path, hours: int):
    class Jumping:
        def __init__(self) -> None:
            self.by = 0

        def now(self) -> int:
            return time.time_ns() + self.by

        def tick(self) -> int:
            return time.perf_counter_ns()

    clock = Jumping()
    (desk / "harm").write_text(f"open({str(desk / 'runs')!r}, 'w').close(); time.sleep(2)")
    handle = client.replays.create(REQUEST)
    worker = Worker(client.store, client.project, Settings(concurrency=1, lease=1.0), clock=clock)
    with running(worker):
        wait_for((desk / "runs").exists)
        clock.by = hours * 3_600 * 10**9
        done = handle.wait(60, embedded=False)
    (task,) = client.jobs.tasks(handle.job_id)
    assert (done.status, done.error, task.attempt) == (ReplayStatus.COMPLETED, None, 1)
