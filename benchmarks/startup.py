"""How long commands take to start, beside an empty Python process.

Start means: from the process's start until the command itself begins its work, so `--help` of a command measures the
parser and the command's module, and `version` a whole command.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 15
COMMANDS: tuple[tuple[str, float], ...] = (
    ("--help", 50),
    ("session --help", 50),
    ("version", 200),
    ("session list --help", 200),
    ("replay create --help", 200),
    ("session list", 200),
)
"""Command line and target in milliseconds."""


def fastest(command: list[str], cwd: str) -> tuple[float, float]:
    """Milliseconds of the fastest of several runs, on the clock and of processor time: the least disturbed by what else
    the machine does."""
    # As installed: the first run may leave its byte code for the next.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: list[float] = []
    used: list[float] = []
    for _ in range(RUNS):
        begun, before = time.perf_counter(), _children()
        subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        times.append((time.perf_counter() - begun) * 1000)
        used.append((_children() - before) * 1000)
    return min(times), min(used)


def _children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def main() -> None:
    script = str(Path(sys.executable).with_name("playhead"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([script, "init"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        empty, alone = fastest([sys.executable, "-c", "pass"], folder)
        print(f"python -c pass: {empty:.0f} ms (the unit of the ratios), {alone:.0f} ms of processor time")
        for line, target in COMMANDS:
            took, used = fastest([script, *line.split()], folder)
            goal = f"  {took / target:4.2f}x of its target {target:.0f} ms" if target else ""
            print(f"playhead {line:<20} {took:6.0f} ms  {used:5.0f} ms of processor time  {took / empty:5.1f}x{goal}")


if __name__ == "__main__":
    main()
