"""Runs every benchmark, each in a process of its own: ``python -m benchmarks [--save] [NAME ...]``.

Those that install packages into an environment of their own run only where they are named.

``--save`` keeps what they print in `benchmarks/RESULTS.md`, a section for each, with where and when it was measured.
"""

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._environments import SKIPPED

RESULTS = Path(__file__).with_name("RESULTS.md")
_INTRODUCTION = """\
# Results

Written by `make bench` (`python -m benchmarks --save`). Every figure with a target shows both in one line. Ratios
within one run compare; times of other runs and machines say little, and a load average near or above the number of
processors means that other work took part.
"""


def names() -> list[str]:
    """Every benchmark: the modules of this folder, and its packages that are commands."""
    folder = Path(__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    return sorted(modules | installing())


def installing() -> set[str]:
    """Those that make an environment of their own, from the package index: packages with a command."""
    return {path.parent.name for path in Path(__file__).parent.glob("*/__main__.py")}


def sections(text: str) -> dict[str, str]:
    """What a results file says, by the name of the benchmark."""
    pieces = re.split(r"(?m)^## (\w+)\n", text)[1:]
    return {name: piece.strip() for name, piece in zip(pieces[::2], pieces[1::2], strict=True)}


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def run(name: str) -> tuple[int, str]:
    """Runs one benchmark, shows what it prints while it does, and gives it back with its exit status."""
    printed: list[str] = []
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as p:
        assert p.stdout is not None
        for line in p.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    return p.returncode, "".join(printed)


def section(name: str, printed: str, before: str) -> str:
    about = (
        f"`python -m benchmarks.{name}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} CPUs, load average {before} before and {load()} after"
    )
    return f"{about}\n\n```text\n{printed.strip()}\n```"


def main() -> int:
    words = sys.argv[1:]
    save = "--save" in words
    chosen = [word for word in words if word != "--save"] or [name for name in names() if name not in installing()]
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    failed: list[str] = []
    kept = sections(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in chosen:
        print(f"\n== {name}", flush=True)
        before = load()
        status, printed = run(name)
        if status == SKIPPED:
            continue  # it has said why; what was measured before is kept
        if status != 0:
            failed.append(name)
        elif save:
            kept[name] = section(name, printed, before)
            told = "\n\n".join(f"## {n}\n\n{kept[n]}" for n in sorted(kept))
            RESULTS.write_text(f"{_INTRODUCTION}\n{told}\n", encoding="utf-8")
    if failed:
        print(f"did not finish: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
