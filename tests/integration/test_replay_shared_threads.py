"""Threads that serve whoever comes: pools and loops that replays and live sessions of one process share."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any

import anyio.to_thread
import pytest

import playhead
from playhead.core.values import FidelityKind
from playhead.engine.recorder import Recorder

CALLS: list[str] = []
WAYS = ("pool", "default executor", "anyio", "process-like pool")


@playhead.tool
def pay(to: str) -> str:
    CALLS.append(to)
    return f"paid {to}"


@dataclass
class Shared:
    """A pool, and a loop in a thread of its own, made when somebody first needs them and kept for all."""

    pools: list[ThreadPoolExecutor] = field(default_factory=list)
    thread_pools: list[Any] = field(default_factory=list)
    loops: list[asyncio.AbstractEventLoop] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pool(self) -> ThreadPoolExecutor:
        with self.lock:
            if not self.pools:
                self.pools.append(ThreadPoolExecutor(1))
        return self.pools[0]

    @property
    def thread_pool(self) -> Any:
        with self.lock:
            if not self.thread_pools:
                self.thread_pools.append(ThreadPool(1))
        return self.thread_pools[0]

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            if not self.loops:
                self.loops.append(asyncio.new_event_loop())
                self.loops[0].set_default_executor(ThreadPoolExecutor(1))
                threading.Thread(target=self.loops[0].run_forever, daemon=True).start()
        return self.loops[0]

    def run(self, way: str, work: Callable[[], str]) -> str:
        """Runs something in a thread of the kind; none but anyio's get a context."""
        if way == "pool":
            return self.pool.submit(work).result(60)
        if way == "process-like pool":
            return self.thread_pool.apply_async(work).get(60)

        async def inside() -> str:
            if way == "anyio":
                return await anyio.to_thread.run_sync(work)
            return await asyncio.get_running_loop().run_in_executor(None, work)

        return asyncio.run_coroutine_threadsafe(inside(), self.loop).result(60)

    def close(self) -> None:
        for loop in self.loops:
            asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(60)
            loop.call_soon_threadsafe(loop.stop)
        for pool in (*self.pools, *self.thread_pools):
            pool.shutdown() if isinstance(pool, ThreadPoolExecutor) else pool.terminate()


@pytest.fixture
def shared() -> Iterator[Shared]:
    CALLS.clear()
    made = Shared()
    yield made
    made.close()


def agents(shared: Shared, way: str, at_once: threading.Barrier | None = None) -> Any:
    @playhead.agent("desk")
    def desk(to: str) -> list[str]:
        if at_once is not None:
            at_once.wait(60)
        found = [shared.run(way, partial(pay, f"{to} {n}")) for n in range(3)]
        if at_once is not None:
            at_once.wait(60)
        return found

    return desk


def recorded(desk: Any, to: str) -> str:
    desk(to)
    playhead.flush()
    made = playhead.replay("last", agent=lambda to: []).baseline.id
    CALLS.clear()
    return made


def faithful(result: playhead.ReplayResult) -> None:
    assert result.error is None
    assert result.fidelity.kind is FidelityKind.FAITHFUL, result.fidelity
    assert [row.by for row in result.ledger] == ["served"] * 3


@pytest.mark.parametrize("way", WAYS)
def test_threads_first_used_by_a_replay_serve_later_replays_and_live_sessions(
    recorder: Recorder, shared: Shared, way: str
):
    baseline = recorded(agents(Shared(), "none-yet") if way == "never" else agents(shared, way), "ada")
    shared.close()  # whatever the recording started: the replay is to be the first
    fresh = Shared()
    desk = agents(fresh, way)
    try:
        faithful(playhead.replay(baseline, agent=desk))
        assert CALLS == []
        assert desk("grace") == ["paid grace 0", "paid grace 1", "paid grace 2"]
        playhead.flush()
        live = playhead.replay("last", agent=desk)
        faithful(live)
        assert live.baseline.inputs == {"to": "grace"}
        faithful(playhead.replay(baseline, agent=desk))
        assert CALLS == ["grace 0", "grace 1", "grace 2"]
        fresh.run(way, partial(pay, "outside"))
        assert CALLS[3:] == ["outside"]
    finally:
        shared.pools, shared.thread_pools, shared.loops = fresh.pools, fresh.thread_pools, fresh.loops


