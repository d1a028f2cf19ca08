"""A project with a recorded agent, and workers."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.engine.client import Client
from playhead.engine.worker import Settings, Worker

AGENT = """
import os, subprocess, sys, threading, time, playhead

@playhead.tool
async def look(x: int) -> int:
    return x * 10

@playhead.agent("desk")
async def run(prompt: str) -> list[int]:
    if os.path.exists({harm!r}):
        exec(open({harm!r}).read())
    return [await look(1), await look(2), await look(3)]
"""


STARTED = """
import json, os, sys
import asyncio, playhead.engine.client, playhead.store.sqlite
for line in sys.stdin:
    folder, code = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        exec(code, {"__name__": "__main__"})
        sys.exit()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="session")
def python() -> Iterator[Callable[[Path, str], int]]:
    """Runs code in a folder, in a process that has imported playhead already: half a second saved, often."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None

        def run(folder: Path, code: str) -> int:
            print(json.dumps([str(folder), code]), file=started.stdin, flush=True)
            return int(started.stdout.readline())

        yield run
        started.stdin.close()


@pytest.fixture
def desk(project: Path, python: Callable[[Path, str], int]) -> Path:
    """A project with a recorded session of the agent ``desk``, which does what a file ``harm`` says in later runs."""
    (project / "desk.py").write_text(AGENT.format(harm=str(project / "harm")))
    assert python(project, "import asyncio, desk; asyncio.run(desk.run('hello'))") == 0
    return project


@pytest.fixture
def client(desk: Path) -> Iterator[Client]:
    with playhead.open() as opened:
        yield opened


@pytest.fixture
def client_worker() -> Iterator[Callable[..., Worker]]:
    """Starts workers of a client in threads, and stops them."""
    started: list[tuple[Worker, threading.Thread]] = []

    def start(client: Client, **settings: Any) -> Worker:
        worker = client.worker(Settings(**{"concurrency": 1, "lease": 3.0, **settings}))
        thread = threading.Thread(target=worker.run)
        thread.start()
        started.append((worker, thread))
        return worker

    yield start
    for worker, _ in started:
        worker.release()
    for _, thread in started:
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def working(client: Client, client_worker: Callable[..., Worker]) -> Callable[..., Worker]:
    return partial(client_worker, client)
