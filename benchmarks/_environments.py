"""Virtual environments of their own for benchmarks whose packages the development environment does not hold.

They are kept in the user's cache folder (``PLAYHEAD_BENCH_CACHE`` names another) by what they hold, and are never a
dependency of the project.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SKIPPED = 77
"""Exit status of a benchmark that cannot run here and has said why."""


class UnavailableError(Exception):
    """Something that a benchmark needs cannot be had here."""


def folder() -> Path:
    named = os.environ.get("PLAYHEAD_BENCH_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "playhead-bench"


def made(name: str, requirements: Sequence[str], *, overrides: Sequence[str] = (), fresh: bool = False) -> Path:
    """The interpreter of an environment that holds the project and ``requirements``; made when it is not there.

    Args:
        overrides: requirements that count instead of what any package says of the same one.
        fresh: make it anew.

    Raises:
        UnavailableError: it cannot be installed.
    """
    wanted = "\n".join([sys.version, str(ROOT), *requirements, *overrides])
    place = folder() / f"{name}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    python = place / "bin" / "python"
    complete = place / "complete"
    if complete.exists() and not fresh:
        return python
    uv = _uv()
    print(f"installing {', '.join(requirements)} into {place}", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    venv.create(place)
    (place / "overrides.txt").write_text("\n".join(overrides))
    command = [uv, "pip", "install", "-q", "--python", str(python), "--overrides", str(place / "overrides.txt")]
    done = subprocess.run([*command, "-e", str(ROOT), *requirements], stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        said = " ".join(done.stderr.split())
        raise UnavailableError(f"cannot install {', '.join(requirements)}: {said[:600]}")
    complete.touch()
    return python


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise UnavailableError("uv, which installs the environment, is not there")
    return found
