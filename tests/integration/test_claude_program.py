"""Claude queries with the program that the SDK brings, against a scripted Messages API on loopback."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    HookMatcher,
    ResultMessage,
    SdkMcpTool,
    ToolResultBlock,
    query,
)

import playhead
from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import NodeKind, SessionStatus
from playhead.testing.conformance.adapter import Bench, Recorded, Replayed
from playhead.testing.servers import Call, ModelServer, Reply

pytestmark = pytest.mark.claude_cli

LOOKUP = "mcp__support__lookup"
MCP_SERVER = """
import sys
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool
import anyio
open(sys.argv[1], "a").write("started\\n")
async def listed(ctx, params):
    schema = {"type": "object", "properties": {}}
    return ListToolsResult(tools=[Tool(name="look", description="Looks.", inputSchema=schema)])
async def called(ctx, params):
    open(sys.argv[1], "a").write("called\\n")
    return CallToolResult(content=[TextContent(type="text", text="from outside")])
server = Server("ext", on_list_tools=listed, on_call_tool=called)
async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""


def texts(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"])


def results(body: dict[str, Any]) -> list[Any]:
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [b for b in blocks if b.get("type") == "tool_result"]


def calling(*calls: Call) -> Callable[[int, dict[str, Any]], Reply]:
    """A model that makes the calls once, and then says what came of them."""

    def plan(_: int, body: dict[str, Any]) -> Reply:
        seen = results(body)
        return Reply("Saw " + json.dumps([b["content"] for b in seen])) if seen else Reply("Hm.", calls=calls)

    return plan


class Desk:
    """An agent that runs the real program. ``live`` counts what its own tool did."""

    def __init__(self, tmp_path: Path, plan: Any, **options: Any) -> None:
        self.plan = plan
        self.options = options
        self.home, self.cwd = tmp_path / "claude-home", tmp_path / "work"
        self.home.mkdir(exist_ok=True)
        self.cwd.mkdir(exist_ok=True)
        self.live: list[Any] = []
        self.messages: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.runner: dict[str, Any] = {}
        self.bare = False

    async def lookup(self, arguments: dict[str, Any]) -> Any:
        self.live.append(arguments)
        return {"content": [{"type": "text", "text": f"{arguments['q']} number {len(self.live)}"}]}

    @property
    def side(self) -> str:
        """What a shell command of the agent wrote."""
        path = self.cwd / "side.txt"
        return path.read_text() if path.exists() else ""

    def made_options(self, url: str) -> ClaudeAgentOptions:
        environment = {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "secret-key-of-a-test", "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / "config"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
            "MCP_TIMEOUT": "60000",
        }  # fmt: skip
        given: dict[str, Any] = {"allowed_tools": [LOOKUP, "Bash"], **self.options}
        return ClaudeAgentOptions(
            model="claude-sonnet-4-5",
            setting_sources=[],
            env=environment,
            cwd=self.cwd,
            permission_mode="dontAsk",
            **given,
        )

    def __call__(self, prompt: str) -> str:
        with ModelServer(self.plan) as server:
            try:
                return asyncio.run(self.run(prompt, server.url))
            finally:
                self.bodies = [_comparable(r.body) for r in server.model_requests]

    async def run(self, prompt: str, url: str) -> str:
        tool = SdkMcpTool(name="lookup", description="Looks up.", input_schema={"q": str}, handler=self.lookup)
        servers = [replayable_sdk_mcp_server(name="support", tools=[tool])]
        self.messages = []
        runner = PlayheadClaudeRunner("desk", **self.runner)
        async for message in runner.query(prompt=prompt, options=self.made_options(url), replayable_servers=servers):
            self.messages.append(message)
        return str(next(m.result for m in self.messages if isinstance(m, ResultMessage)))

    def shown(self) -> list[Any]:
        blocks = [b for m in self.messages if isinstance(getattr(m, "content", None), list) for b in m.content]
        return [(b.tool_use_id, b.content, b.is_error) for b in blocks if isinstance(b, ToolResultBlock)]


def _comparable(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "metadata"}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for name in [n for n in os.environ if n.startswith(("ANTHROPIC_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    made = Bench()
    yield made
    made.close()


def recorded(bench: Bench, desk: Desk) -> Recorded:
    found = bench.record(desk, {"prompt": "Go"})
    assert found.error is None
    desk.live.clear()
    return found


def replayed(bench: Bench, baseline: Recorded, desk: Desk, **how: Any) -> Replayed:
    return bench.replay(baseline, desk, **how)


ALL = (
    Call(LOOKUP, {"q": "4821"}),
    Call("Bash", {"command": "echo ran >> side.txt; echo out", "description": "x"}),
    Call(LOOKUP, {"q": "4821"}),
)


def test_built_in_and_in_process_tools_are_served_and_claude_sees_the_same(bench: Bench, tmp_path: Path):
    desk = Desk(tmp_path, calling(*ALL))
    baseline = recorded(bench, desk)
    bodies, shown = desk.bodies, desk.shown()
    result = replayed(bench, baseline, desk)
    assert (result.by, result.faithful, result.message) == (["served"] * 3, True, "")
    assert (desk.live, desk.side) == ([], "ran\n")
    assert (desk.bodies, desk.shown()) == (bodies, shown)
    last = desk.messages[-1]
    assert (result.session.output, last.permission_denials) == (baseline.session.output, [])


def test_recording_sends_the_requests_that_would_be_sent_without_it(bench: Bench, tmp_path: Path):
    desk = Desk(tmp_path, calling(ALL[1]))
    recorded(bench, desk)

    async def bare(url: str) -> None:
        async for _ in query(prompt="Go", options=desk.made_options(url)):
            pass

    watched = Desk(tmp_path, calling(ALL[1]))
    with ModelServer(desk.plan) as server:
        asyncio.run(bare(server.url))
        without = [_comparable(r.body) for r in server.model_requests]

    async def alone(url: str) -> None:
        async for _ in PlayheadClaudeRunner("desk", recorder=bench.recorder).query(
            prompt="Go", options=watched.made_options(url)
        ):
            pass

    with ModelServer(desk.plan) as server:
        asyncio.run(alone(server.url))
        assert [_comparable(r.body) for r in server.model_requests] == without


def test_the_model_is_answered_from_history_with_no_endpoint_at_all(bench: Bench, tmp_path: Path):
    desk = Desk(tmp_path, calling(*ALL))
    baseline = recorded(bench, desk)
    result = replayed(bench, baseline, desk, model_policy=HistoryModel())
    assert (result.faithful, result.message, desk.bodies, desk.live) == (True, "", [], [])
    assert result.session.output == baseline.session.output
    assert result.session.cost.amount == "0"


def test_usage_of_each_call_is_that_of_the_wire_and_no_credential_is_stored(bench: Bench, tmp_path: Path):
    baseline = recorded(bench, Desk(tmp_path, calling(ALL[1])))
    calls = baseline.model_calls
    assert [(c.model.usage.input_uncached, c.model.usage.output_visible) for c in calls] == [(16, 5), (16, 5)]
    assert baseline.session.cost.source == "reported"
    assert [n.attributes.get("http_status") for n in calls] == [200, 200]
    assert "secret-key-of-a-test" not in repr(baseline)


def test_a_miss_stops_the_program_before_the_tool_and_the_next_request(bench: Bench, tmp_path: Path):
    baseline = recorded(bench, Desk(tmp_path, calling(ALL[1])))
    other = Desk(tmp_path, calling(Call("Bash", {"command": "echo other >> side.txt", "description": "x"})))
    result = replayed(bench, baseline, other)
    assert (result.by, other.side, len(other.bodies)) == (["missed"], "ran\n", 1)
    assert "echo other" in result.message


def test_a_miss_under_error_result_is_told_to_claude(bench: Bench, tmp_path: Path):
    baseline = recorded(bench, Desk(tmp_path, calling(ALL[1])))
    policy = {"default": {"type": "static", "cases": [], "on_miss": "error_result"}}
    desk = Desk(tmp_path, calling(ALL[1]))
    assert replayed(bench, baseline, desk, tool_policy=policy).by == ["missed"]
    (given,) = results(desk.bodies[-1])
    assert (given["is_error"], desk.side) == (True, "ran\n")


def test_model_params_model_and_system_prompt_reach_every_request(bench: Bench, tmp_path: Path):
    desk = Desk(tmp_path, calling(ALL[1]))
    baseline = recorded(bench, desk)
    override = ReplayOverride(
        model="claude-haiku-4-5", system_prompt="Be brief.", model_params={"temperature": 0.25, "max_tokens": 123}
    )
    result = replayed(bench, baseline, desk, override=override)
    assert result.message == ""
    assert [(b["model"], b["temperature"], b["max_tokens"], "thinking" in b) for b in desk.bodies] == [
        ("claude-haiku-4-5", 0.25, 123, False)
    ] * 2
    assert all("Be brief." in json.dumps(b["system"]) for b in desk.bodies)


def test_an_external_server_is_not_started_in_a_replay(bench: Bench, tmp_path: Path):
    script, log = tmp_path / "server.py", tmp_path / "log.txt"
    script.write_text(MCP_SERVER)
    servers = {"ext": {"command": sys.executable, "args": [str(script), str(log)]}}
    plan = calling(Call("mcp__ext__look", {}))
    desk = Desk(tmp_path, plan, mcp_servers=servers, allowed_tools=["mcp__ext__look"])
    baseline = recorded(bench, desk)
    assert log.read_text() == "started\ncalled\n"
    log.unlink()
    result = replayed(bench, baseline, desk)
    assert (result.by, result.message, log.exists()) == (["served"], "", False)
    assert "from outside" in result.session.output


def sub_agent(step: int, body: dict[str, Any]) -> Reply:
    seen = results(body)
    if "You help with one thing" in texts(body) and "Ask the helper" not in texts(body):
        return Reply("Helped.") if seen else Reply("", calls=[Call(LOOKUP, {"q": "inner"})])
    if seen:
        return Reply("Done.")
    ask = {"description": "d", "prompt": "You help with one thing", "subagent_type": "helper"}
    return Reply("Ask the helper", calls=[Call("Agent", ask)])


def with_helper(tmp_path: Path) -> Desk:
    helper = AgentDefinition(description="Helps.", prompt="You help.", tools=[LOOKUP])
    return Desk(tmp_path, sub_agent, agents={"helper": helper}, allowed_tools=[LOOKUP, "Agent"])


def test_a_sub_agent_is_below_its_call_and_covered_when_that_is_served(bench: Bench, tmp_path: Path):
    desk = with_helper(tmp_path)
    baseline = recorded(bench, desk)
    outer, inner = baseline.calls
    helper = next(n for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL and n.name == "helper")
    assert (outer.name, helper.parent_id, inner.parent_id) == ("Agent", outer.id, helper.id)
    result = replayed(bench, baseline, desk)
    assert (result.by, desk.live) == (["served", "covered"], [])


def test_hooks_of_the_caller_keep_running(bench: Bench, tmp_path: Path):
    seen: list[str] = []

    async def mine(given: Any, _id: Any, _context: Any) -> Any:
        seen.append(given["tool_name"])
        return {}

    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[mine])]}
    desk = Desk(tmp_path, calling(ALL[0]), hooks=hooks)
    baseline = recorded(bench, desk)
    replayed(bench, baseline, desk)
    assert (seen, len(hooks["PreToolUse"])) == ([LOOKUP, LOOKUP], 1)


@pytest.mark.parametrize(("name", "value"), [("settings", "{}"), ("extra_args", {"debug": None})])
def test_options_that_run_commands_outside_are_refused_in_a_replay(bench: Bench, tmp_path: Path, name: str, value: Any):
    baseline = recorded(bench, Desk(tmp_path, calling(ALL[0])))
    desk = Desk(tmp_path, calling(ALL[0]), **{name: value})
    result = replayed(bench, baseline, desk)
    assert f"options.{name} is" in result.message
    assert desk.bodies == []


@pytest.mark.live
@pytest.mark.skipif(os.environ.get("PLAYHEAD_LIVE") != "1", reason="needs PLAYHEAD_LIVE=1 and credentials")
def test_live_smoke(capsys: pytest.CaptureFixture[str]):
    async def run() -> Any:
        options = ClaudeAgentOptions(tools=[], setting_sources=[], max_turns=1)
        stream = PlayheadClaudeRunner("smoke").query(prompt="Reply with the word ok.", options=options)
        return [m async for m in stream]

    messages = asyncio.run(run())
    assert any(isinstance(m, AssistantMessage) for m in messages)
    print("cost in USD:", next(m.total_cost_usd for m in messages if isinstance(m, ResultMessage)))


def test_a_client_of_two_turns_is_recorded_and_replayed(bench: Bench, tmp_path: Path):
    def plan(_: int, body: dict[str, Any]) -> Reply:
        asked = sum(m["role"] == "assistant" for m in body["messages"])
        return Reply(calls=[Call(LOOKUP, {"q": "4821"})]) if asked % 2 == 0 else Reply(f"Turn {asked // 2}.")

    desk = Desk(tmp_path, plan)

    async def talk(url: str, prompts: list[str]) -> str:
        tool = SdkMcpTool(name="lookup", description="Looks up.", input_schema={"q": str}, handler=desk.lookup)
        servers = [replayable_sdk_mcp_server(name="support", tools=[tool])]
        desk.messages = []
        runner = PlayheadClaudeRunner("desk")
        async with runner.client(desk.made_options(url), replayable_servers=servers) as client:
            for prompt in prompts:
                await client.query(prompt)
                desk.messages += [m async for m in client.receive_response()]
        return str(desk.shown())

    def run(prompts: list[str]) -> str:
        with ModelServer(plan) as server:
            return asyncio.run(talk(server.url, prompts))

    baseline = bench.record(run, {"prompts": ["one", "two"]})
    desk.live.clear()
    result = bench.replay(baseline, run)
    assert (result.by, result.message, desk.live) == (["served", "served"], "", [])
    assert "4821 number 2" in baseline.session.output
    assert result.session.output == baseline.session.output
    assert len(baseline.model_calls) == 4


def test_an_api_failure_is_recorded_with_its_status(bench: Bench, tmp_path: Path):
    desk = Desk(tmp_path, [Reply(status=400)])
    baseline = bench.record(desk, {"prompt": "Go"})
    assert baseline.session.metadata["terminal"]["api_error_status"] == 400
    (call, *_) = baseline.model_calls
    root = next(n for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL)
    assert (call.outcome.error.status, call.status.value) == (400, "failed")
    assert "scripted status 400" in root.outcome.error.message
    assert baseline.session.status is SessionStatus.FAILED


def test_a_live_tool_of_ours_holds_what_it_calls(bench: Bench, tmp_path: Path):
    @playhead.tool("inner")
    def inner(q: str) -> str:
        return f"inner {q}"

    desk = Desk(tmp_path, calling(ALL[0]))
    before = desk.lookup

    async def lookup(arguments: dict[str, Any]) -> Any:
        inner(arguments["q"])
        return await before(arguments)

    desk.lookup = lookup  # type: ignore[method-assign]
    outer, called = recorded(bench, desk).calls
    assert (outer.name, called.name, called.parent_id) == (LOOKUP, "inner", outer.id)
