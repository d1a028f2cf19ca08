"""Replays in child processes under the outer guard: what their programs may reach, and what the ledger says of it."""

import socket
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.policy import HistoryModel, LiveModel, PassthroughConfig, ToolPolicy
from playhead.core.values import FidelityKind, Replay, ReplayStatus
from playhead.engine.entry import load
from playhead.engine.isolation import guard as isolation


@pytest.fixture(autouse=True)
def namespaces() -> None:
    reason = isolation.available().namespace
    if reason is not None:
        pytest.skip(f"namespace: {reason}")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setblocking(False)
        yield made


def record(project: Path, body: str) -> None:
    (project / "agent_under_test.py").write_text(f"import os, socket, subprocess, playhead\n{textwrap.dedent(body)}")
    load(f"{project / 'agent_under_test.py'}:run")("hello")
    playhead.flush()


def replay(**fields: Any) -> Replay:
    with playhead.open() as client:
        return client.replays.create(playhead.ReplayCreateRequest(baseline_session_id="last", **fields)).wait().replay


def connections(listener: socket.socket) -> int:
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def blocked(done: Replay) -> list[str | None]:
    return [row.detail for row in done.ledger if row.kind == "egress"]


CURL = """
@playhead.tool
def look(x: int) -> int:
    return x * 10

@playhead.agent("worker")
def run(prompt: str) -> int:
    subprocess.run(["curl", "-s", "-m", "1", "--noproxy", "*", "http://127.0.0.1:PORT/"])
    return look(1)
"""


def test_a_program_that_the_agent_starts_is_held_too(project: Path, listener: socket.socket) -> None:
    record(project, CURL.replace("PORT", str(listener.getsockname()[1])))
    assert connections(listener) == 1
    done = replay(model_policy=HistoryModel())
    assert connections(listener) == 0
    assert (done.status, done.guard) == (ReplayStatus.COMPLETED, "namespace + python")
    assert done.fidelity is not None
    assert done.fidelity.kind is FidelityKind.FAITHFUL
    assert [row.detail for row in done.ledger if row.kind == "note"] == []  # no program runs unguarded


def test_with_a_live_tool_the_network_stays_and_the_ledger_says_so(project: Path, listener: socket.socket) -> None:
    record(project, CURL.replace("PORT", str(listener.getsockname()[1])))
    connections(listener)
    done = replay(tool_policy=ToolPolicy(default=PassthroughConfig()))
    assert connections(listener) == 1
    assert done.guard == "none: live tools are allowed"


def test_hosts_that_programs_ask_for_are_in_the_ledger_when_models_are_live(project: Path) -> None:
    record(project, CURL.replace("127.0.0.1:PORT", "orders.example"))
    done = replay(model_policy=LiveModel())
    assert done.guard == "namespace + python"
    assert blocked(done) == ["orders.example:lookup"]


def test_an_agent_may_use_a_server_of_its_own(project: Path) -> None:
    record(
        project,
        """
        @playhead.tool
        def look(x: int) -> int:
            return x * 10

        @playhead.agent("worker")
        def run(prompt: str) -> str:
            with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as own:
                own.connect(server.getsockname())
                own.sendall(b"hello")
                with server.accept()[0] as peer:
                    return peer.recv(5).decode() + str(look(1))
        """,
    )
    done = replay(model_policy=HistoryModel())
    assert (done.error, blocked(done)) == (None, [])
