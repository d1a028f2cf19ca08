"""Claude Agent SDK: its `query()` over a transport that stands in for the program it drives.

No program runs, so its price (seconds for a start) is in neither figure; what is measured is the SDK's side of the
control protocol. Without a program there is no request on the network either: model calls are read from messages.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server, query

from benchmarks.scripted import SCHEMA, TEXT, TOOLS, Run, Shape, lookup
from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.engine.recorder import Recorder
from playhead.testing.claude import Ask, ScriptedClaude, Turn

DISTRIBUTION = "claude-agent-sdk"
MODELS = True


async def _handler(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": lookup(**arguments)}]}


def tools() -> list[SdkMcpTool[Any]]:
    return [SdkMcpTool(f"tool_{n}", "Looks up an order with its lines.", SCHEMA, _handler) for n in range(TOOLS)]


def transport(shape: Shape) -> ScriptedClaude:
    turns: list[Turn] = [
        [Ask(f"mcp__desk__{tool}", arguments, id=key) for key, tool, arguments in shape.asks(turn)]
        for turn in range(shape.turns)
    ]
    return ScriptedClaude([*turns, ["done"]])


def options(**more: Any) -> ClaudeAgentOptions:
    allowed = [f"mcp__desk__tool_{n}" for n in range(TOOLS)]
    return ClaudeAgentOptions(tools=[], setting_sources=[], system_prompt=TEXT, allowed_tools=allowed, **more)


async def drained(messages: AsyncGenerator[Any] | Any) -> None:
    async for _ in messages:
        pass


def bare(shape: Shape) -> Run:
    server = create_sdk_mcp_server("desk", tools=tools())
    given = options(mcp_servers={"desk": server})
    return lambda: asyncio.run(drained(query(prompt="go", options=given, transport=transport(shape))))


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    server = replayable_sdk_mcp_server(name="desk", tools=tools())
    yield runs(shape, PlayheadClaudeRunner("bench", recorder=recorder), server)


def runs(shape: Shape, runner: Any, server: Any) -> Run:
    """One query of a runner that wraps the SDK's."""
    given = options()

    def run() -> None:
        messages = runner.query(prompt="go", options=given, replayable_servers=[server], transport=transport(shape))
        asyncio.run(drained(messages))

    return run
