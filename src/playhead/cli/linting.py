"""``playhead lint``."""

from pathlib import Path
from typing import TYPE_CHECKING

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.filters import EVERYTHING, FilterOptions
from playhead.cli.output import Block, Result, Table
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.lint.errors import ErrorText
    from playhead.core.lint.interface import Change, Finding
    from playhead.core.suites.suite import ToolSchema

_FINDINGS = ("tool", "parameter", "rule", "message", "fix")
_TEXTS = ("tool", "level", "count", "text", "missing", "better")
_CHANGES = ("tool", "parameter", "change", "old", "new", "breaking")


def lint(
    tools: Path | None = None,
    /,
    *,
    context: Ctx,
    against: Path | None = None,
    session: tuple[str, ...] = (),
    chosen: FilterOptions = EVERYTHING,
    limit: int = 100,
    strict: bool = False,
) -> Result:
    """Say what makes tools hard to call rightly, and what changed in them.

    Without a file the tools are those that recorded model calls offered. With sessions (--session, or the filters of
    session list) the texts of their failed calls are judged too. Exit code 1 when --against finds a breaking change,
    or with --strict for any finding.

    Args:
        tools: JSON file with tool schemas, in OpenAI's, Anthropic's or MCP's form.
        against: An older version of the same tools: say what changed since.
        session: Judge the error texts of this session; may be given several times.
        limit: Read at most so many sessions.
        strict: Exit code 1 for any finding or error text that is not prescriptive.
    """
    from playhead.core.lint.errors import judge_all
    from playhead.core.lint.interface import changes
    from playhead.core.lint.interface import lint as linted
    from playhead.engine.suites.tool_sets import failures, offered_tools, read_tools

    ids = _sessions(context, session, chosen, limit) if session or chosen.is_given or tools is None else []
    held = read_tools(tools) if tools is not None else offered_tools(context.store, ids)
    if not held:
        raise UsageError("no recorded model call of these sessions offered tools", hint="playhead lint TOOLS.json")
    found = linted(held)
    texts = judge_all(failures(context.store, ids), {tool.name: tool for tool in held}) if ids else []
    changed = changes(read_tools(against), held) if against is not None else []
    bad = any(change.breaking for change in changed)
    if strict:
        bad = bad or bool(found) or any(text.level != "prescriptive" for text in texts)
    return Result(
        data={
            "tools": len(held),
            "findings": [shown.members(finding) for finding in found],
            "error_texts": [shown.members(text) for text in texts],
            "changes": [shown.members(change) for change in changed],
        },
        text=_text(held, found, texts, changed, compared=against is not None),
        exit_code=1 if bad else 0,
    )


def _sessions(context: Context, named: tuple[str, ...], chosen: FilterOptions, limit: int) -> list[str]:
    store = context.store
    if named:
        return [store.sessions.resolve(text) for text in named]
    return [session.id for session in store.sessions.find(chosen.query(store), limit=limit).items]


def _text(
    tools: "list[ToolSchema]", found: "list[Finding]", texts: "list[ErrorText]", changed: "list[Change]", *,
    compared: bool,
) -> list[Block]:  # fmt: skip
    blocks: list[Block] = [f"{len(tools)} tools, {len(found)} findings"]
    if found:
        rows = [
            {"tool": f.tool, "parameter": f.pointer or None, "rule": f.rule, "message": f.message, "fix": f.fix}
            for f in found
        ]
        blocks.append(Table(_FINDINGS, rows))
    if texts:
        blocks.append(Table(_TEXTS, [_text_row(text) for text in texts]))
    if compared:
        blocks.append(Table(_CHANGES, [_change_row(change) for change in changed], empty="nothing changed"))
    return blocks


def _text_row(text: "ErrorText") -> dict[str, object]:
    missing = [name for name in ("what", "why", "how", "allowed", "safe") if getattr(text, name) is False]
    return {
        "tool": text.tool,
        "level": text.level,
        "count": text.count,
        "text": shown.brief(text.text, 80),
        "missing": ", ".join(missing),
        "better": shown.brief(text.suggestion, 100) if missing else None,
    }


def _change_row(change: "Change") -> dict[str, object]:
    return {
        "tool": change.tool,
        "parameter": change.pointer or None,
        "change": change.kind,
        "old": None if change.old is None else shown.brief(change.old),
        "new": None if change.new is None else shown.brief(change.new),
        "breaking": "yes" if change.breaking else None,
    }
