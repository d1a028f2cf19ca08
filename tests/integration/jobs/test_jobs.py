"""Replays as jobs: clients, workers, what is started how, and what is bad about agents and run specs."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.lifecycle import JobStatus, TaskStatus
from playhead.core.values import AgentVersion, FidelityKind, ReplayStatus, RunSpec, SessionStatus
from playhead.engine.client import Client
from playhead.engine.worker import Worker
from playhead.errors import NotFoundError, RefusedError


def harm(project: Path, code: str) -> None:
    (project / "harm").write_text(textwrap.dedent(code))


def request(**fields: Any) -> playhead.ReplayCreateRequest:
    return playhead.ReplayCreateRequest(baseline_session_id="last", **fields)


def test_a_create_stores_a_replay_and_a_job_and_runs_nothing(client: Client):
    handle = client.replays.create(request())
    assert (handle.status, handle.result_session_id) == (ReplayStatus.PENDING, None)
    job = client.jobs.get(handle.job_id)
    assert (job.status, client.replays.get(handle.id).job_id) == (JobStatus.PENDING, job.id)
    (task,) = client.jobs.tasks(job.id)
    assert task.payload["run_spec"]["working_dir"] == str(Path.cwd())


def test_a_create_that_is_retried_makes_nothing_twice(client: Client):
    first = client.replays.create(request(idempotency_key="k", repeats=2))
    again = client.replays.create(request(idempotency_key="k", repeats=2))
    assert (first.created, again.created) == (True, False)
    assert [r.id for r in first.replays] == [r.id for r in again.replays]
    assert (len(client.replays.list().items), len(client.jobs.list().items)) == (2, 1)


def test_a_warm_worker_forks_replays_of_one_agent(client: Client, working: Callable[..., Worker]):
    working(concurrency=2)
    handle = client.replays.create(request(repeats=4)).wait(60, embedded=False)
    assert {r.status for r in handle.replays} == {ReplayStatus.COMPLETED}
    assert {r.fidelity.kind for r in handle.replays if r.fidelity} == {FidelityKind.FAITHFUL}
    assert {task.result["started"] for task in client.jobs.tasks(handle.job_id)} == {"fork"}
    assert len({r.result_session_id for r in handle.replays}) == 4
    assert client.jobs.get(handle.job_id).status is JobStatus.COMPLETED
    assert list(client.store.check()) == []


def test_an_agent_whose_code_changed_is_imported_again(client: Client, working: Callable[..., Worker], desk: Path):
    working()
    assert client.replays.create(request()).wait(60, embedded=False).status is ReplayStatus.COMPLETED
    source = (desk / "desk.py").read_text().replace("look(3)", "look(4)")
    (desk / "desk.py").write_text(source)
    os.utime(desk / "desk.py", ns=(1, time.time_ns() + 10**10))  # Python tells sources apart by whole seconds
    done = client.replays.create(request()).wait(60, embedded=False)
    assert done.error is not None
    assert done.error.code == "miss"


def test_an_agent_that_starts_threads_runs_in_fresh_processes_and_the_task_says_why(
    client: Client, working: Callable[..., Worker], desk: Path
):
    with (desk / "desk.py").open("a") as source:
        source.write("\nthreading.Thread(target=time.sleep, args=(100,), name='poller', daemon=True).start()\n")
    working()
    handle = client.replays.create(request()).wait(60, embedded=False)
    assert handle.status is ReplayStatus.COMPLETED
    (task,) = client.jobs.tasks(handle.job_id)
    assert task.result["started"] == "process"
    assert "poller" in task.result["why"]


def test_a_worker_that_drains_ends_what_runs_and_takes_nothing_more(
    client: Client, working: Callable[..., Worker], desk: Path
):
    harm(desk, "time.sleep(1)")
    worker = working()
    first, second = client.replays.create(request()), client.replays.create(request())
    wait_for(lambda: client.jobs.tasks(first.job_id)[0].status is TaskStatus.RUNNING)
    worker.drain()
    assert first.wait(30, embedded=False).status is ReplayStatus.COMPLETED
    assert second.refresh().status is ReplayStatus.PENDING


def test_a_worker_that_is_told_twice_gives_its_task_back(client: Client, working: Callable[..., Worker], desk: Path):
    harm(desk, "time.sleep(60)")
    worker = working()
    handle = client.replays.create(request())
    wait_for(lambda: client.jobs.tasks(handle.job_id)[0].status is TaskStatus.RUNNING)
    worker.release()
    wait_for(lambda: client.jobs.tasks(handle.job_id)[0].status is TaskStatus.PENDING)
    assert client.jobs.tasks(handle.job_id)[0].attempt == 0
    (desk / "harm").unlink()
    working()
    assert handle.wait(30, embedded=False).status is ReplayStatus.COMPLETED


@pytest.mark.parametrize("warm", [True, False])
def test_a_cancel_ends_what_runs(client: Client, working: Callable[..., Worker], desk: Path, warm: bool):
    harm(desk, f"open({str(desk / 'runs')!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    working(warm=warm)
    handle = client.replays.create(request())
    wait_for((desk / "runs").exists)
    client.jobs.cancel(handle.job_id)
    assert handle.wait(30, embedded=False).status is ReplayStatus.CANCELED
    assert client.jobs.get(handle.job_id).status is JobStatus.CANCELED
    with pytest.raises(ProcessLookupError):
        os.kill(int((desk / "runs").read_text()), 0)


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({path!r}, "w").write(str(os.getpid()))
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    os._exit(0)
while not os.path.exists({path!r}):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("then", ["", "time.sleep(60)"])
def test_daemons_of_an_agent_end_with_its_replay(
    client: Client, working: Callable[..., Worker], desk: Path, warm: bool, then: str
):
    harm(desk, DAEMON.format(path=str(desk / "daemon")) + then)
    working(warm=warm)
    client.replays.create(request(timeout=4)).wait(60, embedded=False)
    pid = int((desk / "daemon").read_text())
    wait_for(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


HOG = """
hold = "x = bytearray(10**8); import time; time.sleep(60)"
held = []
for _ in range(3):
    held.append(subprocess.Popen([sys.executable, "-c", hold]))
