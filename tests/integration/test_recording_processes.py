"""Recording and the life of processes: kill -9, fork, two at once, the end of a program, abandoned sessions."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from playhead.core.values import NodeStatus, Session, SessionStatus
from playhead.engine.owner import is_gone, mark_abandoned, own_name
from playhead.store.open import open_store
from playhead.store.ports import SessionQuery, Store


def start(folder: Path, program: str, *arguments: str) -> "subprocess.Popen[str]":
    script = folder / "program.py"
    script.write_text("from playhead.adapters.functions import agent, session, tool\n" + textwrap.dedent(program))
    return subprocess.Popen(
        [sys.executable, str(script), *arguments], cwd=folder, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: "subprocess.Popen[str]", *, code: int = 0) -> tuple[str, str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return out, err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".playhead").mkdir()
    return tmp_path


def opened(folder: Path) -> Store:
    return open_store(folder / ".playhead" / "store.db", create=False)


def read(store: Store, session_id: str) -> list[Any]:
    return list(store.sessions.nodes(session_id))


def sessions(store: Store) -> list[Session]:
    return list(store.sessions.find(SessionQuery(oldest_first=True), limit=500).items)


def nodes(store: Store) -> list[Any]:
    return [node for session in sessions(store) for node in read(store, session.id)]


def test_a_program_that_records_nothing_ends_without_a_word(folder: Path):
    (folder / "program.py").write_text("import playhead.engine.recorder\n")
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert (ran.stdout, ran.stderr) == ("", "")


def test_what_flush_acknowledged_survives_kill_9_and_the_session_is_marked_abandoned(folder: Path):
    process = start(
        folder,
        """
        from playhead.engine.project import flush
        @tool
        def add(n): return n + 1
        @tool
        def hang(): print(flush(), flush=True); input()
        with session("desk"):
            for n in range(20): add(n)
            hang()
        """,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "True"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = opened(folder)
    assert [n.outcome.value for n in nodes(store) if n.name == "add"] == list(range(1, 21))
    (hang,) = [n for n in nodes(store) if n.name == "hang"]
    assert hang.status is NodeStatus.OPEN
    assert list(store.check()) == []
    (session,) = sessions(store)
    assert session.status is SessionStatus.OPEN
    assert mark_abandoned(store) == [session.id]
    assert sessions(store)[0].status is SessionStatus.ABANDONED
    assert mark_abandoned(store) == []
    store.close()


def test_a_kill_at_any_moment_leaves_a_store_that_reads(folder: Path):
    program = """
        @tool
        def add(n): return "x" * 2000
        print("go", flush=True)
        while True:
            with session("desk"):
                for n in range(50): add(n)
        """
    for wait in (0.05, 0.2):
        process = start(folder, program)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
    store = opened(folder)
    assert list(store.check()) == []
    for session in sessions(store):
        found = read(store, session.id)
        assert [n.seq for n in found] == list(range(1, len(found) + 1)), "a hole in what was written"
    store.close()


def test_a_forked_child_writes_its_own_sessions_and_never_its_parents(folder: Path):
    _, err = finish(
        start(
            folder,
            """
            import os, sys
            from playhead.engine.project import flush
            @tool
            def add(n): return n
            with session("parent"):
                add(1)
                pid = os.fork()
                if pid == 0:
                    add(2)
                    with session("child"):
                        add(3)
                    flush()
                    os._exit(0)
                os.waitpid(pid, 0)
                add(4)
            """,
        )
    )
    store = opened(folder)
    by_agent = {s.agent: (s.status, [n.outcome.value for n in read(store, s.id)]) for s in sessions(store)}
    assert by_agent == {
        "parent": (SessionStatus.COMPLETED, [1, 4]),
        "child": (SessionStatus.COMPLETED, [3]),
    }
    assert "Traceback" not in err
    store.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_write_before_they_leave(folder: Path, method: str):
    finish(
        start(
            folder,
            f"""
            import multiprocessing
            @tool
            def add(n): return n
            @agent("worker")
            def work(n): return add(n)
            if __name__ == "__main__":
                pool = [multiprocessing.get_context("{method}").Process(target=work, args=(n,)) for n in range(2)]
                for one in pool: one.start()
                for one in pool: one.join()
            """,
        )
    )
    store = opened(folder)
    assert sorted(s.output for s in sessions(store)) == [0, 1]
    assert {s.status for s in sessions(store)} == {SessionStatus.COMPLETED}
    store.close()


def test_two_processes_record_into_one_store_at_once(folder: Path):
    program = """
        import sys
        @tool
        def add(n): return sys.argv[1]
        input()
        for run in range(10):
            with session(sys.argv[1]):
                for n in range(30): add(n)
        """
    both = [start(folder, program, name) for name in ("one", "two")]
    for process in both:
        _, err = finish_with_input(process)
        assert err == ""
    store = opened(folder)
    found = sessions(store)
    assert len(found) == 20
    for session in found:
        assert [n.outcome.value for n in read(store, session.id)] == [session.agent] * 30
    assert list(store.check()) == []
    store.close()


def finish_with_input(process: "subprocess.Popen[str]") -> tuple[str, str]:
    out, err = process.communicate("\n", timeout=90)
    assert process.returncode == 0, err
    return out, err


def test_a_program_that_ends_inside_a_session_leaves_it_written(folder: Path):
    finish(
        start(
            folder,
            """
            import sys
            @tool
            def add(n): return n
            @agent("gen")
            def gen():
                yield add(1)
                yield add(2)
            kept = gen()
            next(kept)
            with session("exits"):
                add(3)
                sys.exit(3)
            """,
        ),
        code=3,
    )
    store = opened(folder)
    by_agent = {s.agent: (s.status, [n.outcome.value for n in read(store, s.id)]) for s in sessions(store)}
    assert by_agent == {"gen": (SessionStatus.ABANDONED, [1]), "exits": (SessionStatus.FAILED, [3])}
    store.close()


def test_a_session_that_is_open_at_the_end_is_closed_although_a_fork_ended_the_writer(folder: Path):
    _, err = finish(
        start(
            folder,
            """
            import os, warnings
            warnings.simplefilter("ignore")
            @tool
            def add(n): return n
            @agent("gen")
            def gen(): yield add(1)
            kept = gen()
            next(kept)
            pid = os.fork()
            if pid == 0: os._exit(0)
            os.waitpid(pid, 0)
            """,
        )
    )
    assert err == ""
    store = opened(folder)
    assert [(s.status, s.ended_at is not None) for s in sessions(store)] == [(SessionStatus.ABANDONED, True)]
    store.close()


def test_an_owner_is_gone_only_when_that_is_certain():
    assert not is_gone(own_name())
    host, pid, started = own_name().rsplit(":", 2)
    assert is_gone(f"{host}:{pid}:{int(started) - 100_000}"), "a younger process has the number"
    assert not is_gone(f"elsewhere:{pid}:1")
    assert not is_gone(None)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert is_gone(f"{host}:{dead.pid}:{started}") or os.path.exists(f"/proc/{dead.pid}")  # noqa: PTH110
