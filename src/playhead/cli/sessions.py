"""``playhead session list | show | tree | delete | tag``."""

import sys
from collections.abc import Iterator

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.filters import EVERYTHING, FilterOptions
from playhead.cli.output import Block, Fields, Result, Table, plain
from playhead.core.values import Mark, Node, NodeKind, Session
from playhead.errors import UsageError
from playhead.store.ports import Store

_HEAVY = ("inputs", "output", "turns", "trailing_input", "effective_prompt", "effective_system_prompt", "system_prompt")
_COLUMNS = ("id", "agent", "origin", "status", "started", "took", "tokens", "cost", "tags")


def list_sessions(
    *,
    context: Ctx,
    chosen: FilterOptions = EVERYTHING,
    oldest_first: bool = False,
    limit: int = 50,
    cursor: str | None = None,
) -> Result:
    """List recorded sessions, newest first.

    Args:
        oldest_first: Turn the order round.
        limit: At most this many.
        cursor: Go on where the last page ended.
    """
    query = chosen.query(context.store, oldest_first=oldest_first)
    page = context.store.sessions.find(query, limit=limit, cursor=cursor)
    rows = [_row(session) for session in page.items]
    empty = "no sessions; record one (playhead init says how) or try playhead demo"
    return Result(
        data=[shown.members(session, without=_HEAVY) for session in page.items],
        items=True,
        next_cursor=page.next_cursor,
        text=[Table(_COLUMNS, rows, empty=empty)],
    )


def _row(session: Session) -> dict[str, object]:
    return {
        "id": session.id,
        "agent": session.agent,
        "origin": session.origin.value,
        "status": session.status.value,
        "started": shown.when(session.started_at),
        "took": shown.lasted(session.started_at, session.ended_at),
        "tokens": shown.tokens(session.usage),
        "cost": None if session.cost is None else f"{session.cost.amount} {session.cost.currency}",
        "tags": ", ".join(session.tags),
    }


def show_session(session: str = "last", /, *, context: Ctx, full: bool = False) -> Result:
    """Show a session's inputs, output, usage, cost and marks.

    Args:
        session: Id, shortened id, last or last~N.
        full: Show long values whole.
    """
    store = context.store
    found = store.sessions.get(store.sessions.resolve(session))
    nodes = store.sessions.nodes(found.id, payloads=False)
    verdicts = store.sessions.verdicts(found.id)
    data = shown.members(found)
    data["marks"] = shown.mark_counts(nodes)
    data["verdicts"] = [shown.members(verdict) for verdict in verdicts]
    text: list[Block] = [Fields(_fields(found, nodes, full=full))]
    if verdicts:
        text.append(shown.verdict_table(verdicts))
    return Result(data=data, text=text)


def _fields(session: Session, nodes: list[Node], *, full: bool) -> list[tuple[str, object]]:
    kinds = [node.kind for node in nodes]
    calls = f"{kinds.count(NodeKind.MODEL_CALL)} model, {kinds.count(NodeKind.TOOL_CALL)} tool"
    marks = ", ".join(f"{count} {mark}" for mark, count in shown.mark_counts(nodes).items())
    return [
        ("id", session.id),
        ("agent", session.agent),
        ("version", session.agent_version),
        ("name", session.name),
        ("origin", session.origin.value),
        ("baseline", session.baseline_id),
        ("replay", session.replay_id),
        ("status", session.status.value),
        ("started", shown.when(session.started_at)),
        ("took", shown.lasted(session.started_at, session.ended_at)),
        ("system prompt", shown.value(session.system_prompt, full=full)),
        ("inputs", shown.value(session.inputs, full=full)),
        ("prompt used", shown.value(session.effective_prompt, full=full)),
        ("system prompt used", shown.value(session.effective_system_prompt, full=full)),
        ("turns", len(session.turns) or None),
        ("output", shown.value(session.output, full=full)),
        ("error", shown.failure(session.error)),
        ("calls", calls),
        ("marks", marks or None),
        ("usage", shown.tokens(session.usage)),
        ("cost", shown.money(session.cost)),
        ("tags", ", ".join(session.tags) or None),
        ("metadata", shown.value(session.metadata or None, full=full)),
        ("not replayable", "\n".join(session.not_replayable) or None),
        ("warnings", "\n".join(session.warnings) or None),
    ]


