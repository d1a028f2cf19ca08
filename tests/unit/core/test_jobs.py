"""What follows from the state of a job's tasks."""

from typing import Any

import pytest

from playhead.core.jobs import (
    HELD,
    Job,
    Task,
    consequences,
    derived,
    has_expired,
    replay_after,
    restarted,
    started,
)
from playhead.core.lifecycle import TASK, JobStatus, OnFailure, TaskStatus
from playhead.core.values import ErrorInfo, LedgerRow, Replay, ReplayStatus
from playhead.errors import ConflictError


def task(name: str, status: TaskStatus = TaskStatus.PENDING, **changes: Any) -> Task:
    return Task(**{"id": name, "job_id": "j", "kind": "replay", "created_at": 0, "status": status, **changes})


def job(**changes: Any) -> Job:
    return Job(**{"id": "j", "kind": "replay", "created_at": 0, "status": JobStatus.RUNNING, **changes})


def statuses(job: Job, *tasks: Task) -> list[str]:
    changed = {t.id: t for t in consequences(job, tasks, 9).tasks}
    return [changed.get(t.id, t).status.value for t in tasks]


def test_cancellation_runs_through_chains_of_needs() -> None:
    chain = [
        task("a", TaskStatus.ABANDONED, on_failure=OnFailure.CONTINUE),
        task("b", needs=("a",)),
        task("c", needs=("b",)),
        task("d", needs=("c",)),
        task("free"),
    ]
    assert statuses(job(), *chain) == ["abandoned", "canceled", "canceled", "canceled", "pending"]


def test_an_abort_asks_held_tasks_to_end() -> None:
    tasks = [task("a", TaskStatus.FAILED), task("b", TaskStatus.RUNNING), task("c", TaskStatus.CLAIMED)]
    found = consequences(job(), tasks, 9)
    assert [(t.id, t.cancel, t.status.value) for t in found.tasks] == [("b", True, "running"), ("c", True, "claimed")]
    assert (found.job.status, found.job.ended_at) == (JobStatus.FAILED, 9)


def test_nothing_follows_twice() -> None:
    tasks = [task("a", TaskStatus.FAILED), task("b", TaskStatus.RUNNING, cancel=True)]
    first = consequences(job(), tasks, 9)
    assert first.tasks == ()
    assert consequences(first.job, tasks, 10).job == first.job


def test_a_job_whose_only_task_was_given_back_is_still_running() -> None:
    assert derived(job(), [task("a")], 9).status is JobStatus.RUNNING


@pytest.mark.parametrize("status", list(TaskStatus))
def test_only_held_tasks_expire(status: TaskStatus) -> None:
    assert has_expired(task("a", status, lease_until=5), 5) == (status in HELD)
    assert not has_expired(task("a", status, lease_until=6), 5)


@pytest.mark.parametrize("status", [s for s in TaskStatus if s not in HELD])
def test_only_a_claimed_task_starts(status: TaskStatus) -> None:
    with pytest.raises(ConflictError):
        started(task("a", status), 1)


@pytest.mark.parametrize(
    ("status", "then"),
    [
        (TaskStatus.CANCELED, ReplayStatus.CANCELED),
        (TaskStatus.FAILED, ReplayStatus.FAILED),
        (TaskStatus.TIMED_OUT, ReplayStatus.FAILED),
        (TaskStatus.ABANDONED, ReplayStatus.FAILED),
        (TaskStatus.COMPLETED, None),
        (TaskStatus.PENDING, None),
        (TaskStatus.RUNNING, None),
    ],
)
def test_a_replay_left_open_ends_as_its_task_did(status: TaskStatus, then: ReplayStatus | None) -> None:
    error = ErrorInfo(class_name="E")
    open_replay = Replay(id="r", baseline_session_id="b", created_at=0, status=ReplayStatus.RUNNING)
    found = replay_after(task("a", status, error=error, ended_at=7 if TASK.is_final(status) else None), open_replay)
    assert (found.status if found else None) is then
    if then is ReplayStatus.FAILED and found is not None:
        assert (found.error, found.ended_at) == (error, 7)
    done = Replay(id="r", baseline_session_id="b", created_at=0, status=ReplayStatus.COMPLETED)
    assert replay_after(task("a", status), done) is None


def test_a_replay_that_starts_again_keeps_nothing_of_the_attempt_before() -> None:
    before = Replay(
        id="r", baseline_session_id="b", created_at=0, status=ReplayStatus.EVALUATING, result_session_id="s",
        ledger=(LedgerRow(kind="tool", by="served"),), label="kept",
    )  # fmt: skip
    again = restarted(before, 5)
    assert (again.status, again.started_at, again.result_session_id, again.ledger) == (
        ReplayStatus.RUNNING,
        5,
        None,
        (),
    )
    assert again.label == "kept"
