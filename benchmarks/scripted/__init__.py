"""One scripted agent in every framework, with a model that lives in this process: bare, and recorded.

Each module of this package writes it in one framework and has

- ``DISTRIBUTION``: whose version stands beside the figures; None for plain code,
- ``MODELS``: whether its model calls are the adapter's, and recorded,
- ``bare(shape)``: one run by the framework alone,
- ``recorded(shape, recorder)``: a context in which a run is recorded; entering and leaving it is not measured.
"""

import importlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from playhead.engine import seam
from playhead.engine.recorder import Recorder

TOOLS = 5
TEXT = "the order has three lines and ships on Tuesday. " * 20
"""What the system prompt says and every tool gives back: about 1 KB."""

Run = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """``turns`` turns with ``calls`` tool calls each, and then an answer."""

    turns: int
    calls: int

    @property
    def tool_calls(self) -> int:
        return self.turns * self.calls

    @property
    def model_calls(self) -> int:
        return self.turns + 1

    def asks(self, turn: int) -> list[tuple[str, str, dict[str, Any]]]:
        """Id, tool and arguments of the calls of a turn; none after the last one."""
        if turn >= self.turns:
            return []
        return [
            (f"c{turn}-{n}", f"tool_{n % TOOLS}", {"order_id": f"{turn}-{n}", "limit": 10, "expand": "lines"})
            for n in range(self.calls)
        ]


class Script(Protocol):
    """What a module of this package has."""

    DISTRIBUTION: str | None
    MODELS: bool

    def bare(self, shape: Shape) -> Run: ...
    def recorded(self, shape: Shape, recorder: Recorder) -> AbstractContextManager[Run]: ...


def in_session(recorder: Recorder, run: Run) -> Run:
    """The run as a session of its own, for frameworks and clients that have no recorder to give them."""

    def recorded() -> None:
        with seam.session("bench", recorder=recorder):
            run()

    return recorded


class Count:
    """How often a tool has run, whoever called it."""

    tools = 0


def lookup(order_id: str, limit: int = 5, expand: str = "") -> str:
    """Looks up an order with its lines."""
    Count.tools += 1
    return TEXT


async def lookup_async(order_id: str, limit: int = 5, expand: str = "") -> str:
    """Looks up an order with its lines."""
    return lookup(order_id, limit, expand)


def script(name: str) -> Script:
    """The script of an adapter.

    Raises:
        ImportError: its framework is not installed.
    """
    found: Any = importlib.import_module(f"benchmarks.scripted.{name}")
    return found


SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "limit": {"type": "integer"}, "expand": {"type": "string"}},
    "required": ["order_id"],
}


def completion(shape: Shape, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of an OpenAI server for chat completions to a request, by what the conversation holds already."""
    turn = sum(bool(message.get("tool_calls")) for message in body["messages"])
    asked = [
        {"id": key, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        for key, tool, arguments in shape.asks(turn)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": None if asked else "done"}
    if asked:
        message["tool_calls"] = asked
    return {
        "id": f"chatcmpl-{turn}", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if asked else "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }  # fmt: skip
