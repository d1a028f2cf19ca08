"""``python -m benchmarks.thin_adapters [--fresh] [--calls N] [--rounds N] [NAME ...]``."""

import argparse
import os
import subprocess
import sys

from benchmarks._environments import ROOT, SKIPPED, UnavailableError, made
from benchmarks.adapters import CALLS, ROUNDS, told_how
from benchmarks.scripted.measuring import HEADING

NEEDS = {
    "google_adk": ["google-adk"],
    "smolagents": ["smolagents[openai]"],
    "crewai": ["crewai"],
    "litellm": ["litellm"],
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.thin_adapters")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NEEDS))
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--fresh", action="store_true", help="make environments anew, with the newest packages")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NEEDS):
        parser.error(f"no adapter {', '.join(sorted(unknown))}; there are: {', '.join(NEEDS)}")
    print(told_how(given.calls, given.rounds))
    print(HEADING, flush=True)
    skipped: dict[str, str] = {}
    failed: list[str] = []
    names = given.names or list(NEEDS)
    for name in names:
        try:
            python = made(name, ["httpx2", *NEEDS[name]], fresh=given.fresh)
        except UnavailableError as error:
            skipped[name] = str(error)
            continue
        size = ["--calls", str(given.calls), "--rounds", str(given.rounds)]
        command = [python, "-m", "benchmarks.adapters", name, "--row", *size]
        if subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode != 0:
            failed.append(name)
    for name, reason in skipped.items():
        print(f"skipped {name}: {reason}")
    if failed:
        print(f"did not finish: {', '.join(failed)}", file=sys.stderr)
        return 1
    return SKIPPED if len(skipped) == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
