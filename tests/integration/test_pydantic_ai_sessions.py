"""Sessions that PydanticAI runs open themselves, and how they start again."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ImageUrl, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import playhead
from playhead.adapters.pydantic_ai import Playhead
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import NodeKind, RunSpec, SessionStatus
from playhead.engine.project import use_recorder
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.bench import Bench, Recorded

LIVE: list[Any] = []


@pytest.fixture
def bench() -> Iterator[Bench]:
    LIVE.clear()
    playhead.install(sessions=False)
    made = Bench()
    yield made
    made.close()
    playhead.uninstall()


def asks(*turns: list[tuple[str, Any]], final: Callable[[list[ModelMessage]], str] | None = None) -> FunctionModel:
    """A model that plays the turns, calls of (tool, arguments), then says what it saw."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(m, ModelResponse) for m in messages)
        if turn < len(turns):
            calls = enumerate(turns[turn])
            return ModelResponse(parts=[ToolCallPart(t, a, tool_call_id=f"c{turn}-{i}") for i, (t, a) in calls])
        seen = [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(final(messages) if final else f"saw {seen}")])

    return FunctionModel(reply, model_name="scripted")


def first_prompt(messages: list[ModelMessage]) -> Any:
    return next(p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart))


@dataclass
class Deps:
    customer: str
    limit: int


def own_session(bench: Bench) -> Recorded:
    bench.recorder.flush()
    return bench.read(bench.store.sessions.find(SessionQuery()).items[0].id)


def test_the_framework_run_alone_is_a_session_that_replays(bench: Bench) -> None:
    agent = Agent(asks([("who", {})]), name="desk", deps_type=Deps, capabilities=[Playhead(recorder=bench.recorder)])

    @agent.tool
    def who(ctx: RunContext[Deps]) -> str:
        LIVE.append("who")
        return f"{ctx.deps.customer} {ctx.deps.limit}"

    said = asyncio.run(agent.run(["look at ", ImageUrl("https://example.com/a.png")], deps=Deps("Ada", 3))).output
    baseline = own_session(bench)
    LIVE.clear()

    assert (baseline.session.agent, baseline.session.output) == ("desk", said) == ("desk", "saw ['Ada 3']")
    assert [n.kind for n in baseline.nodes] == [NodeKind.MODEL_CALL, NodeKind.TOOL_CALL, NodeKind.MODEL_CALL]
    for policy in (None, HistoryModel()):
        result = bench.replay(baseline, agent, model_policy=policy)
        assert LIVE == []
        assert result.faithful, result.replay.fidelity
        assert result.session.inputs == baseline.session.inputs
    live = bench.replay(baseline, agent, tool_policy={"default": {"type": "passthrough"}})
    assert live.session.output == said


def test_a_resumed_run_holds_what_was_decided_in_its_inputs(bench: Bench) -> None:
    agent = Agent(asks([("delete", {"p": "x"})]), output_type=[str, DeferredToolRequests], name="desk")

    @agent.tool_plain(requires_approval=True)
    def delete(p: str) -> str:
        LIVE.append(p)
        return f"deleted {p}"

    first = asyncio.run(agent.run("go"))
    asyncio.run(
        agent.run(
            message_history=first.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={"c0-0": True}),
            capabilities=[Playhead(recorder=bench.recorder)],
        )
    )
    baseline = own_session(bench)
    LIVE.clear()

    assert set(baseline.session.inputs) == {"prompt", "message_history", "deferred_tool_results"}
    result = bench.replay(baseline, agent)
    assert LIVE == []
    assert result.faithful, result.replay.fidelity
    assert result.session.output == baseline.session.output == "saw ['deleted x']"


def test_dependencies_without_a_stored_form_are_named(bench: Bench) -> None:
    agent = Agent(asks(), name="desk", capabilities=[Playhead(recorder=bench.recorder)])
    asyncio.run(agent.run("go", deps=object()))

    session = own_session(bench).session

    assert session.status is SessionStatus.COMPLETED
    assert any("deps" in reason for reason in session.not_replayable)


def test_a_prompt_override_reaches_an_agent_that_is_its_own_entry_point(bench: Bench) -> None:
    agent = Agent(
        asks(final=lambda m: f"heard {first_prompt(m)}"),
        name="desk",
        capabilities=[Playhead(recorder=bench.recorder)],
    )
    asyncio.run(agent.run("go"))
    baseline = own_session(bench)

    result = bench.replay(baseline, agent, override=ReplayOverride(prompt="something else"))

    assert result.session.output == "heard something else"
    assert result.session.inputs == baseline.session.inputs == {"prompt": "go"}


