"""``playhead import``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table, to_json
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.engine.import_report import ImportReport

_TOLD_EVERY = 500


def import_(
    *paths: str,
    context: Ctx,
    format: str = "auto",
    agent: str | None = None,
    instance: str = "",
    group_by: Literal["trace", "conversation"] = "trace",
    tools: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    decode_json: tuple[str, ...] = (),
    on_exists: Literal["merge", "skip", "fail"] = "merge",
    keep_raw: Literal["none", "small", "all"] = "small",
    max_errors: int | None = None,
    dry_run: bool = False,
    report: str | None = None,
    list_formats: Annotated[bool, Parameter(name="--list-formats")] = False,
) -> Result:
    """Import recordings made by other tools.

    Importing the same thing again changes nothing. One bad record never stops the rest: the report names it, and the
    exit code is 1.

    Args:
        paths: Files and folders; - reads standard input.
        format: Name of the format; auto tells it by the content.
        agent: Name of the agent, for sources that do not show one.
        instance: Tells apart sources that number their sessions alike.
        group_by: One session for each trace, or for each conversation.
        tools: File with tool schemas (OpenAI form), for sources that do not show them.
        since: Only what started at or after: 2h, 3d, 2026-05-01.
        until: Only what started before.
        limit: Stop after so many sessions.
        decode_json: Tool whose results are kept as text but are JSON; may be given several times.
        on_exists: What happens with a session that is in the store.
        keep_raw: How much of the source's own records is kept beside the result.
        max_errors: Stop after so many failures.
        dry_run: Write nothing, and print the same report.
        report: File to write the report to, as JSON.
        list_formats: Print the formats that can be imported.
    """
    from playhead import importers

    if list_formats:
        rows = [{"format": name, "about": about} for name, about in importers.list_formats()]
        return Result(data=rows, items=True, text=[Table(("format", "about"), rows)])
    if not paths:
        raise UsageError("nothing to import was named", hint="playhead import PATH ...")
    now = SYSTEM_CLOCK.now()
    done = importers.import_paths(
        context.make_store(),
        paths,
        format=format,
        agent=agent,
        instance=instance,
        group_by=group_by,
        tools=tools,
        dry_run=dry_run,
        limit=limit,
        since=shown.instant(since, now=now),
        until=shown.instant(until, now=now),
        decode_json=decode_json,
        on_exists=on_exists,
        keep_raw=keep_raw,
        max_errors=max_errors,
        progress=_progress(context),
    )
    data = done.to_json()
    if report is not None:
        Path(report).write_text(f"{to_json(data)}\n", "utf-8")
    return Result(data=data, text=_text(done), exit_code=done.exit_code)


def _progress(context: Context) -> "Callable[[ImportReport], None]":
    def tell(report: "ImportReport") -> None:
        if report.sessions and report.sessions % _TOLD_EVERY == 0:
            context.note(f"{report.sessions} sessions")

    return tell


def _text(report: "ImportReport") -> list[Block]:
    head = "would import" if report.dry_run else "imported"
    text: list[Block] = [
        Fields(
            [
                (head, f"{report.sessions} sessions"),
                ("created", report.created),
                ("updated", report.updated or None),
                ("unchanged", report.unchanged or None),
                ("failed", report.failed or None),
                ("stopped", "early, as asked" if report.stopped else None),
                ("unknown", "\n".join(report.unknown) or None),
            ]
        )
    ]
    rows: list[dict[str, Any]] = [
        {"format": name, "files": counts.files, "records": counts.records, "sessions": counts.sessions}
        for name, counts in sorted(report.formats.items())
    ]
    if rows:
        text.append(Table(("format", "files", "records", "sessions"), rows))
    for title, notes in (("error", report.errors), ("warning", report.warnings), ("skipped", report.skipped)):
        if len(notes):
            found = [
                {title: note.code, "where": _place(note.file, note.position), "message": note.message} for note in notes
            ]
            text.append(Table((title, "where", "message"), found))
            if len(notes) > len(found):
                text.append(f"... {len(notes) - len(found)} more")
    return text


def _place(file: str | None, position: str | None) -> str:
    return ":".join(part for part in (file, position) if part)
