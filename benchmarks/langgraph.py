"""What recording costs a LangGraph run: our part of each model call and tool call, and the run as a whole.

The parts are timed one by one while an agent of 20 tools makes 40 turns, so each request repeats a growing
conversation. The whole is the same run without playhead, in the same process, one after the other.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from playhead.adapters import langgraph as adapter
from playhead.adapters.langgraph import models, tools
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore

TURNS = 40
TOOLS = 20
ROUNDS = 7
TEXT = "the order has three lines and ships on Tuesday. " * 20


class Scripted(BaseChatModel):
    """Asks for a tool in every turn, then says that it is done."""

    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        turn = sum(m.type == "ai" for m in messages)
        message = AIMessage(content="done")
        if turn < TURNS:
            arguments = {"order_id": "4821", "limit": turn, "expand": ["lines", "customer"]}
            asked: Any = {"name": "tool_0", "args": arguments, "id": f"c{turn}", "type": "tool_call"}
            message = AIMessage(content="", tool_calls=[asked])
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages, stop, run_manager, **kwargs)


def agent() -> Any:
    async def lookup(order_id: str, limit: int = 5, expand: list[str] | None = None) -> str:
        """Looks up an order with its lines."""
        return TEXT

    offered = [StructuredTool.from_function(coroutine=lookup, name=f"tool_{n}") for n in range(TOOLS)]
    return create_agent(Scripted(), offered, system_prompt=TEXT)


def spent(made: Any) -> float:
    """Processor seconds of the agent's thread for one run."""
    start = time.thread_time()
    given: Any = {"messages": [{"role": "user", "content": "go"}]}
    asyncio.run(made.ainvoke(given, {"recursion_limit": 10 * TURNS}))
    return time.thread_time() - start


class Timed:
    """A function that keeps how long each of its calls took, in microseconds."""

    def __init__(self, inner: Callable[..., Any]) -> None:
        self.inner = inner
        self.took: list[float] = []

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return lambda *args, **kwargs: self(owner, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        try:
            return self.inner(*args, **kwargs)
        finally:
            self.took.append((time.perf_counter_ns() - start) / 1000)

    @property
    def median(self) -> float:
        return statistics.median(self.took)


def recorded(recorder: Recorder, made: Any) -> float:
    adapter.install()
    try:
        with seam.session("bench", recorder=recorder):
            took = spent(made)
    finally:
        adapter.uninstall()
    recorder.flush()
    return took


def parts(recorder: Recorder) -> None:
    turn, call = models._Turn, tools._Call
    timed: dict[tuple[Any, str], Timed] = {}
    for owner, name in (
        (turn, "__init__"), (turn, "begin"), (turn, "answered"), (models, "seen"),
        (call, "__init__"), (call, "returned"), (tools, "seen"), (tools, "_arrived"), (tools, "_ended"),
    ):  # fmt: skip
        timed[owner, name] = Timed(getattr(owner, name))
        setattr(owner, name, timed[owner, name])
    made = agent()
    for _ in range(ROUNDS):
        recorded(recorder, made)
    report("model call", {n: t for (o, n), t in timed.items() if o in (turn, models)})
    report("tool call", {n: t for (o, n), t in timed.items() if o in (call, tools)})
    for (owner, name), one in timed.items():
        setattr(owner, name, one.inner)


def report(name: str, timed: dict[str, Timed]) -> None:
    detail = ", ".join(f"{part.strip('_')} {times.median:.1f}" for part, times in timed.items())
    print(f"{name}: {sum(times.median for times in timed.values()):.1f} us ({detail})")


def whole(recorder: Recorder) -> None:
    made = agent()
    spent(made)
    pairs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        pairs.append((spent(made), recorded(recorder, made)))
    base, ours = (min(side) for side in zip(*pairs, strict=True))
    print(f"run of {TURNS} turns: {base * 1e3:.1f} ms, recorded {ours * 1e3:.1f} ms, {ours / base:.3f} x")
    each = (ours - base) * 1e6 / TURNS
    print(f"a turn (one model call, one tool call): {each:.0f} us more, session and boundary included")


def main() -> None:
    recorder = Recorder(MemoryStore())
    whole(recorder)
    parts(recorder)
    recorder.close()


if __name__ == "__main__":
    main()
