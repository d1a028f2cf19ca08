"""The outer egress guard: around a whole process tree, so it binds native code and other programs too.

The parent opens a `tunnel` where anything is allowed, the child calls `enter` before the agent's code runs (or is
started by `launch`), and the level that was reached goes to the ledger beside the guard inside Python, which stays on.
"""

import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

Mode = Literal["require", "best", "off"]
LevelName = Literal["none", "python", "landlock", "namespace", "bwrap"]


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
    """

    name: LevelName
    detail: str = ""
    loopback: bool = False
    hosts: frozenset[str] = frozenset()
    severed: tuple[str, ...] = ()
    control: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        name = self.name if self.name in ("none", "python") else f"{self.name} + python"
        return f"{name} ({self.detail})" if self.detail else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What this machine offers: for each outer level None when it works, else why it does not."""

    namespace: str | None
    bwrap: str | None
    landlock: str | None


def available() -> Levels:
    """The outer levels that work here, tried once per process (forks inherit the answer)."""
    return Levels(namespace="not built", bwrap="not built", landlock="not built")


@contextmanager
def tunnelled(policy: Isolation) -> Generator[Isolation]:
    """In the parent, around the life of the child: serves the allowed hosts. Without any there is no tunnel."""
    yield replace(policy, tunnel=None)


def enter(policy: Isolation) -> Level:
    """Puts the guard around this process and all that it will start. Call it with one thread, before the agent loads.

    Raises:
        RefusedError: the policy requires an outer level and none can be had.
    """
    return Level(name="python")


def refusals(level: Level) -> tuple[str, ...]:
    """Since the last call: ``host:port`` of each connection that the tunnel refused."""
    return ()


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
) -> "subprocess.Popen[bytes]":
    """Starts a program under the guard.

    Raises:
        RefusedError: the policy requires an outer level and none can be had.
        OSError: the program cannot be started.
    """
    return subprocess.Popen(
        argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr,
        start_new_session=start_new_session, pass_fds=(*pass_fds, *policy.descriptors),
    )  # fmt: skip
