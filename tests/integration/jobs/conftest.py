"""A project with a recorded agent, and workers."""

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


@pytest.fixture
def desk(project: Path) -> Path:
    """A project with a recorded session of the agent ``desk``, which does what a file ``harm`` says in later runs."""
    (project / "desk.py").write_text(AGENT.format(harm=str(project / "harm")))
    code = "import asyncio, desk; asyncio.run(desk.run('hello'))"
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, timeout=60)
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
