"""Replays as jobs: one cold and one warm replay of a three-tool agent, replays per second, claims per second.

The agent has no network and its tools answer at once, so what is measured is ours: preflight, claim, fork, guard,
replay, evaluation, and the notice that it has ended.
"""

import asyncio
import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import playhead
from playhead.core.jobs import Job, Offer, Task
from playhead.core.lifecycle import OnFailure, TaskEvent
from playhead.engine.client import Client, open_client
from playhead.engine.worker import Settings
from playhead.store.sqlite import SqliteStore

AGENT = """
import playhead

@playhead.tool
async def get_order(order_id: str) -> dict:
    return {"order": order_id, "status": "ok"}

@playhead.tool
async def lookup_policy(order_id: str) -> dict:
    return {"order": order_id, "policy": "30 days"}

@playhead.tool
async def issue_refund(order_id: str) -> dict:
    return {"order": order_id, "refunded": True}

@playhead.agent("bench")
async def run(prompt: str) -> str:
    for number, tool in enumerate((get_order, lookup_policy, issue_refund)):
        await tool(str(4000 + number))
    return "done"
"""
COHORT = 50


@contextmanager
def prepared(folder: Path) -> Generator[Client]:
    """A project with one recorded session of the agent."""
    (folder / ".playhead").mkdir()
    (folder / "bench_agent.py").write_text(AGENT)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    agent = importlib.import_module("bench_agent")
    asyncio.run(agent.run("Refund order 4000"))
    playhead.flush()
    with open_client() as client:
        yield client


def request(repeats: int = 1, isolation: str = "best") -> playhead.ReplayCreateRequest:
    policy = {"type": "history"}
    return playhead.ReplayCreateRequest.model_validate(
        {"baseline_session_id": "last", "repeats": repeats, "isolation": isolation, "model_policy": policy}
    )


def one(client: Client, isolation: str = "best", *, embedded: bool = False) -> float:
    """Milliseconds from create to completed."""
    begun = time.perf_counter()
    done = client.replays.create(request(isolation=isolation)).wait(120, embedded=embedded)
    took = (time.perf_counter() - begun) * 1000
    assert done.status.value == "completed", done.error
    return took


@contextmanager
def idle_worker(client: Client, concurrency: int = 1) -> Generator[None]:
    worker = client.worker(Settings(concurrency=concurrency))
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.drain()
        thread.join()


def warm(client: Client) -> None:
    with idle_worker(client):
        for _ in range(4):
            one(client)
        for isolation in ("best", "off", "best", "off"):
            times: list[float] = []
            for _ in range(25):
                time.sleep(0.15)  # idle: a worker has the next child ready after some 50 ms
                times.append(one(client, isolation))
            spread = f"p10 {sorted(times)[2]:.0f}, p90 {sorted(times)[-3]:.0f}"
            print(f"warm, outer guard {isolation:<4} median {statistics.median(times):6.1f} ms  ({spread})", flush=True)


def throughput(client: Client, workers: int) -> None:
    """Workers are processes of their own, each with as many slots as keeps two processors busy."""
    program = str(Path(sys.executable).with_name("playhead"))
    before, ran = _processor_ms(), 4 * workers + 3 * COHORT
    slots = str(max(1, 2 // workers))
    quiet = subprocess.DEVNULL
    started = [
        subprocess.Popen([program, "worker", "start", "--concurrency", slots], stdout=quiet, stderr=quiet)
        for _ in range(workers)
    ]
    try:
        client.replays.create(request(repeats=4 * workers)).wait(120, embedded=False)
        rates: list[float] = []
        for _ in range(3):
            begun = time.perf_counter()
            client.replays.create(request(repeats=COHORT)).wait(240, embedded=False)
            rates.append(COHORT / (time.perf_counter() - begun))
        print(f"{COHORT} replays, {workers} worker(s): {max(rates):.1f}/s (median {statistics.median(rates):.1f})")
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()
    each = (_processor_ms() - before) / ran
    print(f"  processor time of its workers and all that they started: {each:.0f} ms a replay, their start included")


def _processor_ms() -> float:
    """Of the processes that this one has waited for; it holds on a busy machine too."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def claims(folder: Path) -> None:
    store = SqliteStore(folder / "claims.db")
    job = Job(id="j", kind="replay", created_at=1)
    rule = OnFailure.CONTINUE
    tasks = [Task(id=f"t{n}", job_id="j", kind="replay", created_at=n, on_failure=rule) for n in range(2000)]
    store.jobs.create(job, tasks)
    for batch in (1, 10):
        begun, count = time.perf_counter(), 0
        while count < 500:
            token = f"{batch}:{count}"
            for task in store.jobs.claim(Offer(worker="w", limit=batch), token=token, now=1, until=10**15):
                store.jobs.start(task.id, token, now=1)
                store.jobs.end(task.id, token, TaskEvent.COMPLETE, now=2)
                count += 1
        print(f"claim + start + complete, {batch:2} at a time: {count / (time.perf_counter() - begun):,.0f} tasks/s")
    store.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, prepared(Path(name)) as client:
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        cold = [one(client, embedded=True) for _ in range(5)]
        print(f"cold (embedded worker, fresh process)  median {statistics.median(cold):6.0f} ms")
        warm(client)
        for workers in (1, 2):
            throughput(client, workers)
        claims(Path(name))


if __name__ == "__main__":
    main()
