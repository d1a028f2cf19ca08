"""What recording costs an OpenAI Agents run: our part of each model call and tool call, and the run as a whole.

The parts are timed one by one while an agent of 20 tools makes 40 turns, so each request repeats a growing
conversation. The whole is the same run by the framework's own runner.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import agents
from agents import Agent, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from agents.testing import assistant_message, function_call

from playhead.adapters.openai_agents import Runner, tools, turns
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore

TURNS = 40
TOOLS = 20
ROUNDS = 7
TEXT = "the order has three lines and ships on Tuesday. " * 20


class Scripted(Model):
    """Asks for one tool a turn. The framework's own scripted model copies every request, which would hide the rest."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        turn = sum(item.get("type") == "function_call" for item in input if isinstance(item, dict))
        if turn < TURNS:
            arguments = {"order_id": "4821", "limit": turn, "expand": ["lines", "customer"]}
            return ModelResponse([function_call("tool_0", arguments, call_id=f"c{turn}")], Usage(), None)
        return ModelResponse([assistant_message("done")], Usage(), None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def agent() -> Agent[Any]:
    async def lookup(order_id: str, limit: int = 5, expand: list[str] | None = None) -> str:
        """Looks up an order with its lines."""
        return TEXT

    offered: list[Any] = [function_tool(lookup, name_override=f"tool_{number}") for number in range(TOOLS)]
    return Agent(name="desk", instructions=TEXT, model=Scripted(), tools=offered)


def spent(runner: Any) -> float:
    """Processor seconds of the agent's thread for one run."""
    made = agent()
    start = time.thread_time()
    asyncio.run(runner.run(made, "go", max_turns=TURNS + 2))
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


def parts(recorder: Recorder) -> None:
    begin, answered = Timed(turns.Turn.begin), Timed(turns.Turn.answered)
    opened, watched, observed = Timed(tools.Gate._opened), Timed(tools.Gate._watched), Timed(tools.Gate._observe)
    offered = Timed(tools.gated)
    turns.Turn.begin, turns.Turn.answered = begin, answered  # type: ignore[method-assign]
    tools.Gate._opened, tools.Gate._watched, tools.Gate._observe = opened, watched, observed  # type: ignore[method-assign]
    tools.gated = offered
    for _ in range(ROUNDS):
        spent(Runner(recorder=recorder))
        recorder.flush()
    model = begin.median + answered.median + offered.median
    print(
        f"model call: {model:6.1f} us (request {begin.median:.1f}, response {answered.median:.1f}, "
        f"gates of {TOOLS} tools {offered.median:.1f})"
    )
    tool = opened.median + watched.median + observed.median
    print(
        f"tool call:  {tool:6.1f} us (step {opened.median:.1f}, around the tool {watched.median:.1f}, "
        f"result {observed.median:.1f})"
    )


def whole(recorder: Recorder) -> None:
    recording = Runner(recorder=recorder)
    pairs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        pairs.append((spent(agents.Runner), spent(recording)))
        recorder.flush()
    base, ours = (min(side) for side in zip(*pairs, strict=True))
    per_turn = (ours - base) / TURNS * 1e6
    print(
        f"run of {TURNS} turns: {base * 1000:.1f} ms bare, {ours * 1000:.1f} ms recorded, {ours / base:.3f} x, "
        f"{per_turn:.0f} us more a turn"
    )


def main() -> None:
    set_tracing_disabled(True)
    recorder = Recorder(MemoryStore())
    whole(recorder)
    parts(recorder)
    recorder.close()


if __name__ == "__main__":
    main()
