# pyright: reportMissingImports=false
"""LiteLLM's completions in a loop of one's own."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it asks the network

import litellm

import playhead
from benchmarks.scripted import SCHEMA, TEXT, TOOLS, Run, Shape, in_session, lookup
from benchmarks.scripted._served import url
from playhead.engine.recorder import Recorder

DISTRIBUTION = "litellm"
MODELS = True


def _runs(shape: Shape, tools: dict[str, Callable[..., Any]]) -> Run:
    offered = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in tools]
    options: dict[str, Any] = {"model": "openai/scripted", "api_base": url(shape), "api_key": "none", "tools": offered}

    def run() -> None:
        messages: list[Any] = [{"role": "system", "content": TEXT}, {"role": "user", "content": "go"}]
        while True:
            message = litellm.completion(messages=messages, **options).choices[0].message
            if not message.tool_calls:
                return
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                result = tools[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    return run


def bare(shape: Shape) -> Run:
    return _runs(shape, {f"tool_{n}": lookup for n in range(TOOLS)})


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    run = _runs(shape, {f"tool_{n}": playhead.gate(lookup, name=f"tool_{n}") for n in range(TOOLS)})
    playhead.install(sessions=False)
    try:
        yield in_session(recorder, run)
    finally:
        playhead.uninstall()
