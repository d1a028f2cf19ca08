"""The outer egress guard: around a whole process tree, so it binds native code and other programs too.

The parent opens a `tunnel` where anything is allowed, the child calls `enter` before the agent's code runs (or is
started by `launch`), and the level that was reached goes to the ledger beside the guard inside Python, which stays on.
"""

import errno
import marshal
import os
import shutil
import socket
import subprocess
import sys
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, cast

from playhead.engine.isolation import kernel, landlock
from playhead.engine.isolation.hosts import Endpoint, parse_all, ports
from playhead.engine.isolation.inside import Reached, first_of, service_sockets
from playhead.engine.isolation.shim import probe
from playhead.errors import RefusedError

Mode = Literal["require", "best", "off"]
LevelName = Literal["none", "python", "landlock", "namespace", "bwrap"]

_HERE = Path(__file__).parent
_BWRAP = ("--dev-bind", "/", "/", "--unshare-net", "--die-with-parent")
_IN_PLACE = ("namespace", "landlock")
_FOR_PROGRAMS = ("namespace", "bwrap", "landlock")
_LONGEST_REPORT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What the outer guard has to do for one process tree.

    Args:
        mode: ``require`` refuses to run below an outer level, ``best`` takes what there is, ``off`` wants none.
        allow_hosts: ``host``, ``host:port``, ``*.suffix`` or URLs that stay reachable; a host of this machine's
            loopback needs its port.
        tunnel: descriptor of the child's end of the parent's tunnel, as `tunnelled` gives it.
    """

    mode: Mode = "best"
    allow_hosts: frozenset[str] = frozenset()
    tunnel: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the child must inherit: for ``pass_fds``."""
        return () if self.tunnel is None else (self.tunnel,)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "allow_hosts": sorted(self.allow_hosts)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Isolation":
        return cls(mode=value["mode"], allow_hosts=frozenset(value["allow_hosts"]), tunnel=value["tunnel"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The level that was reached. ``str()`` is what the ledger says; ``detail`` is why it is not more.

    ``loopback`` and ``hosts`` are what the guard inside Python may let through, since this level already holds it.
    ``severed`` names connections that were open when the guard came up, and were cut.
    ``inner`` is false where no guard inside Python stands beside it, as in programs.
    """

    name: LevelName
    detail: str = ""
    loopback: bool = False
    hosts: frozenset[str] = frozenset()
    severed: tuple[str, ...] = ()
    inner: bool = True
    control: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        name = f"{self.name} + python" if self.inner and self.name not in ("none", "python") else self.name
        return f"{name} ({self.detail})" if self.detail else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What this machine offers: for each outer level None when it works, else why it does not."""

    namespace: str | None
    bwrap: str | None
    landlock: str | None


def available() -> Levels:
    """The outer levels that work here, tried once per process (forks inherit the answer)."""
    return Levels(namespace=_why_not("namespace"), bwrap=_why_not("bwrap"), landlock=_why_not("landlock"))


@cache
def _why_not(level: str) -> str | None:
    """Why a level cannot be had; None when it works."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if level == "namespace":
        return _try_fork() if kernel.is_single_threaded() else _try_program(_interpreter("probe"))
    if level == "landlock":
        return landlock.missing()
    program = shutil.which("bwrap")
    return _try_program([program, *_BWRAP, "--", "/bin/sh", "-c", ":"]) if program else "bwrap is not installed"


def _try_fork() -> str | None:
    """Tries a namespace in a process of its own: there is no way back from one that cannot be finished."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            probe(writer)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as answer:  # noqa: PTH123 - a descriptor
        reason = answer.read()
    os.waitpid(child, 0)
    return reason or None


def _try_program(argv: Sequence[str]) -> str | None:
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    failure = "" if ran.returncode == 0 else ran.stderr.strip() or f"the trial ended with exit code {ran.returncode}"
    return ran.stdout.strip() or failure or None


def _interpreter(function: str) -> list[str]:
    """A bare interpreter that calls a function of the shim: the packages around it are stand-ins, since loading them
    would cost more than all the rest."""
    packages = {"playhead": _HERE.parents[1], "playhead.engine": _HERE.parent, "playhead.engine.isolation": _HERE}
    code = (
        "import sys; make = type(sys)\n"
        f"for name, path in {[(name, str(path)) for name, path in packages.items()]!r}:\n"
        " sys.modules[name] = make(name); sys.modules[name].__path__ = [path]\n"
        f"from playhead.engine.isolation.shim import {function}; {function}()"
    )
    return [sys.executable, "-S", "-E", "-c", code]


@contextmanager
def tunnelled(policy: Isolation) -> Generator[Isolation]:
    """In the parent, around the life of the child: serves the allowed hosts. Without any there is no tunnel."""
    if policy.mode == "off" or not policy.allow_hosts:
        yield replace(policy, tunnel=None)
        return
    from playhead.engine.isolation.tunnel import Tunnel  # only where models are live

    with Tunnel(policy.allow_hosts) as tunnel:
        yield replace(policy, tunnel=tunnel.fd)


def enter(policy: Isolation) -> Level:
    """Puts the guard around this process and all that it will start. Call it with one thread, before the agent loads.

    Raises:
        RefusedError: the policy requires an outer level and none can be had.
    """
    if policy.mode == "off":
        return Level(name="python")
    if not sys.platform.startswith("linux"):
        return _without(policy, ["outer levels need Linux"])
    if not kernel.is_single_threaded():
        return _without(policy, ["a thread was started before the guard"])
    levels, reasons = _choice(_IN_PLACE)
    endpoints = parse_all(policy.allow_hosts)
    reached, failures = first_of(levels, ports(endpoints), policy.tunnel)
    if reached is None:
        return _without(policy, reasons + failures)
    if reached.open and policy.mode == "require":
        raise _refused([*reasons, *failures, reached.open])
    os.environ.update(reached.environment)
    if policy.tunnel is not None:
        os.set_inheritable(policy.tunnel, False)
    return _level(reached, [*reasons, *failures, *_unreachable(endpoints)], endpoints, policy.tunnel)


def _unreachable(endpoints: Sequence[Endpoint]) -> list[str]:
    return [f"{e.host} needs a port to be reached" for e in endpoints if e.is_loopback and e.port is None]


def _level(reached: Reached, reasons: Sequence[str], endpoints: Sequence[Endpoint], control: int | None) -> Level:
    let_through = [f"127.0.0.1:{reached.proxy}", *(f"{e.host}:{e.port}" for e in endpoints if e.is_loopback)]
    return Level(
        name=cast("LevelName", reached.name),
        detail="; ".join(filter(None, [*reasons, reached.detail])),
        loopback=reached.name != "landlock",
        hosts=frozenset(let_through if reached.proxy is not None else ()),
        severed=reached.severed,
        control=control,
    )


def _choice(wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """The levels to try, best first, and why better ones are left out.

    Who has the privileges tries without asking first: what is refused then has changed nothing.
    """
    if wanted == _IN_PLACE and kernel.has_privileges():
        return [*wanted], []
    reasons = {level: _why_not(level) for level in wanted}
    chosen = [level for level in wanted if reasons[level] is None]
    better = wanted[: wanted.index(chosen[0])] if chosen else wanted
    return chosen, [f"{level}: {reasons[level]}" for level in better]


def _without(policy: Isolation, reasons: Sequence[str]) -> Level:
    if policy.mode == "require":
        raise _refused(reasons)
    return Level(name="python", detail="; ".join(reasons))


def _refused(reasons: Sequence[str]) -> RefusedError:
    return RefusedError(
        f"isolation is required and cannot be had: {'; '.join(reasons)}",
        hint="allow user namespaces or install bubblewrap; or take what there is with --isolation best",
        reasons=list(reasons),
    )


def refusals(level: Level) -> tuple[str, ...]:
    """What was refused outside Python: ``host:port`` where the tunnel saw it, else how often there was no route."""
    unseen = kernel.unroutable() if level.name == "namespace" else 0
    found = [f"hosts not seen ({unseen} tries by programs or native code)"] if unseen else []
    if level.control is None:
        return tuple(found)
    with socket.socket(fileno=os.dup(level.control)) as control, suppress(OSError):
        while message := control.recv(_LONGEST_REPORT, socket.MSG_DONTWAIT):
            found.append(message.decode())
    return tuple(dict.fromkeys(found))


class Launched(subprocess.Popen[bytes]):
    """A program under the guard; ``level`` waits until the guard is up and says what was reached."""

    guard: "_Report"

    @property
    def level(self) -> Level:
        return self.guard.level()


class _Report:
    """What the shim says before it becomes the program."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self._reader, self.writer = os.pipe()
        self._close = weakref.finalize(self, os.close, self._reader)
        self._reasons = reasons
        self._level: Level | None = None

    def level(self) -> Level:
        if self._level is None:
            with open(self._reader, "rb", closefd=False) as stream:
                said = stream.read()
            self._close()
            reached, failures = marshal.loads(said) if said else (None, ["the guard was never put up"])
            reasons = [*self._reasons, *failures]
            made = Level(name="none", detail="; ".join(reasons))
            if reached is not None:
                made = _level(Reached(*reached), reasons, (), None)
            self._level = replace(made, inner=False)
        return self._level


def launch(
    argv: Sequence[str],
    *,
    policy: Isolation,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    start_new_session: bool = True,
    pass_fds: Sequence[int] = (),
) -> Launched:
    """Starts a program under the guard; there is none inside Python for it, whatever it is.

    Raises:
        RefusedError: the policy requires an outer level and none can be had.
        OSError: the program cannot be started.
    """
    variables = dict(os.environ if env is None else env)
    program = _find(argv[0], variables.get("PATH", os.defpath), cwd)
    levels, reasons = ([], []) if policy.mode == "off" else _choice(_FOR_PROGRAMS)
    if policy.mode == "require" and not levels:
        raise _refused(reasons)
    in_bwrap = levels[:1] == ["bwrap"]
    outside = [*_bwrap(), "--"] if in_bwrap else []
    endpoints = parse_all(policy.allow_hosts)
    report = _Report([*reasons, *_unreachable(endpoints)])
    order = {
        "levels": ["bwrap"] if in_bwrap else [level for level in levels if level != "bwrap"],
        "required": policy.mode == "require",
        "ports": ports(endpoints),
        "tunnel": policy.tunnel,
        "report": report.writer,
        "name": argv[0],
        "unset": [] if "LC_CTYPE" in variables else ["LC_CTYPE"],
    }
    try:
        started = Launched(
            [*outside, *_interpreter("main"), marshal.dumps(order).hex(), program, *argv[1:]],
            env=variables, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr,
            start_new_session=start_new_session, pass_fds=(*pass_fds, *policy.descriptors, report.writer),
        )  # fmt: skip
    finally:
        os.close(report.writer)
    started.guard = report
    return started


def _bwrap() -> list[str]:
    hidden = [word for path in service_sockets() for word in ("--bind", "/dev/null", path)]
    return [shutil.which("bwrap") or "bwrap", *_BWRAP, *hidden]


def _find(name: str, path: str, cwd: str | Path | None) -> str:
    """The program's file, as the child would find it, so that a missing one is an error here."""
    found = str(Path(cwd or ".", name).absolute()) if os.sep in name else shutil.which(name, path=path)
    if found is None or not Path(found).is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found
