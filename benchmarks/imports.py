"""Import rate: 1,000 sessions of 20 nodes from a playhead file and from transcripts, beside what the parts cost alone.

Run: ``python -m benchmarks.imports [SESSIONS]``. Ratios come from one run on one machine; times alone say little.
"""

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playhead.engine.exports import export_jsonl, find_ids
from playhead.importers import import_paths
from playhead.store.open import open_store
from playhead.store.ports import SessionQuery


def talk(number: int) -> dict:
    """Ten answers that ask for a tool, ten results: 20 nodes of about 1 KB."""
    messages: list[dict] = [{"role": "system", "content": "You are a shop assistant. " * 20}]
    for n in range(10):
        arguments = json.dumps({"order_id": f"{number}-{n}", "note": "please " * 20})
        call = {"id": f"c{n}", "type": "function", "function": {"name": f"tool_{n % 4}", "arguments": arguments}}
        messages += [
            {"role": "user", "content": f"question {n} of {number} " * 10},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"c{n}",
                "content": json.dumps({"row": n, "text": f"word{number} " * 100}),
            },
        ]
    return {"id": f"talk-{number}", "model": "m", "temperature": 0.1, "messages": messages}


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def parsed(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def inserted(path: Path, database: Path) -> None:
    """The lines of the file as rows of a bare table, in one transaction: the least a store can do."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE lines (id INTEGER PRIMARY KEY, text BLOB)")
    with path.open("rb") as file, connection:
        connection.executemany("INSERT INTO lines (text) VALUES (?)", ((line,) for line in file))
    connection.close()


def main(sessions: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chats, lines = folder / "chats.jsonl", folder / "lines.jsonl"
        chats.write_text("".join(json.dumps(talk(n)) + "\n" for n in range(sessions)))
        store, other = open_store(folder / "own.db"), open_store(folder / "chats.db")
        built = timed(lambda: import_paths(other, [chats]))
        export_jsonl(other, find_ids(other, SessionQuery()), lines)
        native = timed(lambda: import_paths(store, [lines]))
        again = timed(lambda: import_paths(store, [lines]))
        loads, raw = timed(lambda: parsed(lines)), timed(lambda: inserted(lines, folder / "raw.db"))
        nodes = sum(len(store.sessions.nodes(i, payloads=False)) for i in find_ids(store, SessionQuery()))
        store.close()
        other.close()
        megabytes = lines.stat().st_size / 1e6

    def rate(seconds: float) -> str:
        return f"{seconds:7.2f} s  {sessions / seconds:8,.0f} sessions/s  {nodes / seconds:8,.0f} nodes/s"

    print(f"{sessions:,} sessions, {nodes:,} nodes, {megabytes:.1f} MB as a playhead file")
    print(f"playhead file into SQLite        {rate(native)}")
    print(f"  the same again (unchanged)     {rate(again)}")
    print(f"transcripts into SQLite          {rate(built)}")
    print(f"json.loads of the playhead file  {loads:7.2f} s  import is {native / loads:.1f}x of it")
    print(f"raw SQLite insert of its lines   {raw:7.2f} s  import is {native / raw:.1f}x of it")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
