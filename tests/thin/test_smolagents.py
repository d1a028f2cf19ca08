# pyright: reportMissingImports=false
"""smolagents against a scripted server: agents that call tools, agents that write code, agents that call agents."""

import asyncio
import contextlib
import inspect
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("smolagents", reason="framework not installed")

import openai
from mcp import StdioServerParameters
from smolagents import CodeAgent, MCPClient, OpenAIModel, Tool, ToolCallingAgent
from suite import try_scenario

import playhead
from playhead.adapters import smolagents as adapter
from playhead.adapters import wire
from playhead.core.policy import HistoryModel
from playhead.core.protocol.providers import FORMS
from playhead.core.values import NodeKind
from playhead.errors import RecordingError
from playhead.testing.conformance.adapter import (
    AdapterHarness,
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
from playhead.testing.conformance.served import Served, ServedHarness
from playhead.testing.servers import Call, ModelServer, Reply

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework's own

INPUTS = {"prompt": "go"}


class Body(Tool):
    """A tool with the body of a scenario."""

    skip_forward_signature_validation = True
    description = "does something"
    output_type = "any"

    def __init__(self, body: Callable[..., Any]) -> None:
        self.name = body.__name__
        self.inputs = {
            name: {"type": {int: "integer", str: "string"}.get(p.annotation, "any"), "description": name}
            for name, p in inspect.signature(body).parameters.items()
        }
        self.body = body
        super().__init__()

    def forward(self, **arguments: Any) -> Any:
        try:
            found = self.body(**arguments)
            return asyncio.run(_awaited(found)) if inspect.isawaitable(found) else found
        except (Retry, Refused) as signal:
            raise Signalled from signal


class Signalled(BaseException):
    """Gets a signal of a scenario out of the framework, which has no such thing."""


async def _awaited(found: Any) -> Any:
    return await found


class SmolagentsHarness(ServedHarness):
    name = "smolagents"
    distribution = "smolagents"
    entries = ("sync", "async", "stream")
    rounds, many = 3, 3
    tells_mcp_errors = False  # what reads a server's results gives the text of either
    tells_refusals = False  # results go to the model as text of the user
    luck = {  # noqa: RUF012
        "S3": "tools are not told the ids of calls: equal calls at once are told apart by their arrival",
        "S17-parallel": "tools are not told the ids of calls: equal calls at once are told apart by their arrival",
    }
    never = {  # noqa: RUF012
        "S21": "a run is no coroutine and cannot be cancelled",
        "S21-model": "a run is no coroutine and cannot be cancelled",
    }

    def make(self, spec: Spec, url: str, served: Served) -> Any:
        quick = {"max_retries": 0, "http_client": openai.DefaultHttpxClient(verify=False)}
        model = OpenAIModel(spec.model, api_base=url, api_key="none", client_kwargs=quick, **spec.settings)
        tools = [Body(tool) for tool in spec.tools]
        agent = ToolCallingAgent(
            tools=tools,
            model=model,
            name=spec.name,
            description=spec.name,
            instructions=spec.system,
            verbosity_level=-1,
            max_steps=8,
        )
        return agent

    def run_sync(self, agent: Served, prompt: str) -> str:
        try:
            with agent.kept.get("mcp", contextlib.nullcontext()):
                return str(agent.agent.run(prompt))
        except Signalled as signal:
            raise NotApplicable(
                "the framework has no signals of tools: what a tool raises is told to the model"
            ) from signal

    async def run(self, agent: Served, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        if entry != "stream":
            return await asyncio.to_thread(self.run_sync, agent, prompt)
        agent.agent.stream_outputs = True
        *_, last = agent.agent.run(prompt, stream=True)
        return str(last.output)

    def results(self, body: dict[str, Any]) -> list[Any]:
        return [text for text in _texts(body) if text.startswith(("Observation:", "Error:"))]

    def turn(self, spec: Spec, body: dict[str, Any], results: list[Any]) -> int:
        return sum(text.startswith(("Calling tools:", "Error:")) for text in _texts(body))

    def last(self, served: Served, text: str) -> Reply:
        calls = [Call("final_answer", {"answer": text})]
        return Reply(calls=calls, model=served.spec.model, usage=served.usage, cut_after=served.cut_after)

    async def stop_early(self, agent: Served, prompt: str) -> None:
        agent.agent.stream_outputs = True
        steps = agent.agent.run(prompt, stream=True)
        next(steps)
        with contextlib.suppress(RuntimeError):  # of the framework, which yields once more when it is closed
            steps.close()

    async def conversation(self, agent: Served, prompts: Any) -> str:
        said = ""
        for number, prompt in enumerate(prompts):
            said = str(await asyncio.to_thread(agent.agent.run, prompt, reset=number == 0))
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

    def agent_tool(self, name: str, child: Served) -> Callable[..., Any]:
        def ask(q: str) -> str:
            return str(child.agent.run(q))

        ask.__name__ = name
        return ask

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Served:
        program = StdioServerParameters(command=command[0], args=list(command[1:]))
        made = self.build(spec)
        made.kept["mcp"] = MCPClient(program, adapter_kwargs={"connect_timeout": 60}, structured_output=False)
        for tool in made.kept["mcp"].get_tools():
            made.agent.tools[tool.name] = tool
        return made

    def structured(self, spec: Spec) -> Served:
        return self.build(spec)


def _texts(body: dict[str, Any]) -> list[str]:
    """What was said since the last task, in pieces: the framework joins what one side says to one text."""
    said = ["".join(p.get("text", "") for p in m["parts"]) for m in FORMS["openai_chat"].read_request(body).messages]
    last = "\n".join(said).rpartition("New task:")[2]
    return re.split(r"^(?=Calling tools:|Observation:|Error:)", last, flags=re.MULTILINE)[1:]


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(SmolagentsHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    try_scenario(harness, scenario)


def _sends(*replies: Reply) -> ModelServer:
    return ModelServer(list(replies))


class Price(Tool):
    name = "price"
    description = "The price of an item."
    inputs = {"item": {"type": "string", "description": "what"}}  # noqa: RUF012
    output_type = "string"

    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []

    def forward(self, item: str) -> str:
        self.live.append(item)
        return f"{item} costs {len(self.live)}"


def _model(server: ModelServer) -> OpenAIModel:
    quick = {"max_retries": 0, "http_client": openai.DefaultHttpxClient(verify=False)}
    return OpenAIModel("scripted", api_base=server.openai_url, api_key="none", client_kwargs=quick)


def test_tools_called_from_written_code_are_recorded_and_served(bench: Bench) -> None:
    """The code runs in a thread that has no context of the run."""
    playhead.install()
    code = "\n".join(['a = price("tea")', 'b = price(item="tea")', "final_answer(a + b)"])
    price = Price()
    with _sends(Reply(f"Thought: add.\n<code>\n{code}\n</code>")) as server:

        def run(prompt: str) -> str:
            agent = CodeAgent(tools=[price], model=_model(server), verbosity_level=-1)
            return agent.run(prompt)

        baseline = bench.record(run, INPUTS)
        assert baseline.output == "tea costs 1tea costs 2"
        assert [c.call.arguments for c in baseline.calls if c.call] == [{"item": "tea"}] * 2
        price.live.clear()
        for model in (None, HistoryModel()):
            result = bench.replay(baseline, run, model_policy=model)
            assert result.faithful, result.message
            assert (result.output, price.live) == (baseline.output, [])


def test_an_agent_that_another_one_calls_is_a_call_with_a_run_inside(bench: Bench) -> None:
    playhead.install()
    price = Price()
    replies = [
        Reply(calls=[Call("buyer", {"task": "tea"})]),
        Reply(calls=[Call("price", {"item": "tea"})]),
        Reply(calls=[Call("final_answer", {"answer": "buy"})]),
        Reply(calls=[Call("final_answer", {"answer": "bought"})]),
    ]
    with _sends(*replies) as server:

        def run(prompt: str) -> str:
            buyer = ToolCallingAgent(
                tools=[price], model=_model(server), name="buyer", description="buys", verbosity_level=-1
            )
            boss = ToolCallingAgent(tools=[], managed_agents=[buyer], model=_model(server), verbosity_level=-1)
            return boss.run(prompt)

        baseline = bench.record(run, INPUTS)
        assert baseline.output == "bought"
        assert [(n.kind, n.name) for n in baseline.nodes if n.kind is not NodeKind.MODEL_CALL] == [
            (NodeKind.TOOL_CALL, "buyer"), (NodeKind.AGENT_CALL, "buyer"), (NodeKind.TOOL_CALL, "price"),
        ]  # fmt: skip
        price.live.clear()
        result = bench.replay(baseline, run, model_policy=HistoryModel())
        assert result.faithful, result.message
        assert result.by[0] == "served"
        assert price.live == []


def test_a_run_outside_any_session_is_one_and_an_agent_starts_again_from_it(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    playhead.install()
    price = Price()
    replies = [Reply(calls=[Call("price", {"item": "tea"})]), Reply(calls=[Call("final_answer", {"answer": "done"})])]
    with _sends(*replies) as server:
        agent = ToolCallingAgent(tools=[price], model=_model(server), name="shop", verbosity_level=-1)
        assert agent.run("What is the price of tea?") == "done"
        playhead.flush()
        price.live.clear()
        result = playhead.replay("last", agent=agent, model_policy={"type": "history"})
    assert result.fidelity is not None
    assert result.fidelity.kind.value == "faithful"
    assert result.baseline.agent == "shop"
    assert result.baseline.inputs == {"task": "What is the price of tea?"}
    assert price.live == []


def _shopping(name: str, bench: Bench) -> None:
    replies = [Reply(calls=[Call("price", {"item": "tea"})]), Reply(calls=[Call("final_answer", {"answer": "done"})])]
    with _sends(*replies) as server, playhead.session(name, recorder=bench.recorder):
        agent = ToolCallingAgent(tools=[Price()], model=_model(server), name=name, verbosity_level=-1)
        assert agent.run("What is the price of tea?") == "done"


def test_models_that_the_wire_no_longer_sees_are_warned_of(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    playhead.install()
    with caplog.at_level(logging.WARNING, "playhead"):
        wire.uninstall()
        _shopping("deaf_models", bench)
    assert "ended and no model call of it was seen" in caplog.text


def test_tools_that_the_framework_calls_in_another_way_are_warned_of(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    playhead.install()
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "playhead"):
        patched.setattr(Tool, "__call__", Tool.__call__.__wrapped__)  # type: ignore[attr-defined]
        _shopping("deaf_tools", bench)
    assert "was answered and nothing saw it run" in caplog.text


def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Tool, "__call__")
    with pytest.raises(RecordingError, match=r"smolagents .* has no Tool\.__call__"):
        adapter.install()
    assert not adapter.is_installed()


def test_installing_twice_wraps_once_and_is_undone() -> None:
    before = Tool.__call__
    adapter.install()
    once = Tool.__call__
    adapter.install()
    assert Tool.__call__ is once
    adapter.uninstall()
    assert Tool.__call__ is before
