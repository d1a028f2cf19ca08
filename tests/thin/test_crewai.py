# pyright: reportMissingImports=false
"""CrewAI against a scripted server: crews whose agents call tools."""

import asyncio
import inspect
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_TRACKING": "true", "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}  # fmt: skip
pytest.importorskip("crewai", reason="framework not installed")

from crewai import LLM, Agent, Crew, Task, hooks
from crewai.mcp import MCPServerStdio
from crewai.mcp.tool_resolver import MCPToolResolver
from crewai.tools import BaseTool
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import create_model
from suite import try_scenario

import playhead
from playhead.adapters import crewai as adapter
from playhead.adapters import wire
from playhead.adapters.crewai import activation
from playhead.core.policy import HistoryModel
from playhead.core.values import OutcomeKind
from playhead.errors import RecordingError
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Entry,
    NotApplicable,
    Scenario,
    Spec,
    scenarios,
    started,
)
from playhead.testing.conformance.bench import Bench
from playhead.testing.conformance.served import Served, ServedHarness
from playhead.testing.servers import Call, ModelServer, Reply

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework's own

INPUTS = {"prompt": "go"}


def tool_of(body: Callable[..., Any]) -> BaseTool:
    """The framework's tool with a body."""
    fields: dict[str, Any] = {
        name: (p.annotation if p.annotation is not inspect.Parameter.empty else Any, ...)
        for name, p in inspect.signature(body).parameters.items()
    }

    class Body(BaseTool):
        name: str = body.__name__
        description: str = "does something"
        args_schema: Any = create_model(f"{body.__name__}_arguments", **fields)

        def _run(self, **arguments: Any) -> Any:
            found = body(**arguments)
            return asyncio.run(_awaited(found)) if inspect.isawaitable(found) else found

    return Body()


async def _awaited(found: Any) -> Any:
    return await found


def crew_of(url: str, tools: list[Any], system: str | None = None, **settings: Any) -> Crew:
    model = LLM(model=f"openai/{settings.pop('model', 'scripted')}", base_url=url, api_key="none", **settings)
    agent = Agent(role="desk", goal="help", backstory=system or "none", llm=model, tools=tools, max_iter=10)
    return Crew(agents=[agent], tasks=[Task(description="{prompt}", expected_output="text", agent=agent)], name="desk")


_NO_SIGNALS = "the framework has no signals of tools: what a tool raises is told to the model as text"


