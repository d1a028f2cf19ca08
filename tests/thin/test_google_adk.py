# pyright: reportMissingImports=false
"""Google ADK with a scripted model: runners, their agents and tools."""

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="framework not installed")

from adk_models import Follower, Script, asking
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import InMemoryRunner, Runner
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters
from pydantic import BaseModel
from suite import try_scenario

import playhead
from playhead.adapters import google_adk as adapter
from playhead.core.policy import HistoryModel
from playhead.core.totals import BUCKETS
from playhead.errors import RecordingError
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Call,
    Entry,
    NotApplicable,
    Refused,
    Retry,
    Scenario,
    Spec,
    scenarios,
    started,
)
from playhead.testing.conformance.bench import Bench

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework's own

INPUTS = {"prompt": "go"}


def tool_of(body: Any) -> Any:
    """A function that the framework takes for a tool; signals of a scenario are its own."""
    if isinstance(body, BaseTool):
        return body

    @functools.wraps(body)
    async def tool(**arguments: Any) -> Any:
        try:
            found = body(**arguments)
            return await found if inspect.isawaitable(found) else found
        except Refused as refused:
            return {"error": str(refused)}
        except Retry as retry:
            raise Signalled from retry

    return tool


class Signalled(BaseException):
    """Gets a signal of a scenario out of the framework, which has no such thing."""


class Agent:
    """An agent of the framework with its runner."""

    def __init__(self, script: Script, *, toolset: Any = None, **options: Any) -> None:
        spec = script._spec
        self.toolset = toolset
        if toolset is not None:
            options["tools"] = [toolset]
        settings = types.GenerateContentConfig(**spec.settings) if spec.settings else None
        tools = [tool_of(t) for t in spec.tools]
        agent = LlmAgent(
            name=spec.name, model=script, instruction=spec.system or "", generate_content_config=settings,
            **{"tools": tools, **options},
        )  # fmt: skip
        self.script = script
        self.runner = InMemoryRunner(agent=agent, app_name=spec.name)
        self.session: Any = None

    async def run(self, prompt: str, *, stream: bool = False) -> str:
        try:
            return (await self.told(types.Part(text=prompt), stream=stream))[0]
        finally:
            if self.toolset is not None:
                await self.toolset.close()

    async def told(self, part: types.Part, *, stream: bool = False) -> tuple[str, list[types.FunctionCall]]:
        """What the agent said to a part of a message, and the calls that wait for somebody."""
        if self.session is None:
            self.session = await self.runner.session_service.create_session(
                app_name=self.runner.app_name, user_id="u"
            )  # fmt: skip
        config = RunConfig(streaming_mode=StreamingMode.SSE) if stream else None
        said, waiting = "", []
        try:
            async for event in self.runner.run_async(
                user_id="u", session_id=self.session.id, new_message=types.Content(role="user", parts=[part]),
                run_config=config,
            ):  # fmt: skip
                waits = event.long_running_tool_ids or ()
                waiting += [call for call in event.get_function_calls() if call.id in waits]
                if event.is_final_response() and event.content:
                    said = "".join(part.text or "" for part in event.content.parts or ())
        except Signalled as signal:
            raise NotApplicable("the framework has no retry signal") from signal
        return said, waiting

    async def run_with(self, prompt: str, answer: Callable[[types.FunctionCall], Any]) -> str:
        """Runs on with an answer at each pause."""
        said, waiting = await self.told(types.Part(text=prompt))
        while waiting:
            call = waiting.pop()
            given = types.FunctionResponse(id=call.id, name=call.name, response=answer(call))
            said, waiting = await self.told(types.Part(function_response=given))
        return said


