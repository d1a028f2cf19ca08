"""Nodes per second into the embedded store, beside `sqlite3.executemany` of the same rows.

The rows of the raw side are ready-made tuples: the columns of a node and its payload as JSON text, in one table with
the two indexes that the store needs too, one transaction per batch, the same pragmas. The store gets values and has to
dump, render, compress and index them. The two sides take turns, and each shows its best of several rounds.
"""

import json
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from playhead.core.values import Node, NodeKind, Outcome, OutcomeKind, Session, ToolCall
from playhead.engine.clock import SYSTEM_IDS
from playhead.store.sqlite import SqliteStore

ROUNDS = 5
BATCH = 100
START = 1_790_000_000_000_000_000
TARGETS = {"text": 0.5, "incompressible": 0.3}

_RAW = """
CREATE TABLE nodes (
    id TEXT PRIMARY KEY, session_id TEXT, parent_id TEXT, seq INTEGER, kind TEXT, name TEXT, status TEXT,
    started_at INTEGER, ended_at INTEGER, tool TEXT, key TEXT, call_id TEXT, occurrence INTEGER, outcome TEXT,
    payload TEXT
) WITHOUT ROWID;
CREATE INDEX nodes_by_session ON nodes (session_id, seq);
CREATE INDEX nodes_by_key ON nodes (tool, key, ended_at);
"""


def words(rng: random.Random) -> Callable[[int], str]:
    known = ["".join(rng.choices("etaoinshrdlucmfwypvbgk", k=rng.randint(2, 10))) for _ in range(4000)]
    weights = [1 / (rank + 2) for rank in range(len(known))]  # as words are in a language
    return lambda size: " ".join(rng.choices(known, weights, k=size // 5))[:size]


def noise(rng: random.Random) -> Callable[[int], str]:
    alphabet = [chr(code) for code in range(33, 127) if chr(code) not in '"\\']
    return lambda size: "".join(rng.choices(alphabet, k=size))


def session_nodes(text: Callable[[int], str], size: int, count: int, rng: random.Random) -> list[Node]:
    session_id = SYSTEM_IDS()
    return [
        Node(
            id=SYSTEM_IDS(),
            session_id=session_id,
            seq=seq,
            kind=NodeKind.TOOL_CALL,
            name="lookup_order",
            started_at=START + seq * 1_000_000,
            ended_at=START + seq * 1_000_000 + rng.randint(10_000, 900_000),
            call=ToolCall(
                tool="lookup_order",
                arguments={"order_id": f"W{rng.randint(0, 10**7)}"},
                call_id=f"call_{rng.randbytes(12).hex()}",
                key=f"1:{rng.randbytes(32).hex()}",
            ),
            outcome=Outcome(kind=OutcomeKind.VALUE, value={"content": text(size)}),
        )
        for seq in range(count)
    ]


def raw_row(node: Node) -> tuple[object, ...]:
    assert node.call is not None
    assert node.outcome is not None
    payload = json.dumps({"arguments": node.call.arguments, "value": node.outcome.value}, separators=(",", ":"))
    return (
        node.id, node.session_id, node.parent_id, node.seq, node.kind.value, node.name, node.status.value,
        node.started_at, node.ended_at, node.call.tool, node.call.key, node.call.call_id, node.call.occurrence,
        node.outcome.kind.value, payload,
    )  # fmt: skip


def raw(folder: Path, sessions: Sequence[list[tuple[object, ...]]]) -> float:
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.executescript(_RAW)
    insert = f"INSERT INTO nodes VALUES ({', '.join('?' * 15)})"
    begun = time.perf_counter()
    for rows in sessions:
        for start in range(0, len(rows), BATCH):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, rows[start : start + BATCH])
            connection.execute("COMMIT")
    taken = time.perf_counter() - begun
    connection.close()
    return taken


def stored(folder: Path, sessions: Sequence[list[Node]], *, finish: bool) -> float:
    store = SqliteStore(folder / "store.db")
    begun = time.perf_counter()
    for nodes in sessions:
        session = Session(id=nodes[0].session_id, agent="support", started_at=START)
        store.sessions.begin(session)
        for start in range(0, len(nodes), BATCH):
            store.sessions.append(session.id, nodes[start : start + BATCH])
        if finish:
            store.sessions.finish(session)
    taken = time.perf_counter() - begun
    store.close()
    return taken


def best(run: Callable[[Path], float], times: list[float]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="playhead-bench-"))
    try:
        times.append(run(folder))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    rng = random.Random(7)
    kinds = {"text": words(rng), "incompressible": noise(rng)}
    print(f"{'payload':24}{'raw nodes/s':>14}{'append/s':>12}{'ratio':>8}{'with finish':>13}{'target':>8}")
    for kind, size, count in (("text", 1000, 4000), ("text", 10_000, 1000), ("incompressible", 10_000, 1000)):
        sessions = [session_nodes(kinds[kind], size, 500, rng) for _ in range(count // 500)]
        rows = [[raw_row(node) for node in nodes] for nodes in sessions]
        raw_times: list[float] = []
        append_times: list[float] = []
        finish_times: list[float] = []
        for _ in range(ROUNDS):
            best(lambda folder, rows=rows: raw(folder, rows), raw_times)
            best(lambda folder, sessions=sessions: stored(folder, sessions, finish=False), append_times)
            best(lambda folder, sessions=sessions: stored(folder, sessions, finish=True), finish_times)
        base, append, whole = (count / min(times) for times in (raw_times, append_times, finish_times))
        print(
            f"{kind + f' {size // 1000} KB':24}{base:14,.0f}{append:12,.0f}{append / base:8.2f}{whole / base:13.2f}"
            f"{TARGETS[kind]:8.1f}"
        )


if __name__ == "__main__":
    main()
