"""Runs one replay in a process of its own, so that a crash, a leak or `os._exit` in an agent cannot take this one down.

The child opens the same store, does the whole replay and saves it there. What this side reads is the store, never the
child's output; that is only kept for the error text when the child dies.
"""

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from playhead.core.policy import HistoryModel, ModelPolicy
from playhead.core.values import RunSpec
from playhead.engine.isolation.guard import Isolation, Launched, launch
from playhead.engine.preflight import PROVIDER_KEYS, PROVIDER_SETTINGS
from playhead.engine.process_tree import MARK, end_marked
from playhead.engine.process_tree import kill_tree as kill_tree
from playhead.engine.watching import Exit, Limits, Reason, Watched
from playhead.errors import AgentProcessError

PLACEHOLDER_KEY = "playhead-placeholder-no-key-needed"
_ALWAYS = (
    "PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "USER", "LOGNAME",
    "SHELL", "TERM", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING",
    "PYTHONWARNINGS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SYSTEMROOT", "COVERAGE_PROCESS_START",
)  # fmt: skip
_STEP = 0.05  # seconds between two looks at a process that says nothing


class Control:
    """How a worker's threads are told to end a replay's process: why, once, and the first reason counts."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._reason: Reason | None = None

    def end(self, reason: Reason) -> None:
        if self._reason is None:
            self._reason = reason
            self._told.set()

    @property
    def reason(self) -> Reason | None:
        return self._reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process to start: the order for the child, its environment, its limits and what it may reach.

    ``isolation`` is as `isolation.tunnelled` gave it; its descriptors go to the child.
    """

    task_id: str
    spec: RunSpec
    order: dict[str, Any]
    env: dict[str, str]
    limits: Limits
    isolation: Isolation


def run_fresh(launched: Launch, control: Control) -> Exit:
    """Starts an interpreter for this replay alone and waits for its end.

    Raises:
        AgentProcessError: it cannot be started at all.
    """
    return _run(launched, control, json.dumps(launched.order).encode(), program=None)


def run_command(launched: Launch, control: Control, inputs: bytes) -> Exit:
    """Starts the program of a run spec under the outer guard, its inputs on standard input, and waits for its end.

    Raises:
        AgentProcessError: it cannot be started at all. RefusedError: the guard that was required cannot be had.
    """
    return _run(launched, control, inputs, program=launched.spec.command)


def _run(launched: Launch, control: Control, given: bytes, *, program: Sequence[str] | None) -> Exit:
    out, out_in = os.pipe()
    err, err_in = os.pipe()
    started = time.monotonic()
    try:
        process = _start(launched, program, out_in, err_in)
    except OSError as error:
        for descriptor in (out, err):
            os.close(descriptor)
        raise _not_started(launched, program, error) from error
    finally:
        os.close(out_in)
        os.close(err_in)
    guard = str(process.level) if isinstance(process, Launched) else None
    watched = Watched(process.pid, out, err, launched.limits, started)
    if program is not None:
        _limit(process.pid, launched.limits.memory)
    feeder = threading.Thread(target=_feed, args=(process, given), daemon=True)
    feeder.start()
    try:
        _watch(process, watched, control)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        end_marked(launched.task_id)
    return replace(watched.close(process.returncode), guard=guard)


def _start(launched: Launch, program: Sequence[str] | None, out: int, err: int) -> "subprocess.Popen[bytes]":
    env = {**launched.env, MARK: launched.task_id}
    where = launched.spec.working_dir or None
    if program is None:
        return subprocess.Popen(
            [sys.executable, "-m", "playhead.cli.child"], stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=where,
            env=env, start_new_session=True, pass_fds=launched.isolation.descriptors,
        )  # fmt: skip
    return launch(
        program, policy=launched.isolation, env=env, cwd=where, stdin=subprocess.PIPE, stdout=out, stderr=err
    )  # fmt: skip


def _not_started(launched: Launch, program: Sequence[str] | None, error: OSError) -> AgentProcessError:
    where = launched.spec.working_dir
    if where and not Path(where).is_dir():
        return AgentProcessError(
            f"the agent's process could not be started in {where!r}: {error}",
            hint="the working directory of the agent version is gone",
        )
    name = program[0] if program else sys.executable
    return AgentProcessError(f"the program {name!r} could not be started: {error}", hint="is it installed here?")


def _feed(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    stream: IO[bytes] | None = process.stdin
    if stream is not None:
        with suppress(OSError, ValueError):  # it may not want to know
            stream.write(data)
        with suppress(OSError, ValueError):
            stream.close()


def _watch(process: "subprocess.Popen[bytes]", watched: Watched, control: Control) -> None:
    with selectors.DefaultSelector() as selector:
        for descriptor in watched.descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while process.poll() is None:
            if not selector.get_map():
                time.sleep(min(_STEP, watched.due(time.monotonic())))
            for key, _ in selector.select(min(_STEP, watched.due(time.monotonic()))):
                if not watched.read(key.fd):
                    selector.unregister(key.fd)
            if control.reason is not None:
                watched.end(control.reason, time.monotonic())
            watched.check(time.monotonic())


def _limit(pid: int, memory: int | None) -> None:
    """The limit that a child of ours sets for itself; a program gets it from outside, where the system allows it."""
    import resource

    if memory is not None and hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_AS, (memory * 4, memory * 4))


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


def absolute(run_spec_dir: str | None) -> str:
    """The working directory of a run spec, absolute."""
    return str(Path(run_spec_dir or ".").resolve())