def test_an_agent_of_a_module_is_found_again_by_name(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_agent.py").write_text(
        "from pydantic_ai import Agent\n"
        "from pydantic_ai.models.test import TestModel\n"
        "desk = Agent(TestModel(), name='desk')\n"
        "live = []\n"
        "@desk.tool_plain\n"
        "def price(item: str) -> int:\n"
        "    live.append(item)\n"
        "    return 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop_agent  # pyright: ignore[reportMissingImports]

    said = asyncio.run(shop_agent.desk.run("go", capabilities=[Playhead(recorder=bench.recorder)])).output
    baseline = own_session(bench)
    shop_agent.live.clear()
    result = playhead.replay(baseline.session.id, store=bench.store, recorder=bench.recorder)
    sys.modules.pop("shop_agent")

    assert bench.store.agents.get(str(baseline.session.agent_version)).run_spec == playhead_spec(tmp_path)
    assert shop_agent.live == []
    assert result.output == said
    assert result.fidelity.kind.value == "faithful"


def playhead_spec(folder: Path) -> RunSpec:
    return RunSpec(entry_point="shop_agent:desk", working_dir=str(folder))


def test_a_stop_in_one_of_several_runs_ends_the_whole_replay(bench: Bench) -> None:
    """The inner run hands the stop on; only the outermost boundary makes a miss of it."""
    words = ["a"]

    def look(q: str) -> str:
        LIVE.append(q)
        return q

    async def both(prompt: str) -> str:
        first = await Agent(asks([("look", {"q": words[0]})]), tools=[look]).run(prompt)
        try:
            second = await Agent(asks(), name="second").run("again")
        except Exception:
            return "swallowed"
        return first.output + second.output

    def target(prompt: str) -> str:
        return asyncio.run(both(prompt))

    baseline = bench.record(target, {"prompt": "go"})
    LIVE.clear()
    words[0] = "b"
    result = bench.replay(baseline, target)

    assert LIVE == []
    assert result.replay.error is not None
    assert result.replay.error.class_name == "MissError"
    assert len(result.model_calls) == 1


@pytest.fixture
def zero_code(bench: Bench) -> Iterator[Bench]:
    """The global form, whose runs outside a session are sessions of their own."""
    before = use_recorder(bench.recorder)
    playhead.install()
    yield bench
    playhead.uninstall()
    use_recorder(before)


def test_installed_runs_are_sessions_without_a_word_in_the_agents_code(zero_code: Bench) -> None:
    agent = Agent(asks([("look", {"x": 1})]), name="desk")

    @agent.tool_plain
    def look(x: int) -> int:
        LIVE.append(x)
        return x + 1

    said = asyncio.run(agent.run("go")).output
    baseline = own_session(zero_code)
    LIVE.clear()
    result = zero_code.replay(baseline, agent)

    assert baseline.session.agent == "desk"
    assert result.faithful
    assert (LIVE, result.session.output) == ([], said)


def test_a_run_inside_a_tool_of_an_installed_run_is_part_of_its_session(zero_code: Bench) -> None:
    child = Agent(asks(), name="child")
    agent = Agent(asks([("ask", {})]), name="parent")

    @agent.tool_plain
    async def ask() -> str:
        return (await child.run("inner")).output

    asyncio.run(agent.run("go"))
    zero_code.recorder.flush()
    (session,) = zero_code.store.sessions.find(SessionQuery()).items

    assert session.agent == "parent"
    assert [n.name for n in zero_code.store.sessions.nodes(session.id) if n.kind is NodeKind.AGENT_CALL] == ["child"]


def test_two_installed_runs_at_once_are_two_sessions(zero_code: Bench) -> None:
    async def both() -> None:
        await asyncio.gather(*(Agent(asks([("look", {"who": who})]), tools=[look], name=who).run(who) for who in "ab"))

    async def look(who: str) -> str:
        await asyncio.sleep(0)
        return who

    asyncio.run(both())
    zero_code.recorder.flush()
    sessions = zero_code.store.sessions.find(SessionQuery()).items

    assert sorted(s.agent for s in sessions) == ["a", "b"]
    for session in sessions:
        calls = [n.call.arguments for n in zero_code.store.sessions.nodes(session.id) if n.call]
        assert calls == [{"who": session.agent}]
