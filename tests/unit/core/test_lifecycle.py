"""The tables of statuses."""

from enum import StrEnum
from typing import Any

import pytest

from playhead.core.lifecycle import (
    EXPERIMENT,
    JOB,
    MAX_ATTEMPTS,
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
from playhead.core.values import ReplayStatus
from playhead.errors import ConflictError

TABLES = [(REPLAY, ReplayStatus), (TASK, TaskStatus), (JOB, JobStatus), (EXPERIMENT, JobStatus)]


def test_a_replay_goes_from_pending_to_completed() -> None:
    state = REPLAY.initial
    for event in (ReplayEvent.START, ReplayEvent.EVALUATE, ReplayEvent.COMPLETE):
        state = advance(REPLAY, state, event)
    assert state is ReplayStatus.COMPLETED


@pytest.mark.parametrize("state", [ReplayStatus.PENDING, ReplayStatus.RUNNING, ReplayStatus.EVALUATING])
def test_a_replay_can_fail_or_be_canceled_before_its_end(state: ReplayStatus) -> None:
    assert advance(REPLAY, state, ReplayEvent.FAIL) is ReplayStatus.FAILED
    assert advance(REPLAY, state, ReplayEvent.CANCEL) is ReplayStatus.CANCELED


@pytest.mark.parametrize("state", [ReplayStatus.COMPLETED, ReplayStatus.FAILED, ReplayStatus.CANCELED])
def test_nothing_leads_on_from_an_end(state: ReplayStatus) -> None:
    assert REPLAY.is_final(state)
    for event in ReplayEvent:
        with pytest.raises(ConflictError, match=f"that is {state} cannot {event}") as caught:
            advance(REPLAY, state, event)
        assert "final" in str(caught.value.hint)


def test_what_is_possible_is_said() -> None:
    with pytest.raises(ConflictError) as caught:
        advance(TASK, TaskStatus.PENDING, TaskEvent.COMPLETE)
    assert caught.value.hint == "possible now: cancel, claim"


@pytest.mark.parametrize(("table", "statuses"), TABLES, ids=lambda t: getattr(t, "of", ""))
def test_a_table_has_a_row_for_each_status_and_reaches_each(table: Any, statuses: type[StrEnum]) -> None:
    assert set(table.rows) == set(statuses)
    reached, todo = {table.initial}, [table.initial]
    while todo:
        for after in table.rows[todo.pop()].values():
            if after not in reached:
                reached.add(after)
                todo.append(after)
    assert reached == set(statuses)


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        REPLAY.rows[ReplayStatus.FAILED] = {}  # type: ignore[index]


def test_a_dead_workers_task_is_claimed_again_until_its_attempts_are_used() -> None:
    state, attempt = TASK.initial, 0
    while state is TaskStatus.PENDING:
        state = advance(TASK, state, TaskEvent.CLAIM)
        state = advance(TASK, state, TaskEvent.START)
        attempt += 1
        state = advance(TASK, state, lost(attempt))
    assert (state, attempt) == (TaskStatus.ABANDONED, MAX_ATTEMPTS)


def test_a_draining_worker_gives_its_task_back() -> None:
    for state in (TaskStatus.CLAIMED, TaskStatus.RUNNING):
        assert advance(TASK, state, TaskEvent.RELEASE) is TaskStatus.PENDING


def test_a_finished_experiment_can_be_resumed_and_a_finished_job_cannot() -> None:
    assert advance(EXPERIMENT, JobStatus.COMPLETED, JobEvent.RESUME) is JobStatus.RUNNING
    with pytest.raises(ConflictError):
        advance(JOB, JobStatus.COMPLETED, JobEvent.RESUME)
    assert advance(JOB, JobStatus.FAILED, JobEvent.RESUME) is JobStatus.RUNNING


DONE, FAILED, WAITING, RUNNING = TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.PENDING, TaskStatus.RUNNING


@pytest.mark.parametrize(
    ("tasks", "status"),
    [
        ([], JobStatus.COMPLETED),
        ([(WAITING, "continue")], JobStatus.PENDING),
        ([(WAITING, "continue"), (DONE, "continue")], JobStatus.RUNNING),
        ([(RUNNING, "continue"), (WAITING, "continue")], JobStatus.RUNNING),
        ([(DONE, "continue")], JobStatus.COMPLETED),
        ([(FAILED, "continue"), (RUNNING, "continue")], JobStatus.RUNNING),
        ([(FAILED, "continue"), (DONE, "continue")], JobStatus.FAILED),
        ([(FAILED, "abort"), (RUNNING, "continue")], JobStatus.FAILED),
        ([(FAILED, "ignore"), (DONE, "continue")], JobStatus.COMPLETED),
        ([(TaskStatus.TIMED_OUT, "continue")], JobStatus.FAILED),
        ([(TaskStatus.ABANDONED, "continue")], JobStatus.FAILED),
        ([(TaskStatus.CANCELED, "continue"), (DONE, "continue")], JobStatus.CANCELED),
        ([(TaskStatus.CANCELED, "continue"), (FAILED, "continue")], JobStatus.FAILED),
    ],
)
def test_a_job_has_the_status_of_its_tasks(tasks: list[tuple[TaskStatus, str]], status: JobStatus) -> None:
    assert job_status((s, OnFailure(rule)) for s, rule in tasks) is status
