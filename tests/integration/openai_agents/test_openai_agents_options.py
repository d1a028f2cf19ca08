"""OpenAI Agents: models, settings, hooks and options are what they were without playhead."""

import asyncio
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    ModelProvider,
    ModelSettings,
    RunConfig,
    RunHooks,
    Runner,
    function_tool,
)
from agents.agent import AgentBase
from agents.models.interface import Model
from agents.testing import assistant_message, function_call

from playhead.adapters import openai_agents as adapter
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import NodeKind, ReplayStatus
from playhead.errors import RecordingError
from playhead.store.ports import SessionQuery

Desk = Any  # of conftest.py


def call(tool: str, arguments: dict[str, Any] | None = None, call_id: str = "c1") -> list[Any]:
    return [function_call(tool, arguments or {}, call_id=call_id)]


def always(context: Any) -> bool:
    return True


def says(text: str = "done") -> list[Any]:
    return [assistant_message(text)]


class Named(ModelProvider):
    """Gives its model for any name, and remembers the names."""

    def __init__(self, *models: Model) -> None:
        self.models = list(models)
        self.names: list[str | None] = []
        self.closed = False

    def get_model(self, model_name: str | None) -> Model:
        self.names.append(model_name)
        return self.models[0]


@pytest.mark.parametrize("given", [None, "gpt-5.2", "gpt-4.1"])
@pytest.mark.parametrize("of_agent", [None, "gpt-5", "gpt-4o"])
def test_a_model_known_by_name_keeps_the_settings_that_the_framework_implies(
    desk: Desk, given: str | None, of_agent: str | None
) -> None:
    def asked(record: bool) -> tuple[ModelSettings, set[str | None]]:
        provider = Named(desk.model(says()))
        agent = Agent(name="a", model=of_agent)

        async def run(prompt: str) -> str:
            config = RunConfig(model=given, model_provider=provider)
            return str((await Runner.run(agent, prompt, run_config=config)).final_output)

        if record:
            assert desk.record(run).error is None
        else:
            asyncio.run(run("go"))
        call = desk.models[-1].last_call
        assert call is not None
        return call.model_settings, set(provider.names)

    adapter.uninstall()
    plain = asked(False)
    adapter.install()

    assert asked(True) == plain


def test_an_agent_inside_a_tool_asks_its_own_model(desk: Desk) -> None:
    inner, outer = desk.model(says("inner")), desk.model(call("ask", {"input": "x"}), says("outer"))
    child = Agent(name="child", model=inner)
    parent = Agent(name="parent", model=outer, tools=[child.as_tool("ask", "asks")])

    async def run(prompt: str) -> str:
        return str((await Runner.run(parent, prompt, run_config=RunConfig())).final_output)

    baseline = desk.record(run)

    assert baseline.output == "outer"
    assert len(inner.calls) == 1
    assert len(outer.calls) == 2
    (child_call,) = [n for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL]
    (tool_call,) = baseline.calls
    assert child_call.parent_id == tool_call.id
    assert [n.parent_id for n in baseline.model_calls].count(child_call.id) == 1


def test_options_are_copied_and_stay_as_they_were(desk: Desk) -> None:
    config: dict[str, Any] = {"model": desk.model(says()), "workflow_name": "w"}
    given = dict(config)

    async def run(prompt: str) -> str:
        return str((await Runner.run(Agent(name="a"), prompt, run_config=config)).final_output)

    baseline = desk.record(run)

    assert baseline.output == "done"
    assert config == given
    assert len(baseline.model_calls) == 1


def test_options_that_the_framework_refuses_are_refused_in_its_own_words(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        return str((await Runner.run(Agent(name="a"), prompt, run_config={"modle": 1})).final_output)

    error = desk.record(run).error

    assert isinstance(error, TypeError)
    assert "modle" in str(error)


class Noting(RunHooks[Any]):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        self.seen.append("llm_start")

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.seen.append("llm_end")

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self.seen.append("tool_start")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self.seen.append(f"tool_end {result}")

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self.seen.append("agent_end")


def test_hooks_of_the_user_run_in_their_order_live_and_served(desk: Desk) -> None:
    noted: list[list[str]] = []

    async def run(prompt: str) -> str:
        def look() -> int:
            return desk.enter("look")

        hooks = Noting()
        agent = Agent(name="a", model=desk.model(call("look"), says()), tools=[function_tool(look)])
        result = await Runner.run(agent, prompt, hooks=hooks)
        noted.append(hooks.seen)
        return str(result.final_output)

    desk.unchanged(run)

    expected = ["llm_start", "llm_end", "tool_start", "tool_end 1", "llm_start", "llm_end", "agent_end"]
    assert noted == [expected] * 3


def test_a_replacing_model_gets_the_settings_of_its_name(desk: Desk) -> None:
    provider = Named(desk.model(says("new")))

    async def run(prompt: str) -> str:
        agent = Agent(name="a", model="gpt-4o")
        return str((await Runner.run(agent, prompt, run_config=RunConfig(model_provider=provider))).final_output)

    baseline = desk.record(run)
    provider.models[0] = desk.model(says("new"))
    result = desk.replay(baseline, run, override=ReplayOverride(model="gpt-5"))

    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert "gpt-5" in provider.names
    assert provider.models[0].last_call.model_settings.verbosity == "low"  # type: ignore[attr-defined]


def test_an_agent_object_starts_again_from_its_inputs(desk: Desk) -> None:
    def look() -> int:
        return desk.enter("look")

    agent = Agent(name="a", model=desk.model(call("look"), says("seen")), tools=[function_tool(look)])
    runner = adapter.Runner(recorder=desk.bench.recorder)
    history: Any = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]

    async def run() -> None:
        result = await runner.run(agent, [*history, {"role": "user", "content": "look"}], context={"user": 7})
        assert result.final_output == "seen"

    asyncio.run(run())
    desk.bench.recorder.flush()
    (found,) = desk.bench.store.sessions.find(SessionQuery()).items
    baseline = desk.bench.read(found.id)
    assert baseline.session.inputs == {"prompt": "look", "message_history": history, "context": {"user": 7}}
    desk.live.clear()
    result = desk.bench.replay(baseline, agent, model_policy=HistoryModel())

    assert desk.live == []
    assert result.faithful, (result.replay.fidelity, result.message)


def test_a_framework_without_a_hook_is_refused_when_it_is_wrapped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter.uninstall()
    monkeypatch.delattr(AgentBase, "get_all_tools")

    with pytest.raises(RecordingError, match=r"openai-agents .* has no Agent.get_all_tools"):
        adapter.install()


def test_nothing_is_left_behind(desk: Desk) -> None:
    adapter.uninstall()
    before = [vars(agents.Runner)[n] for n in ("run", "run_sync", "run_streamed")], AgentBase.get_all_tools
    adapter.install()
    adapter.install()
    assert vars(agents.Runner)["run"] is not before[0][0]
    adapter.uninstall()

    assert [vars(agents.Runner)[n] for n in ("run", "run_sync", "run_streamed")] == before[0]
    assert AgentBase.get_all_tools is before[1]
