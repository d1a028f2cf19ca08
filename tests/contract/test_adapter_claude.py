"""The Claude Agent SDK adapter against scenarios that every adapter runs, with the program that the SDK brings.

Each run starts that program, so only scenarios that say something about this adapter are here.
"""

import asyncio
import inspect
import json
import os
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SdkMcpTool

from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Entry,
    Lab,
    NotApplicable,
    Refused,
    Retry,
    Scenario,
    Spec,
    scenarios,
)
from playhead.testing.servers import Call, ModelServer, Reply

pytestmark = pytest.mark.claude_cli

_PREFIX = "mcp__desk__"
_TYPES = {int: "integer", str: "string", float: "number", bool: "boolean", dict: "object", list: "array"}


@dataclass
class ClaudeAgent:
    """An agent by specification, and what its scripted model was asked."""

    spec: Spec
    home: Path
    requests: list[bytes] = field(default_factory=list[bytes])

    def plan(self, _: int, body: dict[str, Any]) -> Reply:
        self.requests.append(json.dumps({k: v for k, v in body.items() if k != "metadata"}).encode())
        blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        if turn < len(self.spec.turns):
            return Reply(calls=[Call(_PREFIX + c.tool, c.arguments or {}, c.id) for c in self.spec.turns[turn]])
        seen = [_text(b["content"]) for b in blocks if b.get("type") == "tool_result"]
        return Reply(self.spec.says(seen) if self.spec.says else f"saw {seen}")

    def options(self, url: str) -> ClaudeAgentOptions:
        environment = {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / "config"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
        }  # fmt: skip
        return ClaudeAgentOptions(
            model=self.spec.model, system_prompt=self.spec.system, tools=[], setting_sources=[], env=environment,
            cwd=self.home, permission_mode="dontAsk", allowed_tools=[_PREFIX + t.__name__ for t in self.spec.tools],
        )  # fmt: skip


def _text(content: Any) -> str:
    whole = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
    return whole.partition("\n\n<system-reminder>")[0]


def _tool(body: Callable[..., Any]) -> SdkMcpTool[Any]:
    hints = typing.get_type_hints(body)
    names = list(inspect.signature(body).parameters)
    properties = {n: {"type": _TYPES[hints[n]]} if hints.get(n) in _TYPES else {} for n in names}

    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            value = body(**arguments)
            value = await value if inspect.isawaitable(value) else value
        except Retry:
            raise NotApplicable("the framework has no retry signal") from None
        except Refused as signal:
            return {"content": [{"type": "text", "text": str(signal)}], "is_error": True}
        text = value if isinstance(value, str) else json.dumps(value)
        return {"content": [{"type": "text", "text": text}]}

    schema = {"type": "object", "properties": properties}
    return SdkMcpTool(name=body.__name__, description=body.__doc__ or "", input_schema=schema, handler=handle)


class ClaudeHarness(AdapterHarness):
    name = "claude_agent_sdk"
    entries: Sequence[Entry] = ("sync", "async")
    other_model = "other"

    def __init__(self, home: Path) -> None:
        self.home = home

    def build(self, spec: Spec) -> Any:
        if spec.settings:
            raise NotApplicable("the framework has no settings of the model")
        return ClaudeAgent(spec, self.home)

    def run_sync(self, agent: Any, prompt: str) -> str:
        return asyncio.run(self.run(agent, prompt))

    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        servers = [replayable_sdk_mcp_server(name="desk", tools=[_tool(t) for t in agent.spec.tools])]
        with ModelServer(agent.plan) as server:
            stream = PlayheadClaudeRunner(agent.spec.name).query(
                prompt=prompt, options=agent.options(server.url), replayable_servers=servers
            )
            messages = [message async for message in stream]
        return str(next(m.result for m in messages if isinstance(m, ResultMessage)))

    def requests(self, agent: Any) -> list[bytes]:
        return agent.requests


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClaudeHarness:
    for name in [n for n in os.environ if n.startswith(("ANTHROPIC_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    return ClaudeHarness(tmp_path)


CHOSEN = ("S2", "S9", "S11-used-up", "S14-system_prompt", "S14-unapplied", "S15-diff", "S23-seam", "S27")


@pytest.mark.parametrize("scenario", [s for s in scenarios() if s.id in CHOSEN], ids=lambda s: s.id)
def test_scenario(harness: ClaudeHarness, scenario: Scenario) -> None:
    lab = Lab(harness)
    try:
        scenario.run(lab)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    finally:
        lab.bench.close()
