"""google-genai: functions that its client calls by itself; the transport below it answers in this process."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from google import genai
from google.genai import types

from benchmarks.scripted import TEXT, TOOLS, Run, Shape, in_session, lookup
from playhead.adapters import google_genai as adapter
from playhead.adapters import wire
from playhead.engine.recorder import Recorder

DISTRIBUTION = "google-genai"
MODELS = True


def _answer(shape: Shape, body: dict[str, Any]) -> dict[str, Any]:
    asked = shape.asks(sum(content["role"] == "model" for content in body["contents"]))
    parts: list[dict[str, Any]] = [
        {"functionCall": {"name": tool, "args": arguments}} for _, tool, arguments in asked
    ] or [{"text": "done"}]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "scripted",
    }


def _function(number: int) -> Callable[..., Any]:
    def tool(order_id: str, limit: int = 5, expand: str = "") -> str:
        """Looks up an order with its lines."""
        return lookup(order_id, limit, expand)

    tool.__name__ = f"tool_{number}"
    return tool


def bare(shape: Shape) -> Run:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=_answer(shape, json.loads(request.content)))

    options = types.HttpOptions(
        base_url="http://scripted.invalid", httpx_client=httpx.Client(transport=httpx.MockTransport(answer))
    )
    client = genai.Client(api_key="none", http_options=options)
    calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=shape.model_calls + 1)
    tools: list[Any] = [_function(number) for number in range(TOOLS)]
    config = types.GenerateContentConfig(tools=tools, system_instruction=TEXT, automatic_function_calling=calling)
    return lambda: client.models.generate_content(model="scripted", contents="go", config=config)


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    plain = bare(shape)

    wire.install()
    adapter.install()
    try:
        yield in_session(recorder, plain)
    finally:
        adapter.uninstall()
        wire.uninstall()
