"""Plain functions: a loop over its tools. There is no model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import playhead
from benchmarks.scripted import TOOLS, Run, Shape, in_session, lookup
from playhead.engine.recorder import Recorder

DISTRIBUTION = None
MODELS = False


def _run(shape: Shape, tools: dict[str, Callable[..., Any]]) -> None:
    for turn in range(shape.turns):
        for _, tool, arguments in shape.asks(turn):
            tools[tool](**arguments)


def bare(shape: Shape) -> Run:
    tools = {f"tool_{n}": lookup for n in range(TOOLS)}
    return lambda: _run(shape, tools)


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    tools = {f"tool_{n}": playhead.gate(lookup, name=f"tool_{n}") for n in range(TOOLS)}

    yield in_session(recorder, lambda: _run(shape, tools))
