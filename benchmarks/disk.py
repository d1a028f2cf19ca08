"""Bytes on disk and reading of a 100-turn session, beside its transcript.

Raw JSON is what every model request of the session says, one after the other, as a log would keep it. The transcript is
the last of them with its answer, compressed with zstd at its default level: the least that any recording must hold. The
store's bytes are what the file grows by for one session, rows, indexes, tool schemas and free pages included.
"""

import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.ingest import START, words
from playhead.core.codec import encode
from playhead.core.values import (
    JSON,
    Cost,
    ModelCall,
    Node,
    NodeKind,
    Outcome,
    OutcomeKind,
    Session,
    ToolCall,
    Usage,
)
from playhead.engine.clock import SYSTEM_IDS
from playhead.store.compression import zstd
from playhead.store.sqlite import SqliteStore

TURNS = 100
SESSIONS = 16
READ = 10.0  # ms, target of reading one back whole
CASES = (("short results", 300, 3.0), ("results of 1 KB", 1_000, 3.0), ("results of 20 KB", 20_000, 2.0))


def schemas(text: Callable[[int], str], rng: random.Random) -> list[JSON]:
    return [
        {
            "name": f"tool_{number}",
            "description": text(300),
            "parameters": {
                "type": "object",
                "properties": {text(8): {"type": "string", "description": text(80)} for _ in range(rng.randint(1, 5))},
            },
        }
        for number in range(15)
    ]


def recorded(text: Callable[[int], str], size: int, tools: list[JSON], rng: random.Random) -> list[Node]:
    session_id = SYSTEM_IDS()
    messages: list[JSON] = [
        {"role": "system", "parts": [{"type": "text", "text": text(3000)}]},
        {"role": "user", "parts": [{"type": "text", "text": text(300)}]},
    ]
    nodes: list[Node] = []
    for turn in range(TURNS):
        name, call_id = f"tool_{turn % 15}", f"call_{rng.randbytes(12).hex()}"
        arguments = {"order_id": f"W{rng.randint(0, 10**7)}", "reason": text(40)}
        requested = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
        answer = {"role": "assistant", "parts": [{"type": "text", "text": text(120)}, requested]}
        inputs = {"messages": list(messages), "tools": tools, "tool_choice": "auto", "params": {"temperature": 0.2}}
        asked = model_node(session_id, turn, inputs, answer, rng)
        result = text(size)
        call = ToolCall(
            tool=name,
            arguments=arguments,
            call_id=call_id,
            key=f"1:{rng.randbytes(32).hex()}",
            model_call=asked.id,
            index=0,
        )
        nodes += [asked, tool_node(session_id, turn, call, result, rng)]
        part = {"type": "tool_result", "id": call_id, "name": name, "content": result}
        messages = [*messages, answer, {"role": "tool", "parts": [part]}]
    return nodes


def model_node(session_id: str, turn: int, inputs: JSON, answer: JSON, rng: random.Random) -> Node:
    at = START + turn * 2 * 10**10
    return Node(
        id=SYSTEM_IDS(),
        session_id=session_id,
        seq=2 * turn,
        kind=NodeKind.MODEL_CALL,
        name="gpt-5",
        started_at=at,
        ended_at=at + rng.randint(10**8, 10**10),
        inputs=inputs,
        outcome=Outcome(kind=OutcomeKind.VALUE, value=answer),
        model=ModelCall(
            requested="gpt-5",
            served="gpt-5-2026-08-01",
            provider="openai",
            protocol="openai.chat",
            response_id=f"chatcmpl-{rng.randbytes(12).hex()}",
            key=f"1:{rng.randbytes(32).hex()}",
            usage=Usage(input_uncached=rng.randint(100, 9999), output_visible=rng.randint(10, 400)),
            cost=Cost(amount=f"0.0{rng.randint(1000, 9999)}"),
        ),
    )


def tool_node(session_id: str, turn: int, call: ToolCall, result: str, rng: random.Random) -> Node:
    at = START + turn * 2 * 10**10 + 10**10
    return Node(
        id=SYSTEM_IDS(),
        session_id=session_id,
        seq=2 * turn + 1,
        kind=NodeKind.TOOL_CALL,
        name=call.tool,
        started_at=at,
        ended_at=at + rng.randint(10**6, 10**9),
        call=call,
        outcome=Outcome(kind=OutcomeKind.VALUE, value=result),
    )


def keep(store: SqliteStore, nodes: list[Node]) -> None:
    session = Session(id=nodes[0].session_id, agent="support", started_at=nodes[0].started_at)
    store.sessions.begin(session)
    for start in range(0, len(nodes), 4):
        store.sessions.append(session.id, nodes[start : start + 4])
    store.sessions.finish(session)


def size_on_disk(store: SqliteStore) -> int:
    """The file once everything is in it; pages that compaction freed count only as far as they are left over."""
    store.close()
    return store.path.stat().st_size


def main() -> None:
    rng = random.Random(11)
    text = words(rng)
    titles = {
        "raw JSON": 12,
        "transcript": 12,
        "store": 10,
        "of raw": 9,
        "ratio": 8,
        "target": 8,
        "read ms": 9,
        "target ms": 11,
    }
    print(f"{f'{TURNS} turns':18}" + "".join(f"{title:>{width}}" for title, width in titles.items()))
    for name, size, target in CASES:
        tools = schemas(text, rng)
        sessions = [recorded(text, size, tools, rng) for _ in range(SESSIONS)]
        last = sessions[0][-2]
        assert last.outcome is not None
        raw = sum(len(encode(node.inputs)) for node in sessions[0] if node.model)
        transcript = len(zstd.compress(encode([*last.inputs["messages"], last.outcome.value])))
        folder = Path(tempfile.mkdtemp(prefix="playhead-bench-"))
        try:
            path = folder / "store.db"
            store = SqliteStore(path)
            keep(store, sessions[0])
            before = size_on_disk(store)
            store = SqliteStore(path)
            for nodes in sessions[1:]:
                keep(store, nodes)
            grown = (size_on_disk(store) - before) / (SESSIONS - 1)
            store = SqliteStore(path)
            times: list[float] = []
            for nodes in sessions[:5]:
                begun = time.perf_counter()
                found = store.sessions.nodes(nodes[0].session_id)
                times.append((time.perf_counter() - begun) * 1000)
                assert found == nodes
            store.close()
        finally:
            shutil.rmtree(folder)
        print(
            f"{name:18}{raw / 1000:9,.0f} kB{transcript / 1000:9,.1f} kB{grown / 1000:7,.1f} kB{grown / raw:9.4f}"
            f"{grown / transcript:8.2f}{target:8.1f}{min(times):9.1f}{READ:11.0f}"
        )


if __name__ == "__main__":
    main()
