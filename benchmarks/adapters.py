"""What each adapter adds to its framework, per tool call, model call and run.

The same scripted agent in every framework that is installed, with a model in this process, recorded into a SQLite
store: bare and recorded in turn, in one process for each framework. ``python -m benchmarks.adapters NAME ...``
measures some; ``--calls`` and ``--rounds`` change how much is done.
"""

import argparse
import logging
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

from benchmarks.scripted import TEXT, TOOLS, script
from benchmarks.scripted.measuring import HEADING, Row, arms_of, check, line, measured
from playhead.engine.recorder import Recorder
from playhead.store.sqlite import SqliteStore

CALLS, ROUNDS = 30, 15
MISSING = 3  # exit status where a framework is not installed
NAMES = (
    "functions", "wire", "pydantic_ai", "langgraph", "openai_agents", "claude_agent_sdk", "mcp", "google_genai",
    "google_adk", "smolagents", "crewai", "litellm",
)  # fmt: skip


def measure(name: str, calls: int = CALLS, rounds: int = ROUNDS) -> Row:
    """The row of one adapter.

    Raises:
        ImportError: its framework is not installed.
        RuntimeError: a call did not take place, or was not recorded.
    """
    found = script(name)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(SqliteStore(Path(folder) / "bench.db"))
        try:
            check(found, recorder, calls)
            return measured(arms_of(found, recorder), calls, rounds, models=found.MODELS)[0]
        finally:
            recorder.close()


def version_of(name: str) -> str:
    """The version of an adapter's framework; empty for plain code.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    distribution = script(name).DISTRIBUTION
    return "" if distribution is None else version(distribution)


def told_how(calls: int, rounds: int) -> str:
    """What the figures are of, for their heading."""
    return (
        f"{calls} turns with one tool call each, {TOOLS} tools, {len(TEXT)} bytes a result; median of {rounds} rounds "
        "(quartiles)\nprocessor time of the process, the writer's included; + in microseconds\n"
    )


def told(name: str, calls: int, rounds: int) -> int:
    """Prints the row of one adapter, measured in this process. 3 where its framework is not installed."""
    warnings.simplefilter("ignore")  # of frameworks, at every call
    logging.disable(logging.WARNING)
    try:
        found = version_of(name)
    except ModuleNotFoundError:
        return MISSING
    print(f"measuring {name}", file=sys.stderr, flush=True)
    print(line(name, found, measure(name, calls, rounds)), flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--row", action="store_true", help="one adapter's row alone, measured in this process")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no adapter {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    if given.calls < 2 or given.rounds < 1:
        parser.error("at least two calls and one round are needed")
    if given.row:
        return told(given.names[0], given.calls, given.rounds)
    print(told_how(given.calls, given.rounds))
    print(HEADING, flush=True)
    ended: dict[str, int] = {}
    for name in given.names or NAMES:
        size = ["--calls", str(given.calls), "--rounds", str(given.rounds)]
        ended[name] = subprocess.run([sys.executable, "-m", "benchmarks.adapters", name, "--row", *size]).returncode
    missing = [name for name, status in ended.items() if status == MISSING]
    if missing:
        print(f"\nnot installed here: {', '.join(missing)}")
    bad = [name for name, status in ended.items() if status != 0 and (given.names or status != MISSING)]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