@pytest.mark.parametrize("way", WAYS[:3])
def test_replays_side_by_side_share_threads(recorder: Recorder, shared: Shared, way: str):
    plain = agents(shared, way)
    baselines = {to: recorded(plain, to) for to in ("ada", "grace")}
    desk = agents(shared, way, threading.Barrier(2))
    results: dict[str, playhead.ReplayResult] = {}

    def one(to: str) -> None:
        results[to] = playhead.replay(baselines[to], agent=desk)

    threads = [threading.Thread(target=one, args=(to,)) for to in baselines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for to, result in results.items():
        faithful(result)
        assert result.output == [f"paid {to} {n}" for n in range(3)]
    assert CALLS == []


@pytest.mark.parametrize("way", WAYS[:3])
def test_a_live_session_beside_a_replay_shares_threads(recorder: Recorder, shared: Shared, way: str):
    baseline = recorded(agents(shared, way), "ada")
    at_once = threading.Barrier(2)
    desk = agents(shared, way, at_once)
    outputs: list[Any] = []
    live = threading.Thread(target=lambda: outputs.append(desk("grace")))
    live.start()
    while not at_once.n_waiting:  # a session that begins in the middle of a replay could be of its agent
        live.join(0.01)
    faithful(playhead.replay(baseline, agent=desk))
    live.join(60)
    assert outputs == [["paid grace 0", "paid grace 1", "paid grace 2"]]
    assert CALLS == ["grace 0", "grace 1", "grace 2"]
    playhead.flush()
    session = playhead.replay("last", agent=lambda to: agents(shared, way)(to))
    faithful(session)
    assert session.baseline.inputs == {"to": "grace"}


def test_the_main_thread_lives_on_while_a_replay_runs_in_another(recorder: Recorder, shared: Shared):
    inside, ended = threading.Event(), threading.Event()

    @playhead.agent("desk")
    def desk(to: str) -> str:
        inside.set()
        ended.wait(60)
        return pay(to)

    ended.set()
    baseline = recorded(desk, "ada")
    ended.clear()
    inside.clear()
    results: list[playhead.ReplayResult] = []
    thread = threading.Thread(target=lambda: results.append(playhead.replay(baseline, agent=desk)))
    thread.start()
    inside.wait(60)
    with playhead.session("live"):
        pay("grace")
    pay("linus")
    ended.set()
    thread.join(60)
    assert CALLS == ["grace", "linus"]
    assert results[0].fidelity.kind is FidelityKind.FAITHFUL


def test_a_replay_that_ends_leaves_another_one_its_adapters_and_keys(recorder: Recorder, monkeypatch: Any):
    import os

    from playhead.adapters.installation import installed

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    baseline = recorded(agents(Shared(), "pool"), "ada")
    inside, ended = threading.Event(), threading.Event()
    seen: list[Any] = []

    @playhead.agent("desk")
    def slow(to: str) -> list[str]:
        inside.set()
        ended.wait(60)
        seen.append((installed(), "OPENAI_API_KEY" in os.environ))
        return []

    history = {"type": "history"}
    first = threading.Thread(target=lambda: playhead.replay(baseline, agent=lambda to: ended_by(inside)))
    first.start()
    second = threading.Thread(target=lambda: playhead.replay(baseline, agent=slow, model_policy=history))
    second.start()
    first.join(60)
    ended.set()
    second.join(60)
    assert seen == [(True, True)]
    assert not installed()
    assert "OPENAI_API_KEY" not in os.environ


def ended_by(event: threading.Event) -> list[str]:
    event.wait(60)
    return []
