"""Situations in which a replay has to give back exactly what was recorded, without touching a live tool."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, ToolReturn
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import UsageLimits

import playhead
from playhead.adapters.pydantic_ai import Playhead
from playhead.core.values import FidelityKind, ReplayStatus, SessionStatus
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

LIVE: list[str] = []
"""Every live tool call."""


class World:
    """A store, and what is different outside the agent between recording and replay."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.recorder = Recorder(self.store, interval=0.001)
        self.template = "v1"
        self.now = itertools.count(1_700_000_000)

    def session(self) -> Any:
        self.recorder.flush()
        return self.store.sessions.find(SessionQuery()).items[0]

    def replay(self, agent: Any, **options: Any) -> playhead.ReplayResult:
        LIVE.clear()
        baseline = options.pop("baseline", None) or self.session()
        return playhead.replay(baseline.id, agent=agent, store=self.store, recorder=self.recorder, **options)


@pytest.fixture(autouse=True)
def own_loop() -> Iterator[None]:
    """`run_sync` leaves the loop that it makes open, so each test brings one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture
def world() -> Iterator[World]:
    LIVE.clear()
    made = World()
    playhead.install(sessions=False)
    yield made
    playhead.uninstall()
    made.recorder.close()


def live(name: str) -> int:
    LIVE.append(name)
    return len(LIVE)


def results(messages: list[ModelMessage]) -> list[Any]:
    return [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]


def prompts(messages: list[ModelMessage]) -> list[Any]:
    return [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]


def asks(*turns: list[tuple[Any, ...]], final: Callable[[list[ModelMessage]], str] | None = None) -> FunctionModel:
    """A model that plays the turns, calls of (tool, arguments[, id]), then says what it saw."""

    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        turn = sum(isinstance(m, ModelResponse) for m in messages)
        if turn < len(turns):
            calls = enumerate(turns[turn])
            return ModelResponse(
                parts=[ToolCallPart(c[0], c[1], tool_call_id=c[2] if len(c) > 2 else f"c{turn}-{i}") for i, c in calls]
            )
        return ModelResponse(parts=[TextPart(final(messages) if final else f"saw {results(messages)}")])

    return FunctionModel(answer, model_name="scripted")


class Order(BaseModel):
    id: int
    total: float


# --- the agents -----------------------------------------------------------------------------------------------------


def two_turns(world: World) -> str:
    agent = Agent(asks([("look", {"x": 1})], [("look", {"x": 2})]))

    @agent.tool_plain
    def look(x: int) -> dict[str, int]:
        return {"x": x, "n": live("look")}

    return agent.run_sync("go").output


def same_call_in_three_turns(world: World) -> str:
    agent = Agent(asks(*[[("poll", {"job": "a"})]] * 3))

    @agent.tool_plain
    def poll(job: str) -> str:
        return f"state {live('poll')}"

    return agent.run_sync("go").output


def same_call_twice_at_once(world: World) -> str:
    agent = Agent(asks([("poll", {"job": "a"}), ("poll", {"job": "a"})]))

    @agent.tool_plain
    async def poll(job: str) -> str:
        mine = live("poll")
        for _ in range(5 if mine == 1 else 0):  # the first finishes last
            await asyncio.sleep(0)
        return f"state {mine}"

    return asyncio.run(agent.run("go")).output


def retried(world: World) -> str:
    agent = Agent(asks([("book", {"day": "tomorow"})], [("book", {"day": "tomorrow"})]))

    @agent.tool_plain(retries=2)
    def book(day: str) -> str:
        live("book")
        if day != "tomorrow":
            raise ModelRetry("day must be today or tomorrow")
        return "booked"

    return agent.run_sync("go").output


def invalid_arguments(world: World) -> str:
    agent = Agent(asks([("book", {"day": "no date"})], [("book", {"day": "2026-01-02"})]))

    @agent.tool_plain(retries=2)
    def book(day: date) -> str:
        live("book")
        return f"booked {day.isoformat()}"

    return agent.run_sync("go").output


def tool_fails(world: World) -> str:
    agent = Agent(asks([("pay", {"amount": 5})]))

    @agent.tool_plain
    def pay(amount: int) -> str:
        live("pay")
        raise ConnectionError("gateway timeout")

    return agent.run_sync("go").output


def tool_fails_and_code_copes(world: World) -> str:
    try:
        return tool_fails(world)
    except ConnectionError as error:
        return f"fell back after {error}"


def tool_return_object(world: World) -> str:
    def final(messages: list[ModelMessage]) -> str:
        part = next(p for m in messages for p in m.parts if isinstance(p, ToolReturnPart))
        return f"{part.content!r} {part.metadata!r} {prompts(messages)[1:]}"

    agent = Agent(asks([("shot", {"n": 1})], final=final))

    @agent.tool_plain
    def shot(n: int) -> ToolReturn:
        live("shot")
        return ToolReturn(return_value="taken", content=["the screen", "42 items"], metadata={"n": n})

    return agent.run_sync("go").output


def model_instance(world: World) -> str:
    agent = Agent(asks([("order", {"id": 3})]))

    @agent.tool_plain
    def order(id: int) -> Order:
        live("order")
        return Order(id=id, total=12.5)

    return agent.run_sync("go").output


def nothing_returned(world: World) -> str:
    agent = Agent(asks([("delete", {"id": 3})]))

    @agent.tool_plain
    def delete(id: int) -> None:
        live("delete")

    return agent.run_sync("go").output


def repeated_call_ids(world: World) -> str:
    agent = Agent(asks([("look", {"x": 1}, "call_0")], [("look", {"x": 2}, "call_0")]))

    @agent.tool_plain
    def look(x: int) -> int:
        return x * 10 + live("look")

    return agent.run_sync("go").output


def two_agents_in_a_row(world: World) -> str:
    plan = Agent(asks(final=lambda m: f"plan for {prompts(m)[-1]}"), name="plan")
    act = Agent(asks([("do", {"x": 1})], final=lambda m: f"acted on {prompts(m)[-1]} {results(m)}"), name="act")

    @act.tool_plain
    def do(x: int) -> int:
        return x + live("do")

    return act.run_sync(f"step: {plan.run_sync('the goal').output}").output


def agent_inside_a_tool(world: World) -> str:
    child = Agent(asks([("lookup", {"q": "x"})], final=lambda m: f"child says {results(m)}"), name="child")

    @child.tool_plain
    def lookup(q: str) -> str:
        return f"fact {live('lookup')}"

    parent = Agent(asks([("ask", {"q": "why"})]), name="parent")

    @parent.tool_plain
    async def ask(q: str) -> str:
        live("ask")
        return (await child.run(f"sub question {q}")).output

    return parent.run_sync("go").output


def streamed(world: World) -> str:
    async def stream(messages: list[ModelMessage], info: Any) -> AsyncIterator[Any]:
        if results(messages):
            yield "saw "
            yield str(results(messages)[0])
        else:
            yield {0: DeltaToolCall(name="look", json_args='{"x": 1}', tool_call_id="s0")}

    agent = Agent(FunctionModel(stream_function=stream, model_name="scripted"))

    @agent.tool_plain
    def look(x: int) -> int:
        return x * 10 + live("look")

    async def go() -> str:
        async with agent.run_stream("go") as run:
            return await run.get_output()

    return asyncio.run(go())


def large_prompt(world: World) -> str:
    return Agent(asks(final=lambda m: f"saw {len(prompts(m)[-1])} characters")).run_sync("y" * 200_000).output


def limit_of_calls(world: World) -> str:
    agent = Agent(asks([("look", {"x": 1})], [("look", {"x": 2}), ("look", {"x": 3})]))

    @agent.tool_plain
    def look(x: int) -> int:
        return live("look")

    try:
        return agent.run_sync("go", usage_limits=UsageLimits(tool_calls_limit=2)).output
    except UsageLimitExceeded as error:
        return f"stopped: {error}"


def output_function(world: World) -> str:
    @playhead.tool(effect="write")
    def save(text: str) -> str:
        return f"saved {text}: {live('save')}"

    return Agent(asks([("final_result", {"text": "x"})]), output_type=save).run_sync("go").output


def structured_output(world: World) -> str:
    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"id": 1, "total": 2.5}, tool_call_id="o")])

    return str(Agent(FunctionModel(answer, model_name="scripted"), output_type=Order).run_sync("go").output)


SITUATIONS = [
    two_turns, same_call_in_three_turns, same_call_twice_at_once, retried, invalid_arguments, tool_fails,
    tool_fails_and_code_copes, tool_return_object, model_instance, nothing_returned, repeated_call_ids,
    two_agents_in_a_row, agent_inside_a_tool, streamed, large_prompt, structured_output, limit_of_calls,
    output_function,
]  # fmt: skip


def recorded(world: World, situation: Callable[[World], str]) -> tuple[Callable[[], Any], Any, Any]:
    """Runs a situation as a recorded agent; gives the agent, what it returned or raised, and the session."""

    @playhead.agent(situation.__name__, recorder=world.recorder)
    def desk() -> str:
        return situation(world)

    try:
        said: Any = desk()
    except Exception as error:
        said = error
    return desk, said, world.session()


@pytest.mark.parametrize("model_policy", [None, {"type": "history"}], ids=["live-model", "recorded-model"])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda f: f.__name__)
def test_an_unchanged_replay_gives_back_the_recording(
    world: World, situation: Callable[[World], str], model_policy: Any
) -> None:
    agent, said, session = recorded(world, situation)

    result = world.replay(agent, baseline=session, model_policy=model_policy)

    assert LIVE == []
    assert result.status is ReplayStatus.COMPLETED
    assert (result.fidelity.kind, result.fidelity.divergence) == (
        FidelityKind.UNPROVEN if not _has_calls(world, session) and model_policy is None else FidelityKind.FAITHFUL,
        None,
    )
    assert result.session.status is session.status
    assert result.output == session.output
    if isinstance(said, Exception):
        assert session.status is SessionStatus.FAILED
        assert result.session.error is not None
        assert (result.session.error.class_name, result.session.error.message) == (type(said).__name__, str(said))
    else:
        assert result.output == said


def _has_calls(world: World, session: Any) -> bool:
    return any(node.call is not None for node in world.store.sessions.nodes(session.id))


def since_now(world: World) -> str:
    agent = Agent(asks([("since", {"t": next(world.now), "topic": "orders"})]))

    @agent.tool_plain
    def since(t: int, topic: str) -> str:
        live("since")
        return "3 new"

    return agent.run_sync("go").output


def test_an_argument_that_always_changes_is_an_honest_miss(world: World) -> None:
    agent, _, session = recorded(world, since_now)

    result = world.replay(agent, baseline=session)

    assert LIVE == []
    assert result.status is ReplayStatus.FAILED
    assert result.error is not None
    assert "/t" in result.error.message
    assert "/topic" not in result.error.message
    assert "ignore" in result.error.message


def test_an_ignored_argument_is_served_and_marked_loose(world: World) -> None:
    agent, _, session = recorded(world, since_now)
    policy = {"default": {"type": "history"}, "tools": {"since": {"type": "history", "ignore": ["/t"]}}}

    result = world.replay(agent, baseline=session, tool_policy=policy)

    assert LIVE == []
    assert result.status is ReplayStatus.COMPLETED
    assert result.output == session.output
    assert ["loose" in row.marks for row in result.ledger if row.tool == "since"] == [True]


def test_the_callers_message_history_is_part_of_the_inputs(world: World) -> None:
    agent = Agent(
        asks(final=lambda m: f"heard {prompts(m)}"), name="chat", capabilities=[Playhead(recorder=world.recorder)]
    )
    earlier = [ModelRequest(parts=[UserPromptPart("my name is Ada")]), ModelResponse(parts=[TextPart("hi Ada")])]
    said = agent.run_sync("what is my name?", message_history=earlier).output

    result = world.replay(agent, model_policy={"type": "history"})

    assert said == "heard ['my name is Ada', 'what is my name?']"
    assert result.output == said
    assert result.fidelity.kind is FidelityKind.FAITHFUL


def with_template(world: World) -> str:
    return Agent(asks(final=lambda m: f"saw {prompts(m)[-1]}")).run_sync(f"[{world.template}] refund").output


def test_changed_code_shows_in_the_replay(world: World) -> None:
    agent, said, session = recorded(world, with_template)
    world.template = "v2"

    result = world.replay(agent, baseline=session)

    assert said == "saw [v1] refund"
    assert result.status is ReplayStatus.COMPLETED
    assert result.output == "saw [v2] refund"


def test_changed_code_is_the_first_difference_under_model_history(world: World) -> None:
    agent, _, session = recorded(world, with_template)
    world.template = "v2"

    result = world.replay(agent, baseline=session, model_policy={"type": "history"})

    assert result.status is ReplayStatus.FAILED
    assert result.error is not None
    assert "[v2] refund" in result.error.message
    assert "[v1] refund" in result.error.message
