"""One session through four frameworks: recorded with PydanticAI, replayed through the others, one after the other."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SdkMcpTool
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import playhead
from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.engine.project import use_recorder
from playhead.testing.conformance.bench import Bench
from playhead.testing.servers import Call, ModelServer, Reply

pytestmark = pytest.mark.claude_cli

LIVE: list[Any] = []
ITEMS = ("tea", "milk", "tea")  # the last call is the first one again


def price(item: str) -> dict[str, Any]:
    """The price of an item."""
    LIVE.append(item)
    return {"item": item, "cents": 100 + len(LIVE)}


def in_pydantic_ai(prompt: str) -> str:
    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("price", {"item": i}, tool_call_id=f"x{n}") for n, i in _numbered()])

    agent = PydanticAgent(FunctionModel(answer, model_name="scripted"), tools=[price], name="desk")
    return asyncio.run(agent.run(prompt)).output


def in_langgraph(prompt: str) -> str:
    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    calls: Any = [{"name": "price", "args": {"item": i}, "id": f"m{n}"} for n, i in _numbered()]
    model = Scripted(messages=iter([AIMessage(content="", tool_calls=calls), AIMessage(content="done")]))
    state = create_agent(model, [price]).invoke({"messages": [{"role": "user", "content": prompt}]})
    return str(state["messages"][-1].content)


def in_openai_agents(prompt: str) -> str:
    calls = [function_call("price", {"item": i}, call_id=f"a{n}") for n, i in _numbered()]
    model = ScriptedModel([calls, [assistant_message("done")]])
    agent = Agent(name="desk", model=model, tools=[function_tool(price)])
    return str(asyncio.run(Runner.run(agent, prompt)).final_output)


def in_claude(prompt: str) -> str:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": json.dumps(price(**arguments))}]}

    def plan(_: int, body: dict[str, Any]) -> Reply:
        if any(m["role"] == "assistant" for m in body["messages"]):
            return Reply("done")
        return Reply(calls=[Call("mcp__shop__price", {"item": i}, f"c{n}") for n, i in _numbered()])

    async def run(url: str) -> str:
        tool = SdkMcpTool(name="price", description="A price.", input_schema={"item": str}, handler=handle)
        home = os.environ["HOME"]
        options = ClaudeAgentOptions(
            model="scripted", tools=[], setting_sources=[], allowed_tools=["mcp__shop__price"], cwd=home,
            env={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": f"{home}/config",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
        )  # fmt: skip
        stream = PlayheadClaudeRunner("desk").query(
            prompt=prompt, options=options, replayable_servers=[replayable_sdk_mcp_server(name="shop", tools=[tool])]
        )
        return next(str(m.result) for m in [m async for m in stream] if isinstance(m, ResultMessage))

    with ModelServer(plan) as server:
        return asyncio.run(run(server.url))


def _numbered() -> list[tuple[int, str]]:
    return list(enumerate(ITEMS))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for name in [n for n in os.environ if n.startswith(("ANTHROPIC_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    Path(os.environ["HOME"]).mkdir(exist_ok=True)
    set_tracing_disabled(True)
    playhead.install(sessions=False)
    made = Bench()
    before = use_recorder(made.recorder)
    yield made
    made.close()
    use_recorder(before)
    playhead.uninstall()


def test_a_session_of_pydantic_ai_goes_through_langgraph_openai_agents_and_claude(bench: Bench) -> None:
    LIVE.clear()
    first = bench.record(in_pydantic_ai, {"prompt": "go"})
    assert sorted(ITEMS) == sorted(LIVE)  # the framework runs them in threads
    LIVE.clear()
    before = first
    for through in (in_langgraph, in_openai_agents, in_claude):
        for baseline in (before, first):  # what the framework before it made, and the recording itself
            result = bench.replay(baseline, through)
            assert LIVE == [], through.__name__
            assert result.by == ["served"] * 3, (through.__name__, result.message)
            assert result.faithful, (through.__name__, result.replay.fidelity)
            assert result.output == "done"
        before = result
    for back in (in_pydantic_ai, in_langgraph, in_openai_agents):  # Claude knows the tool as mcp__shop__price
        returned = bench.replay(before, back)
        assert LIVE == [], back.__name__
        assert returned.by == ["served"] * 3, (back.__name__, returned.message)
        assert returned.faithful, (back.__name__, returned.replay.fidelity)
    values = [
        json.loads(n.outcome.value) if isinstance(n.outcome.value, str) else n.outcome.value for n in result.calls
    ]
    assert values == [n.outcome.value for n in first.calls]
    assert sorted(v["cents"] for v in values) == [101, 102, 103]
