"""Agent versions capture themselves: how to start the agent, and what state its code is in.

Nothing here runs on the agent's thread but the few lookups of `of_function`; git is asked by the writer, once.
"""

import functools
import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from playhead.core.values import JSON, AgentVersion, RunSpec
from playhead.engine.capabilities import capabilities_of
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS

FRAMEWORKS = {
    "agents": "openai-agents",
    "anthropic": "anthropic",
    "claude_agent_sdk": "claude-agent-sdk",
    "crewai": "crewai",
    "google.adk": "google-adk",
    "google.genai": "google-genai",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "langchain_core": "langchain-core",
    "langgraph": "langgraph",
    "litellm": "litellm",
    "mcp": "mcp",
    "openai": "openai",
    "pydantic_ai": "pydantic-ai-slim",
    "smolagents": "smolagents",
}
"""Module -> distribution of what agents are built with."""

_GIT_TIMEOUT = 5.0
_RECENT = (
    2.0  # seconds for which git's answer counts: programs that make an agent for every request ask it no more often
)
_UNTRACKED_MOST = 500
_UNTRACKED_BYTES = 1_000_000


class CodeVersion:
    """Captures the version of an agent whose code starts at an entry point. Captured once, whoever asks.

    ``adapter`` is what sees its runs: the version keeps what was measured of it.
    """

    def __init__(
        self, entry_point: str | None, code_file: Path | None, *, env: Sequence[str] = (), adapter: str | None = None
    ) -> None:  # fmt: skip
        self.entry_point = entry_point
        self.working_dir = os.getcwd()  # noqa: PTH109 - a text, as it is now
        self._code_file = code_file
        self._env = tuple(env)
        self._adapter = adapter
        self._fingerprint: dict[str, JSON] | None = None

    def capture(self, agent: str) -> AgentVersion:
        """The agent version; reads git and installed distributions the first time."""
        if self._fingerprint is None:
            folder = self._code_file.parent if self._code_file else Path(self.working_dir)
            self._fingerprint = fingerprint(folder, at_least=time.monotonic() - _RECENT)
        return AgentVersion(
            id=SYSTEM_IDS(),
            agent=agent,
            number=1,
            created_at=SYSTEM_CLOCK.now(),
            run_spec=RunSpec(entry_point=self.entry_point, working_dir=self.working_dir, env=self._env),
            fingerprint=self._fingerprint,
            capabilities={} if self._adapter is None else capabilities_of(self._adapter),
        )


def of_function(function: Callable[..., Any], *, adapter: str | None = None) -> CodeVersion:
    """The version of an agent that is a function or class of a module."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    qualname = getattr(function, "__qualname__", "")
    return CodeVersion(entry_point(module, qualname), file_of(module), adapter=adapter)


def of_object(value: Any, *, depth: int = 1, adapter: str | None = None) -> CodeVersion:
    """The version of an agent that is an object: found by its name in a module of the code that calls.

    Args:
        depth: frames above the caller at which the search starts.
    """
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        names = [n for n, held in frame.f_globals.items() if held is value and not n.startswith("__")]
        module = sys.modules.get(frame.f_globals.get("__name__", ""))
        if names and module is not None:
            return CodeVersion(entry_point(module, names[0]), file_of(module), adapter=adapter)
        frame = frame.f_back
    return CodeVersion(None, None, adapter=adapter)


def entry_point(module: ModuleType | None, qualname: str) -> str | None:
    """``module:qualname``, or ``path/to/file.py:qualname`` for what a fresh process could not import by name.

    None for what no process could find again: local functions, lambdas, code without a file.
    """
    if module is None or not qualname or "<" in qualname:
        return None
    name = module.__name__
    if name == "__main__":
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.name:  # python -m
            return f"{spec.name.removesuffix('.__main__')}:{qualname}"
    elif _importable(module):
        return f"{name}:{qualname}"
    file = file_of(module)
    return None if file is None else f"{_relative(file)}:{qualname}"


def file_of(module: ModuleType | None) -> Path | None:
    """The file that a module was loaded from; None for what was typed or made."""
    file = getattr(module, "__file__", None)
    if file is None:  # Python takes it from a script that has ended, while its last runs are still being written
        file = getattr(getattr(module, "__loader__", None), "path", None)
    return Path(file).absolute() if file and not file.startswith("<") and Path(file).exists() else None


def _importable(module: ModuleType) -> bool:
    """Whether a fresh interpreter in the working directory finds the module by its name."""
    file = file_of(module)
    if file is None or (file.stem != "__init__" and file.stem != module.__name__.rpartition(".")[2]):
        return False  # loaded under another name than its file has
    top = file.parents[module.__name__.count(".") + (file.stem == "__init__")]
    paths = sysconfig.get_paths()
    installed = {Path(paths[name]) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    if top == Path.cwd() or top in installed:
        return True
    if "." not in module.__name__ and file.stem != "__init__":
        return top in _environment_path()
    return str(top) in sys.path and str(top) != sys.path[0]


def _environment_path() -> set[Path]:
    return {Path(p).absolute() for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p}


def _relative(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def fingerprint(folder: Path, *, at_least: float | None = None) -> dict[str, JSON]:
    """The state of the code around a folder, and what it runs on. Without git there is no ``commit``.

    Args:
        folder: where git is asked.
        at_least: when, on the monotonic clock in seconds, git may have been asked last; left out, it is asked now.
    """
    known = _git_states.get(folder)
    if known is None or at_least is None or known[0] < at_least:
        known = _git_states[folder] = time.monotonic(), _git_state(folder)
    return {"python": platform.python_version(), "frameworks": framework_versions(), **known[1]}


_git_states: dict[Path, tuple[float, dict[str, JSON]]] = {}


def framework_versions() -> dict[str, JSON]:
    """Versions of the frameworks that are imported."""
    versions: dict[str, JSON] = {}
    for module, distribution in FRAMEWORKS.items():
        found = _installed(distribution) if module in sys.modules else None
        if found is not None:
            versions[distribution] = found
    return versions


@functools.cache
def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _git_state(folder: Path) -> dict[str, JSON]:
    try:
        commit = _git(folder, "rev-parse", "HEAD").decode().strip()
        status = _git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".", ":(exclude).playhead")
        if not status:
            return {"commit": commit}
        return {"commit": commit, "dirty": _dirty_digest(folder, status)}
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return {}


def _dirty_digest(folder: Path, status: bytes) -> str:
    digest = hashlib.sha256(status)
    digest.update(_git(folder, "diff", "HEAD", "--no-ext-diff", "--binary", "--", ".", ":(exclude).playhead"))
    top = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").strip()))
    untracked = [line[3:] for line in status.split(b"\0") if line.startswith(b"?? ")]
    for name in sorted(untracked)[:_UNTRACKED_MOST]:
        path = top / os.fsdecode(name)
        if path.is_file() and path.stat().st_size <= _UNTRACKED_BYTES:
            digest.update(name + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        timeout=_GIT_TIMEOUT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
    ).stdout
