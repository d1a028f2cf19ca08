"""``playhead job list | get | cancel`` and ``agent register``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.core.jobs import Job, Offer, Task
from playhead.core.lifecycle import TaskEvent
from playhead.core.values import ErrorInfo
from playhead.errors import NotFoundError, UsageError
from playhead.store.memory import MemoryStore

from .conftest import START, Shown

Run = Callable[..., Shown]
JOB = "0190dddd-0000-7000-8000-000000000001"


@pytest.fixture
def job(store: MemoryStore) -> Job:
    task = Task(id="task-1", job_id=JOB, kind="replay", created_at=START, payload={"replay_id": "replay-1"})
    return store.jobs.create(Job(id=JOB, kind="replay", created_at=START, label="nightly"), [task]).job


def test_jobs_are_listed(command: Run, job: Job) -> None:
    shown = command("job list", "--status", "pending")
    assert [item["id"] for item in shown.json["items"]] == [job.id]
    assert "nightly" in shown.text
    assert command("job list", "--kind", "import").json["items"] == []


def test_a_job_shows_what_went_wrong_with_its_tasks(command: Run, store: MemoryStore, job: Job) -> None:
    store.jobs.claim(Offer(worker="w"), token="t", now=START, until=START + 10)
    store.jobs.start("task-1", "t", now=START)
    store.jobs.end("task-1", "t", TaskEvent.FAIL, now=START, error=ErrorInfo(class_name="E", message="it broke"))
    shown = command("job get", JOB[-6:], "--tasks")
    assert shown.json["status"] == "failed"
    assert shown.json["tasks"][0]["error"]["message"] == "it broke"
    for part in ("failed", "replay-1", "it broke"):
        assert part in shown.text
    assert "tasks" not in command("job get").json


def test_a_job_is_canceled(command: Run, job: Job) -> None:
    assert command("job cancel", job.id).json["status"] == "canceled"
    assert command("job watch", job.id).result.exit_code == 130
    with pytest.raises(NotFoundError):
        command("job cancel", "ffffffff")


def test_an_agent_is_registered_once_and_a_change_is_a_new_version(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").touch()
    words = ("agent register", "shop", "--entry-point", "shop.py:run", "--env", "REGION", "--memory", "512MB")
    first, again = command(*words), command(*words)
    assert (first.json["created"], again.json["created"]) == (True, False)
    assert first.json["id"] == again.json["id"]
    spec = first.json["run_spec"]
    assert (spec["working_dir"], spec["memory"], spec["env"]) == (str(tmp_path), 512 << 20, ["REGION"])
    assert command(*words, "--timeout", "9").json["number"] == 2


def test_an_agent_may_be_a_program(command: Run, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    shown = command("agent register", "other", "--command", "./go --fast", "--working-dir", str(tmp_path))
    assert shown.json["run_spec"]["command"] == [str(tmp_path / "go"), "--fast"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "either"),
        (("--entry-point", "a:b", "--command", "ls"), "either"),
        (("--entry-point", "nothing"), "entry point"),
        (("--entry-point", "missing.py:run"), "no file"),
        (("--command", "no-such-program-anywhere"), "no program"),
        (("--command", "'open"), "cannot be read"),
        (("--entry-point", "a:b", "--working-dir", "/no/such/folder"), "no folder"),
        (("--entry-point", "a:b", "--env", "KEY=value"), "not the name"),
        (("--entry-point", "a:b", "--timeout", "0"), "more than 0"),
        (("--entry-point", "a:b", "--memory", "lots"), "not a size"),
    ],
)
def test_what_cannot_be_a_run_spec_is_refused(command: Run, words: tuple[str, ...], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        command("agent register", "shop", *words)
