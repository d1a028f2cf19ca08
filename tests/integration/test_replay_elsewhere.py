"""Calls that reach an inline replay from somewhere else: other sessions, threads, processes, and after its end."""

import asyncio
import importlib
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.adapters import installation
from playhead.core.values import FidelityKind, ReplayStatus, SessionStatus
from playhead.engine.recorder import Recorder
from playhead.engine.replay_processes import VARIABLE

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    CALLS.clear()
    yield
    assert VARIABLE not in os.environ


@playhead.tool
def pay(to: str) -> str:
    CALLS.append(to)
    return f"paid {to}"


def record(agent: Any, *args: Any) -> None:
    agent(*args)
    playhead.flush()
    CALLS.clear()


def in_thread(run: Callable[[], object]) -> None:
    """Runs something in a thread without context and swallows what it raises."""

    def swallowing() -> None:
        with suppress(BaseException):
            run()

    thread = threading.Thread(target=swallowing)
    thread.start()
    thread.join()


def test_a_second_session_of_a_replay_gets_no_answers_of_the_first(recorder: Recorder):
    answers: list[str] = []

    @playhead.agent("inner")
    def inner(prompt: str) -> str:
        return pay("grace")

    @playhead.agent("desk")
    def desk(prompt: str, elsewhere: bool = False) -> str:
        first = pay("ada")
        if elsewhere:  # a thread without the context of the replay opens a session of its own
            in_thread(lambda: answers.append(inner("q")))
        return first

    record(desk, "q")
    result = playhead.replay("last", agent=lambda prompt, elsewhere: desk(prompt, True))
    assert (answers, CALLS) == ([], [])
    assert result.error is not None
    assert result.error.code == "miss"
    assert '"to":"grace"' in result.error.message


def failed_by_another_process(result: playhead.ReplayResult, text: str, tool: str | None = None) -> None:
    """The replay failed, its ledger names the call, and nothing says that it was faithful."""
    assert result.status is ReplayStatus.FAILED
    assert result.error is not None
    assert text in result.error.message
    assert result.fidelity.kind is FidelityKind.DIVERGED
    refused = [row for row in result.ledger if row.by == "stopped"]
    assert any(text in str(row.detail) and row.tool == tool for row in refused), result.ledger


# threads


@pytest.mark.parametrize("what", ["tool", "agent"])
@pytest.mark.parametrize("beside", ["nothing", "a live session"])
def test_a_thread_that_outlives_its_replay_runs_nothing_live(recorder: Recorder, what: str, beside: str):
    over, threads = threading.Event(), list[threading.Thread]()

    @playhead.agent("other")
    def other(prompt: str) -> str:
        return pay("grace")

    def later() -> None:
        over.wait(60)
        with suppress(BaseException):
            pay("grace") if what == "tool" else other("q")

    @playhead.agent("desk")
    def desk(prompt: str, forget: bool = False) -> str:
        if forget:
            threads.append(threading.Thread(target=later))
            threads[0].start()
        return pay("ada")

    record(desk, "q")
    playhead.replay("last", agent=lambda prompt, forget: desk(prompt, True))
    if beside == "nothing":
        over.set()
        threads[0].join()
        assert CALLS == []
        return
    with playhead.session("live one"):
        over.set()
        threads[0].join()
        pay("linus")
    assert CALLS == ["linus"]


def test_a_task_that_outlives_its_replay_runs_nothing_live(recorder: Recorder):
    over = threading.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running: list[Any] = []

    async def later() -> None:
        await asyncio.to_thread(over.wait, 60)
        pay("grace")

    @playhead.agent("desk")
    def desk(prompt: str, forget: bool = False) -> str:
        if forget:
            running.append(asyncio.run_coroutine_threadsafe(later(), loop))
        return pay("ada")

    record(desk, "q")
    assert playhead.replay("last", agent=lambda prompt, forget: desk(prompt, True)).error is None
    over.set()
    with pytest.raises(BaseException, match="after the session had ended"):
        running[0].result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert CALLS == []


def test_a_call_before_the_session_of_the_replay_is_in_the_ledger(recorder: Recorder):
    @playhead.agent("desk")
    def desk(prompt: str) -> str:
        return pay("ada")

    def outside(prompt: str) -> str:
        found: list[str] = []
        ended = threading.Thread(target=lambda: found.append(desk(prompt)))
        ended.start()
        ended.join()
        return found[0]

    record(desk, "q")
    result = playhead.replay("last", agent=outside)
    assert (result.output, result.error, CALLS) == ("paid ada", None, [])