class CrewAIHarness(ServedHarness):
    name = "crewai"
    distribution = "crewai"
    entries = ("sync", "async", "stream")
    rounds, many = 3, 2

    luck = {  # noqa: RUF012
        "S3": "hooks are not told the ids of calls: equal calls at once are told apart by their arrival",
        "S17-parallel": "hooks are not told the ids of calls: equal calls at once are told apart by their arrival",
    }
    never = {  # noqa: RUF012
        "S21": "a run is no coroutine and cannot be cancelled",
        "S21-model": "a run is no coroutine and cannot be cancelled",
        "S7": "the framework makes a text of a tool's exception before anybody sees it: that text comes back",
        "S8-unknown": "the framework answers with a text that reads like a tool's result, and comes back as one",
        "S8-retry": _NO_SIGNALS,
        "S8-error": _NO_SIGNALS,
    }

    def make(self, spec: Spec, url: str, served: Served) -> Any:
        return crew_of(url, [tool_of(tool) for tool in spec.tools], spec.system, model=spec.model, **spec.settings)

    def run_sync(self, agent: Served, prompt: str) -> str:
        return agent.agent.kickoff(inputs={"prompt": prompt}).raw

    async def run(self, agent: Served, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        if entry != "stream":
            return (await agent.agent.kickoff_async(inputs={"prompt": prompt})).raw
        agent.agent.stream = True
        streaming = await agent.agent.kickoff_async(inputs={"prompt": prompt})
        async for _ in streaming:
            pass
        return streaming.result.raw

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Served:
        """The framework begins a task again that failed, unless it is told not to."""
        made = super().breaking_stream(spec, after, error)
        made.agent.agents[0].max_retry_limit = 0
        return made

    async def stop_early(self, agent: Served, prompt: str) -> None:
        agent.agent.stream = True
        streaming = await agent.agent.kickoff_async(inputs={"prompt": prompt})
        await anext(aiter(streaming))
        await streaming.aclose()

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Served:
        """The framework puts a name that it makes of the command before those of a server's tools, and cuts it."""
        server = MCPServerStdio(command=command[0], args=list(command[1:]))
        named = [[replace(c, tool=_named(server, c.tool)) for c in turn] for turn in spec.turns]
        made = self.build(replace(spec, turns=named))
        made.agent.agents[0].mcps = [server]
        return made

    async def conversation(self, agent: Served, prompts: Any) -> str:
        raise NotApplicable("a crew has no history: each kickoff begins anew")

    def start(self) -> None:
        playhead.install()

    def stop(self) -> None:
        super().stop()
        playhead.uninstall()

    def activate(self) -> None:
        playhead.install()

    def deactivate(self) -> None:
        playhead.uninstall()


def _named(server: MCPServerStdio, tool: str) -> str:
    *_, name = MCPToolResolver._create_transport(server)
    return sanitize_tool_name(f"{name}_{tool}")


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(CrewAIHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    try_scenario(harness, scenario)


def _served(live: list[Any]) -> list[Any]:
    def price(item: str) -> dict[str, Any]:
        live.append(item)
        if item == "none":
            raise KeyError(item)
        return {"item": item, "pence": 7}

    return [tool_of(price)]


PLAN = [
    Reply(calls=[Call("price", {"item": "tea"}, id="c1"), Call("price", {"item": "none"}, id="c2")]),
    Reply("done"),
]  # fmt: skip


def test_values_keep_their_form_and_the_model_sees_the_same_text(bench: Bench) -> None:
    live: list[Any] = []
    playhead.install()
    with ModelServer(lambda step, body: PLAN[step % 2]) as server:

        def run(prompt: str) -> str:
            return crew_of(server.openai_url, _served(live)).kickoff(inputs={"prompt": prompt}).raw

        run("go")
        live.clear()
        baseline = bench.record(run, INPUTS)
        assert sorted(live) == ["none", "tea"]
        outcomes = {c.call.arguments["item"]: c.outcome for c in baseline.calls if c.call and c.outcome}  # type: ignore[index]
        assert outcomes["tea"].kind is OutcomeKind.VALUE
        assert outcomes["tea"].value == {"item": "tea", "pence": 7}
        assert outcomes["none"].kind is OutcomeKind.RESULT_ERROR
        live.clear()
        result = bench.replay(baseline, run)
        assert result.faithful, result.message
        assert live == []
        sent = [request.body["messages"] for request in server.model_requests]
        assert sent[:2] == sent[2:4] == sent[4:], "the requests without playhead, recorded and replayed differ"


def test_hooks_of_the_user_keep_working_and_come_after_ours(bench: Bench) -> None:
    seen: list[str] = []
    live: list[Any] = []

    def loud(context: Any) -> str:
        seen.append(context.tool_result)
        return str(context.tool_result).upper()

    hooks.register_after_tool_call_hook(loud)
    try:
        playhead.install()
        with ModelServer(lambda step, body: PLAN[step % 2]) as server:

            def run(prompt: str) -> str:
                return crew_of(server.openai_url, _served(live)).kickoff(inputs={"prompt": prompt}).raw

            baseline = bench.record(run, INPUTS)
            told = sorted(seen)
            seen.clear()
            result = bench.replay(baseline, run)
            assert result.faithful, result.message
            assert sorted(seen) == told
    finally:
        hooks.unregister_after_tool_call_hook(loud)


def test_hooks_that_somebody_cleared_are_back_at_the_next_run(bench: Bench) -> None:
    live: list[Any] = []
    playhead.install()
    hooks.clear_all_tool_call_hooks()
    with ModelServer(lambda step, body: PLAN[step % 2]) as server:
        baseline = bench.record(
            lambda prompt: crew_of(server.openai_url, _served(live)).kickoff(inputs={"prompt": prompt}).raw, INPUTS
        )
    assert len(baseline.calls) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_outside_any_session_is_one_and_a_crew_starts_again_from_it(
    stream: bool, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    live: list[Any] = []
    playhead.install()
    with ModelServer(lambda step, body: PLAN[step % 2]) as server:
        crew = crew_of(server.openai_url, _served(live))
        crew.stream = stream
        result = crew.kickoff(inputs={"prompt": "go"})
        assert not stream or list(result)
        assert (result.result if stream else result).raw == "done"
        playhead.flush()
        live.clear()
        result = playhead.replay("last", agent=crew, model_policy=HistoryModel())
    assert result.fidelity is not None
    assert result.fidelity.kind.value == "faithful"
    assert (result.baseline.agent, result.baseline.inputs) == ("desk", {"inputs": {"prompt": "go"}})
    assert live == []


def test_models_that_the_wire_no_longer_sees_are_warned_of(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    playhead.install()
    wire.uninstall()
    with caplog.at_level(logging.WARNING, "playhead"):
        _deaf("deaf models", bench)
    assert "ended and no model call of it was seen" in caplog.text


def test_tools_whose_hooks_the_framework_no_longer_calls_are_warned_of(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    playhead.install()
    monkeypatch.setattr(activation, "_register", lambda calls: None)
    hooks.clear_all_tool_call_hooks()
    with caplog.at_level(logging.WARNING, "playhead"):
        _deaf("deaf tools", bench)
    assert "was answered and nothing saw it run" in caplog.text


def _deaf(name: str, bench: Bench) -> None:
    with ModelServer(lambda step, body: PLAN[step % 2]) as server, playhead.session(name, recorder=bench.recorder):
        crew = crew_of(server.openai_url, _served([]))
        crew.name = name
        assert crew.kickoff(inputs={"prompt": "go"}).raw == "done"


def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(hooks, "register_before_tool_call_hook")
    with pytest.raises(RecordingError, match=r"crewai .* has no hooks\.register_before_tool_call_hook"):
        adapter.install()
    assert not adapter.is_installed()


def test_installing_twice_registers_once_and_is_undone() -> None:
    before = (Crew.kickoff, hooks.get_before_tool_call_hooks(), hooks.get_after_tool_call_hooks())
    adapter.install()
    adapter.install()
    assert len(hooks.get_before_tool_call_hooks()) == len(before[1]) + 1
    adapter.uninstall()
    assert (Crew.kickoff, hooks.get_before_tool_call_hooks(), hooks.get_after_tool_call_hooks()) == before
