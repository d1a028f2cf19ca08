"""``playhead agent register``."""

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.output import Fields, Result
from playhead.errors import UsageError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def register(
    agent: str,
    /,
    *,
    context: Ctx,
    entry_point: str | None = None,
    command: str | None = None,
    working_dir: Path = Path(),
    env: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    secret: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    timeout: float | None = None,
    memory: str | None = None,
    max_output: str | None = None,
) -> Result:
    """Register how an agent is started, as a version of it.

    An equal version is given back; any change makes a new one.

    Args:
        agent: Name of the agent, as its sessions are recorded under.
        entry_point: What to call: module:name or path/to/file.py:name.
        command: Program to run, with its arguments; it finds the replay's inputs as JSON on standard input.
        working_dir: Where it runs; made absolute.
        env: Name of an environment variable that it gets from the worker; may be given several times.
        secret: As --env, for a value that must not be shown; may be given several times.
        timeout: Seconds that a replay may take.
        memory: Memory that its processes may hold, such as 512MB.
        max_output: What it may print, such as 10MB; 64MB when left out.
    """
    from playhead.core.values import AgentVersion, RunSpec
    from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
    from playhead.engine.version import fingerprint

    folder = working_dir.resolve()
    if not folder.is_dir():
        raise UsageError(f"--working-dir: there is no folder {folder}")
    if timeout is not None and timeout <= 0:
        raise UsageError("--timeout must be more than 0 seconds")
    spec = RunSpec(
        entry_point=_entry_point(entry_point, command, folder),
        command=_command(command, folder),
        working_dir=str(folder),
        env=_names("--env", env, context),
        secrets=_names("--secret", secret, context),
        timeout=timeout,
        memory=_size("--memory", memory),
        output=_size("--max-output", max_output),
    )
    made = AgentVersion(
        id=SYSTEM_IDS(), agent=agent, number=1, created_at=SYSTEM_CLOCK.now(), run_spec=spec,
        fingerprint=fingerprint(folder),
    )  # fmt: skip
    stored = context.make_store().agents.register(made)
    start = spec.entry_point or shlex.join(spec.command)
    text = Fields([("agent", f"{stored.agent}@{stored.number}"), ("id", stored.id), ("starts with", start)])
    return Result(data={**shown.members(stored), "created": stored.id == made.id}, text=[text])


def _entry_point(given: str | None, command: str | None, folder: Path) -> str | None:
    if (given is None) == (command is None):
        raise UsageError("give either --entry-point or --command", hint="--entry-point module:name")
    if given is None:
        return None
    module, colon, name = given.rpartition(":")
    if not colon or not module or not name:
        raise UsageError(f"--entry-point {given!r} is not an entry point", hint="module:name or path/to/file.py:name")
    if module.endswith(".py") and not (folder / module).is_file():
        raise UsageError(f"--entry-point: there is no file {folder / module}", hint="paths begin at --working-dir")
    return given


def _command(given: str | None, folder: Path) -> tuple[str, ...]:
    if given is None:
        return ()
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise UsageError(f"--command {given!r} cannot be read: {error}") from None
    if not words:
        raise UsageError("--command is empty", hint='--command "python agent.py"')
    program = words[0]
    found = (folder / program).is_file() if os.sep in program else shutil.which(program) is not None
    if not found:
        raise UsageError(f"--command: there is no program {program!r}", hint="it must be on PATH, or a path")
    return (str((folder / program).resolve()) if os.sep in program else program, *words[1:])


def _names(option: str, names: tuple[str, ...], context: Ctx) -> tuple[str, ...]:
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{option} {name!r} is not the name of a variable", hint="names only, never values")
        if name not in os.environ:
            context.note(f"{option} {name} is not set here; the worker must have it")
    return names


def _size(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise UsageError(f"{option} {text!r} is not a size", hint="for example 512MB or 2GB")
    return int(float(found[1]) * _UNITS[found[2].lower()])
