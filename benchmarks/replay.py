"""Replays: what a tape lookup costs, and one inline and one cold child replay of an agent without network.

    python -m benchmarks.replay

The agent is a PydanticAI one with a scripted model and three tool calls. The inline replay is held against the same run
without playhead; the cold one against the start of a Python process that imports the agent.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import playhead
from playhead.core.decide import decide
from playhead.core.keys import call_key
from playhead.core.policy import CallView, ToolPolicy
from playhead.core.tape import Tape
from playhead.engine.project import use_recorder
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.testing.sessions import a_tool_call

AGENT = """
import playhead
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def respond(messages, info):
    turn = sum(isinstance(m, ModelResponse) for m in messages)
    if turn < 3:
        return ModelResponse(parts=[ToolCallPart("look", {"x": turn}, tool_call_id=f"c{turn}")])
    return ModelResponse(parts=[TextPart("done")])


bare = Agent(FunctionModel(respond, model_name="scripted"))


@bare.tool_plain
def look(x: int) -> dict:
    return {"x": x, "text": "y" * 200}


@playhead.agent("bench")
def run(prompt: str) -> str:
    return bare.run_sync(prompt).output
"""


def median_ms(work: Callable[[], Any], *, rounds: int) -> float:
    taken: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds on the clock and of processor time (all threads)."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000


def tape_lookup(calls: int) -> tuple[float, float]:
    """Microseconds per claim and decision, and milliseconds to build the tape."""
    asked = [{"x": n % 500, "q": "text"} for n in range(calls)]
    nodes = [a_tool_call(n, "look", a, {"n": n}, occurrence=n // 500 + 1) for n, a in enumerate(asked)]
    policy = ToolPolicy()
    began = time.perf_counter()
    tape = Tape.build(nodes, policy)
    built = (time.perf_counter() - began) * 1000
    views = [
        CallView(ref=f"start:{n}#1", tool="look", arguments=a, key=call_key("look", a)) for n, a in enumerate(asked)
    ]
    began = time.perf_counter()
    for view in views:
        tape.claim(view)
        decide(policy, view, tape)
    return (time.perf_counter() - began) / calls * 1e6, built


def main() -> None:
    for calls in (100, 5000):
        each, built = tape_lookup(calls)
        print(f"tape of {calls:5} calls: {each:6.1f} us per claim and decision, built once in {built:7.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        Path("bench_agent.py").write_text(AGENT)
        inline()
        cold()


def inline() -> None:
    import bench_agent  # pyright: ignore[reportMissingImports]

    recorder = Recorder(MemoryStore())
    use_recorder(recorder)
    playhead.install()
    bench_agent.run("hello")
    playhead.flush()
    playhead.uninstall()

    def bare() -> None:
        bench_agent.bare.run_sync("hello")

    def replay() -> None:
        found = playhead.replay("last", agent=bench_agent.run)
        assert found.fidelity.kind == "faithful", found.fidelity

    asyncio.set_event_loop(asyncio.new_event_loop())
    for _ in range(5):
        bare(), replay()
    taken = [(spent(bare), spent(replay)) for _ in range(60)]
    for place, what in enumerate(("elapsed", "processor time")):
        plain = statistics.median(run[place] for run, _ in taken)
        replayed = statistics.median(again[place] for _, again in taken)
        print(
            f"inline replay {replayed:6.1f} ms {what}, the run itself {plain:6.1f} ms: {replayed / plain:.2f}x "
            "(target 1.5x)"
        )
    recorder.close()
    use_recorder(None)


def cold() -> None:
    Path(".playhead").mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-c", "import playhead; playhead.install(); import bench_agent; bench_agent.run('hello')"],
        check=True,
    )
    start = [sys.executable, "-c", "import bench_agent"]
    process = median_ms(lambda: subprocess.run(start, check=True), rounds=5)
    command = [
        str(Path(sys.executable).with_name("playhead")),
        "replay",
        "create",
        "last",
        "--wait",
        "--output",
        "json",
    ]
    replayed = median_ms(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), rounds=5)
    ratio = replayed / process
    print(
        f"cold child replay by the command line {replayed:6.0f} ms, importing the agent {process:6.0f} ms: {ratio:.2f}x"
    )


if __name__ == "__main__":
    main()
