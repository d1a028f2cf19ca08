"""Runs a replay in a process of its own, so that a crash, a leak or `os._exit` in an agent cannot take this one down.

The child opens the same store, does the whole replay and saves it there. What this side reads is the store, never the
child's output; that is only kept for the error text when the child dies.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from playhead.core.policy import HistoryModel, ModelPolicy
from playhead.core.values import RunSpec
from playhead.engine.isolation import Isolation, tunnelled
from playhead.engine.preflight import PROVIDER_KEYS, PROVIDER_SETTINGS
from playhead.errors import AgentProcessError

PLACEHOLDER_KEY = "playhead-placeholder-no-key-needed"
_ALWAYS = (
    "PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "USER", "LOGNAME",
    "SHELL", "TERM", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING",
    "PYTHONWARNINGS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SYSTEMROOT", "COVERAGE_PROCESS_START",
)  # fmt: skip
_KEPT_OUTPUT = 8 * 1024
_GRACE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How the child ended; ``stderr`` and ``stdout`` are the last 8 KiB of each."""

    code: int
    timed_out: bool
    stdout: str
    stderr: str


def run_child(
    replay_id: str, *, store_url: str, run_spec: RunSpec, model_policy: ModelPolicy, timeout: float | None,
    settings: Mapping[str, object], isolation: Isolation,
) -> Exit:  # fmt: skip
    """Starts the child, waits for it, and ends its whole process tree when it outlives ``timeout`` seconds.

    Raises:
        AgentProcessError: the child could not be started at all.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tunnelled(isolation) as guard:
        order = {"replay_id": replay_id, "store_url": store_url, "isolation": guard.as_json(), **settings}
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "playhead.cli.child"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                cwd=run_spec.working_dir or None,
                env=environment(run_spec, model_policy, os.environ),
                start_new_session=True,
                pass_fds=guard.descriptors,
            )
        except OSError as error:
            raise AgentProcessError(
                f"the agent's process could not be started in {run_spec.working_dir!r}: {error}",
                hint="the working directory of the agent version may be gone",
            ) from error
        timed_out = _wait(process, json.dumps(order).encode(), timeout)
        return Exit(code=process.returncode, timed_out=timed_out, stdout=_tail(out), stderr=_tail(err))


def _wait(process: "subprocess.Popen[bytes]", order: bytes, timeout: float | None) -> bool:
    try:
        process.communicate(order, timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()
        return True
    except BaseException:
        kill_tree(process.pid)
        process.wait()
        raise
    kill_tree(process.pid, group_only=True)  # whatever the agent left running in its process group
    return False


def kill_tree(pid: int, *, group_only: bool = False) -> None:
    """Ends a process, everything it started, and its process group: first asked, then forced."""
    found: list[psutil.Process] = []
    if not group_only:
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            found = [*root.children(recursive=True), root]
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(found, timeout=_GRACE_SECONDS)
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def environment(run_spec: RunSpec, model_policy: ModelPolicy, current: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: what every program needs, and what the run spec names. Nothing else passes.

    Without named variables the model providers' own are passed, since clients refuse to be built without a key. Under
    model history a missing key is a placeholder, and a present one is not handed over.
    """
    names: Sequence[str] = [*_ALWAYS, *run_spec.env, *run_spec.secrets]
    offline = isinstance(model_policy, HistoryModel)
    if not run_spec.env and not run_spec.secrets:
        names = [*names, *PROVIDER_SETTINGS, *([] if offline else PROVIDER_KEYS)]
    env = {name: current[name] for name in names if name in current}
    if offline:
        for name in PROVIDER_KEYS:
            env.setdefault(name, PLACEHOLDER_KEY)
    return env


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _KEPT_OUTPUT))
    return stream.read().decode("utf-8", "replace")


def last_words(end: Exit) -> str:
    """One line on why a child died, for the error of its replay."""
    if end.timed_out:
        return "it ran out of time and was ended"
    how = f"signal {signal.Signals(-end.code).name}" if end.code < 0 else f"exit code {end.code}"
    lines = [line for line in (end.stderr or end.stdout).strip().splitlines() if line.strip()]
    return f"it ended with {how}" + (f"; its last line: {lines[-1][:300]}" if lines else "")


def absolute(run_spec_dir: str | None) -> str:
    """The working directory of a run spec, absolute."""
    return str(Path(run_spec_dir or ".").resolve())
