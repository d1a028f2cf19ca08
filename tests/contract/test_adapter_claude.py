"""The Claude Agent SDK adapter against the scenarios that every adapter runs, with the program that the SDK brings.

Models are scripted on loopback. Sub-agents are the program's own (`Agent`), MCP servers are started by it, a person is
asked through `can_use_tool`.
"""

import asyncio
import contextlib
import inspect
import json
import os
import tempfile
import threading
import typing
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SdkMcpTool,
    create_sdk_mcp_server,
)

from playhead.adapters import claude_agent_sdk as adapter
from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import (
    AdapterHarness,
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
from playhead.testing.conformance.adapter import Call as Asked
from playhead.testing.servers import Call, ModelServer, Reply

pytestmark = pytest.mark.claude_cli

_TYPES = {int: "integer", str: "string", float: "number", bool: "boolean", dict: "object", list: "array"}
_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # an agent that reports later is another thing than a tool
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_TELEMETRY": "1",
    "MCP_TIMEOUT": "60000",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
}


class Helper:
    """A tool that is a sub-agent of the program."""

    def __init__(self, name: str, child: "ClaudeAgent") -> None:
        self.__name__ = name
        self.child = child


@dataclass
class ClaudeAgent:
    """An agent by specification, and what its scripted model was asked."""

    spec: Spec
    harness: "ClaudeHarness"
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: Mapping[str, int] | None = None
    explicit: bool = False
    requests: list[bytes] = field(default_factory=list[bytes])
    signal: NotApplicable | None = None
    later: Sequence[str] = ()  # prompts of a conversation after its first
    holds: Callable[[], Any] | None = None  # is told of a request that gets no answer
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def helpers(self) -> list[Helper]:
        return [tool for tool in self.spec.tools if isinstance(tool, Helper)]

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The tools of this agent and of those that it asks, by name."""
        found = {t.__name__: t for t in self.spec.tools if not isinstance(t, Helper)}
        for helper in self.helpers:
            found |= helper.child.functions()
        return found

    # --- the model ---

    def plan(self, _: int, body: dict[str, Any]) -> Reply:
        if self.holds is not None:
            self.holds()
            self.released.wait(60)
        system = json.dumps(body.get("system"))
        asked = next((h.child for h in self.helpers if f"[agent {h.child.spec.name}]" in system), self)
        return asked.answer(body)

    def answer(self, body: dict[str, Any]) -> Reply:
        if body.get("model") == self.spec.model:
            self.requests.append(json.dumps({k: v for k, v in body.items() if k != "metadata"}).encode())
        messages = body["messages"]
        start = max(n for n, m in enumerate(messages) if n == 0 or any(p in json.dumps(m) for p in self.later))
        turn = sum(m["role"] == "assistant" for m in messages[start:])
        usage: dict[str, Any] = {} if self.usage is None else {"usage": self.usage}
        if turn < len(self.spec.turns):
            return Reply(calls=[self.call(call) for call in self.spec.turns[turn]], **usage)
        seen = [_text(block["content"]) for n in range(len(messages)) for block in _results(messages, n)]
        return Reply(self.spec.says(seen) if self.spec.says else f"saw {seen}", **usage)

    def call(self, call: Asked) -> Call:
        helper = next((h for h in self.helpers if h.__name__ == call.tool), None)
        if helper is None:
            return Call(self.harness.identity(call.tool), call.arguments or {}, call.id)
        given = {"description": "asks", "prompt": call.arguments["q"], "subagent_type": helper.child.spec.name}
        return Call("Agent", given, call.id)

    # --- the run ---

    def made_options(self, url: str, **more: Any) -> ClaudeAgentOptions:
        home = self.harness.home
        environment = {
            **_ENVIRONMENT, "ANTHROPIC_BASE_URL": url, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "config"),
        }  # fmt: skip
        names = [self.harness.identity(name) for name in self.functions()]
        given: dict[str, Any] = {
            "tools": ["Agent"] if self.helpers else [],
            "allowed_tools": [*names, "Agent"] if self.helpers else names,
            "permission_mode": "dontAsk",
            "agents": {h.child.spec.name: _definition(h.child) for h in self.helpers} or None,
        }
        return ClaudeAgentOptions(
            model=self.spec.model, system_prompt=self.spec.system, setting_sources=[], env=environment, cwd=home,
            **{**given, **self.options, **more},
        )  # fmt: skip

    def tools(self) -> list[SdkMcpTool[Any]]:
        return [self.tool(name, body) for name, body in self.functions().items()]

    def tool(self, name: str, body: Callable[..., Any]) -> SdkMcpTool[Any]:
        hints = typing.get_type_hints(body)
        names = list(inspect.signature(body).parameters)
        properties = {n: {"type": _TYPES[hints[n]]} if hints.get(n) in _TYPES else {} for n in names}

        async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
            try:
                value = body(**arguments)
                value = await value if inspect.isawaitable(value) else value
            except Retry:
                self.signal = NotApplicable("a tool has no signal that asks the model to try again")
                raise
            except Refused as signal:
                return {"content": [{"type": "text", "text": str(signal)}], "is_error": True}
            return {"content": [{"type": "text", "text": _said(value)}]}

        schema = {"type": "object", "properties": properties, "required": names}
        return SdkMcpTool(name=name, description=body.__doc__ or name, input_schema=schema, handler=handle)

    def messages(self, prompt: str, options: ClaudeAgentOptions) -> AsyncGenerator[Any]:
        if self.explicit or not self.harness.plain:
            return adapter.PlayheadClaudeRunner(self.spec.name).query(
                prompt=prompt, options=options, replayable_servers=self.servers()
            )
        servers: Any = {"desk": create_sdk_mcp_server("desk", "1.0.0", self.tools())} if self.functions() else {}
        options.mcp_servers = {**typing.cast("Any", options.mcp_servers), **servers}
        made: Any = claude_agent_sdk.query(prompt=prompt, options=options)
        return made

    def servers(self) -> list[Any]:
        tools = self.tools()
        return [adapter.replayable_sdk_mcp_server(name="desk", tools=tools)] if tools else []

    def said(self, messages: Sequence[Any]) -> str:
        if self.signal is not None:
            raise self.signal
        last = next(m for m in messages if isinstance(m, ResultMessage))
        return json.dumps(last.structured_output) if last.structured_output is not None else str(last.result)


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _results(messages: list[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    """The results in a message, as they were asked for: the program gives those of agents as they end."""
    asked = [block["id"] for block in _blocks(messages[place - 1], "tool_use")] if place else []
    found = _blocks(messages[place], "tool_result")
    return sorted(found, key=lambda b: asked.index(b["tool_use_id"]) if b["tool_use_id"] in asked else len(asked))


def _blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message["content"]
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def _text(content: Any) -> str:
    """What a tool said, without what the program puts behind it."""
    whole = content if isinstance(content, str) else next((b["text"] for b in content if b.get("type") == "text"), "")
    _, report, told = whole.rpartition("The report follows:\n")  # of a sub-agent, with its id and what it took
    whole = told.partition("\nagentId:")[0].strip() if report else whole
    return whole.partition("\n\n<system-reminder>")[0]


def _definition(child: ClaudeAgent) -> AgentDefinition:
    names = [child.harness.identity(name) for name in child.functions()]
    prompt = f"[agent {child.spec.name}]"
    return AgentDefinition(description="Answers questions.", prompt=prompt, tools=names, background=False)


class ClaudeHarness(AdapterHarness):
    name = "claude_agent_sdk"
    distribution = "claude-agent-sdk"
    entries: Sequence[Entry] = ("sync", "async", "stream")
    other_model = "other"
    has_settings = False
    pauses = False
    buckets = ("input_uncached", "input_cache_read", "input_cache_write", "output_visible")
    rounds = 2
    many = 4

    def __init__(self) -> None:
        self.plain = False  # whether queries go through the SDK's own function
        self.names: dict[str, str] = {}

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.home = Path(self._folder.name)
        self._hidden = {n: os.environ.pop(n) for n in list(os.environ) if n.startswith(("ANTHROPIC_", "CLAUDE"))}

    def stop(self) -> None:
        adapter.uninstall()
        os.environ.update(self._hidden)
        self._folder.cleanup()

    def identity(self, tool: str) -> str:
        return self.names.get(tool, f"mcp__desk__{tool}")

    def shown(self, value: Any) -> Any:
        if value == "":
            return f"({self.identity('give')} completed with no output)"  # so the program tells its model
        return _said(value)

    def build(self, spec: Spec, **more: Any) -> ClaudeAgent:
        return ClaudeAgent(spec, self, **more)

    def run_sync(self, agent: Any, prompt: str) -> str:
        return asyncio.run(self.run(agent, prompt))

    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        with ModelServer(agent.plan) as server:
            options = agent.made_options(server.url, include_partial_messages=entry == "stream")
            try:
                messages = [message async for message in agent.messages(prompt, options)]
            finally:
                agent.released.set()
        return agent.said(messages)

    async def conversation(self, agent: Any, prompts: Sequence[str]) -> str:
        return await self._talk(agent, prompts)

    async def _talk(self, agent: Any, prompts: Sequence[str], **more: Any) -> str:
        messages: list[Any] = []
        agent.later = prompts[1:]
        with ModelServer(agent.plan) as server:
            runner = adapter.PlayheadClaudeRunner(agent.spec.name)
            options = agent.made_options(server.url, **more)
            async with runner.client(options, replayable_servers=agent.servers()) as client:
                for prompt in prompts:
                    await client.query(prompt)
                    messages = [message async for message in client.receive_response()]
        return agent.said(messages)

    def requests(self, agent: Any) -> list[bytes]:
        return agent.requests

    def activate(self) -> None:
        self.plain = True
        adapter.install()

    def deactivate(self) -> None:
        self.plain = True
        adapter.uninstall()

    def explicit(self, agent: Any) -> Any:
        agent.explicit = True
        return agent

    def agent_tool(self, name: str, child: Any) -> Any:
        self.names[name] = "Agent"
        return Helper(name, child)

    def approval_tool(self, body: Callable[..., Any]) -> Any:
        return body

    async def run_with_approval(self, agent: Any, prompt: str, answer: Callable[[str], bool]) -> str:
        async def ask(tool: str, given: dict[str, Any], _context: Any) -> Any:
            return PermissionResultAllow() if answer(tool) else PermissionResultDeny(message="a person refused")

        return await self._talk(agent, [prompt], allowed_tools=[], permission_mode="default", can_use_tool=ask)

    def structured(self, spec: Spec) -> Any:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        self.names["StructuredOutput"] = "StructuredOutput"
        asking = Spec(turns=[[Asked("StructuredOutput", {"n": 1})]], model=spec.model, name=spec.name)
        return self.build(asking, options={"output_format": {"type": "json_schema", "schema": schema}})

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Any:
        self.names["price"] = "mcp__shop__price"
        server = {"command": command[0], "args": list(command[1:])}
        return self.build(spec, options={"mcp_servers": {"shop": server}, "allowed_tools": ["mcp__shop__price"]})

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Any:
        reported = {
            "input_tokens": usage["input_uncached"],
            "cache_read_input_tokens": usage["input_cache_read"],
            "cache_creation_input_tokens": usage["input_cache_write"],
            "output_tokens": usage["output_visible"],
        }
        return self.build(spec, usage=reported)

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Any:
        raise NotApplicable("the program reads the stream; what breaks it reaches no code of the agent")

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Any:
        return self.build(spec, holds=asked)

    async def stop_early(self, agent: Any, prompt: str) -> None:
        with ModelServer(agent.plan) as server:
            options = agent.made_options(server.url)
            async with contextlib.aclosing(agent.messages(prompt, options)) as messages:
                async for message in messages:
                    if isinstance(message, AssistantMessage):
                        break


# Each run starts the program, a second of processor time. These say something of this adapter; PLAYHEAD_CONFORMANCE=all
# (`make conformance`) runs every scenario.
CHOSEN = (
    "S2", "S8-unknown", "S9", "S12-tools", "S14-model", "S14-model_params", "S15-diff", "S17-inside", "S19",
    "S20-changed", "S21", "S27", "S29", "S30",
)  # fmt: skip
WHOLE = os.environ.get("PLAYHEAD_CONFORMANCE") == "all"


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(ClaudeHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", [s for s in scenarios() if WHOLE or s.id in CHOSEN], ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    found = check(harness, scenario, measured().adapters[harness.name].found)
    if found.verdict == "not_applicable":
        pytest.skip(found.reason)


@pytest.mark.skipif(not WHOLE, reason="make conformance runs it")
def test_a_decorated_tool_of_a_server_of_the_sdk_is_one_call_under_the_global_form(harness: AdapterHarness) -> None:
    """The SDK runs such a tool where no context tells of the call."""
    harness.activate()
    (scenario,) = [s for s in scenarios() if s.id == "S25"]
    assert check(harness, scenario, measured().adapters[harness.name].found).verdict == "supported"
