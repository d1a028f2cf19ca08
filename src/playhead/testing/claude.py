"""A scripted stand-in for the program of the Claude Agent SDK: a transport for its `query()` and `ClaudeSDKClient`.

It speaks the SDK's control protocol, so SDK MCP servers are really called, and needs no program, key or network::

    transport = ScriptedClaude([[Ask("mcp__support__lookup", {"query": "4821"})], ["It is solved."]])
    async for message in query(prompt="Go", transport=transport):
        ...
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["Ask", "Raw", "ScriptedClaude", "Turn"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A tool call. Of an MCP tool the server is called; ``result`` is what any other tool gives."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    result: Any = "done"
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """A message as the program would print it."""

    message: Mapping[str, Any]


Turn: TypeAlias = Sequence[str | Ask | Raw]

_USAGE = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0}


class ScriptedClaude:
    """Plays ``turns`` for each prompt: texts and tool calls of one model response each, then a last message.

    Args:
        result: fields of the last message, over those of a run that went well; None for no such message.
        usage: the snapshot that every block of a response carries.
        say_ids: whether tool calls tell the server their id, as newer programs do.
        backwards: results of one response come in reverse order.
    """

    def __init__(
        self, turns: Sequence[Turn], *, result: Mapping[str, Any] | None = (), usage: Mapping[str, Any] = _USAGE,  # type: ignore[assignment]
        say_ids: bool = True, backwards: bool = False,
    ) -> None:  # fmt: skip
        self.turns = turns
        self.prompts: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.closed = False
        self._result = None if result is None else dict(result)
        self._usage = dict(usage)
        self._say_ids = say_ids
        self._backwards = backwards
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._number = 0
        self._playing = 0
        self._input_ended = False
        self._servers: set[str] = set()

    # --- what the SDK calls ---

    async def connect(self) -> None: ...

    async def write(self, data: str) -> None:
        message = json.loads(data)
        self.sent.append(message)
        if message["type"] == "control_request":
            self._out.put_nowait(_success(message["request_id"], {}))
        elif message["type"] == "control_response":
            answer = message["response"]
            self._answers.pop(answer["request_id"]).set_result(answer)
        else:
            self.prompts.append(message["message"]["content"])
            self._playing += 1
            self._tasks.append(asyncio.create_task(self._play()))

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._out.get()) is not None:
            yield message

    async def close(self) -> None:
        self.closed = True
        self._out.put_nowait(None)
        for task in self._tasks:
            task.cancel()

    def is_ready(self) -> bool:
        return not self.closed

    async def end_input(self) -> None:
        self._input_ended = True
        self._end_output()

    def _end_output(self) -> None:
        if self._input_ended and not self._playing:
            self._out.put_nowait(None)

    # --- the play ---

    async def _play(self) -> None:
        for turn in self.turns:
            self._number += 1
            results = await self._say(turn, f"msg_{self._number}")
            for message in reversed(results) if self._backwards else results:
                self._out.put_nowait(message)
        if self._result is not None:
            self._out.put_nowait(self._last())
        self._playing -= 1
        self._end_output()

    async def _say(self, turn: Turn, message_id: str) -> list[dict[str, Any]]:
        asked: list[tuple[str, Ask]] = []
        for number, part in enumerate(turn):
            if isinstance(part, Raw):
                self._out.put_nowait(dict(part.message))
                continue
            block: dict[str, Any] = {"type": "text", "text": part}
            if isinstance(part, Ask):
                call_id = part.id or f"toolu_{self._number}_{number}"
                asked.append((call_id, part))
                block = {"type": "tool_use", "id": call_id, "name": part.tool, "input": dict(part.arguments)}
            self._out.put_nowait(self._assistant(block, message_id))
        return list(await asyncio.gather(*(self._call(call_id, ask) for call_id, ask in asked)))

    def _assistant(self, block: dict[str, Any], message_id: str) -> dict[str, Any]:
        said = {
            "id": message_id, "role": "assistant", "model": "claude-test-1", "content": [block], "usage": self._usage,
        }  # fmt: skip
        return {"type": "assistant", "message": said, "parent_tool_use_id": None, "session_id": "s", "uuid": message_id}

    async def _call(self, call_id: str, ask: Ask) -> dict[str, Any]:
        content, is_error = ask.result, ask.is_error
        if ask.tool.startswith("mcp__"):
            content, is_error = await self._call_server(call_id, ask)
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        if is_error:
            block["is_error"] = True
        return {
            "type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None,
            "session_id": "s",
        }  # fmt: skip

    async def _call_server(self, call_id: str, ask: Ask) -> tuple[Any, bool]:
        _, server, tool = ask.tool.split("__", 2)
        if server not in self._servers:
            self._servers.add(server)
            info = {"name": "scripted", "version": "1"}
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
            await self._ask_server(server, "initialize", params)
            await self._ask_server(server, "notifications/initialized", None)
        params: dict[str, Any] = {"name": tool, "arguments": dict(ask.arguments)}
        if self._say_ids:
            params["_meta"] = {"claudecode/toolUseId": call_id}
        answer = await self._ask_server(server, "tools/call", params)
        result = answer.get("result") or {"content": [{"type": "text", "text": str(answer)}], "isError": True}
        return result["content"], bool(result.get("isError"))

    async def _ask_server(self, server: str, method: str, params: Any) -> dict[str, Any]:
        request_id = f"r{len(self.sent)}_{len(self._answers)}_{method}"
        told: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            told |= {"id": request_id, "params": params}
        request = {"subtype": "mcp_message", "server_name": server, "message": told}
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = future
        self._out.put_nowait({"type": "control_request", "request_id": request_id, "request": request})
        answer = await future
        if answer["subtype"] != "success":
            raise RuntimeError(answer.get("error"))
        return answer["response"]["mcp_response"]

    def _last(self) -> dict[str, Any]:
        texts = [part for turn in self.turns for part in turn if isinstance(part, str)]
        said: dict[str, Any] = {
            "type": "result", "subtype": "success", "is_error": False, "duration_ms": 5, "duration_api_ms": 4,
            "num_turns": len(self.turns), "session_id": "s", "result": texts[-1] if texts else "",
            "total_cost_usd": 0.01, "stop_reason": "end_turn", "terminal_reason": "completed",
            "usage": {**_USAGE, "input_tokens": 10 * len(self.turns), "output_tokens": 50},
        }  # fmt: skip
        return {**said, **(self._result or {})}


def _success(request_id: str, response: Any) -> dict[str, Any]:
    answer = {"subtype": "success", "request_id": request_id, "response": response}
    return {"type": "control_response", "response": answer}
