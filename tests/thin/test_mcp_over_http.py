"""MCP client sessions with a server that is reached over HTTP, and is gone when the run is replayed."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="framework not installed")

from http_shop import HTTPShop  # noqa: E402
from mcp import ClientSession  # noqa: E402
from mcp.client import streamable_http  # noqa: E402

import playhead  # noqa: E402
from playhead.adapters import mcp as adapter  # noqa: E402
from playhead.core.values import ReplayStatus  # noqa: E402
from playhead.testing.conformance.bench import Bench  # noqa: E402

INPUTS = {"prompt": "go"}

_NAMES = ("streamable_http_client", "streamablehttp_client")  # of newer versions, of older ones
connect: Any = next(getattr(streamable_http, name) for name in _NAMES if hasattr(streamable_http, name))


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    adapter.install()
    yield
    adapter.uninstall()


async def _over_session(url: str) -> list[Any]:
    async with connect(url) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        return await _tools_and_price(session)


async def _over_client(url: str) -> list[Any]:
    async with mcp.Client(url) as client:
        return await _tools_and_price(client)


async def _tools_and_price(session: Any) -> list[Any]:
    names = [tool.name for tool in (await session.list_tools()).tools]
    return [names, (await session.call_tool("price", {"item": "tea"})).model_dump(mode="json")]


OVER_HTTP = [_over_session, *([_over_client] if hasattr(mcp, "Client") else [])]


@pytest.mark.parametrize("ask", OVER_HTTP, ids=lambda ask: ask.__name__)
def test_a_server_that_is_reached_over_http_is_not_contacted_in_a_replay(ask: Any, bench: Bench) -> None:
    with HTTPShop() as server:

        def run(prompt: str) -> Any:
            return asyncio.run(ask(server.url))

        baseline = bench.record(run, INPUTS)
        assert baseline.error is None, baseline.error
        assert baseline.output[0] == ["price"]
        assert "tools/call" in server.reached
        server.reached.clear()
        live = bench.replay(baseline, run, tool_policy={"default": {"type": "passthrough"}})
        assert live.replay.status is ReplayStatus.COMPLETED, live.message
        assert server.reached[-1] == "tools/call"
        server.stop()
        result = bench.replay(baseline, run)
        assert result.faithful, result.message
        assert (result.output, result.by) == (baseline.output, ["served"])
        (told,) = [row.detail for row in result.replay.ledger if row.kind == "note"]
        assert (
            told
            == f"the MCP server {_host(server.url)!r} was not contacted: its handshake and lists are the recorded ones"
        )


def _host(url: str) -> str:
    return url.split("/")[2]


def test_a_server_over_http_whose_handshake_was_not_recorded_is_not_contacted(bench: Bench) -> None:
    with HTTPShop() as server:
        baseline = bench.record(lambda prompt: None, INPUTS)
        result = bench.replay(baseline, lambda prompt: asyncio.run(_over_session(server.url)))
        assert server.reached == []
    assert result.replay.status is ReplayStatus.FAILED
    assert f"would contact the MCP server '{_host(server.url)}'" in result.message


def test_a_session_that_was_connected_before_the_run_is_not_asked_for_its_lists_in_a_replay(bench: Bench) -> None:
    with HTTPShop() as server:
        baseline, result = asyncio.run(_connected(server.url, bench))
    assert baseline.error is None, baseline.error
    assert [n.name for n in baseline.nodes] == ["mcp list_tools", "price"]
    assert result.faithful, result.message
    assert result.output == baseline.output
    assert server.reached == ["initialize", "notifications/initialized", "tools/list", "tools/call"]


async def _connected(url: str, bench: Bench) -> Any:
    """Records and replays runs that share a session of the program's; they are driven from another thread."""
    here = asyncio.get_running_loop()
    async with connect(url) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()

        def run(prompt: str) -> Any:
            return asyncio.run_coroutine_threadsafe(_tools_and_price(session), here).result(30)

        baseline = await asyncio.to_thread(bench.record, run, INPUTS)
        return baseline, await asyncio.to_thread(bench.replay, baseline, run)


async def _pydantic_ai(url: str) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart(f"saw {messages[-1].parts[0].content}")])  # type: ignore[union-attr]
        return ModelResponse(parts=[ToolCallPart("price", {"item": "tea"}, tool_call_id="c")])

    return (await Agent(FunctionModel(answer), toolsets=[MCPToolset(url)]).run("go")).output


async def _openai_agents(url: str) -> Any:
    from agents import Agent, RunConfig, Runner
    from agents.mcp import MCPServerStreamableHttp
    from agents.testing import ScriptedModel, assistant_message, function_call

    async with MCPServerStreamableHttp(params={"url": url}) as server:
        model = ScriptedModel([[function_call("price", {"item": "tea"}, call_id="c")], [assistant_message("done")]])
        agent = Agent(name="desk", model=model, mcp_servers=[server])
        return (await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))).final_output


FRAMEWORKS = {"pydantic_ai.mcp": _pydantic_ai, "agents": _openai_agents}


@pytest.mark.parametrize(("framework", "ask"), FRAMEWORKS.items(), ids=list(FRAMEWORKS))
def test_frameworks_replay_without_their_server_over_http(framework: str, ask: Any, bench: Bench) -> None:
    pytest.importorskip(framework, reason="framework not installed")
    playhead.install()
    try:
        with HTTPShop() as server:

            def run(prompt: str) -> Any:
                return asyncio.run(ask(server.url))

            baseline = bench.record(run, INPUTS)
            assert baseline.error is None, baseline.error
            assert "tools/call" in server.reached
            server.stop()
            result = bench.replay(baseline, run)
    finally:
        playhead.uninstall()
    assert result.faithful, result.message
    assert (result.output, result.by) == (baseline.output, ["served"])