def test_an_agent_of_a_framework_in_a_thread_that_outlives_its_replay_runs_nothing_live(recorder: Recorder):
    pydantic_ai = pytest.importorskip("pydantic_ai")
    agent = pydantic_ai.Agent(importlib.import_module("pydantic_ai.models.test").TestModel(), name="clerk")
    over, threads = threading.Event(), list[threading.Thread]()

    @agent.tool_plain
    def look(x: int) -> int:
        CALLS.append("look")
        return x

    def later() -> None:
        over.wait(60)
        with suppress(BaseException):
            agent.run_sync("late")

    @playhead.agent("desk")
    def desk(prompt: str, forget: bool = False) -> str:
        if forget:
            threads.append(threading.Thread(target=later))
            threads[0].start()
        return agent.run_sync(prompt).output

    playhead.install()
    record(desk, "q")
    installation.uninstall()
    result = playhead.replay("last", agent=lambda prompt, forget: desk(prompt, True))
    over.set()
    threads[0].join()
    assert (CALLS, result.fidelity.kind) == ([], FidelityKind.FAITHFUL)


def test_a_query_of_claude_with_a_stream_of_messages_does_not_go_live(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
):
    sdk = pytest.importorskip("claude_agent_sdk")

    async def query(*, prompt: Any, options: Any = None, transport: Any = None) -> Any:
        CALLS.append("live")
        yield "message"

    monkeypatch.setattr(sdk, "query", query)

    async def messages() -> Any:
        yield {"type": "user"}

    @playhead.agent("desk")
    async def desk(prompt: str, stream: bool = False) -> list[Any]:
        pay("ada")
        return [message async for message in sdk.query(prompt=messages())] if stream else []

    asyncio.run(desk("q"))
    playhead.flush()
    CALLS.clear()
    result = playhead.replay("last", agent=lambda prompt, stream: desk(prompt, True))
    assert (CALLS, result.status) == ([], ReplayStatus.FAILED)
    assert "stream of messages" in str(result.error)


# processes

SCRIPT = """
import playhead, sys
from pathlib import Path

@playhead.tool
def pay(to):
    Path("LIVE").write_text(to)

@playhead.agent("inner")
def inner(to):
    return pay(to)

{call}
"""


def in_a_process(folder: Path, call: str, **options: Any) -> None:
    (folder / "script.py").write_text(SCRIPT.format(call=call))
    subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, check=False, **options)


def in_a_grandchild(folder: Path, call: str) -> None:
    in_a_process(folder, f"import subprocess; subprocess.run([sys.executable, '-c', {SCRIPT.format(call=call)!r}])")


def without_environment(folder: Path, call: str) -> None:
    in_a_process(folder, call, env={"PATH": os.defpath})


@pytest.mark.parametrize("start", [in_a_process, in_a_grandchild, without_environment])
@pytest.mark.parametrize("call", ["pay('grace')", "inner('grace')"])
def test_a_process_that_the_agent_starts_runs_no_tool_and_fails_the_replay(
    project: Path, start: Callable[[Path, str], None], call: str
):
    @playhead.agent("desk")
    def desk(prompt: str, elsewhere: bool = False) -> str:
        if elsewhere:
            start(project, call)
        return pay("ada")

    record(desk, "q")
    result = playhead.replay("last", agent=lambda prompt, elsewhere: desk(prompt, True))
    assert not (project / "LIVE").exists()
    tool = "pay" if call.startswith("pay") else None
    failed_by_another_process(result, "in a process that the agent of a replay started", tool)
    start(project, call)  # outside a replay it runs as ever
    assert (project / "LIVE").read_text() == "grace"


def test_a_process_may_run_the_tools_that_the_policy_lets_go_live_and_the_ledger_says_so(project: Path):
    @playhead.agent("desk")
    def desk(prompt: str) -> str:
        in_a_process(project, "pay('grace')")
        return "done"

    record(desk, "q")
    (project / "LIVE").unlink()
    result = playhead.replay("last", agent=desk, tool_policy={"tools": {"pay": {"type": "passthrough"}}})
    assert (project / "LIVE").read_text() == "grace"
    assert result.status is ReplayStatus.COMPLETED
    assert [(row.by, row.tool) for row in result.ledger if row.kind == "tool"] == [("live", "pay")]
    assert result.fidelity.kind is FidelityKind.UNPROVEN


