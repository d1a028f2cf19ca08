"""``playhead session export``."""

import sys
from typing import TYPE_CHECKING, Literal

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.filters import parsed
from playhead.cli.output import Result
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import UsageError
from playhead.store.ports import SessionQuery

if TYPE_CHECKING:
    from playhead.engine.exports import Exported, Redact


def export(
    *sessions: str,
    context: Ctx,
    to: str | None = None,
    format: Literal["jsonl", "bundle", "openai_chat"] = "jsonl",
    agent: tuple[str, ...] = (),
    tag: tuple[str, ...] = (),
    since: str | None = None,
    until: str | None = None,
    query: str | None = None,
) -> Result:
    """Write sessions as playhead JSON lines.

    Sessions are named, or chosen by agent, tag and time. Secrets that playhead knows are removed on the way.

    Args:
        sessions: Ids, shortened ids, last or last~N.
        to: File to write; left out, JSON lines go to standard output.
        format: JSON lines that import gives back as they are; a bundle of one session with its agent version and
            ledger; or OpenAI chat messages.
        agent: All sessions of this agent; may be given several times.
        tag: All sessions with this tag; given several times, with all of them.
        since: Started at or after: 2h, 3d, 2026-05-01.
        until: Started before.
        query: All sessions that this means, such as: agent = desk and status != failed.
    """
    now = SYSTEM_CLOCK.now()
    times = shown.instant(since, now=now), shown.instant(until, now=now)
    where = None if query is None else parsed(query, now=now)
    asked = SessionQuery(agents=agent or None, tags=tag or None, since=times[0], until=times[1], where=where)
    ids = _ids(context, sessions, asked)
    done = _write(context, ids, format, to)
    for text in done.left_out:
        context.note(f"left out: {text}")
    if to is None:
        return Result(raw=())
    data = {"file": to, "format": format, "sessions": done.sessions, "nodes": done.nodes, "left_out": done.left_out}
    return Result(data=data, text=[f"wrote {done.sessions} sessions to {to}"])


def _ids(context: Context, names: tuple[str, ...], query: SessionQuery) -> list[str]:
    from playhead.engine.exports import find_ids

    asked = query != SessionQuery()
    if names and asked:
        raise UsageError(
            "sessions are named and chosen at once", hint="name them, or choose by --agent, --tag, --since, --query"
        )
    if not names and not asked:
        raise UsageError("no session was named", hint="playhead session export last, or --agent NAME")
    store = context.store
    if names:
        return list(dict.fromkeys(store.sessions.resolve(name) for name in names))
    return find_ids(store, query)


def _write(context: Context, ids: list[str], format: str, to: str | None) -> "Exported":
    from playhead.engine import exports

    redact = _redact(context)
    if format == "jsonl":
        if to is None:
            sys.stdout.flush()
            return exports.write_jsonl(context.store, ids, sys.stdout.buffer, redact=redact)
        return exports.export_jsonl(context.store, ids, to, redact=redact)
    if to is None:
        raise UsageError(f"the format {format} is written to a file", hint="--to FILE")
    if format == "openai_chat":
        return exports.export_openai_chat(context.store, ids, to, redact=redact)
    if len(ids) != 1:
        raise UsageError(f"a bundle holds one session, not {len(ids)}", hint="name one session")
    return exports.export_bundle(context.store, ids[0], to, redact=redact)


def _redact(context: Context) -> "Redact":
    """The gate that recordings pass as well, with the secrets of this project and environment."""
    import os

    from playhead.core.redaction.redact import Redactor
    from playhead.engine.project import credentials

    redactor = Redactor(context.project.configured_secrets())
    for name, value in credentials(os.environ).items():
        redactor.learn(name, value)
    return lambda value: redactor.redact(value).value
