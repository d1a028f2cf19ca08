"""Misses, seen from a job: nothing real is touched, the replay fails whatever the agent makes of it, and says why."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.cli.context import Context
from playhead.cli.output import Result
from playhead.cli.run import call, find_command
from playhead.core.values import Replay, ReplayStatus, SessionStatus
from playhead.engine.client import Client
from playhead.errors import RefusedError

AGENT = """
import json, os, signal, urllib.request, playhead

def get(path):
    with urllib.request.urlopen({url!r} + path, timeout=5) as answer:
        return answer.read().decode()

@playhead.tool
def fetch(order: str) -> str:
    return get(order)

@playhead.agent("shop")
def run(prompt: str) -> str:
    with open({plan!r}) as plan:
        steps = json.load(plan)
    said = []
    for step in steps:
        if step == "die":
            playhead.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            said.append(get("direct") if step == "direct" else fetch(step))
        except BaseException:
            said.append("sorry")
    return " ".join(said)
"""


class Shop:
    """An agent whose tool asks a server, what it does next, and how often the server was asked."""

    def __init__(self, folder: Path, server: ThreadingHTTPServer) -> None:
        self.folder = folder
        self.host = f"127.0.0.1:{server.server_port}"
        self.asked: list[str] = []
        plan = str(folder / "plan")
        (folder / "shop.py").write_text(AGENT.format(url=f"http://{self.host}/", plan=plan))

    def plan(self, steps: list[str]) -> None:
        (self.folder / "plan").write_text(str(steps).replace("'", '"'))

    def record(self, *steps: str) -> int:
        self.plan([*steps])
        code = "import shop; shop.run('go')"
        return subprocess.run([sys.executable, "-c", code], cwd=self.folder, check=False, timeout=60).returncode

    def replay(self, client: Client, *steps: str, options: tuple[str, ...] = ()) -> tuple[Replay, int]:
        """``replay create --wait`` of the last session, in which the agent does these steps now."""
        self.plan([*steps])
        self.asked.clear()
        found = find_command(["replay", "create", "last", "--wait", *options])
        assert not isinstance(found, str)
        name, function, rest = found
        result = call(name, function, rest, Context(opened=client.store, url=client.store.url))
        assert isinstance(result, Result)
        assert isinstance(result.data, dict)
        return client.replays.get(result.data["id"]), result.exit_code


@pytest.fixture
def shop(project: Path) -> Iterator[Shop]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"answer to {self.path}".encode())

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Shop(project, server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def missed(replay: Replay) -> list[Any]:
    return [row.arguments for row in replay.ledger if row.by == "missed"]


@pytest.mark.parametrize("recorded", [["1", "2"], []], ids=["a-call-changed", "no-calls-were-recorded"])
def test_r22_r23_a_swallowed_miss_reaches_no_network_fails_the_replay_and_names_the_host(
    shop: Shop, recorded: list[str]
):
    assert shop.record(*recorded) == 0
    assert len(shop.asked) == len(recorded)
    with playhead.open() as client:
        replay, code = shop.replay(client, *recorded[:1], "9", "direct")
    assert shop.asked == []
    assert (replay.status, code) == (ReplayStatus.FAILED, 1)
    assert missed(replay) == [{"order": "9"}]
    assert replay.error is not None
    assert replay.error.code == "miss"
    assert any(shop.host in str(row.detail) for row in replay.ledger if row.kind == "egress")


def test_r23_a_replay_in_which_every_call_changed_fails_and_lists_the_first(shop: Shop):
    shop.record("1", "2")
    with playhead.open() as client:
        replay, code = shop.replay(client, "8", "9")
    assert (replay.status, code, shop.asked) == (ReplayStatus.FAILED, 1, [])
    assert missed(replay) == [{"order": "8"}]  # what comes after a miss is stopped with it


def test_r25_a_session_whose_process_was_killed_is_no_baseline_unless_forced(shop: Shop):
    assert shop.record("1", "2", "die", "3", "4") == -9
    with playhead.open() as client:
        with pytest.raises(RefusedError, match="abandoned"):
            shop.replay(client, "1", "2", "3", "4")
        assert client.sessions.get(client.sessions.resolve("last")).status is SessionStatus.ABANDONED
        assert client.jobs.list().items == ()
        replay, code = shop.replay(client, "1", "2", "3", "4", options=("--force",))
    assert (replay.status, code, shop.asked) == (ReplayStatus.FAILED, 1, [])
    assert missed(replay) == [{"order": "3"}]
