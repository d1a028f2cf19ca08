"""What recording costs the agent's thread, per tool call and per model call.

A tool call is the same function with and without ``@playhead.tool``; the yardstick beside it, in the same loop, is what
any recorder has to do at least: ``json.dumps`` of the arguments (sorted), sha256, ``json.dumps`` of the result. A model
call opens the step, announces two tool calls and observes the response; its request repeats a growing conversation.
"Hot" calls are timed one by one between flushes; "busy" calls while the writer works on what came before. Beside a
busy call stands the 99th percentile of plain work of the same length in the same loop, which is the machine's own.
A call on the wire begins with the bytes of an OpenAI request and ends with those of its response.
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
BUSY = 200  # us, target of the 99th percentile while the writer works
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
) -> tuple[Times, Times]:
    """Times of the recording part of a model call, over a conversation that grows to ``turns`` turns, and of plain
    work of about the same length."""
    own, plain = Times("model", []), Times("plain work", [])
    work = row(3_000)
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
                plain.values.append(timed(lambda: json.dumps(work)))
                messages += grow(turn)
                if not busy and turn % 10 == 0:
                    recorder.flush()
    recorder.flush()
    return own, plain


def wire(recorder: Recorder, turns: int) -> tuple[Times, Times]:
    """Times of the recording part of a call on the wire at ``turns`` turns, and of parsing its request."""
    from playhead.adapters.wire.exchange import begin

    said = [{"role": "system", "content": "be kind " * 200}, {"role": "user", "content": "where is my order?"}]
    for turn in range(turns):
        function = {"name": "tool_1", "arguments": json.dumps({"order_id": str(turn)})}
        asked = {"id": f"c{turn}", "type": "function", "function": function}
        said.append({"role": "assistant", "content": None, "tool_calls": [asked]})  # type: ignore[dict-item]
        said.append({"role": "tool", "tool_call_id": f"c{turn}", "content": TEXT[:400]})
    offered = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": "a tool " * 10, "parameters": {}}}
        for n in range(15)
    ]
    answer = b'{"id": "r", "model": "m", "choices": [{"message": {"role": "assistant", "content": "looking"}}]}'
    bodies = [
        json.dumps({"model": "m", "messages": said[:count], "tools": offered}).encode()
        for count in range(2, len(said) + 1, 2)
    ]
    own, parsing = Times("wire", []), Times("json.loads", [])
    for _ in range(12):
        with seam.session("bench", recorder=recorder):
            for body in bodies:

                def call(body: bytes = body) -> None:
                    begun = begin("/v1/chat/completions", body, "openai")
                    assert begun is not None
                    begun.exchange.answer()
                    begun.exchange.began(200, {"content-type": "application/json"})
                    begun.exchange.body(answer)

                if body is bodies[-1]:
                    recorder.flush()
                taken = timed(call)
                if body is bodies[-1]:
                    own.values.append(taken)
                    parsing.values.append(timed(lambda body=body: json.loads(body)))
            recorder.flush()
    return own, parsing


def framework_messages(turn: int) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

    return [
        ModelResponse(parts=[ToolCallPart("lookup", {"n": turn}, tool_call_id=f"c{turn}")]),
        ModelRequest(parts=[ToolReturnPart("lookup", row(300), tool_call_id=f"c{turn}")]),
    ]


def to_normal(framework: Any) -> list[JSON]:
    return [message("user", str(getattr(part, "content", ""))) for part in framework.parts]


def show(what: str, times: Times, target: float, more: str = "") -> None:
    """The median against its target."""
    print(
        f"{what:<34} median {times.median:7.1f} us = {times.median / target:4.2f}x of its target {target:g} us   "
        f"p99 {times.p99:7.1f} us{more}"
    )


def show_busy(what: str, times: Times, plain: Times) -> None:
    """The 99th percentile against its target, beside that of plain work."""
    print(
        f"{what:<34} p99    {times.p99:7.1f} us = {times.p99 / BUSY:4.2f}x of its target {BUSY:g} us   "
        f"plain work in the same loop: median {plain.median:.1f} us, p99 {plain.p99:.1f} us"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db")
        recorder = Recorder(store, queue_size=1_000_000)
        tools(recorder, 1_000, busy=False)  # warm
        for size in (100, 1_000, 10_000):
            own, yard = tools(recorder, size, busy=False)
            ratio = f"   {own.median / yard.median:.2f}x of dumps + sha256 + dumps ({yard.median:.1f} us)"
            show(f"tool call, {size:,} B result", own, 50, ratio)
        show_busy("tool call, writer busy", *tools(recorder, 1_000, busy=True))
        start = [message("system", "be kind " * 200), message("user", "where is my order?")]
        show("model call, 50 turns", models(recorder, 50, start, plain_messages, None, busy=False)[0], 100)
        show_busy("model call, writer busy", *models(recorder, 50, start, plain_messages, None, busy=True))
        for turns in (5, 50):
            own, parsing = wire(recorder, turns)
            more = f"   {own.median / parsing.median:.2f}x of json.loads of its request ({parsing.median:.1f} us)"
            show(f"model call on the wire, {2 * turns} messages", own, 100, more)
        try:
            objects = framework_messages(0)
        except ImportError:
            print("model call, PydanticAI objects: not installed")
        else:
            show(
                "model call, PydanticAI objects",
                models(recorder, 50, objects, framework_messages, to_normal, busy=False)[0],
                150,
            )
        recorder.close()
        store.close()


if __name__ == "__main__":
    main()
