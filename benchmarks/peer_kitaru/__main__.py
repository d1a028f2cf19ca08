"""``python -m benchmarks.peer_kitaru [--fresh] [--calls N] [--rounds N] [FRAMEWORK ...]``."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks._environments import ROOT, SKIPPED, UnavailableError, made
from benchmarks.peer_kitaru.scripts import SCRIPTS
from benchmarks.peer_kitaru.server import QUIET, Server, running
from benchmarks.scripted import TEXT, TOOLS
from benchmarks.scripted.measuring import HEADING

CALLS, ROUNDS = 30, 9
OVERRIDES = ["genai-prices<0.2"]  # what its adapters ask for; ours asks for more, and prices no scripted model either
REQUIREMENTS = ["kitaru[server]", *(package for package, _ in SCRIPTS.values())]
ABOUT = """\
{calls} turns with one tool call each, {tools} tools, {size} bytes a result; median of {rounds} rounds (quartiles)
processor time of the agent's process; + in microseconds; server: processor time of kitaru's
and its database, a run; nodes: what a session of such a run has in the store

kitaru {version}: adapters with their defaults, which send over HTTP while the agent runs
  to {server}; no accounts, analytics off
playhead: its defaults and a SQLite file, written by a thread of the agent's process, whose time is in the figures
Both record a session, every model call with its messages and answer, every tool call with arguments and result; both
stores are asked for the number of calls, and a difference would stand here. What each does beside that (prices, secrets
taken out, keys for replays, versions) is not the same and is in its figures.
"""


def version_in(python: Path) -> str:
    ask = "from importlib.metadata import version; print(version('kitaru'))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


def compare(python: Path, server: Server, names: list[str], calls: int, rounds: int) -> int:
    env = {
        **os.environ,
        **QUIET,
        "KITARU_API_URL": server.url,
        "KITARU_CONFIG_DIR": server.home,
        "PYTHONPATH": str(ROOT),
    }
    about = {"calls": calls, "rounds": rounds, "tools": TOOLS, "size": len(TEXT), "server": server.about}
    print(ABOUT.format(**about, version=version_in(python)))
    print(f"{HEADING}{'server':>11}{'nodes':>7}", flush=True)
    failed: list[str] = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        command = [python, "-m", "benchmarks.peer_kitaru.compared", name, str(calls), str(rounds)]
        if subprocess.run([*command, *map(str, server.pids)], env=env).returncode != 0:
            failed.append(name)
    if failed:
        print(f"did not finish: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_kitaru")
    parser.add_argument("names", nargs="*", metavar="FRAMEWORK", help=", ".join(SCRIPTS))
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--fresh", action="store_true", help="make the environment anew, with the newest packages")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SCRIPTS):
        parser.error(f"no framework {', '.join(sorted(unknown))}; there are: {', '.join(SCRIPTS)}")
    if given.calls < 2 or given.rounds < 1:
        parser.error("at least two calls and one round are needed")
    try:
        python = made("peer-kitaru", REQUIREMENTS, overrides=OVERRIDES, fresh=given.fresh)
        with running(python) as server:
            return compare(python, server, given.names or list(SCRIPTS), given.calls, given.rounds)
    except UnavailableError as error:
        print(f"skipped: {error}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
