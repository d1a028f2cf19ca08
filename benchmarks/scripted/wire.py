"""The client of `openai` in a loop of one's own; the transport below it answers in this process."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai

import playhead
from benchmarks.scripted import SCHEMA, TEXT, TOOLS, Run, Shape, completion, in_session, lookup
from playhead.adapters import wire
from playhead.engine.recorder import Recorder

DISTRIBUTION = "openai"
MODELS = True


def _client(shape: Shape) -> openai.OpenAI:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=completion(shape, json.loads(request.content)))

    transport: Any = httpx.Client(transport=httpx.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://scripted.invalid/v1", http_client=transport)


def _run(client: openai.OpenAI, tools: dict[str, Callable[..., Any]]) -> str:
    messages: list[Any] = [{"role": "system", "content": TEXT}, {"role": "user", "content": "go"}]
    offered: Any = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in tools]
    while True:
        said: Any = client.chat.completions.create(model="scripted", messages=messages, tools=offered)
        message = said.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = tools[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def bare(shape: Shape) -> Run:
    client, tools = _client(shape), {f"tool_{n}": lookup for n in range(TOOLS)}
    return lambda: _run(client, tools)


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    client = _client(shape)
    tools = {f"tool_{n}": playhead.gate(lookup, name=f"tool_{n}") for n in range(TOOLS)}

    wire.install()
    try:
        yield in_session(recorder, lambda: _run(client, tools))
    finally:
        wire.uninstall()
