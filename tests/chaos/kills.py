"""Kills workers, zygotes, children and command lines at random points during many replays, and counts what came of it:
``python tests/chaos/kills.py --replays 200``.

Every replay must end exactly once, no session of a dead attempt may be evaluated, nothing that was acknowledged may be
lost, and the store must be whole afterwards.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import playhead
from playhead.core.lifecycle import MAX_ATTEMPTS, TASK
from playhead.core.values import Replay, ReplayStatus, SessionStatus
from playhead.engine.client import Client, open_client
from playhead.engine.owner import mark_abandoned

AGENT = """
import asyncio, playhead

@playhead.tool
async def look(x: int) -> int:
    await asyncio.sleep(0.005)
    return x * 10

@playhead.agent("victim")
async def run(prompt: str) -> list[int]:
    found = []
    for x in range(5):
        found.append(await look(x))
        await asyncio.sleep({pause})
    return found
"""
_ENDED = (ReplayStatus.COMPLETED, ReplayStatus.FAILED, ReplayStatus.CANCELED)
VICTIMS = {"worker": "worker start", "zygote": "cli.zygote", "child": "cli.zygote", "cli": "replay create"}


@dataclass
class Tally:
    """What happened: kills by victim, replays by how they ended, attempts, and everything that must not be."""

    kills: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def text(self) -> str:
        lines = [
            f"replays: {sum(self.ended.values())} in {self.seconds:.0f} s: {dict(self.ended)}",
            f"kills:   {sum(self.kills.values())}: {dict(self.kills)}",
            f"tasks by attempts: {dict(sorted(self.attempts.items()))}",
            f"wrong:   {len(self.wrong)}",
            *(f"  {text}" for text in self.wrong),
        ]
        return "\n".join(lines)


class Arena:
    """A project with one recorded session, and the processes that we may kill."""

    def __init__(self, folder: Path, seed: int, *, pause: float, lease: float) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.lease = lease
        self.started: list[subprocess.Popen[bytes]] = []
        (folder / ".playhead").mkdir(parents=True)
        (folder / "victim.py").write_text(AGENT.format(pause=pause))
        code = "import asyncio, victim; asyncio.run(victim.run('hello'))"
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=60)

    def open(self) -> Client:
        return open_client(str(self.folder / ".playhead" / "store.db"))

    def command(self, *words: str) -> None:
        program = str(Path(sys.executable).with_name("playhead"))
        quiet = subprocess.DEVNULL
        self.started.append(
            subprocess.Popen([program, *words], cwd=self.folder, stdin=quiet, stdout=quiet, stderr=quiet)
        )

    def worker(self) -> None:
        self.command("worker", "start", "--concurrency", "2", "--lease", str(self.lease))

    def alive(self) -> list[subprocess.Popen[bytes]]:
        self.started = [process for process in self.started if process.poll() is None]
        return self.started

    def kill(self, tally: Tally) -> None:
        """Kills one process of a kind that chance chooses, where there is one."""
        kind = self.random.choice(["worker", "zygote", "child", "child", "child", "child", "cli"])
        chosen = self._of(kind)
        if chosen:
            with suppress(psutil.Error):
                self.random.choice(chosen).send_signal(signal.SIGKILL)
                tally.kills[kind] += 1

    def _of(self, kind: str) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for started in self.alive():
            with suppress(psutil.Error):
                found += [psutil.Process(started.pid), *psutil.Process(started.pid).children(recursive=True)]
        chosen: list[psutil.Process] = []
        for process in found:
            with suppress(psutil.Error):
                line = " ".join(process.cmdline())
                parent = process.parent()
                forked = "cli.zygote" in line and parent is not None and "cli.zygote" in " ".join(parent.cmdline())
                fits = VICTIMS[kind] in line or (kind == "child" and "cli.child" in line)
                if fits and (kind not in ("zygote", "child") or forked == (kind == "child") or "cli.child" in line):
                    chosen.append(process)
        return chosen

    def end(self) -> None:
        for process in self.alive():
            process.kill()
            process.wait()


def storm(folder: Path, *, replays: int, seed: int, pause: float = 0.02, lease: float = 1.5, every: float = 0.8,
          most: float = 600.0) -> Tally:  # fmt: skip
    """Runs replays while processes are killed about every so many seconds, then lets what is left come to an end."""
    arena, tally, began = Arena(folder, seed, pause=pause, lease=lease), Tally(), time.monotonic()
    acknowledged: set[str] = set()
    try:
        with arena.open() as client:
            _fight(arena, client, tally, acknowledged, replays, every, began + most / 2)
            _settle(arena, client, acknowledged, began + most)
            _judge(client, tally, acknowledged)
    finally:
        arena.end()
    tally.wrong += _doctor(folder)
    tally.seconds = time.monotonic() - began
    return tally


def _fight(
    arena: Arena, client: Client, tally: Tally, acknowledged: set[str], count: int, every: float, until: float
) -> None:
    waiting = count
    while time.monotonic() < until:
        workers = sum("worker" in process.args for process in arena.alive())  # type: ignore[operator]
        for _ in range(2 - workers):
            arena.worker()
        if waiting:
            batch = min(waiting, 8)
            request = playhead.ReplayCreateRequest(baseline_session_id="last", repeats=batch)
            acknowledged |= {replay.id for replay in client.replays.create(request).replays}
            waiting -= batch
            if arena.random.random() < 0.3:
                arena.command("replay", "create", "last", "--wait")
        time.sleep(arena.random.uniform(0, 2 * every))
        arena.kill(tally)
        if not waiting and all(r.status in _ENDED for r in _all(client)):
            return


def _settle(arena: Arena, client: Client, acknowledged: set[str], until: float) -> None:
    while time.monotonic() < until:
        if not any("worker" in process.args for process in arena.alive()):  # type: ignore[operator]
            arena.worker()
        if all(r.status in _ENDED for r in _all(client)) and not client.store.jobs.held():
            time.sleep(3.0)  # workers look a few times for what killed ones left behind
            return
        time.sleep(0.1)


def _all(client: Client) -> list[Replay]:
    return list(client.replays.list(limit=100_000).items)


def _judge(client: Client, tally: Tally, acknowledged: set[str]) -> None:
    replays = _all(client)
    known = {replay.id for replay in replays}
    tally.wrong += [f"replay {id} was acknowledged and is gone" for id in acknowledged - known]
    results = Counter(r.result_session_id for r in replays if r.result_session_id)
    tally.wrong += [f"session {id} is the result of {n} replays" for id, n in results.items() if n > 1]
    for replay in replays:
        tally.ended[replay.status.value] += 1
        tally.wrong += [f"replay {replay.id} {text}" for text in _of_replay(client, replay)]
    for job in client.jobs.list(limit=100_000).items:
        for task in client.jobs.tasks(job.id):
            tally.attempts[task.attempt] += 1
            if not TASK.is_final(task.status):
                tally.wrong.append(f"task {task.id} is {task.status}")
    mark_abandoned(client.store)
    for session in client.sessions.find(playhead.SessionQuery(), limit=100_000).items:
        if session.replay_id is None or results.get(session.id):
            continue
        if session.status is not SessionStatus.ABANDONED:
            tally.wrong.append(f"session {session.id} of a dead attempt is {session.status.value}")
        if client.sessions.verdicts(session.id):
            tally.wrong.append(f"session {session.id} of a dead attempt was evaluated")


def _of_replay(client: Client, replay: Replay) -> list[str]:
    if replay.status not in _ENDED:
        return [f"is {replay.status.value}"]
    if replay.status is ReplayStatus.COMPLETED:
        assert replay.result_session_id is not None
        session = client.sessions.get(replay.result_session_id)
        wrong = [] if session.status is SessionStatus.COMPLETED else [f"has a result that is {session.status.value}"]
        if replay.fidelity is None or replay.fidelity.kind.value != "faithful":
            wrong.append("completed and is not faithful")
        if len(client.sessions.verdicts(session.id)) != 1:
            wrong.append("was not evaluated exactly once")
        return wrong
    (task,) = [t for t in client.jobs.tasks(replay.job_id or "") if t.payload["replay_id"] == replay.id]
    if replay.status is ReplayStatus.FAILED and task.attempt < MAX_ATTEMPTS:
        return [f"failed at attempt {task.attempt}: {replay.error.message if replay.error else ''}"]
    return []


def _doctor(folder: Path) -> list[str]:
    program = str(Path(sys.executable).with_name("playhead"))
    done = subprocess.run([program, "doctor"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == 0:
        return []
    rows = json.loads(done.stdout)["items"]
    return [f"doctor: {row['check']}: {row['detail']}" for row in rows if row["state"] == "problem"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(4), "big")
    with tempfile.TemporaryDirectory(prefix="playhead-chaos-") as folder:
        print(f"seed {seed}", flush=True)
        tally = storm(Path(folder) / "arena", replays=given.replays, seed=seed)
    print(tally.text())
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
