"""``playhead agent list | show``."""

from typing import Any

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.core.values import JSON, AgentVersion
from playhead.errors import UsageError
from playhead.store.ports import SessionQuery


def list_agents(*, context: Ctx) -> Result:
    """List agents and their newest version."""
    store = context.store
    rows: list[dict[str, Any]] = []
    for name in store.agents.names():
        newest = store.agents.find(name)
        rows.append(
            {
                "agent": name,
                "version": newest.number,
                "entry_point": _start(newest),
                "commit": _commit(newest),
                "made": shown.when(newest.created_at),
                "sessions": store.sessions.count(SessionQuery(agents=(name,))),
                "id": newest.id,
            }
        )
    columns = ("agent", "version", "entry_point", "commit", "made", "sessions")
    return Result(data=rows, items=True, text=[Table(columns, rows, empty="no agents; a recorded run makes one")])


def show_agent(agent: str, /, *, context: Ctx) -> Result:
    """Show an agent's versions, run spec and capabilities.

    Args:
        agent: Name of the agent; NAME@2 for one version.
    """
    agents = context.store.agents
    name, at, number = agent.rpartition("@")
    if not at:
        versions = agents.versions(agent)
        chosen = agents.find(agent)
    elif number.isdecimal():
        chosen = agents.find(name, int(number))
        versions = [chosen]
    else:
        raise UsageError(f"{agent!r} is not an agent version", hint="write NAME or NAME@NUMBER")
    data = {"agent": chosen.agent, "versions": [shown.members(version) for version in versions]}
    text: list[Block] = [Fields(_fields(chosen))]
    if chosen.capabilities:
        rows = [{"capability": name, "measured": shown.brief(value)} for name, value in chosen.capabilities.items()]
        text.append(Table(("capability", "measured"), rows))
    if len(versions) > 1:
        text.append(Table(("version", "made", "entry_point", "commit", "id"), [_row(v) for v in reversed(versions)]))
    return Result(data=data, text=text)


def _fields(version: AgentVersion) -> list[tuple[str, object]]:
    spec = version.run_spec
    known: list[tuple[str, object]] = [
        ("agent", version.agent),
        ("version", version.number),
        ("id", version.id),
        ("made", shown.when(version.created_at)),
        ("starts with", _start(version) or "nothing: no entry point was captured"),
    ]
    if spec is not None:
        known += [
            ("working dir", spec.working_dir),
            ("environment", ", ".join(spec.env) or None),
            ("secrets", ", ".join(spec.secrets) or None),
            ("timeout", None if spec.timeout is None else f"{spec.timeout:g} s"),
        ]
    return known + [(name.replace("_", " "), shown.value(value)) for name, value in version.fingerprint.items()]


def _row(version: AgentVersion) -> dict[str, JSON]:
    return {
        "version": version.number,
        "made": shown.when(version.created_at),
        "entry_point": _start(version),
        "commit": _commit(version),
        "id": version.id,
    }


def _start(version: AgentVersion) -> str | None:
    spec = version.run_spec
    if spec is None:
        return None
    return spec.entry_point or " ".join(spec.command) or None


def _commit(version: AgentVersion) -> str | None:
    commit = version.fingerprint.get("commit")
    if commit is None:
        return None
    return f"{str(commit)[:10]}{' (changed)' if version.fingerprint.get('dirty') else ''}"
