"""The OpenAI Agents adapter against the scenarios that every adapter runs."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelProvider,
    ModelResponse,
    ModelSettings,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.exceptions import ModelBehaviorError
from agents.mcp import MCPServerStdio
from agents.models.interface import Model
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseTextDeltaEvent
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import BaseModel

from playhead.adapters import mcp as mcp_adapter
from playhead.adapters import openai_agents as adapter
from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Call,
    Entry,
    NotApplicable,
    Refused,
    Retry,
    Scenario,
    Spec,
    check,
    scenarios,
    started,
)


class Script(ScriptedModel):
    """The scripted model of a spec, and what it was asked."""

    def __init__(self, spec: Spec, usage: Usage | None = None) -> None:
        super().__init__(default_usage=usage)
        self.spec = spec
        self.model = spec.model
        self.asked: list[bytes] = []

    def _next(self, call: ModelCall) -> list[Any]:
        settings = {k: v for k, v in call.model_settings.to_json_dict().items() if v is not None}
        tools = [(t.name, t.description, t.params_json_schema) for t in call.tools if isinstance(t, FunctionTool)]
        self.asked.append(json.dumps([call.system_instructions, call.input, tools, settings]).encode())
        items: list[Any] = [{"role": "user"}] if isinstance(call.input, str) else list(call.input)
        start = max(n for n, item in enumerate(items) if item.get("role") == "user")
        said = [
            item
            for item in items[start:]
            if item.get("type") == "function_call" and not item["name"].startswith("transfer_to_")
        ]
        turn = 0
        left = len(said)
        while left > 0:
            left -= len(self.spec.turns[turn])
            turn += 1
        if turn < len(self.spec.turns):
            return [_call(c, f"made-{self.spec.name}-{start}-{turn}-{n}") for n, c in enumerate(self.spec.turns[turn])]
        results = [item["output"] for item in items[start:] if item.get("type") == "function_call_output"]
        return [assistant_message(self.spec.says(results) if self.spec.says else f"saw {results}")]

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.enqueue(ModelStep.respond(self._next))
        return await super().get_response(*args, **kwargs)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.enqueue(ModelStep.respond(self._next))
        async for event in super().stream_response(*args, **kwargs):
            yield event


class Thinking(Script):
    """A model that never answers."""

    def __init__(self, spec: Spec, asks: Callable[[], Any]) -> None:
        super().__init__(spec)
        self.asks = asks

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.asks()
        await asyncio.Event().wait()
        raise AssertionError("answered")


def _call(call: Call, made: str) -> Any:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})
    return function_call(call.tool, arguments, call_id=call.id or made)


class Other(ModelProvider):
    """Makes a model from any name."""

    def get_model(self, model_name: str | None) -> Model:
        return Script(Spec(model=model_name or ""))


def told(context: Any, error: Exception) -> Any:
    """What the model is told of a failure: refusals, and what the framework itself found wrong. The rest is raised."""
    if isinstance(error, Retry):
        raise NotApplicable("the framework has no retry signal") from error
    return str(error) if isinstance(error, Refused | ModelBehaviorError) else None


class OpenAIAgentsHarness(AdapterHarness):
    name = "openai_agents"
    distribution = "openai-agents"
    entries: Sequence[Entry] = ("sync", "async", "stream")
    other_model = "other"

    def __init__(self) -> None:
        self.scripts: dict[int, Script] = {}
        self.last: dict[int, Any] = {}
        self.kept: list[Any] = []
        self.runner: Any = Runner

    def start(self) -> None:
        set_tracing_disabled(True)
        adapter.install()
        mcp_adapter.install()  # as `playhead.install()` does

    def stop(self) -> None:
        adapter.uninstall()
        mcp_adapter.uninstall()

    def build(self, spec: Spec, **more: Any) -> Agent[Any]:
        ids = [call.id for turn in spec.turns for call in turn if call.id is not None]
        if len(ids) != len(set(ids)):
            raise NotApplicable("the framework takes a call id that comes again for the same call")
        script = more.pop("script", None) or Script(spec)
        tools = [t if isinstance(t, FunctionTool) else self.tool(t) for t in spec.tools]
        agent: Agent[Any] = Agent(
            name=spec.name,
            instructions=spec.system,
            model=script,
            tools=list(tools),
            model_settings=ModelSettings(**dict(spec.settings)),
            **more,
        )
        self.scripts[id(agent)] = script
        self.kept.append(agent)
        return agent

    def tool(self, body: Callable[..., Any], **more: Any) -> FunctionTool:
        return function_tool(body, failure_error_function=told, strict_mode=False, **more)

    def config(self) -> RunConfig:
        return RunConfig(model_provider=Other(), tool_not_found_behavior="return_error_to_model")

    def run_sync(self, agent: Any, prompt: str) -> str:
        run = getattr(agent, "runner", self.runner).run_sync
        with _own_loop(), _signals():
            return str(self._keep(agent, run(agent, prompt, run_config=self.config())).final_output)

    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        if isinstance(agent, WithServer):
            async with agent.server() as server:
                return await self.run(self.build(agent.spec, mcp_servers=[server]), prompt, entry=entry)
        runner = getattr(agent, "runner", self.runner)
        given: Any = [*history, {"role": "user", "content": prompt}] if history else prompt
        with _signals():
            if entry == "stream":
                result = runner.run_streamed(agent, given, run_config=self.config())
                async for _ in result.stream_events():
                    pass
                return str(self._keep(agent, result).final_output)
            return str(self._keep(agent, await runner.run(agent, given, run_config=self.config())).final_output)

    def _keep(self, agent: Any, result: Any) -> Any:
        self.last[id(agent)] = result.to_input_list()
        return result

    def requests(self, agent: Any) -> list[bytes]:
        return self.scripts[id(agent)].asked

    def history(self, agent: Any) -> Any:
        return self.last[id(agent)]

    def activate(self) -> None:
        adapter.install()

    def deactivate(self) -> None:
        adapter.uninstall()

    def explicit(self, agent: Any) -> Any:
        agent.runner = adapter.Runner
        return agent

    def agent_tool(self, name: str, child: Any) -> Any:
        class Question(BaseModel):
            q: str

        return child.as_tool(name, "asks", parameters=Question)

    def timed_tool(self, body: Callable[..., Any], seconds: float) -> Any:
        return function_tool(body, timeout=seconds, strict_mode=False)

    def retrying(self, spec: Spec, times: int) -> Any:
        raise NotApplicable("the framework does not run a tool again by itself")

    def handoff(self, spec: Spec, to: Any) -> Any:
        asking = Spec(name=spec.name, turns=[[Call(f"transfer_to_{to.name}", {})]], model=spec.model)
        return self.build(asking, handoffs=[to])

    def deferred_tool(self, name: str) -> Any:
        raise NotApplicable("the framework has no tools that run elsewhere")

    def approval_tool(self, body: Callable[..., Any]) -> Any:
        return self.tool(body, needs_approval=True)

    async def run_with_approval(self, agent: Any, prompt: str, answer: Callable[[str], bool]) -> str:
        result = await Runner.run(agent, prompt, run_config=self.config())
        while result.interruptions:
            state = result.to_state()
            for item in state.get_interruptions():
                (state.approve if answer(item.name or "") else state.reject)(item)
            result = await Runner.run(agent, state, run_config=self.config())
        return str(result.final_output)

    def structured(self, spec: Spec) -> Any:
        class Answer(BaseModel):
            n: int

        return self.build(Spec(name=spec.name, says=lambda _: '{"n": 1}'), output_type=Answer)

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Any:
        return WithServer(spec, command)

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Any:
        reported = Usage(
            requests=1,
            input_tokens=usage["input_uncached"] + usage["input_cache_read"] + usage["input_cache_write"],
            input_tokens_details=InputTokensDetails(
                cached_tokens=usage["input_cache_read"], cache_write_tokens=usage["input_cache_write"]
            ),
            output_tokens=usage["output_visible"] + usage["output_reasoning"],
            output_tokens_details=OutputTokensDetails(reasoning_tokens=usage["output_reasoning"]),
        )
        return self.build(spec, script=Script(spec, reported))

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Any:
        return Agent(name=spec.name, model=Breaking(_pieces(after, error)))

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Any:
        return self.build(spec, script=Thinking(spec, asked))

    async def stop_early(self, agent: Any, prompt: str) -> None:
        result = Runner.run_streamed(agent, prompt, run_config=self.config())
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
                result.cancel()


class Breaking(ScriptedModel):
    """A model whose stream is whatever it was given."""

    def __init__(self, events: AsyncIterator[Any]) -> None:
        super().__init__([ModelStep.stream(lambda call: events)])


async def _pieces(text: str, error: Exception) -> AsyncIterator[Any]:
    yield ResponseTextDeltaEvent(
        content_index=0, delta=text, item_id="m", logprobs=[], output_index=0, sequence_number=0,
        type="response.output_text.delta",
    )  # fmt: skip
    raise error


class WithServer:
    """An agent whose MCP server is started for each run."""

    def __init__(self, spec: Spec, command: Sequence[str]) -> None:
        self.spec, self.command = spec, command

    def server(self) -> MCPServerStdio:
        # the framework waits five seconds for an answer by default, which a loaded machine may need to start a server
        return MCPServerStdio(
            params={"command": self.command[0], "args": list(self.command[1:])}, client_session_timeout_seconds=60
        )


class _signals:  # noqa: N801 - a block
    """Lets a signal that a tool raised out of the framework's own error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, at: Any) -> None:
        cause = error
        while cause is not None:
            if isinstance(cause, NotApplicable):
                raise cause
            cause = cause.__cause__


class _own_loop:  # noqa: N801 - a block
    """`run_sync` leaves the loop that it makes open, so it is given one."""

    def __enter__(self) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    def __exit__(self, *_: object) -> None:
        self.loop.close()
        asyncio.set_event_loop(None)


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(OpenAIAgentsHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    found = check(harness, scenario, measured().adapters[harness.name].found)
    if found.verdict == "not_applicable":
        pytest.skip(found.reason)
