# pyright: reportMissingImports=false
"""smolagents: an agent that calls tools. It ends with a call of the framework's own tool for answers."""

from collections.abc import Iterator
from contextlib import contextmanager

from smolagents import OpenAIModel, Tool, ToolCallingAgent

import playhead
from benchmarks.scripted import TEXT, TOOLS, Run, Shape, in_session, lookup
from benchmarks.scripted._served import url
from playhead.engine.recorder import Recorder

DISTRIBUTION = "smolagents"
MODELS = True


class Lookup(Tool):
    description = "Looks up an order with its lines."
    inputs = {  # noqa: RUF012
        "order_id": {"type": "string", "description": "its number"},
        "limit": {"type": "integer", "description": "lines at most"},
        "expand": {"type": "string", "description": "what to add"},
    }
    output_type = "string"

    def __init__(self, number: int) -> None:
        self.name = f"tool_{number}"
        super().__init__()

    def forward(self, order_id: str, limit: int, expand: str) -> str:
        return lookup(order_id, limit, expand)


def bare(shape: Shape) -> Run:
    model = OpenAIModel("scripted", api_base=url(shape, "final_answer"), api_key="none")
    agent = ToolCallingAgent(
        tools=[Lookup(number) for number in range(TOOLS)], model=model, name="bench", instructions=TEXT,
        verbosity_level=-1, max_steps=shape.model_calls + 1,
    )  # fmt: skip
    return lambda: agent.run("go")


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    playhead.install(sessions=False)
    try:
        yield in_session(recorder, bare(shape))
    finally:
        playhead.uninstall()
