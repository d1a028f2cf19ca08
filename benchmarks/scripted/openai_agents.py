"""OpenAI Agents with a model of its interface. Its tracing, which sends to a service, is off in both."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import agents
from agents import Agent, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks.scripted import TEXT, TOOLS, Run, Shape, lookup_async
from playhead.adapters.openai_agents import Runner
from playhead.engine.recorder import Recorder

DISTRIBUTION = "openai-agents"
MODELS = True


class Scripted(Model):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        done = sum(item.get("type") == "function_call" for item in input if isinstance(item, dict))
        output: list[Any] = [
            ResponseFunctionToolCall(arguments=json.dumps(arguments), call_id=key, name=tool, type="function_call")
            for key, tool, arguments in self.shape.asks(done // max(1, self.shape.calls))
        ]
        if not output:
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            output = [
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            ]
        return ModelResponse(output, Usage(), None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def agent(shape: Shape) -> Agent[Any]:
    set_tracing_disabled(True)
    offered: list[Any] = [function_tool(lookup_async, name_override=f"tool_{number}") for number in range(TOOLS)]
    return Agent(name="bench", instructions=TEXT, model=Scripted(shape), tools=offered)


def runs(shape: Shape, runner: Any) -> Run:
    made = agent(shape)
    return lambda: asyncio.run(runner.run(made, "go", max_turns=shape.model_calls + 1))


def bare(shape: Shape) -> Run:
    return runs(shape, agents.Runner)


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    yield runs(shape, Runner(recorder=recorder))
