"""Runs every benchmark, each in a process of its own: ``python -m benchmarks [NAME ...]``."""

import subprocess
import sys
from pathlib import Path


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main() -> int:
    chosen = sys.argv[1:] or names()
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    failed: list[str] = []
    for name in chosen:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"did not finish: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
