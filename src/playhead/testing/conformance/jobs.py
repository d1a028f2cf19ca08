"""Jobs and tasks: what every store must do with them. Time is a number that the tests pass in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from playhead.core.jobs import LONGEST_LEASE, Job, Offer, Task
from playhead.core.lifecycle import MAX_ATTEMPTS, JobStatus, OnFailure, TaskEvent, TaskStatus
from playhead.core.values import ErrorInfo, Replay, ReplayStatus
from playhead.errors import AmbiguousIdError, ConflictError, LeaseLostError, NotFoundError, UsageError
from playhead.store.ports import JobMade, Store
from playhead.testing.conformance.builders import START

GONE = ErrorInfo(class_name="AgentProcessError", message="the worker went away", code="agent_process")
SECOND = 1_000_000_000
ANY = Offer(worker="w", limit=100)


def job_id(number: int = 1) -> str:
    return f"0197c0de-2222-7000-8000-{number:012x}"


def a_job(number: int = 1, **changes: Any) -> Job:
    values: dict[str, Any] = {"id": job_id(number), "kind": "replay", "created_at": START + number}
    return Job(**{**values, **changes})


def a_task(name: str = "t1", job: int = 1, **changes: Any) -> Task:
    values: dict[str, Any] = {"id": name, "job_id": job_id(job), "kind": "replay", "created_at": START}
    return Task(**{**values, **changes})


def a_replay(name: str = "r1", job: int = 1, **changes: Any) -> Replay:
    values: dict[str, Any] = {"id": name, "baseline_session_id": "b", "created_at": START, "job_id": job_id(job)}
    return Replay(**{**values, **changes})


def made(store: Store, tasks: Sequence[Task], replays: Sequence[Replay] = (), number: int = 1) -> JobMade:
    return store.jobs.create(a_job(number), tasks, replays)


def claim(
    store: Store, offer: Offer = ANY, *, token: str = "k", now: int = START, until: int | None = None
) -> list[str]:
    taken = store.jobs.claim(offer, token=token, now=now, until=now + SECOND if until is None else until)
    return [task.id for task in taken]


def run(store: Store, *names: str, token: str = "k") -> None:
    for name in names:
        store.jobs.start(name, token, now=START + 1)


class JobsMade:
    def test_a_job_comes_back_as_it_was_made(self, store: Store) -> None:
        task = a_task(
            payload={"replay_id": "r1", "deep": [1, {"x": None}]}, priority=3, agent_version="v1", labels=("gpu", "eu"),
            on_failure=OnFailure.CONTINUE,
        )  # fmt: skip
        other = a_task("t2", needs=("t1",))
        found = store.jobs.create(a_job(label="nightly"), [task, other], [a_replay()])
        assert found == JobMade(job=a_job(label="nightly"), tasks=(task, other), replays=(a_replay(),))
        assert store.jobs.get(job_id()) == found.job
        assert store.jobs.tasks(job_id()) == [task, other]
        assert store.jobs.task("t2") == other
        assert store.replays.get("r1") == a_replay()

    def test_a_known_idempotency_key_makes_nothing(self, store: Store) -> None:
        first = store.jobs.create(
            a_job(idempotency_key="k"), [a_task(payload={"replay_id": "r1"})], [a_replay(idempotency_key="k")]
        )
        again = store.jobs.create(
            a_job(2, idempotency_key="k"), [a_task("t2", job=2)], [a_replay("r2", job=2, idempotency_key="k")]
        )
        assert again == replace(first, created=False)
        assert len(store.jobs.find().items) == len(store.replays.find().items) == 1

    def test_a_job_that_cannot_be_stored_whole_is_not_stored_at_all(self, store: Store) -> None:
        store.replays.create(a_replay("r2", job=9))
        with pytest.raises(ConflictError):
            made(store, [a_task()], [a_replay("r1"), a_replay("r2")])
        assert store.jobs.find().items == ()
        assert [replay.id for replay in store.replays.find().items] == ["r2"]

    @pytest.mark.parametrize(
        "tasks",
        [
            [a_task(job=2)],
            [a_task(needs=("nobody",))],
            [a_task(needs=("t1",))],
            [a_task(), a_task()],
        ],
    )
    def test_tasks_that_do_not_belong_together_are_refused(self, store: Store, tasks: list[Task]) -> None:
        with pytest.raises(UsageError):
            made(store, tasks)

    def test_jobs_are_listed_newest_first_and_found_by_parts_of_their_id(self, store: Store) -> None:
        for number in range(1, 5):
            store.jobs.create(a_job(number, kind="replay" if number % 2 else "import"), [a_task(f"t{number}", number)])
        page = store.jobs.find(limit=3)
        assert [job.id for job in page.items] == [job_id(n) for n in (4, 3, 2)]
        assert [job.id for job in store.jobs.find(cursor=page.next_cursor).items] == [job_id(1)]
        assert [job.id for job in store.jobs.find(kind="import").items] == [job_id(4), job_id(2)]
        assert store.jobs.find(status="running").items == ()
        assert store.jobs.resolve("last~1") == job_id(3)
        assert store.jobs.resolve(job_id(2)[-12:]) == job_id(2)
        with pytest.raises(AmbiguousIdError):
            store.jobs.resolve(job_id(2)[:8])
        for lost in (lambda: store.jobs.get("x"), lambda: store.jobs.task("x"), lambda: store.jobs.cancel("x", now=1)):
            with pytest.raises(NotFoundError):
                lost()


class JobsClaimed:
    def test_the_most_urgent_goes_first_then_the_oldest(self, store: Store) -> None:
        made(
            store,
            [
                a_task("late", created_at=START + 2),
                a_task("early", created_at=START + 1),
                a_task("urgent", created_at=START + 3, priority=1),
            ],
        )
        assert claim(store, Offer(worker="w", limit=2)) == ["urgent", "early"]
        assert claim(store, token="k2") == ["late"]
        assert claim(store, token="k3") == []

    @pytest.mark.parametrize(
        ("offer", "found"),
        [
            (Offer(worker="w", limit=9), ["any", "v1", "v2"]),
            (Offer(worker="w", limit=9, versions=("v1",)), ["v1"]),
            (Offer(worker="w", limit=9, versions=()), []),
            (Offer(worker="w", limit=9, labels=("gpu", "eu", "more")), ["any", "gpu", "v1", "v2"]),
            (Offer(worker="w", limit=9, labels=("eu",)), ["any", "v1", "v2"]),
            (Offer(worker="w", limit=9, kinds=("import",)), []),
            (Offer(worker="w", limit=9, job_id=job_id(2)), []),
            (Offer(worker="w", limit=0), []),
        ],
    )
    def test_a_worker_gets_only_what_it_can_run(self, store: Store, offer: Offer, found: list[str]) -> None:
        made(
            store,
            [
                a_task("any"),
                a_task("gpu", labels=("gpu", "eu")),
                a_task("v1", agent_version="v1"),
                a_task("v2", agent_version="v2"),
            ],
        )
        assert store.jobs.pending(offer) == bool(found or offer.limit == 0)
        assert claim(store, offer) == found

    def test_a_claim_takes_a_lease_and_sets_the_job_running(self, store: Store) -> None:
        made(store, [a_task()])
        (task,) = store.jobs.claim(Offer(worker="me"), token="k", now=START + 5, until=START + 9)
        assert (task.status, task.attempt, task.worker, task.token) == (TaskStatus.CLAIMED, 1, "me", "k")
        assert (task.claimed_at, task.lease_until) == (START + 5, START + 9)
        assert store.jobs.task("t1") == task
        assert store.jobs.get(job_id()).status is JobStatus.RUNNING
        assert store.jobs.held() == [task]

    def test_a_claim_that_is_sent_twice_takes_no_more(self, store: Store) -> None:
        made(store, [a_task("a"), a_task("b")])
        one = Offer(worker="w", limit=1)
        assert claim(store, one) == claim(store, one) == ["a"]
        assert store.jobs.task("a").attempt == 1

    def test_a_task_waits_for_what_it_needs(self, store: Store) -> None:
        made(store, [a_task("a"), a_task("b", needs=("a",)), a_task("c", needs=("a", "b"))])
        assert claim(store, token="1") == ["a"]
        run(store, "a", token="1")
        assert claim(store, token="2") == []
        store.jobs.end("a", "1", TaskEvent.COMPLETE, now=START + 2)
        assert claim(store, token="3") == ["b"]

    @pytest.mark.parametrize(
        ("rule", "dependent", "independent", "job"),
        [
            (OnFailure.ABORT, TaskStatus.CANCELED, TaskStatus.CANCELED, JobStatus.FAILED),
            (OnFailure.CONTINUE, TaskStatus.CANCELED, TaskStatus.PENDING, JobStatus.RUNNING),
            (OnFailure.IGNORE, TaskStatus.PENDING, TaskStatus.PENDING, JobStatus.RUNNING),
        ],
    )
    def test_what_a_failure_does_to_the_rest(
        self, store: Store, rule: OnFailure, dependent: TaskStatus, independent: TaskStatus, job: JobStatus
    ) -> None:
        made(store, [a_task("a", on_failure=rule), a_task("b", needs=("a",)), a_task("c")])
        claim(store, Offer(worker="w", limit=1))
        run(store, "a")
        store.jobs.end("a", "k", TaskEvent.FAIL, now=START + 2, error=GONE)
        assert [task.status for task in store.jobs.tasks(job_id())] == [TaskStatus.FAILED, dependent, independent]
        assert store.jobs.get(job_id()).status is job
        assert store.jobs.task("a").error == GONE

    def test_pulse_moves_when_another_connection_writes(self, store: Store) -> None:
        before = store.jobs.pulse()
        assert store.jobs.pulse() == before
        made(store, [a_task()])
        assert store.jobs.pulse() != before


class JobsFenced:
    @pytest.fixture
    def replay(self, store: Store) -> Replay:
        """A replay whose task is claimed and running under the token ``k``."""
        made(store, [a_task(payload={"replay_id": "r1"})], [a_replay()])
        claim(store)
        running = a_replay(status=ReplayStatus.RUNNING, started_at=START)
        store.jobs.start("t1", "k", now=START + 1, replay=running)
        return running

    def test_a_replay_ends_with_its_task(self, store: Store, replay: Replay) -> None:
        assert store.replays.get("r1") == replay
        judged = replace(replay, status=ReplayStatus.EVALUATING, result_session_id="s")
        store.jobs.save_replay("t1", "k", judged)
        assert store.replays.get("r1") == judged
        done = replace(judged, status=ReplayStatus.COMPLETED, ended_at=START + 9)
        task = store.jobs.end("t1", "k", TaskEvent.COMPLETE, now=START + 9, result={"n": 1}, replay=done)
        assert (task.status, task.result, task.lease_until) == (TaskStatus.COMPLETED, {"n": 1}, None)
        assert store.replays.get("r1") == done
        job = store.jobs.get(job_id())
        assert (job.status, job.ended_at) == (JobStatus.COMPLETED, START + 9)

    def test_whatever_is_sent_twice_has_no_more_effect(self, store: Store, replay: Replay) -> None:
        assert store.jobs.start("t1", "k", now=START + 7).started_at == START + 1
        done = replace(replay, status=ReplayStatus.FAILED, ended_at=START + 2)
        first = store.jobs.end("t1", "k", TaskEvent.FAIL, now=START + 2, error=GONE, replay=done)
        late = replace(replay, status=ReplayStatus.COMPLETED)
        assert store.jobs.end("t1", "k", TaskEvent.COMPLETE, now=START + 3, replay=late) == first
        assert store.jobs.lose("t1", "k", now=START + 3, error=GONE) == first
        assert store.replays.get("r1") == done

    def test_a_late_worker_is_refused_in_everything(self, store: Store, replay: Replay) -> None:
        assert [t.status for t in store.jobs.expire(now=START + 2 * SECOND, error=GONE)] == [TaskStatus.PENDING]
        assert claim(store, token="k2", now=START + 2 * SECOND) == ["t1"]
        done = replace(replay, status=ReplayStatus.COMPLETED)
        late = [
            lambda: store.jobs.start("t1", "k", now=1, replay=done),
            lambda: store.jobs.save_replay("t1", "k", done),
            lambda: store.jobs.end("t1", "k", TaskEvent.COMPLETE, now=1, replay=done),
            lambda: store.jobs.end("t1", "k", TaskEvent.RELEASE, now=1),
            lambda: store.jobs.lose("t1", "k", now=1, error=GONE),
        ]
        for word in late:
            with pytest.raises(LeaseLostError):
                word()
        assert store.jobs.heartbeat({"t1": "k", "nobody": "k"}, until=START) == {"t1": "lost", "nobody": "lost"}
        assert store.replays.get("r1") == replay
        assert (store.jobs.task("t1").token, store.jobs.task("t1").attempt) == ("k2", 2)

    def test_a_worker_that_is_late_but_was_not_replaced_still_counts(self, store: Store, replay: Replay) -> None:
        done = replace(replay, status=ReplayStatus.COMPLETED)
        task = store.jobs.end("t1", "k", TaskEvent.COMPLETE, now=START + 100 * SECOND, replay=done)
        assert task.status is TaskStatus.COMPLETED

    def test_a_heartbeat_keeps_the_lease(self, store: Store, replay: Replay) -> None:
        assert store.jobs.heartbeat({"t1": "k"}, until=START + 5 * SECOND) == {"t1": "ok"}
        assert store.jobs.expire(now=START + 2 * SECOND, error=GONE) == []
        assert len(store.jobs.expire(now=START + 6 * SECOND, error=GONE)) == 1

    def test_attempts_after_lost_workers_are_limited_and_the_replay_then_fails(
        self, store: Store, replay: Replay
    ) -> None:
        now = START
        for attempt in range(1, MAX_ATTEMPTS + 1):
            assert store.jobs.task("t1").attempt == attempt
            now += 2 * SECOND
            store.jobs.expire(now=now, error=GONE)
            claim(store, token=f"again{attempt}", now=now)
        task = store.jobs.task("t1")
        assert (task.status, task.error) == (TaskStatus.ABANDONED, GONE)
        failed = store.replays.get("r1")
        assert (failed.status, failed.error, failed.ended_at) == (ReplayStatus.FAILED, GONE, now)
        assert store.jobs.get(job_id()).status is JobStatus.FAILED

    def test_a_release_uses_up_no_attempt(self, store: Store, replay: Replay) -> None:
        task = store.jobs.end("t1", "k", TaskEvent.RELEASE, now=START + 3)
        assert (task.status, task.attempt, task.token, task.worker) == (TaskStatus.PENDING, 0, None, None)
        assert claim(store, token="k2") == ["t1"]
        assert store.jobs.task("t1").attempt == 1

    def test_a_clock_that_jumps_ahead_costs_an_attempt_and_no_result(self, store: Store, replay: Replay) -> None:
        jump = 1800 * SECOND
        assert len(store.jobs.expire(now=START + jump, error=GONE)) == 1
        assert claim(store, token="k2", now=START + jump) == ["t1"]
        assert store.jobs.expire(now=START + 2, error=GONE) == [], "the clock is back; the new lease is believed"
        run(store, "t1", token="k2")
        assert store.jobs.end("t1", "k2", TaskEvent.COMPLETE, now=START + 3).status is TaskStatus.COMPLETED

    def test_a_lease_that_a_clock_set_back_made_endless_ends(self, store: Store, replay: Replay) -> None:
        store.jobs.heartbeat({"t1": "k"}, until=START + LONGEST_LEASE + 10 * SECOND)
        (task,) = store.jobs.expire(now=START, error=GONE)
        assert task.status is TaskStatus.PENDING


class JobsCanceled:
    def test_pending_tasks_and_their_replays_end_at_once(self, store: Store) -> None:
        made(store, [a_task(payload={"replay_id": "r1"})], [a_replay()])
        job = store.jobs.cancel(job_id(), now=START + 4)
        assert (job.status, job.cancel, job.ended_at) == (JobStatus.CANCELED, True, START + 4)
        assert store.jobs.task("t1").status is TaskStatus.CANCELED
        replay = store.replays.get("r1")
        assert (replay.status, replay.ended_at) == (ReplayStatus.CANCELED, START + 4)
        assert claim(store) == []
        assert store.jobs.cancel(job_id(), now=START + 9) == job

    def test_a_running_task_is_told_with_the_heartbeat(self, store: Store) -> None:
        made(store, [a_task(payload={"replay_id": "r1"}), a_task("t2")], [a_replay()])
        claim(store, Offer(worker="w", limit=1))
        run(store, "t1")
        assert store.jobs.cancel(job_id(), now=START + 4).status is JobStatus.RUNNING
        assert store.jobs.heartbeat({"t1": "k"}, until=START + SECOND) == {"t1": "cancel"}
        store.jobs.end("t1", "k", TaskEvent.CANCEL, now=START + 5)
        assert store.replays.get("r1").status is ReplayStatus.CANCELED
        assert store.jobs.get(job_id()).status is JobStatus.CANCELED

    @pytest.mark.parametrize("lost", [True, False])
    def test_a_canceled_task_whose_worker_is_gone_is_not_tried_again(self, store: Store, lost: bool) -> None:
        made(store, [a_task()])
        claim(store)
        store.jobs.cancel(job_id(), now=START + 4)
        if lost:
            store.jobs.expire(now=START + 2 * SECOND, error=GONE)
        else:
            store.jobs.end("t1", "k", TaskEvent.RELEASE, now=START + 5)
        assert store.jobs.task("t1").status is TaskStatus.CANCELED
        assert store.jobs.get(job_id()).status is JobStatus.CANCELED

    def test_a_result_that_came_before_the_word_counts(self, store: Store) -> None:
        made(store, [a_task()])
        claim(store)
        run(store, "t1")
        store.jobs.cancel(job_id(), now=START + 4)
        store.jobs.end("t1", "k", TaskEvent.COMPLETE, now=START + 5)
        assert store.jobs.get(job_id()).status is JobStatus.COMPLETED
        assert list(store.check()) == []
