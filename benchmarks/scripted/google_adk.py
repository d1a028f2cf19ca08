# pyright: reportMissingImports=false
"""Google ADK: a runner in memory, and a model of its interface."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import playhead
from benchmarks.scripted import TEXT, TOOLS, Run, Shape, in_session, lookup_async
from playhead.engine.recorder import Recorder

DISTRIBUTION = "google-adk"
MODELS = True


class Scripted(BaseLlm):
    shape: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse]:
        turn = sum(content.role == "model" for content in llm_request.contents)
        parts = [
            types.Part(function_call=types.FunctionCall(id=key, name=tool, args=arguments))
            for key, tool, arguments in self.shape.asks(turn)
        ]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text="done")]))


def _function(number: int) -> Callable[..., Any]:
    async def tool(order_id: str, limit: int = 5, expand: str = "") -> str:
        """Looks up an order with its lines."""
        return await lookup_async(order_id, limit, expand)

    tool.__name__ = f"tool_{number}"
    return tool


def bare(shape: Shape) -> Run:
    tools: list[Any] = [_function(number) for number in range(TOOLS)]
    agent = LlmAgent(name="bench", model=Scripted(model="scripted", shape=shape), instruction=TEXT, tools=tools)
    runner = InMemoryRunner(agent=agent, app_name="bench")

    async def run() -> None:
        session = await runner.session_service.create_session(app_name="bench", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        config = RunConfig(max_llm_calls=shape.model_calls + 1)
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config):
            pass

    return lambda: asyncio.run(run())


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    playhead.install(sessions=False)
    try:
        yield in_session(recorder, bare(shape))
    finally:
        playhead.uninstall()