def tree(session: str = "last", /, *, context: Ctx, width: int = 60) -> Result:
    """Draw the calls of a session as a tree.

    Args:
        session: Id, shortened id, last or last~N.
        width: Characters shown of arguments and results.
    """
    store = context.store
    found = store.sessions.get(store.sessions.resolve(session))
    nodes = store.sessions.nodes(found.id)
    head = f"{found.agent}  {found.status.value}  {found.id}"
    return Result(
        data=[shown.members(node) for node in nodes],
        items=True,
        text=[head, *(f"{rail}{_line(node, width)}" for rail, node in branches(nodes))],
    )


def branches(nodes: list[Node]) -> Iterator[tuple[str, Node]]:
    """Nodes in the order of a drawing, each with the rail before it. A node whose parent is unknown is a root."""
    known = {node.id for node in nodes}
    below: dict[str | None, list[Node]] = {}
    for node in nodes:
        parent = node.parent_id if node.parent_id in known and node.parent_id != node.id else None
        below.setdefault(parent, []).append(node)
    todo = _level(below.get(None, []), "")
    while todo:
        rail, last, node = todo.pop()
        yield f"{rail}{'└─ ' if last else '├─ '}", node
        todo += _level(below.get(node.id, []), f"{rail}{'   ' if last else '│  '}")


def _level(nodes: list[Node], rail: str) -> list[tuple[str, bool, Node]]:
    return [(rail, node is nodes[-1], node) for node in reversed(nodes)]


def _line(node: Node, width: int) -> str:
    parts = [node.kind.value.replace("_", " "), node.name]
    if node.call is not None:
        unstored = node.call.arguments is None and node.call.key is None
        parts.append("(arguments not stored)" if unstored else shown.brief(node.call.arguments, width))
    if node.model is not None:
        parts += [text for text in (node.model.requested, shown.tokens(node.model.usage)) if text]
    if node.outcome is not None:
        missing = node.call is not None and node.call.mark is Mark.MISSING and node.outcome.error is None
        parts.append(f"-> {'(result not stored)' if missing else shown.outcome(node.outcome, width)}")
    if node.status.value != "completed":
        parts.append(f"[{node.status.value}]")
    provenance = (node.call or node.model) and (node.call or node.model).provenance  # type: ignore[union-attr]
    if provenance is not None:
        parts.append(f"({provenance.by})")
    took = shown.lasted(node.started_at, node.ended_at)
    return "  ".join([*parts, took] if took else parts)


def delete(*sessions: str, context: Ctx, yes: bool = False, erase: bool = False) -> Result:
    """Delete sessions and everything recorded in them.

    One that a cohort needs is refused.

    Args:
        sessions: Ids, shortened ids, last or last~N.
        yes: Do not ask first.
        erase: Delete what a cohort needs all the same; the cohort keeps its place, and reports say that it is gone.
    """
    if not sessions:
        raise UsageError("no session was named", hint="playhead session delete ID ...")
    store = context.store
    ids = list(dict.fromkeys(store.sessions.resolve(text) for text in sessions))
    if not yes:
        _ask(store, ids)
    for id in ids:
        store.sessions.delete(id, erase=erase)
    return Result(data={"deleted": ids}, text=[f"deleted {id}" for id in ids])


def _ask(store: Store, ids: list[str]) -> None:
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError("deleting cannot be undone", hint="add --yes where nobody can be asked")
    for id in ids:
        session = store.sessions.get(id)
        sys.stderr.write(plain(f"{id}  {session.agent}  {session.status.value}  {shown.when(session.started_at)}\n"))
    sys.stderr.write("delete them? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was deleted")


def tag(session: str, /, *tags: str, context: Ctx, remove: tuple[str, ...] = ()) -> Result:
    """Add tags to a session, or remove them.

    Args:
        session: Id, shortened id, last or last~N.
        tags: Tags to add.
        remove: Tag to remove; may be given several times.
    """
    if not tags and not remove:
        raise UsageError("no tag was named", hint="playhead session tag ID TAG ... [--remove TAG]")
    sessions = context.store.sessions
    updated = sessions.update(sessions.resolve(session), add_tags=tags, remove_tags=remove)
    text = ", ".join(updated.tags) or "no tags"
    return Result(data={"id": updated.id, "tags": list(updated.tags)}, text=[f"{updated.id}  {text}"])
