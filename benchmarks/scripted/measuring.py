"""Runs of a script in turn, bare and recorded, and what they say about the price of one call.

Three shapes, each with and without recording, one after the other in every round: an answer at once; all tool calls in
one turn; one tool call a turn. What recording adds to them, in processor time of the whole process (the recorder's
writer with it, until all is in the store), gives what it adds to a tool call, a model call and a run.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.scripted import Count, Run, Script, Shape
from playhead.core.values import NodeKind
from playhead.engine.recorder import Recorder


class Took(NamedTuple):
    """Seconds of processor time until all is stored, and on the clock until the run is over."""

    cpu: float
    wall: float


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the script: ``opened`` gives the run of a shape, ``settle`` waits until all is stored."""

    name: str
    opened: Callable[[Shape], AbstractContextManager[Run]]
    settle: Callable[[], object] = lambda: None


def timed(arm: Arm, shape: Shape) -> Took:
    """One run.

    Raises:
        RuntimeError: not every tool call took place.
    """
    with arm.opened(shape) as run:
        gc.collect()
        before = Count.tools
        cpu, wall = time.process_time(), time.perf_counter()
        run()
        wall = time.perf_counter() - wall
        arm.settle()
        cpu = time.process_time() - cpu
    if Count.tools - before != shape.tool_calls:
        raise RuntimeError(f"{arm.name}: {Count.tools - before} tool calls instead of {shape.tool_calls}")
    return Took(cpu, wall)


class Spread(NamedTuple):
    """Median and quartiles."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(low, median, high)


@dataclass(frozen=True, slots=True)
class Row:
    """What one arm costs beside the bare framework. Microseconds a call and a run, milliseconds for whole runs."""

    name: str
    bare: Spread
    whole: Spread
    ratio: Spread
    wall: Spread  # ratio of the wall times
    tool: Spread
    model: Spread | None
    run: Spread


def shapes(calls: int) -> tuple[Shape, Shape, Shape]:
    return Shape(0, 0), Shape(1, calls), Shape(calls, 1)


def measured(arms: Sequence[Arm], calls: int, rounds: int, *, models: bool = True) -> list[Row]:
    """A row for each arm but the first, which is the bare framework. A round more than ``rounds`` warms up."""
    kept: dict[str, list[list[Took]]] = {arm.name: [] for arm in arms}
    gc.collect()
    gc.freeze()  # what frameworks made while they were imported is looked at in no run
    try:
        for number in range(rounds + 1):
            for name, took in _round(arms, calls, number).items():
                if number:
                    kept[name].append(took)
    finally:
        gc.unfreeze()
    bare, *others = arms
    return [row(arm.name, kept[bare.name], kept[arm.name], calls, models=models) for arm in others]


def _round(arms: Sequence[Arm], calls: int, number: int) -> dict[str, list[Took]]:
    took: dict[str, list[Took]] = {arm.name: [] for arm in arms}
    for shape in shapes(calls):
        for arm in arms if number % 2 else reversed(arms):
            took[arm.name].append(timed(arm, shape))
    return took


def row(name: str, bare: list[list[Took]], arm: list[list[Took]], calls: int, *, models: bool) -> Row:
    tool: list[float] = []
    model: list[float] = []
    run: list[float] = []
    for without, having in zip(bare, arm, strict=True):
        plain, wide, deep = ((b.cpu - a.cpu) * 1e6 for a, b in zip(without, having, strict=True))
        # plain = run + model, wide = run + 2 model + calls * tool, deep = run + (calls + 1) model + calls * tool
        each = (deep - wide) / (calls - 1) if models else 0.0
        model.append(each)
        tool.append((wide - plain - each) / calls if models else (wide + deep - 2 * plain) / (2 * calls))
        run.append(plain - each)
    pairs = [(without[2], having[2]) for without, having in zip(bare, arm, strict=True)]
    return Row(
        name=name,
        bare=Spread.of([a.cpu * 1e3 for a, _ in pairs]),
        whole=Spread.of([b.cpu * 1e3 for _, b in pairs]),
        ratio=Spread.of([b.cpu / a.cpu for a, b in pairs]),
        wall=Spread.of([b.wall / a.wall for a, b in pairs]),
        tool=Spread.of(tool),
        model=Spread.of(model) if models else None,
        run=Spread.of(run),
    )


def arms_of(script: Script, recorder: Recorder) -> list[Arm]:
    """The bare framework, and our recording of it."""

    @contextmanager
    def bare(shape: Shape) -> Iterator[Run]:
        yield script.bare(shape)

    return [Arm("bare", bare), Arm("playhead", lambda shape: script.recorded(shape, recorder), recorder.flush)]


def check(script: Script, recorder: Recorder, calls: int) -> None:
    """Records each shape once and looks whether every call is in the store.

    Raises:
        RuntimeError: it is not.
    """
    for shape in shapes(calls):
        timed(arms_of(script, recorder)[1], shape)
        nodes = recorder.store.sessions.nodes(recorder.store.sessions.resolve("last"))
        kinds = [node.kind for node in nodes]
        found = kinds.count(NodeKind.TOOL_CALL), kinds.count(NodeKind.MODEL_CALL)
        wanted = shape.tool_calls, shape.model_calls if script.MODELS else 0
        if found != wanted:
            raise RuntimeError(f"recorded are {found} tool and model calls instead of {wanted}")


HEADING = (
    f"{'':<18}{'':<10}{'bare':>9}{'recorded':>10}{'ratio':>7}{'clock':>7}"
    f"{'+ a tool call':>22}{'+ a model call':>22}{'+ a run':>22}"
)


def line(framework: str, version: str, found: Row) -> str:
    def spread(one: Spread | None) -> str:
        return "-" if one is None else f"{one.median:.0f} ({one.low:.0f}-{one.high:.0f})"

    return (
        f"{framework:<18}{version:<10}{found.bare.median:>6.1f} ms{found.whole.median:>7.1f} ms"
        f"{found.ratio.median:>7.2f}{found.wall.median:>7.2f}"
        f"{spread(found.tool):>22}{spread(found.model):>22}{spread(found.run):>22}"
    )