def test_a_program_that_outlives_its_replay_runs_nothing_live(project: Path):
    running: list[subprocess.Popen[bytes]] = []

    @playhead.agent("desk")
    def desk(prompt: str, elsewhere: bool = False) -> str:
        if elsewhere:
            (project / "script.py").write_text(SCRIPT.format(call="sys.stdin.read(); pay('grace')"))
            running.append(
                subprocess.Popen(
                    [sys.executable, "script.py"], cwd=project, stdin=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )
        return pay("ada")

    record(desk, "q")
    assert playhead.replay("last", agent=lambda prompt, elsewhere: desk(prompt, True)).error is None
    _, errors = running[0].communicate(b"go on", 60)
    assert b"which is over" in errors
    assert not (project / "LIVE").exists()


def agent_runs_in_fork(way: str) -> None:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            pay("grace") if way == "tool" else playhead.agent("inner")(lambda: pay("grace"))()
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("way", ["tool", "agent"])
@pytest.mark.parametrize("context", [True, False])
def test_a_call_in_a_forked_child_fails_the_replay(project: Path, way: str, context: bool):
    @playhead.agent("desk")
    def desk(prompt: str, fork: bool = False) -> str:
        if fork:
            agent_runs_in_fork(way) if context else in_thread(lambda: agent_runs_in_fork(way))
        return pay("ada")

    record(desk, "q")
    result = playhead.replay("last", agent=lambda prompt, fork: desk(prompt, True))
    assert result.status is ReplayStatus.FAILED
    assert result.fidelity.kind is FidelityKind.DIVERGED
    assert result.error is not None
    assert "in a process that the agent of a replay started" in result.error.message
    assert [row.by for row in result.ledger] == ["served", "stopped"]


def test_a_connection_that_a_forked_child_was_refused_is_in_the_ledger(project: Path):
    @playhead.agent("desk")
    def desk(prompt: str, fork: bool = False) -> str:
        if fork:
            child = os.fork()
            if child == 0:
                with suppress(BaseException):
                    socket.create_connection(("127.0.0.1", 9), 1)
                os._exit(0)
            os.waitpid(child, 0)
        return pay("ada")

    record(desk, "q")
    result = playhead.replay("last", agent=lambda prompt, fork: desk(prompt, True))
    assert ("egress", "blocked", "127.0.0.1:9") in [(row.kind, row.by, row.detail) for row in result.ledger]
    assert result.fidelity.kind is FidelityKind.DIVERGED


WORKER = """
import playhead

@playhead.tool
def pay(to):
    return f"really paid {to}"

def pay_in_worker(to):
    try:
        return pay(to)
    except BaseException as error:
        return type(error).__name__
"""


@pytest.mark.parametrize("method", [m for m in multiprocessing.get_all_start_methods() if m != "forkserver"])
def test_workers_of_a_pool_are_refused_while_a_replay_runs_and_serve_live_runs_afterwards(
    project: Path, method: str, monkeypatch: pytest.MonkeyPatch
):
    (project / "its_workers.py").write_text(WORKER)
    monkeypatch.delitem(sys.modules, "its_workers", raising=False)
    pay_in_worker = importlib.import_module("its_workers").pay_in_worker
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:

        @playhead.agent("desk")
        def desk(prompt: str, elsewhere: bool = False) -> str:
            return pool.submit(pay_in_worker, "grace").result(60) if elsewhere else pay("ada")

        record(desk, "q")
        changed = lambda prompt, elsewhere: desk(prompt, True)  # noqa: E731
        for _ in range(2):
            result = playhead.replay("last", agent=changed)
            failed_by_another_process(result, "in a process that the agent of a replay started", "pay")
            assert result.output == "ReplayStop"
        assert pool.submit(pay_in_worker, "linus").result(60) == "really paid linus"


# ends


class MyEnd(BaseException):
    pass


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (SystemExit(0), SessionStatus.COMPLETED),
        (SystemExit(3), SessionStatus.FAILED),
        (MyEnd("enough"), SessionStatus.FAILED),
        (asyncio.CancelledError(), SessionStatus.ABANDONED),
    ],
)
def test_an_agent_that_ends_itself_is_replayed_to_its_end(recorder: Recorder, end: BaseException, status: Any):
    @playhead.agent("desk")
    def desk(prompt: str) -> None:
        pay("ada")
        raise end

    with pytest.raises(type(end)):
        desk("q")
    playhead.flush()
    result = playhead.replay("last", agent=desk, force=True)
    assert (result.session.status, result.fidelity.kind) == (status, FidelityKind.FAITHFUL)
