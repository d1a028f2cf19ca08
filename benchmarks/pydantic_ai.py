"""What recording costs a PydanticAI run: our part of each model call and tool call, and the run as a whole.

The parts are timed one by one while an agent of 20 tools makes 40 turns, so each request repeats a growing
conversation. The whole is the same run with a capability that does nothing in all hooks that ours uses, since the
framework's own price for hooks is not ours to save.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.usage import UsageLimits

from playhead.adapters.pydantic_ai import Playhead, models, tools
from playhead.engine.recorder import Recorder
from playhead.engine.steps import ToolStep
from playhead.store.memory import MemoryStore

TURNS = 40
TOOLS = 20
ROUNDS = 7
TEXT = "the order has three lines and ships on Tuesday. " * 20


class Nothing(AbstractCapability[Any]):
    """Every hook of ours, empty."""

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        return await handler()

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:
        raise error

    async def before_node_run(self, ctx: Any, *, node: Any) -> Any:
        return node

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return await handler(request_context)

    def get_wrapper_model(self, model: Any) -> Any:
        return WrapperModel(model)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)


def agent(capability: Any) -> Agent[None, str]:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(m.kind == "response" for m in messages)
        if turn < TURNS:
            arguments = {"order_id": "4821", "limit": turn, "expand": ["lines", "customer"]}
            return ModelResponse(parts=[ToolCallPart("tool_0", arguments, tool_call_id=f"c{turn}")])
        return ModelResponse(parts=[TextPart("done")])

    made = Agent(FunctionModel(answer, model_name="scripted"), instructions=TEXT, capabilities=[capability])

    async def lookup(order_id: str, limit: int = 5, expand: list[str] | None = None) -> str:
        """Looks up an order with its lines."""
        return TEXT

    for number in range(TOOLS):
        made.tool_plain(lookup, name=f"tool_{number}")
    return made


def spent(made: Agent[None, str]) -> float:
    """Processor seconds of the agent's thread for one run."""
    start = time.thread_time()
    asyncio.run(made.run("go", usage_limits=UsageLimits(request_limit=None)))
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
    begin, answered = Timed(models.Turn.begin), Timed(models.Turn.answered)
    about, returned = Timed(tools._about), Timed(tools._observe_result)
    opened = Timed(ToolStep.__init__)
    models.Turn.begin, models.Turn.answered = begin, answered  # type: ignore[method-assign]
    tools._about, tools._observe_result = about, returned
    ToolStep.__init__ = opened  # type: ignore[method-assign]
    for _ in range(ROUNDS):
        spent(agent(Playhead(recorder=recorder)))
        recorder.flush()
    report("model call", request=begin, response=answered)
    report("tool call", definition=about, step=opened, result=returned)


def report(name: str, **timed: Timed) -> None:
    detail = ", ".join(f"{part} {times.median:.1f}" for part, times in timed.items())
    print(f"{name}: {sum(times.median for times in timed.values()):.1f} us ({detail})")


def whole(recorder: Recorder) -> None:
    empty, recorded = agent(Nothing()), agent(Playhead(recorder=recorder))
    pairs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        pairs.append((spent(empty), spent(recorded)))
        recorder.flush()
    base, ours = (min(side) for side in zip(*pairs, strict=True))
    print(f"run of {TURNS} turns: {base * 1e3:.1f} ms, recorded {ours * 1e3:.1f} ms, {ours / base:.3f} x")


def main() -> None:
    recorder = Recorder(MemoryStore())
    whole(recorder)
    parts(recorder)
    recorder.close()


if __name__ == "__main__":
    main()
