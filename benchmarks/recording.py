"""What recording costs the agent's thread, per tool call and per model call.

A tool call is the same function with and without ``@playhead.tool``; the yardstick beside it, in the same loop, is what
any recorder has to do at least: ``json.dumps`` of the arguments (sorted), sha256, ``json.dumps`` of the result. A model
call opens the step, announces two tool calls and observes the response; its request repeats a growing conversation.
"Hot" calls are timed one by one between flushes; "busy" calls while the writer works on what came before.
"""

import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.adapters.functions import tool
from playhead.core.values import JSON
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.store.sqlite import SqliteStore

TEXT = "the order has three lines and ships on Tuesday. " * 20
ROUNDS = 60
CALLS = 25


def row(size: int) -> JSON:
    """A tool result of about ``size`` bytes of JSON."""
    item = {"sku": "A-1001", "title": "a chair of oiled oak", "qty": 2, "price": 129.5, "in_stock": True, "note": None}
    return {"order": "4821", "items": [{**item, "sku": f"A-{n}"} for n in range(max(1, size // 110))]}


def timed(call: Callable[[], Any]) -> int:
    start = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start


@dataclass(slots=True)
class Times:
    """Nanoseconds of single calls."""

    name: str
    values: list[int]

    @property
    def median(self) -> float:
        return statistics.median(self.values) / 1000

    @property
    def p99(self) -> float:
        return sorted(self.values)[int(len(self.values) * 0.99)] / 1000


def least(arguments: JSON, result: JSON) -> None:
    hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
    json.dumps(result)


def tools(recorder: Recorder, size: int, *, busy: bool) -> tuple[Times, Times]:
    """Times of the recording part of a tool call, and of the yardstick."""
    result = row(size)

    def plain(order_id: str, limit: int = 5, expand: list[str] | None = None) -> JSON:
        return result

    recorded = tool("lookup")(plain)
    own, yard = Times("tool", []), Times("yardstick", [])
    arguments = {"order_id": "4821", "limit": 10, "expand": ["items", "customer"]}
    with seam.session("bench", recorder=recorder):
        for _ in range(ROUNDS):
            for _ in range(CALLS):
                bare = timed(lambda: plain(**arguments))
                own.values.append(timed(lambda: recorded(**arguments)) - bare)
                yard.values.append(timed(lambda: least(arguments, result)))
            if not busy:
                recorder.flush()
    recorder.flush()
    return own, yard


def message(role: str, text: str) -> JSON:
    return {"role": role, "parts": [{"type": "text", "text": text}]}


def plain_messages(turn: int) -> list[JSON]:
    return [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": f"c{turn}", "name": "x", "arguments": {}}]},
        {"role": "tool", "parts": [{"type": "tool_result", "id": f"c{turn}", "name": "x", "content": TEXT}]},
    ]  # fmt: skip


def models(
    recorder: Recorder, turns: int, start: list[Any], grow: Callable[[int], list[Any]], to_normal: Any, *, busy: bool
) -> Times:
    """Times of the recording part of a model call, over a conversation that grows to ``turns`` turns."""
    own = Times("model", [])
    schemas = [
        {"name": f"tool_{n}", "description": "a tool " * 10, "parameters": {"type": "object"}} for n in range(15)
    ]
    answer = {"role": "assistant", "parts": [{"type": "text", "text": "looking"}]}
    for _ in range(12):
        with seam.session("bench", recorder=recorder) as active:
            assert active is not None
            messages = list(start)
            for turn in range(turns):

                def call(active: Any = active, messages: Any = messages, turn: int = turn) -> None:
                    request = seam.ModelRequest(
                        messages=messages, to_normal=to_normal, tools=schemas, model="m", params={"temperature": 0}
                    )
                    step = active.model_call("m", request=request)
                    step.decide()
                    step.announce([seam.Requested(f"a{turn}", "lookup", '{"n": 1}')])
                    step.observe(seam.ModelResult(message=answer))
                    active.slots.undecided.clear()  # decided elsewhere; settling is not what is measured

                own.values.append(timed(call))
                messages += grow(turn)
                if not busy and turn % 10 == 0:
                    recorder.flush()
    recorder.flush()
    return own


def framework_messages(turn: int) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

    return [
        ModelResponse(parts=[ToolCallPart("lookup", {"n": turn}, tool_call_id=f"c{turn}")]),
        ModelRequest(parts=[ToolReturnPart("lookup", row(300), tool_call_id=f"c{turn}")]),
    ]


def to_normal(framework: Any) -> list[JSON]:
    return [message("user", str(getattr(part, "content", ""))) for part in framework.parts]


def show(what: str, times: Times, target: float, ratio: str = "") -> None:
    print(f"{what:<34} median {times.median:7.1f} us   p99 {times.p99:7.1f} us   target {target:g} us{ratio}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db")
        recorder = Recorder(store, queue_size=1_000_000)
        tools(recorder, 1_000, busy=False)  # warm
        for size in (100, 1_000, 10_000):
            own, yard = tools(recorder, size, busy=False)
            ratio = f"   {own.median / yard.median:.2f}x of dumps + sha256 + dumps ({yard.median:.1f} us)"
            show(f"tool call, {size:,} B result", own, 50, ratio)
        show("tool call, writer busy (p99 < 200)", tools(recorder, 1_000, busy=True)[0], 200)
        start = [message("system", "be kind " * 200), message("user", "where is my order?")]
        show("model call, 50 turns", models(recorder, 50, start, plain_messages, None, busy=False), 100)
        show("model call, writer busy", models(recorder, 50, start, plain_messages, None, busy=True), 200)
        try:
            objects = framework_messages(0)
        except ImportError:
            print("model call, PydanticAI objects: not installed")
        else:
            show(
                "model call, PydanticAI objects",
                models(recorder, 50, objects, framework_messages, to_normal, busy=False),
                150,
            )
        recorder.close()
        store.close()


if __name__ == "__main__":
    main()