time.sleep(60)
"""


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize(
    ("code", "limits", "words"),
    [
        ("import signal; signal.signal(15, signal.SIG_IGN); time.sleep(60)", {"timeout": 2.0}, "ran out of time"),
        ("while True: os.write(1, b'x' * 65536)", {"output": 1_000_000}, "printed more than"),
        ("os._exit(7)", {}, "exit code 7"),
        ("os.kill(os.getpid(), 11)", {}, "SIGSEGV"),
        (HOG, {"memory": 200_000_000}, "bytes of memory"),
    ],
)  # fmt: skip
def test_an_agent_that_goes_beyond_its_limits_fails_its_replay_only(
    client: Client,
    working: Callable[..., Worker],
    desk: Path,
    code: str,
    limits: dict[str, Any],
    words: str,
    warm: bool,
):
    harm(desk, code)
    working(warm=warm)
    spec = RunSpec(entry_point="desk:run", working_dir=str(desk), **limits)
    done = client.replays.create(request(), run_spec=spec).wait(60, embedded=False)
    assert done.status is ReplayStatus.FAILED
    assert done.error is not None
    assert words in done.error.message
    assert done.error.code == "agent_process"
    (task,) = client.jobs.tasks(done.job_id)
    assert (task.attempt, task.error and task.error.message) == (1, done.error.message)
    sessions = client.sessions.find(playhead.SessionQuery(baseline_id=done.baseline_session_id)).items
    assert {session.status for session in sessions} <= {SessionStatus.ABANDONED}


def test_an_allocation_beyond_the_limit_fails_in_the_agent(client: Client, working: Callable[..., Worker], desk: Path):
    harm(desk, "bytearray(4 * 10**9)")
    working()
    spec = RunSpec(entry_point="desk:run", working_dir=str(desk), memory=500_000_000)
    done = client.replays.create(request(), run_spec=spec).wait(60, embedded=False)
    assert done.result_session_id is not None
    error = client.sessions.get(done.result_session_id).error
    assert error is not None
    assert error.class_name == "MemoryError"


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize(
    "code",
    [
        "os.write(1, b'x' * 2_000_000)",
        "threading.Thread(target=time.sleep, args=(600,)).start()",
        "os.chdir('/'); os.environ.clear()",
        "os.close(1); os.close(2)",
        "sys.stdout.close(); sys.stderr = None",
    ],
)
def test_what_an_agent_does_to_its_process_does_not_hold_its_replay_up(
    client: Client, working: Callable[..., Worker], desk: Path, code: str, warm: bool
):
    harm(desk, code)
    working(warm=warm)
    done = client.replays.create(request(timeout=30)).wait(60, embedded=False)
    assert (done.error, done.status) == (None, ReplayStatus.COMPLETED)


SCRIPT = """
import json, sys, playhead

