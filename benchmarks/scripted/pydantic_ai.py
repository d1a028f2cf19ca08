"""PydanticAI with a function as its model. Bare means without any capability: the hooks' own price is in the rest."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks.scripted import TEXT, TOOLS, Run, Shape, lookup_async
from playhead.adapters.pydantic_ai import Playhead
from playhead.engine.recorder import Recorder

DISTRIBUTION = "pydantic-ai-slim"
MODELS = True


def agent(shape: Shape, *capabilities: Any) -> Agent[None, str]:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = shape.asks(sum(message.kind == "response" for message in messages))
        parts = [ToolCallPart(tool, arguments, tool_call_id=key) for key, tool, arguments in asked]
        return ModelResponse(parts=parts or [TextPart("done")])

    made: Any = Agent(FunctionModel(answer, model_name="scripted"), instructions=TEXT, capabilities=list(capabilities))
    for number in range(TOOLS):
        made.tool_plain(lookup_async, name=f"tool_{number}")
    return made


def runs(made: Any) -> Run:
    return lambda: asyncio.run(made.run("go", usage_limits=UsageLimits(request_limit=None)))


def bare(shape: Shape) -> Run:
    return runs(agent(shape))


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    yield runs(agent(shape, Playhead(recorder=recorder)))
