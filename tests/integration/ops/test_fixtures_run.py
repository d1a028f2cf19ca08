"""`playhead fixtures run` and `check`: a command's ops and requests are fixtures, whatever its processes are."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.start import main

APP = """
import sys, playhead

@playhead.op("poll", effect="read")
def poll(q: str) -> dict:
    with open("live", "a") as file:
        file.write(q + "\\n")
    return {"n": len(open("live").readlines())}

for q in sys.argv[1:]:
    if q == "!":
        sys.exit(3)
    print(poll(q)["n"])
"""
SPREAD = """
import subprocess, sys
for q in sys.argv[1:]:
    subprocess.run([sys.executable, "app.py", q], check=True)
"""
WEB = """
import sys, urllib3
print(urllib3.request("GET", sys.argv[1], retries=False).data.decode())
"""


@pytest.fixture
def run(here: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    (here / "app.py").write_text(APP)
    (here / "spread.py").write_text(SPREAD)
    (here / "web.py").write_text(WEB)

    def ran(options: str, *words: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, what was said on stdout, and the command's own output."""
        capfd.readouterr()
        code = main(["fixtures", *options.split(), "--output", "json", "--", sys.executable, *words])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else {}, err

    return ran


def files(here: Path) -> list[str]:
    return sorted(path.name for path in (here / ".playhead/fixtures").rglob("*.json") if path.name[:2] in ("op", "ht"))


def test_a_command_is_recorded_and_served_without_a_change_in_its_code(here: Path, run: Any) -> None:
    code, said, err = run("run --mode record --set s --allow-live", "app.py", "a", "a")
    assert (code, said["recorded"], said["counts"]) == (0, 2, {"recorded": 2})
    assert "read or write for real" in err
    assert len(list((here / ".playhead/fixtures/s").glob("op.poll.*.json"))) == 2
    code, said, err = run("run --mode replay --set s", "app.py", "a", "b")
    assert (code, said["counts"], said["command_exit"]) == (1, {"served": 1, "missed": 1}, 1)
    assert "no recording answers poll" in "".join(said["reasons"])
    assert "playhead fixtures run --mode record --set s" in "".join(said["reasons"])
    assert (here / "live").read_text() == "a\na\n"


def test_a_command_that_fails_leaves_the_old_recordings_unless_told_otherwise(here: Path, run: Any) -> None:
    run("run --mode record --allow-live", "app.py", "a")
    before = files(here)
    code, said, _ = run("run --mode record --allow-live", "app.py", "b", "!")
    assert (code, said["command_exit"], said["recorded"], files(here)) == (1, 3, 0, before)
    code, said, _ = run("run --mode record --allow-live --save always", "app.py", "c", "!")
    assert (code, said["recorded"]) == (1, 1)
    report = json.loads((here / ".playhead/fixtures/recording.json").read_text())
    assert (report["complete"], report["incomplete"]) == (False, "the command ended with exit code 3")


def test_equal_calls_of_several_processes_are_recorded_and_served_once_each(run: Any) -> None:
    assert run("run --mode record --allow-live", "spread.py", "a", "a")[1]["recorded"] == 2
    code, said, err = run("run --mode replay --strict", "spread.py", "a", "a")
    assert (code, said["counts"], said["leftovers"]) == (0, {"served": 2}, [])
    assert err.split() == ["1", "2"]


def test_check_names_what_has_changed_and_writes_nothing(here: Path, run: Any) -> None:
    run("run --mode record --allow-live", "app.py", "a")
    before = files(here)
    code, said, _ = run("check --allow-live", "app.py", "a", "b")
    assert (code, said["counts"], files(here)) == (1, {"changed": 1, "new": 1}, before)
    assert said["rows"][0]["pointers"] == ["/value/n"]


def test_nobody_is_asked_and_nothing_runs(here: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("run --mode record", "app.py", "a")
    assert (code, "--mode replay runs nothing for real" in err) == (2, True)
    assert run("check", "app.py", "a")[0] == 2
    code, _, err = run("run --mode replay", "app.py", "a")
    assert (code, "no_fixtures" in err) == (1, True)
    code, _, err = run("run --mode sometimes", "app.py", "a")
    assert (code, "live, record, replay, auto, check" in err) == (2, True)
    assert main(["fixtures", "run", "--mode", "live", "--allow-live", "--", "./no-such-program"]) == 2
    assert main(["fixtures", "run", "--mode", "live", "--allow-live"]) == 2
    assert not (here / "live").exists()


class _Process:
    """Of a command that somebody interrupts."""

    def __init__(self, *ends: Any) -> None:
        self._ends = iter(ends)
        self.sent: list[int] = []

    def wait(self, timeout: float | None = None) -> int:
        end = next(self._ends)
        if end == "asked":
            os.kill(os.getpid(), signal.SIGTERM)
            return -signal.SIGTERM
        if isinstance(end, BaseException):
            raise end
        return end

    def send_signal(self, number: int) -> None:
        self.sent.append(number)

    def kill(self) -> None:
        self.sent.append(signal.SIGKILL)


@pytest.mark.parametrize(
    ("ends", "code", "sent"),
    [
        ((KeyboardInterrupt(), -2), -2, []),
        ((KeyboardInterrupt(), subprocess.TimeoutExpired("c", 1), -9), -9, [signal.SIGKILL]),
        (("asked",), -15, [signal.SIGTERM]),
    ],
    ids=["interrupt", "stubborn", "terminate"],
)
def test_an_interrupt_reaches_the_command_which_is_waited_for(ends: Any, code: int, sent: list[int]) -> None:
    from playhead.engine.fixtures.command import _wait  # pyright: ignore[reportPrivateUsage]

    process: Any = _Process(*ends)
    assert _wait(process) == (code, True)
    assert process.sent == sent


class _Counting(BaseHTTPRequestHandler):
    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        body = f"answer {len(self.seen)}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    _Counting.seen = []
    found = HTTPServer(("127.0.0.1", 0), _Counting)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def test_requests_are_fixtures_from_the_start_of_the_command(run: Any, server: HTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/x"
    code, said, err = run("run --mode record --http --allow-live", "web.py", url)
    assert (code, said.get("counts")) == (0, {"recorded": 1}), err
    assert "Exception ignored" not in err
    code, said, err = run("run --mode replay --http", "web.py", url)
    assert (code, said["counts"], "answer 1" in err, _Counting.seen) == (0, {"served": 1}, True, ["/x"])


def test_a_miss_names_the_command_that_records_into_the_same_folder(run: Any) -> None:
    run("run --mode record --allow-live --dir other --set s", "app.py", "a")
    code, said, _ = run("run --mode replay --dir other --set s", "app.py", "b")
    assert code == 1
    assert any("--mode record --set s --dir other -- " in reason for reason in said["reasons"])
