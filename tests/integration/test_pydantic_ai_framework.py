"""What PydanticAI can do beyond the common scenarios, recorded and replayed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ImageUrl,
    RunContext,
    ToolReturn,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, ModelHTTPError, SkipModelRequest, SkipToolExecution
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import UsageLimits

import playhead
from playhead.adapters.pydantic_ai import Playhead
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import OutcomeKind, ReplayStatus, SessionStatus
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.bench import Bench, Recorded

LIVE: list[Any] = []
ASKED: list[tuple[list[ModelMessage], AgentInfo]] = []


@pytest.fixture
def bench() -> Iterator[Bench]:
    LIVE.clear()
    ASKED.clear()
    playhead.install(sessions=False)
    made = Bench()
    yield made
    made.close()
    playhead.uninstall()


def asks(*turns: list[tuple[str, Any]], final: Callable[[list[ModelMessage]], str] | None = None) -> FunctionModel:
    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        ASKED.append((messages, info))
        turn = sum(isinstance(m, ModelResponse) for m in messages)
        if turn < len(turns):
            calls = enumerate(turns[turn])
            return ModelResponse(parts=[ToolCallPart(t, a, tool_call_id=f"c{turn}-{i}") for i, (t, a) in calls])
        return ModelResponse(parts=[TextPart(final(messages) if final else f"saw {results(messages)}")])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for index, part in enumerate(reply(messages, info).parts):
            if isinstance(part, ToolCallPart):
                yield {
                    index: DeltaToolCall(
                        name=part.tool_name, json_args=part.args_as_json_str(), tool_call_id=part.tool_call_id
                    )
                }
            elif isinstance(part, TextPart):
                for character in part.content:
                    yield character

    return FunctionModel(reply, stream_function=stream, model_name="scripted")


def results(messages: list[ModelMessage]) -> list[Any]:
    return [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]


def first_prompt(messages: list[ModelMessage]) -> Any:
    return next(p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart))


def run(agent: Agent[Any, Any], **options: Any) -> Callable[[str], Any]:
    return lambda prompt: asyncio.run(agent.run(prompt, **options)).output


def record(bench: Bench, target: Callable[..., Any]) -> Recorded:
    baseline = bench.record(target, {"prompt": "go"})
    LIVE.clear()
    ASKED.clear()
    return baseline


def check(bench: Bench, baseline: Recorded, target: Callable[..., Any]) -> None:
    """Both kinds of unchanged replay give back the recording and enter nothing."""
    for policy in (None, HistoryModel()):
        result = bench.replay(baseline, target, model_policy=policy)
        assert LIVE == []
        assert result.session.output == baseline.session.output, result.message
        assert result.faithful, (policy, result.replay.fidelity)


# --- streams --------------------------------------------------------------------------------------------------------


def test_tools_that_run_before_the_stream_is_closed_have_their_places(bench: Bench) -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield "an answer "
        yield "with two calls"
        yield {
            1: DeltaToolCall(name="look", json_args='{"x": 1}', tool_call_id="a"),
            2: DeltaToolCall(name="look", json_args='{"x": 1}', tool_call_id="b"),
        }

    agent = Agent(FunctionModel(stream_function=stream, model_name="scripted"), end_strategy="exhaustive")

    @agent.tool_plain
    def look(x: int) -> int:
        LIVE.append(x)
        return len(LIVE)

    async def streamed(prompt: str) -> str:
        async with agent.run_stream(prompt) as found:
            return await found.get_output()

    def target(prompt: str) -> str:
        return asyncio.run(streamed(prompt))

    baseline = record(bench, target)

    assert [(n.call.index, n.call.model_call) for n in baseline.calls if n.call] == [
        (0, baseline.model_calls[0].id),
        (1, baseline.model_calls[0].id),
    ]
    check(bench, baseline, target)


def test_a_served_stream_gives_the_same_text(bench: Bench) -> None:
    agent = Agent(asks())

    async def streamed(prompt: str) -> list[str]:
        async with agent.run_stream(prompt) as found:
            return ["".join([piece async for piece in found.stream_text(delta=True, debounce_by=None)])]

    def target(prompt: str) -> list[str]:
        return asyncio.run(streamed(prompt))

    baseline = record(bench, target)
    result = bench.replay(baseline, target, model_policy=HistoryModel())

    assert baseline.output == ["saw []"]
    assert result.session.output == baseline.output
    assert ASKED == []
    assert [n.model.streamed for n in result.model_calls if n.model] == [True]


def test_a_run_whose_consumer_leaves_is_abandoned(bench: Bench) -> None:
    agent = Agent(asks(), name="left", capabilities=[Playhead(recorder=bench.recorder)])

    async def leave() -> None:
        async with agent.run_stream_events("go") as events:
            async for _ in events:
                break

    asyncio.run(leave())
    bench.recorder.flush()
    (session,) = bench.store.sessions.find(SessionQuery()).items

    assert session.status is SessionStatus.ABANDONED


# --- what other capabilities do -------------------------------------------------------------------------------------


class Shorten(AbstractCapability[Any]):
    """Keeps the last ``keep`` characters of user prompts, in the request only."""

    def __init__(self, keep: int) -> None:
        self.keep = keep

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        request_context.messages = [
            replace(
                m,
                parts=[
                    replace(p, content=p.content[-self.keep :]) if isinstance(p, UserPromptPart) else p for p in m.parts
                ],
            )
            for m in request_context.messages
        ]
        return request_context


def test_the_request_is_what_other_capabilities_made_of_it(bench: Bench) -> None:
    def target_with(keep: int) -> Callable[[str], str]:
        agent = Agent(asks(final=lambda m: f"heard {first_prompt(m)}"), capabilities=[Shorten(keep)])
        return lambda prompt: asyncio.run(agent.run("a long prompt")).output

    baseline = record(bench, target_with(6))

    assert baseline.output == "heard prompt"
    assert "prompt" in str(baseline.model_calls[0].inputs["messages"])
    assert "long" not in str(baseline.model_calls[0].inputs["messages"])

    changed = bench.replay(baseline, target_with(3), model_policy=HistoryModel())
    assert changed.replay.status is ReplayStatus.FAILED
    assert "mpt" in changed.message


class Answering(AbstractCapability[Any]):
    """Answers the first model request and every ``cached`` call itself."""

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        if len(request_context.messages) == 1:
            raise SkipModelRequest(ModelResponse(parts=[ToolCallPart("cached", {"x": 1}, tool_call_id="k")]))
        return await handler(request_context)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        raise SkipToolExecution("from the cache")


def test_answers_of_other_capabilities_are_results(bench: Bench) -> None:
    agent = Agent(asks(), capabilities=[Answering()])

    @agent.tool_plain
    def cached(x: int) -> str:
        LIVE.append(x)
        return "live"

    target = run(agent)
    baseline = record(bench, target)

    assert baseline.output == "saw ['from the cache']"
    assert [n.outcome.value for n in baseline.calls if n.outcome] == ["from the cache"]
    assert len(baseline.model_calls) == 2
    check(bench, baseline, target)


# --- values ---------------------------------------------------------------------------------------------------------


class Item(BaseModel):
    name: str
    price: float


@dataclass
class Point:
    x: int
    y: int


PICTURE = BinaryContent(b"1", media_type="image/png")

RICH: list[tuple[Any, Any]] = [
    (list[Item], [Item(name="tea", price=1.0)]),
    (dict[str, Point], {"a": Point(1, 2)}),
    (Point, Point(3, 4)),
    (bytes, b"\x00\xff"),
    (Any, BinaryContent(b"\x89PNG", media_type="image/png")),
    (Any, ["text", ImageUrl("https://example.com/a.png")]),
    (
        Any,
        ToolReturn(
            return_value={"n": 1}, content=["see", BinaryContent(b"1", media_type="image/png")], metadata={"m": [1]}
        ),
    ),
    (ToolReturn[Item], ToolReturn(return_value=Item(name="tea", price=2.0), metadata="kept")),
]


@pytest.mark.parametrize(("annotation", "value"), RICH, ids=lambda v: type(v).__name__)
def test_rich_results_come_back_as_themselves(bench: Bench, annotation: Any, value: Any) -> None:
    seen: list[Any] = []

    def give() -> Any:
        LIVE.append("give")
        return value

    give.__annotations__["return"] = annotation

    def final(messages: list[ModelMessage]) -> str:
        parts = [p for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        seen.append([(p.content, p.metadata) for p in parts])
        seen[-1] += [p.content for m in messages[1:] for p in m.parts if isinstance(p, UserPromptPart)]
        return "done"

    agent = Agent(asks([("give", {})], final=final), tools=[give])
    target = run(agent)
    baseline = record(bench, target)
    result = bench.replay(baseline, target)

    assert LIVE == []
    assert result.faithful
    assert len(seen) == 2
    assert _comparable(seen[0]) == _comparable(seen[1])


def _comparable(value: Any) -> Any:
    """Files by what is in them: the framework narrows their class when it reads them."""
    if isinstance(value, BinaryContent):
        return (value.data, value.media_type)
    if isinstance(value, ImageUrl):
        return (type(value), value.url)
    if isinstance(value, list | tuple):
        return [_comparable(v) for v in value]
    return (type(value), repr(value))


# --- pauses ---------------------------------------------------------------------------------------------------------


def test_approval_asked_for_inside_the_tool(bench: Bench) -> None:
    agent: Agent[Any, Any] = Agent(asks([("pay", {"n": 5})]), output_type=[str, DeferredToolRequests])

    @agent.tool
    def pay(ctx: RunContext[Any], n: int) -> str:
        LIVE.append(n)
        if not ctx.tool_call_approved:
            raise ApprovalRequired({"limit": 3})
        return f"paid {n}"

    async def both(prompt: str) -> str:
        first = await agent.run(prompt)
        assert isinstance(first.output, DeferredToolRequests)
        assert first.output.metadata == {"c0-0": {"limit": 3}}
        agreed = DeferredToolResults(approvals={"c0-0": True})
        return str((await agent.run(message_history=first.all_messages(), deferred_tool_results=agreed)).output)

    def target(prompt: str) -> str:
        return asyncio.run(both(prompt))

    baseline = record(bench, target)

    assert [(n.call.attempt, n.outcome.kind) for n in baseline.calls if n.call and n.outcome] == [
        (1, OutcomeKind.INTERRUPT),
        (2, OutcomeKind.VALUE),
    ]
    check(bench, baseline, target)


def test_a_result_from_outside_is_served_in_place_of_the_one_given(bench: Bench) -> None:
    agent = Agent(asks([("ship", {"n": 5})]), output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def ship(n: int) -> str:
        LIVE.append(n)
        raise CallDeferred

    given = iter(["shipped on Monday", "shipped on Tuesday", "never asked"])

    async def both(prompt: str) -> str:
        first = await agent.run(prompt)
        outside = DeferredToolResults(calls={"c0-0": next(given)})
        return str((await agent.run(message_history=first.all_messages(), deferred_tool_results=outside)).output)

    def target(prompt: str) -> str:
        return asyncio.run(both(prompt))

    baseline = record(bench, target)

    assert baseline.output == "saw ['shipped on Monday']"
    check(bench, baseline, target)


# --- models ---------------------------------------------------------------------------------------------------------


def test_a_model_that_fails_fails_again_from_the_recording(bench: Bench) -> None:
    def overloaded(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        LIVE.append("asked")
        raise ModelHTTPError(status_code=529, model_name="scripted", body={"type": "overloaded"})

    agent = Agent(FunctionModel(overloaded, model_name="scripted"))
    caught: list[Exception] = []

    def target(prompt: str) -> str:
        try:
            return asyncio.run(agent.run(prompt)).output
        except ModelHTTPError as error:
            caught.append(error)
            return "overloaded"

    baseline = record(bench, target)
    result = bench.replay(baseline, target, model_policy=HistoryModel())

    assert LIVE == []
    assert result.faithful
    first, again = caught
    assert type(again) is type(first)
    assert str(again) == str(first)
    assert getattr(again, "status_code", None) == 529


def test_usage_limits_count_served_calls(bench: Bench) -> None:
    agent = Agent(asks([("look", {})], [("look", {})]))

    @agent.tool_plain
    def look() -> str:
        LIVE.append("look")
        return "seen"

    def target(prompt: str) -> str:
        return asyncio.run(agent.run(prompt, usage_limits=UsageLimits(request_limit=2))).output

    baseline = record(bench, target)

    assert type(baseline.error).__name__ == "UsageLimitExceeded"
    for policy in (None, HistoryModel()):
        result = bench.replay(baseline, target, model_policy=policy)
        assert LIVE == []
        assert result.session.status is SessionStatus.FAILED
        assert result.session.error is not None
        assert result.session.error.class_name == "UsageLimitExceeded"


def test_a_tool_that_timed_out_is_not_waited_for_again(bench: Bench) -> None:
    agent = Agent(asks([("slow", {})], [("slow", {})]), retries=3)

    @agent.tool_plain(timeout=0.01)
    async def slow() -> str:
        LIVE.append("slow")
        await asyncio.Event().wait()
        return "never"

    target = run(agent)
    baseline = record(bench, target)

    assert [n.outcome.kind for n in baseline.calls if n.outcome] == [OutcomeKind.RETRY] * 2
    check(bench, baseline, target)


def test_dynamic_instructions_and_system_prompts_are_overridden_but_not_those_of_sub_agents(bench: Bench) -> None:
    child = Agent(asks(), name="child", instructions="child rules")
    agent = Agent(asks([("ask", {})]), name="root", system_prompt="static prompt", instructions="static rules")

    @agent.instructions
    def moving() -> str:
        return f"dynamic rules {len(ASKED)}"

    @agent.system_prompt
    def written() -> str:
        return "dynamic prompt"

    @agent.tool_plain
    async def ask() -> str:
        return (await child.run("inner")).output

    target = run(agent)
    baseline = record(bench, target)
    policy = {"default": {"type": "passthrough"}}
    override = ReplayOverride(system_prompt="only this", model_params={"temperature": 0.5})
    result = bench.replay(baseline, target, override=override, tool_policy=policy)

    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    texts = [[m["parts"][0]["text"] for m in n.inputs["messages"] if m["role"] == "system"] for n in result.model_calls]
    assert texts == [["only this"], ["child rules"], ["only this"]]
    assert [n.inputs["params"] for n in result.model_calls] == [{"temperature": 0.5}] * 3
    assert all("prompt" not in str(info.instructions) for _, info in ASKED)


# --- one call, one node ---------------------------------------------------------------------------------------------


def test_a_playhead_tool_inside_a_framework_tool_is_one_call(bench: Bench) -> None:
    @playhead.tool
    def look(x: int) -> int:
        LIVE.append(x)
        return x + 1

    agent = Agent(asks([("look", {"x": 1})]), tools=[look])
    target = run(agent)
    baseline = record(bench, target)

    assert [n.name for n in baseline.calls] == ["look"]
    check(bench, baseline, target)
