"""Several processes write one store, and some of them die."""

import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from playhead.core.values import SessionStatus
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.builders import a_session, message, model_call, schemas, session_id, tool_call

# Writes turns of a session and tells after each durable step; ends sessions now and then.
WRITER = """
import sys
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.builders import a_session, message, model_call, schemas, tool_call, session_id

path, first, count, offset, step = sys.argv[1], *map(int, sys.argv[2:])
store = SqliteStore(path, busy_timeout=30)
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    store.sessions.begin(a_session(number))
    history = [message("user", f"{number} {n} " + "text " * 40) for n in range(40)]
    for seq in range(offset, 40, step):
        if seq % 2:
            node = model_call(session_id(number), seq, history[: seq + 1], tools=schemas())
        else:
            node = tool_call(session_id(number), seq, key=f"1:{seq}", value="v" * (40_000 if seq == 20 else 300))
        store.sessions.append(session_id(number), [node])
        print("stored", number, seq, flush=True)
    if offset == 0:
        store.sessions.finish(a_session(number, output="end"))
        print("finished", number, flush=True)
store.close()
"""


def writer(path: Path, *, first: int = 0, count: int = 1000, offset: int = 0, step: int = 1) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), *map(str, (first, count, offset, step))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def start(*writers: subprocess.Popen[str]) -> None:
    for process in writers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def killed_at(process: subprocess.Popen[str], lines: int, delay: float) -> list[list[str]]:
    """Kill after so many steps and a little more; every step that was told."""
    assert process.stdout is not None
    told = [process.stdout.readline().split() for _ in range(lines)]
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    told += [line.split() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    return [line for line in told if line]


def expect(told: Sequence[Sequence[str]], store: SqliteStore) -> None:
    """Everything that was told is there, whole and in order."""
    stored: dict[int, set[int]] = {}
    for word, number, *rest in told:
        if word == "stored":
            stored.setdefault(int(number), set()).add(int(rest[0]))
        else:
            assert store.sessions.get(session_id(int(number))).output == "end"
    for number, seqs in stored.items():
        nodes = {node.seq: node for node in store.sessions.nodes(session_id(number))}
        assert seqs <= nodes.keys() <= seqs | {max(seqs) + 1}
        for seq, node in nodes.items():
            if seq % 2:
                assert len(node.inputs["messages"]) == seq + 1
                assert node.inputs["messages"][-1] == message("user", f"{number} {seq} " + "text " * 40)
                assert node.inputs["tools"] == schemas()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore(tmp_path / "store.db").close()
    return tmp_path / "store.db"


def test_what_was_acknowledged_survives_kill_9_at_any_point(path: Path) -> None:
    told: list[list[str]] = []
    rounds = 12
    for number in range(rounds):
        process = writer(path, first=number * 1000)
        start(process)
        told += killed_at(process, random.randint(1, 100), random.random() * 0.01)
    store = SqliteStore(path)
    assert len({line[1] for line in told}) >= rounds
    expect(told, store)
    assert list(store.check()) == []
    for number in {int(line[1]) for line in told}:
        store.sessions.finish(a_session(number, status=SessionStatus.ABANDONED, output="end"))
    expect(told, store)
    for number in {int(line[1]) for line in told}:
        store.sessions.delete(session_id(number))
    assert list(store.check()) == []
    store.close()


def test_two_processes_record_one_session_and_others_at_once(path: Path) -> None:
    writers = [writer(path, count=2, offset=offset, step=2) for offset in (0, 1)]
    writers += [writer(path, first=10, count=2)]
    start(*writers)
    for process in writers:
        assert process.communicate(timeout=60) is not None
        assert process.returncode == 0
    store = SqliteStore(path)
    for number in (0, 1, 10, 11):
        nodes = store.sessions.nodes(session_id(number))
        assert [node.seq for node in nodes] == list(range(40))
        assert all(len(node.inputs["messages"]) == node.seq + 1 for node in nodes if node.model)
    assert list(store.check()) == []
    store.close()


def test_two_open_stores_of_one_file_see_each_other_and_compaction(path: Path) -> None:
    one, other = SqliteStore(path), SqliteStore(path)
    history = [message("user", str(n)) for n in range(9)]
    nodes = [model_call(session_id(1), seq, history[: seq + 1], tools=schemas()) for seq in range(9)]
    one.sessions.begin(a_session())
    for seq, node in enumerate(nodes):
        (one if seq % 2 else other).sessions.append(session_id(1), [node])
        if seq in (3, 6):  # the other one still remembers numbers of the stream as it was
            one.sessions.finish(a_session())
        assert other.sessions.nodes(session_id(1)) == nodes[: seq + 1]
    other.sessions.delete(session_id(1))
    one.sessions.begin(a_session())
    one.sessions.append(session_id(1), nodes[8:])
    assert other.sessions.nodes(session_id(1)) == nodes[8:]
    other.sessions.put(a_session(inputs="anew"), [tool_call(session_id(1), 0)])
    one.sessions.append(session_id(1), nodes[8:])
    assert len(other.sessions.nodes(session_id(1))) == 2
    assert list(one.check()) == []
    one.close()
    other.close()


def test_two_processes_make_one_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"
    writers = [writer(path, first=number * 10, count=1) for number in range(3)]
    start(*writers)
    for process in writers:
        process.communicate(timeout=60)
        assert process.returncode == 0
    store = SqliteStore(path)
    assert list(store.check()) == []
    store.close()
