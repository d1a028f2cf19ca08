"""Runs a registered evaluator in a process of its own: it may raise, hang, print without end or take its process down,
and what comes of it here is a sentence.

The order goes in on standard input; verdicts come back through a pipe of their own, so that nothing that is printed
can be taken for a verdict.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Final

from playhead.core.codec import dump, encode
from playhead.core.evaluation import EvaluationContext, Evaluator
from playhead.core.policy import LiveModel
from playhead.core.values import JSON, RunSpec
from playhead.engine.child import environment as base_environment
from playhead.engine.child import kill_tree

DEFAULT_SECONDS: Final = 60.0
MOST_PRINTED: Final = 1024 * 1024
MOST_RETURNED: Final = 8 * 1024 * 1024
_KEPT = 8 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a run: ``verdicts`` as stored JSON, or the ``failure`` in words; ``printed`` is the end of it."""

    verdicts: list[JSON] | None = None
    failure: str | None = None
    printed: str = ""


def order(evaluator: Evaluator, context: EvaluationContext | None, hosts: frozenset[str] = frozenset()) -> bytes:
    """What the child reads; without a context it only imports the code."""
    told = {
        "evaluator": dump(evaluator),
        "context": None if context is None else _dumped(context),
        "hosts": sorted(hosts),
    }
    return encode(told)


def _dumped(context: EvaluationContext) -> JSON:
    one = {"session": context.session, "baseline": context.baseline, "fidelity": context.fidelity}
    many = {"nodes": context.nodes, "baseline_nodes": context.baseline_nodes, "ledger": context.ledger}
    return {
        **{name: None if value is None else dump(value) for name, value in one.items()},
        **{name: [dump(value) for value in values] for name, values in many.items()},
        "unchanged": context.unchanged,
        "case": context.case,
        "params": dict(context.params),
        "ignore": {tool: list(pointers) for tool, pointers in context.ignore.items()},
        "model_requests": context.model_requests,
    }


def run(evaluator: Evaluator, told: bytes, *, environment: Mapping[str, str], timeout: float | None = None) -> Ran:
    """Calls the evaluator and waits for what it says, at most its time limit."""
    seconds = timeout or evaluator.timeout or DEFAULT_SECONDS
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as given, os.fdopen(ours, "rb") as result:
        given.write(told)
        given.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-u", "-m", "playhead.cli.evaluator_child", str(theirs)],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=evaluator.working_dir if evaluator.working_dir and os.path.isdir(evaluator.working_dir) else None,  # noqa: PTH112
                env=passed(evaluator, environment),
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except OSError as error:
            return Ran(failure=f"its process could not be started: {error}")
        finally:
            os.close(theirs)
        with process:
            try:
                watched = _Watched(process, result)
                why = watched.wait(seconds)
            finally:
                kill_tree(process.pid, group_only=process.poll() is not None)
                process.wait()
        return _outcome(watched, why, process.returncode)


def passed(evaluator: Evaluator, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the child: what every program needs, and what the evaluator names. Its store is its own."""
    spec = RunSpec(env=(*evaluator.env, "PLAYHEAD_URL"))
    return base_environment(spec, LiveModel(), environment) | {"PLAYHEAD_URL": "memory:"}


class _Watched:
    """Reads what a process prints and returns while it runs, within limits."""

    def __init__(self, process: "subprocess.Popen[bytes]", result: IO[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._out, self._result = process.stdout, result
        self.returned = bytearray()
        self.tail = bytearray()
        self.printed = 0

    def wait(self, seconds: float) -> str | None:
        """Waits for the end; gives the reason where the process has to be ended."""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for stream in (self._out, self._result):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                if time.monotonic() >= until:
                    return f"it ran out of time ({seconds:g} s) and was ended"
                ended = self._process.poll() is not None
                ready = selector.select(0.05 if not ended else 0)
                for key, _ in ready:
                    if not self._read(key.fileobj):  # type: ignore[arg-type]
                        selector.unregister(key.fileobj)
                if self.printed > MOST_PRINTED:
                    return f"it printed more than {MOST_PRINTED // 1024} KiB and was ended"
                if len(self.returned) > MOST_RETURNED:
                    return f"it returned more than {MOST_RETURNED // 1024 // 1024} MiB and was ended"
                if ended and not ready:
                    break  # something that it started holds the pipes open
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return f"it ran out of time ({seconds:g} s) and was ended"
        return None

    def _read(self, stream: IO[bytes]) -> bool:
        try:
            data = os.read(stream.fileno(), 65536)
        except BlockingIOError:
            return True
        if stream is self._result:
            self.returned += data
        else:
            self.printed += len(data)
            self.tail = (self.tail + data)[-_KEPT:]
        return bool(data)


def _outcome(watched: _Watched, why: str | None, code: int) -> Ran:
    printed = bytes(watched.tail).decode("utf-8", "replace")
    if why is not None:
        return Ran(failure=why, printed=printed)
    try:
        told = json.loads(bytes(watched.returned))
    except ValueError:
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return Ran(failure=f"its process ended {how} before it gave a verdict", printed=printed)
    return Ran(verdicts=told.get("verdicts"), failure=told.get("failure"), printed=printed)
