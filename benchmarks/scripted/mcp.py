"""MCP: a client session and a server of the library in one process, with its handshake. There is no model."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mcp import Client
from mcp.server import MCPServer

from benchmarks.scripted import TOOLS, Run, Shape, in_session, lookup
from playhead.adapters import mcp as adapter
from playhead.engine.recorder import Recorder

DISTRIBUTION = "mcp"
MODELS = False


def bare(shape: Shape) -> Run:
    server = MCPServer("bench", log_level="ERROR")
    for number in range(TOOLS):
        server.add_tool(lookup, name=f"tool_{number}")

    async def run() -> None:
        async with Client(server) as client:
            for turn in range(shape.turns):
                for _, tool, arguments in shape.asks(turn):
                    await client.call_tool(tool, arguments)

    return lambda: asyncio.run(run())


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    plain = bare(shape)

    adapter.install()
    try:
        yield in_session(recorder, plain)
    finally:
        adapter.uninstall()
