"""What an evaluator costs: built-ins in this process, your own in a process of its own.

The unit is an empty Python process, which every run of a registered evaluator has to start.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playhead.core.evaluation import EvaluationContext
from playhead.core.evaluators.builtin import parsed
from playhead.core.evaluators.catalog import BUILTINS
from playhead.engine.evaluator_process import order, run
from playhead.engine.evaluators import read
from playhead.testing.sessions import a_model_call, a_session, a_tool_call, user

TURNS = 100
PARAMS = {
    "output-contains": {"text": "refund"},
    "output-schema": {"schema": {"type": "string"}},
    "named-facts": {"facts": [{"name": "amount", "as": "money", "value": "129.00", "currency": "USD"}]},
    "required-tools": {"tools": ["search"]},
    "forbidden-tools": {"tools": ["refund"]},
    "budget": {"tokens": 1000},
}


def a_context() -> EvaluationContext:
    """A session of 100 model and 100 tool calls, with a baseline of the same size."""

    def nodes(session: str) -> tuple[object, ...]:
        found: list[object] = []
        for turn in range(TURNS):
            messages = [user(f"question {n} " + "word " * 20) for n in range(5)]
            found.append(a_model_call(2 * turn, messages, f"answer {turn}", session=session))
            found.append(a_tool_call(2 * turn + 1, "search", {"q": f"order {turn}"}, {"hits": [turn]}, session=session))
        return tuple(found)

    return EvaluationContext(
        session=a_session(output="Your refund of $129.00 is on its way."),
        nodes=nodes("s1"),  # type: ignore[arg-type]
        baseline=a_session("s0"),
        baseline_nodes=nodes("s0"),  # type: ignore[arg-type]
    )


def median(act: Callable[[], object], runs: int) -> float:
    """Milliseconds."""
    times: list[float] = []
    for _ in range(runs):
        begun = time.perf_counter()
        act()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def main() -> None:
    context = a_context()
    empty = median(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 11)
    print(f"python -c pass: {empty:.0f} ms (the unit of the ratios)")
    print(f"\nbuilt in, over {TURNS} model and {TURNS} tool calls")
    for name, builtin in BUILTINS.items():
        if builtin.run is not None:
            params, act = parsed(builtin, PARAMS.get(name, {})), builtin.run
            print(f"  {name:<24} {median(lambda act=act, params=params: act(context, params), 21):8.3f} ms")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "checks.py")
        file.write_text("def check(ctx):\n    return len(ctx.tool_calls)\n")
        evaluator = read("checks.py:check", working_dir=Path(folder))
        small = EvaluationContext(session=a_session())
        print("\nregistered, one process each")
        for what, about in (("empty session", small), (f"{2 * TURNS} calls", context)):
            told = order(evaluator, about)
            took = median(lambda told=told: run(evaluator, told, environment=os.environ), 11)
            print(f"  {what:<24} {took:8.0f} ms  {took / empty:5.1f}x  ({len(told) // 1024} KiB handed over)")


if __name__ == "__main__":
    main()