class ADKHarness(AdapterHarness):
    name = "google_adk"
    distribution = "google-adk"
    entries: Sequence[Entry] = ("sync", "async", "stream")
    other_model = "other"
    buckets = tuple(name for name in BUCKETS if name != "input_cache_write")
    many = 5
    rounds = 5
    never = {  # noqa: RUF012
        "S8-schema": "the framework checks no arguments against a tool's schema: the tool itself fails",
    }

    def build(self, spec: Spec) -> Agent:
        return Agent(Script.of(spec))

    async def run(self, agent: Agent, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        return await agent.run(prompt, stream=entry == "stream")

    def run_sync(self, agent: Agent, prompt: str) -> str:
        return asyncio.run(agent.run(prompt))

    def requests(self, agent: Agent) -> list[bytes]:
        return [asked for model, asked in agent.script._asked if model == agent.script.model]

    async def conversation(self, agent: Agent, prompts: Sequence[str]) -> str:
        said = ""
        for prompt in prompts:
            said = await agent.run(prompt)
        return said

    def start(self) -> None:
        playhead.install()

    def stop(self) -> None:
        super().stop()
        playhead.uninstall()

    def activate(self) -> None:
        playhead.install()

    def deactivate(self) -> None:
        playhead.uninstall()

    def agent_tool(self, name: str, child: Agent) -> Callable[..., Any]:
        async def ask(q: str) -> str:
            child.session = None
            return await child.run(q)

        ask.__name__ = name
        return ask

    def approval_tool(self, body: Callable[..., Any]) -> Any:
        return FunctionTool(tool_of(body), require_confirmation=True)

    async def run_with_approval(self, agent: Agent, prompt: str, answer: Callable[[str], bool]) -> str:
        def confirmed(call: types.FunctionCall) -> Any:
            return {"confirmed": answer((call.args or {})["originalFunctionCall"]["name"])}

        return await agent.run_with(prompt, confirmed)

    def deferred_tool(self, name: str) -> Any:
        async def elsewhere(q: str) -> None:
            """Runs elsewhere."""

        elsewhere.__name__ = name
        return LongRunningFunctionTool(elsewhere)

    async def run_deferred(self, agent: Agent, prompt: str, result: Callable[[str], Any]) -> str:
        return await agent.run_with(prompt, lambda call: {"result": result(str(call.name))})

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Agent:
        program = StdioServerParameters(command=command[0], args=list(command[1:]))
        params = StdioConnectionParams(server_params=program, timeout=60)
        return Agent(Script.of(spec), toolset=McpToolset(connection_params=params))

    def structured(self, spec: Spec) -> Agent:
        class Answer(BaseModel):
            n: int

        script = Script.of(Spec(name=spec.name, says=lambda _: '{"n": 1}'))
        return Agent(script, output_schema=Answer)

    def handoff(self, spec: Spec, to: Agent) -> Agent:
        """The other agent sees what was said before it took over as told by others, so it goes by its own calls."""
        inner = to.script._spec
        turns = [[Call("transfer_to_agent", {"agent_name": inner.name})]]
        script = Script.of(Spec(name=spec.name, turns=turns, model=spec.model))
        other = LlmAgent(
            name=inner.name, model=Follower.of(inner), tools=[tool_of(t) for t in inner.tools], description="does"
        )
        return Agent(script, sub_agents=[other])

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Agent:
        script = Script.of(Spec(name=spec.name, says=lambda _: after))
        script._breaks = error
        return Agent(script)

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Agent:
        script = Script.of(spec)
        script._told = asked
        return Agent(script)

    async def stop_early(self, agent: Agent, prompt: str) -> None:
        session = await agent.runner.session_service.create_session(app_name=agent.runner.app_name, user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        events = agent.runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config)
        await anext(events)
        await events.aclose()

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Agent:
        read = usage.get("input_cache_read", 0)
        reported = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=usage["input_uncached"] + read,
            cached_content_token_count=read,
            candidates_token_count=usage["output_visible"],
            thoughts_token_count=usage["output_reasoning"],
        )
        return Agent(Script.of(spec, reported))


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(ADKHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    try_scenario(harness, scenario)


def _runner(model: Script, tools: list[Any], *plugins: BasePlugin, **options: Any) -> InMemoryRunner:
    agent = LlmAgent(name="desk", model=model, tools=tools, **options)
    return InMemoryRunner(agent=agent, app_name="shop", plugins=list(plugins) or None)


async def _asked(runner: Any, prompt: str = "go") -> Any:
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    said = [e async for e in runner.run_async(user_id="u", session_id=session.id, new_message=message)]
    kept = await runner.session_service.get_session(app_name="shop", user_id="u", session_id=session.id)
    return ["".join(p.text or "" for p in said[-1].content.parts), dict(kept.state)]


def test_what_a_tool_wrote_into_the_session_is_written_again_when_it_is_served(bench: Bench) -> None:
    live: list[int] = []

    def count(step: int, tool_context: Any) -> dict[str, int]:
        """Counts."""
        live.append(step)
        tool_context.state["counted"] = step + tool_context.state.get("counted", 0)
        return {"step": step}

    playhead.install()
    spec = Spec(turns=[[Call("count", {"step": 2})], [Call("count", {"step": 3})]])

    def run(prompt: str) -> Any:
        return asyncio.run(_asked(_runner(Script.of(spec), [count])))

    baseline = bench.record(run, INPUTS)
    assert baseline.output[1] == {"counted": 5}
    live.clear()
    result = bench.replay(baseline, run, model_policy=HistoryModel())
    assert result.faithful, result.message
    assert (result.output, live) == (baseline.output, [])


def test_agents_that_hand_over_are_one_run_and_the_handing_over_is_no_call(bench: Bench) -> None:
    live: list[str] = []

    def price(item: str) -> str:
        """A price."""
        live.append(item)
        return f"{item}: 7"

    playhead.install()
    seller = Spec(turns=[[], [Call("price", {"item": "tea"})]], says=lambda results: f"sold {len(results)}")
    first = Spec(turns=[[Call("transfer_to_agent", {"agent_name": "seller"})]])

    def run(prompt: str) -> Any:
        other = LlmAgent(name="seller", model=Seller.of(seller), tools=[price], description="sells")
        return asyncio.run(_asked(_runner(Script.of(first), [], sub_agents=[other])))

    baseline = bench.record(run, INPUTS)
    assert baseline.error is None, baseline.error
    assert [call.name for call in baseline.calls] == ["price"]
    live.clear()
    result = bench.replay(baseline, run)
    assert result.faithful, result.message
    assert (result.output, live) == (baseline.output, [])


class Seller(Script):
    """Sees what was said before it took over as told by others, so it goes by its own calls alone."""

    def _answer(self, contents: Sequence[Any]) -> types.Content:
        parts = [part for content in contents for part in content.parts or ()]
        mine = [p for p in parts if p.function_response and p.function_response.name == "price"]
        if not mine:
            return types.Content(role="model", parts=[asking(Call("price", {"item": "tea"}))])
        return types.Content(role="model", parts=[types.Part(text=f"sold {len(mine)}")])


def test_a_long_running_tool_that_gave_a_status_gets_the_recorded_result_later(bench: Bench) -> None:
    live: list[str] = []

    def order(item: str) -> dict[str, str]:
        """Orders."""
        live.append(item)
        return {"status": "pending"}

    playhead.install()
    spec = Spec(turns=[[Call("order", {"item": "tea"})]])
    brought = ["arrived"]

    def run(prompt: str) -> Any:
        agent = Agent(Script.of(spec), tools=[LongRunningFunctionTool(order)])
        return asyncio.run(agent.run_with(prompt, lambda call: {"status": brought[0]}))

    baseline = bench.record(run, INPUTS)
    assert [c.outcome.value for c in baseline.calls if c.outcome] == [{"status": "pending"}, {"status": "arrived"}]
    assert [c.call.attempt for c in baseline.calls if c.call] == [1, 2]
    assert "arrived" in baseline.output
    live.clear()
    brought[0] = "lost"
    result = bench.replay(baseline, run)
    assert (result.output, live) == (baseline.output, []), result.message


def test_the_plugin_given_by_hand_records_inside_a_session_of_ours(bench: Bench) -> None:
    def look() -> str:
        """Looks."""
        return "seen"

    spec = Spec(turns=[[Call("look")]])
    baseline = bench.record(
        lambda prompt: asyncio.run(_asked(_runner(Script.of(spec), [look], adapter.PlayheadPlugin()))), INPUTS
    )
    assert [(n.kind.value, n.name) for n in baseline.nodes] == [
        ("model_call", "scripted"), ("tool_call", "look"), ("model_call", "scripted"),
    ]  # fmt: skip


def test_a_run_outside_any_session_is_one_and_a_runner_starts_again_from_it(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    live: list[str] = []

    def look() -> str:
        """Looks."""
        live.append("look")
        return "seen"

    playhead.install()
    runner = _runner(Script.of(Spec(turns=[[Call("look")]])), [look])
    assert "seen" in asyncio.run(_asked(runner))[0]
    playhead.flush()
    live.clear()
    result = playhead.replay("last", agent=runner, model_policy={"type": "history"})
    assert result.fidelity is not None
    assert result.fidelity.kind.value == "faithful"
    assert (result.baseline.agent, result.baseline.inputs) == ("shop", {"prompt": "go", "user_id": "u"})
    assert live == []


DEAF = {
    "run_before_model_callback": "ended and no model call of it was seen",
    "run_before_tool_callback": "was answered and nothing saw it run",
}


@pytest.mark.parametrize("hook", DEAF)
def test_a_framework_that_no_longer_calls_a_hook_is_warned_of(
    hook: str, bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def nothing(*args: Any, **given: Any) -> None: ...

    def look() -> str:
        """Looks."""
        return "seen"

    playhead.install()
    monkeypatch.setattr(PluginManager, hook, nothing)
    spec = Spec(name=f"deaf_{hook}", turns=[[Call("look")]], tools=[look])
    with caplog.at_level(logging.WARNING, "playhead"), playhead.session(f"deaf {hook}", recorder=bench.recorder):
        assert asyncio.run(Agent(Script.of(spec)).run("go")) == "saw [{'result': 'seen'}]"
    assert DEAF[hook] in caplog.text


def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(BasePlugin, "before_tool_callback")
    with pytest.raises(RecordingError, match=r"google-adk .* has no BasePlugin\.before_tool_callback"):
        adapter.install()
    assert not adapter.is_installed()


def test_installing_twice_wraps_once_and_is_undone() -> None:
    before = Runner.run_async
    adapter.install()
    once = Runner.run_async
    adapter.install()
    assert Runner.run_async is once
    adapter.uninstall()
    assert Runner.run_async is before
