"""A project in a folder of its own, with an agent that has run, and the command line as its users call it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run

SHOP = """\
import os
import pathlib
import sys
import time

import playhead


@playhead.tool(effect="read")
def find_order(order_id: str) -> dict:
    ran("find_order")
    return {"order_id": order_id, "amount": 129.0, "note": "\\x1b[31mred\\u202e"}


@playhead.tool(effect="write")
def refund(order_id: str, amount: float) -> str:
    ran("refund")
    return f"refunded {amount:.2f} for {order_id}"


def ran(name: str) -> None:
    with open("ran.log", "a") as log:
        log.write(name + "\\n")


@playhead.agent("shop")
def handle(order_id: str) -> str:
    order = find_order(order_id)
    try:
        return refund(order["order_id"], order["amount"] * float(pathlib.Path("factor").read_text()))
    except Exception:
        return "sorry"


@playhead.agent("quiet")
def quiet(prompt: str) -> str:
    return prompt.upper()


@playhead.agent("slow")
def slow(prompt: str) -> str:
    find_order(prompt)
    if os.path.exists("slow"):
        pathlib.Path("started").touch()
        playhead.flush()
        print("started", file=sys.stderr, flush=True)
        time.sleep(60)
    return "done"


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
"""


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err.splitlines()[-1])["error"]

    @property
    def notes(self) -> list[str]:
        found = [json.loads(line) for line in self.err.splitlines() if line.startswith("{")]
        return [line["note"] for line in found if "note" in line]


@dataclass(frozen=True)
class Project:
    """A folder with the agents of `SHOP` in it.

    Calling it runs a command in this process, which is what most tests need; `start` makes a process of it.
    """

    folder: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Done:
        self.capture.readouterr()
        code = run(list(words))
        out, err = self.capture.readouterr()
        return Done(code, out, err)

    def start(self, *words: str, stdout: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        command = [str(Path(sys.executable).with_name("playhead")), *words]
        return _start(command, self.folder, stdout)

    def start_agent(self, agent: str, argument: str) -> "subprocess.Popen[str]":
        """Runs an agent, which records a session."""
        return _start([sys.executable, "shop.py", agent, argument], self.folder, subprocess.PIPE)

    def ran(self) -> list[str]:
        """Tools that really ran since the last time."""
        log = self.folder / "ran.log"
        names = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return names

    def factor(self, value: str) -> None:
        """Changes how much the agent refunds, without changing its code."""
        (self.folder / "factor").write_text(value)


def _start(command: list[str], folder: Path, stdout: int) -> "subprocess.Popen[str]":
    env = {n: v for n, v in os.environ.items() if not n.startswith("PLAYHEAD_") and not n.endswith("_API_KEY")}
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, env=env
    )


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which each agent has run once, the shop last, and a copy of its store."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP)
    (folder / "factor").write_text("1")
    (folder / ".playhead").mkdir()
    for agent, argument in (("quiet", "hello"), ("slow", "4821"), ("handle", "4821")):
        process = _start([sys.executable, "shop.py", agent, argument], folder, subprocess.PIPE)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    shutil.copytree(folder / ".playhead", folder / "pristine")
    return folder


@pytest.fixture
def project(recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    """The recorded project as it was after recording. Not copied: a recording knows the folder that it ran in."""
    shutil.rmtree(recorded / ".playhead")
    shutil.copytree(recorded / "pristine", recorded / ".playhead")
    keep = {"shop.py", "factor", "pristine", ".playhead"}
    for path in recorded.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.chdir(recorded)
    monkeypatch.setattr(sys, "path", [*sys.path])
    made = Project(recorded, capsys)
    made.factor("1")
    return made


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    """A folder without a project."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)
