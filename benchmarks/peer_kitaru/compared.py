# pyright: reportMissingImports=false
"""The rows of one framework, measured in this process: run by the command, in the environment that it made."""

import argparse
import asyncio
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from uuid import UUID

from kitaru.api_models.v1.agent import AgentCreateRequest
from kitaru.client import KitaruAPIClient

from benchmarks.peer_kitaru.scripts import SCRIPTS
from benchmarks.scripted import Run, Shape, script
from benchmarks.scripted.measuring import Arm, arms_of, check, line, measured, shapes, timed
from playhead.engine.recorder import Recorder
from playhead.store.sqlite import SqliteStore

OTHERS = 5  # runs for which the processor time of the server is taken


async def _agent(name: str) -> UUID:
    async with KitaruAPIClient() as client:
        return (await client.agents.create(AgentCreateRequest(name=f"bench-{name}-{os.getpid()}"))).id


async def _newest(agent: UUID) -> list[str]:
    """What kinds of nodes the newest session of an agent has."""
    async with KitaruAPIClient() as client:
        sessions = [session async for session in client.sessions.iter() if session.agent_id == agent]
        newest = max(sessions, key=lambda session: session.number)
        return [node.node_type.value async for node in client.sessions.iter_nodes(newest.id)]


def _check(arm: Arm, agent: UUID, calls: int) -> int:
    """Tells it where kitaru has not every call. Gives how many nodes a session of one call a turn has."""
    kinds: list[str] = []
    for shape in shapes(calls):
        timed(arm, shape)
        kinds = asyncio.run(_newest(agent))
        found = kinds.count("tool_call"), kinds.count("llm_call")
        if found != (shape.tool_calls, shape.model_calls):
            print(f"  {arm.name} has {found} tool and model calls of {shape.tool_calls, shape.model_calls}")
    return len(kinds)


def _spent(pids: list[int]) -> float:
    """Processor seconds of processes and their children, as Linux counts them."""
    total = 0
    for pid in pids:
        total += sum(_ticks(Path(f"/proc/{pid}/stat"), ended=True))
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            total += sum(_ticks(Path(f"/proc/{child}/stat"), ended=False))
    return total / os.sysconf("SC_CLK_TCK")


def _ticks(stat: Path, *, ended: bool) -> list[int]:
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return [int(field) for field in fields[11 : 15 if ended else 13]]


def _beside(arm: Arm, calls: int, pids: list[int]) -> str:
    """Milliseconds of processor time that the server takes for a run."""
    if not pids:
        return "elsewhere"
    before = _spent(pids)
    for _ in range(OTHERS):
        timed(arm, Shape(calls, 1))
    return f"{(_spent(pids) - before) * 1e3 / OTHERS:.0f} ms"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=SCRIPTS)
    parser.add_argument("calls", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("pids", type=int, nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    package, kitaru_run = SCRIPTS[given.name]
    agent, ours = asyncio.run(_agent(given.name)), script(given.name)

    @contextmanager
    def opened(shape: Shape) -> Iterator[Run]:
        yield kitaru_run(shape, agent)

    kitaru = Arm(f"kitaru {version(package)}", opened)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(SqliteStore(Path(folder) / "bench.db"))
        bare, playhead = arms_of(ours, recorder)
        try:
            check(ours, recorder, given.calls)
            recorded = recorder.store.sessions.nodes(recorder.store.sessions.resolve("last"))
            nodes = [_check(kitaru, agent, given.calls), len(recorded)]
            rows = measured([bare, kitaru, playhead], given.calls, given.rounds)
            beside = [_beside(kitaru, given.calls, given.pids), "-"]
        finally:
            recorder.close()
    print(f"{given.name} {version(ours.DISTRIBUTION or '')}")
    for row, server, count in zip(rows, beside, nodes, strict=True):
        print(line(f"  {row.name}", "", row) + f"{server:>11}{count:>7}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
