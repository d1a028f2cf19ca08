# pyright: reportMissingImports=false
"""CrewAI: a crew of one agent with one task. Its telemetry, and its cache of tool results, are off in both."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_TRACKING": "true", "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}  # fmt: skip

from crewai import LLM, Agent, Crew, Task
from crewai.tools import BaseTool
from pydantic import create_model

import playhead
from benchmarks.scripted import TEXT, TOOLS, Run, Shape, in_session, lookup
from benchmarks.scripted._served import url
from playhead.engine.recorder import Recorder

DISTRIBUTION = "crewai"
MODELS = True

_ARGUMENTS = create_model("Arguments", order_id=(str, ...), limit=(int, 5), expand=(str, ""))


class Lookup(BaseTool):
    name: str
    description: str = "Looks up an order with its lines."
    args_schema: Any = _ARGUMENTS

    def _run(self, **arguments: Any) -> str:
        return lookup(**arguments)


def bare(shape: Shape) -> Run:
    # of a model that it does not know it thinks that the window is small, and shortens the conversation
    model = LLM(model="openai/gpt-4.1-mini", base_url=url(shape), api_key="none")
    tools: list[BaseTool] = [Lookup(name=f"tool_{number}") for number in range(TOOLS)]
    agent = Agent(
        role="desk", goal="help", backstory=TEXT, llm=model, tools=tools, max_iter=shape.model_calls + 1, cache=False
    )
    task = Task(description="{prompt}", expected_output="text", agent=agent)
    crew = Crew(agents=[agent], tasks=[task], name="bench", cache=False)
    return lambda: crew.kickoff(inputs={"prompt": "go"})


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    playhead.install(sessions=False)
    try:
        yield in_session(recorder, bare(shape))
    finally:
        playhead.uninstall()