@playhead.tool
def look(x: int) -> int:
    return x * 10

with playhead.session("scripted", inputs={"prompt": "hi"}) as session:
    session.output = [look(1), look(2)]
if len(sys.argv) > 1:
    print(json.load(sys.stdin))
"""


@pytest.fixture
def scripted(project: Path) -> Iterator[Client]:
    (project / "script.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "script.py"], cwd=project, check=True, timeout=60)
    with playhead.open() as opened:
        yield opened


def command(*words: str) -> RunSpec:
    return RunSpec(command=words, working_dir=str(Path.cwd()))


def test_a_program_is_a_replay_when_it_opens_its_session(scripted: Client):
    done = scripted.replays.create(request(), run_spec=command(sys.executable, "script.py", "print")).wait(60)
    assert done.error is None
    assert (done.status, done.fidelity and done.fidelity.kind) == (ReplayStatus.COMPLETED, FidelityKind.FAITHFUL)
    assert "python" in str(done.replay.guard)
    (task,) = scripted.jobs.tasks(done.job_id)
    assert task.result == {"started": "process", "why": "its run spec is a command"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("no-such-program",), "no-such-program"),
        ((sys.executable, "-c", "pass"), "without a session"),
        ((sys.executable, "-c", "import sys; sys.exit(3)"), "exit code 3"),
    ],
)
def test_a_program_that_does_not_replay_fails_with_the_reason(scripted: Client, words: tuple[str, ...], message: str):
    done = scripted.replays.create(request(), run_spec=command(*words)).wait(60)
    assert done.status is ReplayStatus.FAILED
    assert done.error is not None
    assert message in done.error.message


def test_a_program_that_calls_something_new_misses(scripted: Client, project: Path):
    (project / "script.py").write_text(SCRIPT.replace("look(2)", "look(5)"))
    done = scripted.replays.create(request(), run_spec=command(sys.executable, "script.py")).wait(60)
    assert done.error is not None
    assert (done.status, done.error.code) == (ReplayStatus.FAILED, "miss")


def test_a_worker_takes_only_its_agent_versions(client: Client, working: Callable[..., Worker]):
    version = client.agents.find("desk")
    working(versions=("another",))
    handle = client.replays.create(request())
    with pytest.raises(TimeoutError):
        handle.wait(1, embedded=False)
    working(versions=(version.id,))
    assert handle.wait(60, embedded=False).status is ReplayStatus.COMPLETED


def test_a_version_is_immutable_and_a_changed_run_spec_is_a_new_one(client: Client):
    known = client.agents.find("desk")
    assert known.run_spec is not None
    changed = AgentVersion(
        id="new", agent="desk", number=1, created_at=1, fingerprint=known.fingerprint,
        run_spec=RunSpec(entry_point="desk:run", working_dir=known.run_spec.working_dir, memory=1_000_000_000),
    )  # fmt: skip
    assert client.agents.register(changed).number == known.number + 1
    assert client.agents.get(known.id) == known


def test_two_workers_on_one_store_run_every_replay_once(client: Client, working: Callable[..., Worker]):
    workers = [working(concurrency=2, warm=True), working(concurrency=2, warm=True)]
    handle = client.replays.create(request(repeats=10)).wait(90, embedded=False)
    assert {r.status for r in handle.replays} == {ReplayStatus.COMPLETED}
    assert {task.attempt for task in client.jobs.tasks(handle.job_id)} == {1}
    assert sum(worker.tally.ended for worker in workers) == 10
    assert client.sessions.count(playhead.SessionQuery(baseline_id=handle.baseline_session_id)) == 10


def test_a_store_in_memory_cannot_have_jobs():
    with playhead.open("memory:") as opened, pytest.raises(NotFoundError):
        opened.replays.create(request())


def test_a_child_whose_process_is_killed_is_tried_again(client: Client, working: Callable[..., Worker], desk: Path):
    seen = desk / "seen"
    harm(
        desk,
        f"""
        if not os.path.exists({str(seen)!r}):
            open({str(seen)!r}, "w").close()
            playhead.flush()
            os.kill(os.getpid(), 9)
    """,
    )
    working()
    done = client.replays.create(request()).wait(60, embedded=False)
    assert done.status is ReplayStatus.COMPLETED
    (task,) = client.jobs.tasks(done.job_id)
    assert task.attempt == 2
    sessions = client.sessions.find(playhead.SessionQuery(baseline_id=done.baseline_session_id)).items
    assert {s.id: s.status for s in sessions if s.id != done.result_session_id} != {}
    assert {s.status for s in sessions if s.id != done.result_session_id} == {SessionStatus.ABANDONED}
    assert all(client.sessions.verdicts(s.id) == [] for s in sessions if s.id != done.result_session_id)


def test_without_isolation_the_guard_inside_python_stays(client: Client):
    done = client.replays.create(request(isolation="off")).wait(60)
    assert done.status is ReplayStatus.COMPLETED
    assert done.replay.guard == "python"


def test_the_example_of_the_reference_runs(client: Client, desk: Path):
    from playhead import EvaluatorConfig, HistoryConfig, PlayheadClient, ReplayCreateRequest, ToolPolicy

    baseline_id = client.sessions.resolve("last")

    async def main() -> Any:
        client = PlayheadClient()
        replay = await client.replays.create(
            ReplayCreateRequest(
                baseline_session_id=baseline_id,
                evaluators=[EvaluatorConfig(evaluator="fidelity")],  # type: ignore[arg-type]
                tool_policy=ToolPolicy(default=HistoryConfig(scope="baseline", on_miss="fail")),
                evaluate_baselines=True,
            )
        )
        before = (replay.id, replay.job_id, replay.status)
        await replay.wait(60)
        sessions = await client.sessions.get(replay.result_session_id)
        await client.close()
        return before, replay.status, sessions.status

    before, status, session = asyncio.run(main())
    assert re.fullmatch(r"[0-9a-f-]{36}", before[0])
    assert (before[2], status, session) == (ReplayStatus.PENDING, ReplayStatus.COMPLETED, SessionStatus.COMPLETED)


def test_preflight_refuses_before_anything_is_stored(client: Client):
    with pytest.raises(RefusedError):
        client.replays.create(request(override={"prompt": {"7": "there is no such turn"}}))
    assert client.jobs.list().items == client.replays.list().items == ()


def wait_for(found: Callable[[], Any], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_signals_of_a_worker(desk: Path):
    """SIGTERM lets what runs come to its end; the command then reports."""
    worker = subprocess.Popen(
        [str(Path(sys.executable).with_name("playhead")), "worker", "start", "--concurrency", "1"],
        cwd=desk, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    harm(desk, "time.sleep(1)")
    with playhead.open() as client:
        handle = client.replays.create(request())
        wait_for(lambda: client.jobs.tasks(handle.job_id)[0].status is TaskStatus.RUNNING)
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err
        assert handle.refresh().status is ReplayStatus.COMPLETED
    assert '"ended": 1' in out
