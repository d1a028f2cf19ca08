"""``playhead doctor``: one check per thing that can be wrong, each with what mends it."""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from playhead.cli.capabilities import measured_capabilities
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Result, Table
from playhead.errors import NotFoundError, PlayheadError

_ADAPTERS = (
    ("pydantic-ai", "pydantic_ai", "pydantic-ai-slim", "playhead[pydantic-ai]"),
    ("wire (httpx)", "httpx", "httpx", "playhead[wire]"),
    ("wire (httpx2)", "httpx2", "httpx2", "playhead[wire]"),
)
_LITTLE_SPACE = 500 * 1024 * 1024
_PROBLEMS_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found. ``problem`` has a ``fix``; ``info`` is worth knowing and fails nothing."""

    check: str
    state: Literal["ok", "info", "problem"]
    detail: str
    fix: str | None = None


def doctor(*, capabilities: bool = False, context: Ctx) -> Result:
    """Check the store, the environment and the adapters.

    Exit code 1 when something needs mending.

    Args:
        capabilities: Show what the conformance suite measured of each adapter instead.
    """
    if capabilities:
        return measured_capabilities()
    found = [finding for check in _CHECKS for finding in _guarded(check, context)]
    rows = [
        {"check": finding.check, "state": finding.state, "detail": finding.detail, "fix": finding.fix}
        for finding in found
    ]
    broken = any(finding.state == "problem" for finding in found)
    columns = ("check", "state", "detail", "fix")
    return Result(data=rows, items=True, text=[Table(columns, rows)], exit_code=1 if broken else 0)


def _guarded(check: Callable[[Context], Iterator[Finding]], context: Context) -> Iterator[Finding]:
    name = check.__name__.strip("_")
    try:
        yield from check(context)
    except PlayheadError as error:
        yield Finding(check=name, state="problem", detail=error.message, fix=error.hint)
    except OSError as error:
        yield Finding(check=name, state="problem", detail=str(error), fix="check the folder's permissions")


def _python(_: Context) -> Iterator[Finding]:
    detail = f"playhead {metadata.version('playhead')}, Python {platform.python_version()} on {sys.platform}"
    yield Finding(check="python", state="ok", detail=detail)


def _settings(context: Context) -> Iterator[Finding]:
    project = context.project
    detail = "defaults" if project.source is None else str(project.source)
    yield Finding(check="settings", state="ok", detail=detail)
    missing = [name for name in project.settings.secrets if "*" not in name and name not in os.environ]
    if missing:
        yield Finding(check="settings", state="info", detail=f"secrets that are not set here: {', '.join(missing)}")


def _store(context: Context) -> Iterator[Finding]:
    try:
        store = context.store
    except NotFoundError:
        yield Finding(check="store", state="info", detail=f"none yet at {context.project.url}", fix="playhead init")
        return
    problems = list(store.check())
    yield from (
        Finding(check="store", state="problem", detail=problem, fix="restore a copy, or delete what is named")
        for problem in problems[:_PROBLEMS_SHOWN]
    )
    if len(problems) > _PROBLEMS_SHOWN:
        detail = f"{len(problems) - _PROBLEMS_SHOWN} more problems"
        yield Finding(check="store", state="problem", detail=detail, fix="restore a copy")
    if not problems:
        yield Finding(check="store", state="ok", detail=store.url)


def _disk(context: Context) -> Iterator[Finding]:
    folder = next(folder for folder in (context.project.folder, *context.project.folder.parents) if folder.is_dir())
    free = shutil.disk_usage(folder).free
    state = "problem" if free < _LITTLE_SPACE else "ok"
    fix = "free some space; recordings stop when the disk is full" if state == "problem" else None
    yield Finding(check="disk", state=state, detail=f"{free // 1024**2:,} MiB free", fix=fix)
    if not os.access(folder, os.W_OK):
        yield Finding(check="disk", state="problem", detail=f"{folder} cannot be written", fix="change its permissions")


def _spool(context: Context) -> Iterator[Finding]:
    waiting = [path for path in Path(context.project.folder / "spool").rglob("*.jsonl") if path.stat().st_size]
    if waiting:
        detail = f"{len(waiting)} files wait to be written to the store"
        yield Finding(check="spool", state="info", detail=detail, fix="the next recording sends them")
    else:
        yield Finding(check="spool", state="ok", detail="nothing waits")


def _adapters(_: Context) -> Iterator[Finding]:
    for name, module, distribution, extra in _ADAPTERS:
        if importlib.util.find_spec(module) is None:
            yield Finding(check=name, state="info", detail="not installed", fix=f"pip install '{extra}'")
        else:
            yield Finding(check=name, state="ok", detail=f"{distribution} {metadata.version(distribution)}")


def _capabilities(context: Context) -> Iterator[Finding]:
    try:
        agents = context.store.agents
    except NotFoundError:
        return
    for name in agents.names():
        version = agents.find(name)
        startable = version.run_spec is not None and (version.run_spec.entry_point or version.run_spec.command)
        label = f"agent {name}@{version.number}"
        if not startable:
            fix = "move the agent's function to a module, or give --entry-point to replay create"
            yield Finding(check=label, state="info", detail="no entry point was captured", fix=fix)
        elif version.capabilities:
            measured = ", ".join(sorted(version.capabilities))
            yield Finding(check=label, state="ok", detail=f"measured: {measured}")
        else:
            yield Finding(check=label, state="ok", detail=f"starts with {startable}")


def _guard(_: Context) -> Iterator[Finding]:
    from playhead.engine.isolation.guard import available

    levels = available()
    offered = {"namespace": levels.namespace, "bwrap": levels.bwrap, "landlock": levels.landlock}
    best = next((name for name, reason in offered.items() if reason is None), None)
    lacking = "; ".join(f"{name}: {reason}" for name, reason in offered.items() if reason is not None)
    detail = f"{best} + python" if best else "python: binds the agent's process, not programs that it starts"
    if best in ("namespace", "bwrap"):
        yield Finding(check="egress guard", state="ok", detail=detail)
    else:
        fix = "allow user namespaces, or install bubblewrap, so that replays hold whole process trees"
        yield Finding(check="egress guard", state="info", detail=f"{detail} ({lacking})", fix=fix)


def _fixtures(context: Context) -> Iterator[Finding]:
    from playhead.cli.fixture_doctor import summary

    files, failures, warnings = summary(context)
    if failures or warnings:
        detail = f"{files} files; {failures} problems, {warnings} warnings"
        state = "problem" if failures else "info"
        yield Finding(check="fixtures", state=state, detail=detail, fix="playhead fixtures doctor")
    elif files:
        yield Finding(check="fixtures", state="ok", detail=f"{files} files")


_CHECKS = (_python, _settings, _store, _disk, _spool, _adapters, _capabilities, _guard, _fixtures)
