"""``playhead replay list | get``."""

from collections import Counter
from typing import Literal

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.core.values import LedgerRow, Replay

_COLUMNS = ("id", "status", "fidelity", "label", "baseline", "made", "took")
_ROWS_SHOWN = 40


def list_replays(
    *,
    context: Ctx,
    baseline: str | None = None,
    status: Literal["pending", "running", "evaluating", "completed", "failed", "canceled"] | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Result:
    """List replays, newest first.

    Args:
        baseline: Of this session.
        status: In this status.
        limit: At most this many.
        cursor: Go on where the last page ended.
    """
    store = context.store
    baseline_id = None if baseline is None else store.sessions.resolve(baseline)
    page = store.replays.find(baseline_session_id=baseline_id, status=status, limit=limit, cursor=cursor)
    return Result(
        data=[shown.members(replay, without=("ledger",)) for replay in page.items],
        items=True,
        next_cursor=page.next_cursor,
        text=[Table(_COLUMNS, [row(replay) for replay in page.items], empty="no replays; playhead replay create last")],
    )


def get(replay: str = "last", /, *, context: Ctx, full: bool = False) -> Result:
    """Show a replay: status, fidelity, ledger and verdicts.

    Args:
        replay: Id, shortened id, last or last~N.
        full: Show every row of the ledger, and long values whole.
    """
    replays = context.store.replays
    found = replays.get(replays.resolve(replay))
    return Result(data=shown.members(found), text=replay_text(found, full=full))


def row(replay: Replay) -> dict[str, object]:
    """A replay as one row of a list."""
    return {
        "id": replay.id,
        "status": replay.status.value,
        "fidelity": None if replay.fidelity is None else replay.fidelity.kind.value,
        "label": replay.label,
        "baseline": replay.baseline_session_id,
        "made": shown.when(replay.created_at),
        "took": None if replay.started_at is None else shown.lasted(replay.started_at, replay.ended_at),
    }


def replay_text(replay: Replay, *, full: bool = False) -> list[Block]:
    """A replay as it is read on a terminal: what came of it first, then what answered each call."""
    text: list[Block] = [Fields(_fields(replay, full=full))]
    if replay.fidelity is not None and replay.fidelity.divergence is not None:
        text += ["", "first divergence:", *shown.divergence(replay.fidelity.divergence)]
    if replay.ledger:
        rows = [_ledger_row(index, entry) for index, entry in enumerate(replay.ledger, 1)]
        text.append(Table(("n", "call", "arguments", "answer", "from", "marks", "detail"), _visible(rows, full=full)))
        if not full and len(rows) > _ROWS_SHOWN:
            text.append(f"... {len(rows) - _ROWS_SHOWN} more rows; --full shows all")
    if replay.verdicts:
        text.append(shown.verdict_table(replay.verdicts))
    return text


def _visible(rows: list[dict[str, object]], *, full: bool) -> list[dict[str, object]]:
    return rows if full else rows[:_ROWS_SHOWN]


def _fields(replay: Replay, *, full: bool) -> list[tuple[str, object]]:
    fidelity = replay.fidelity
    answers = Counter(entry.by for entry in replay.ledger if entry.kind in {"tool", "model", "leftover"})
    return [
        ("replay", replay.id),
        ("status", replay.status.value),
        ("error", shown.failure(replay.error)),
        ("hint", (replay.error.attributes or {}).get("hint") if replay.error else None),
        ("fidelity", None if fidelity is None else fidelity.kind.value),
        ("because", None if fidelity is None else "\n".join(fidelity.reasons) or None),
        ("answers", ", ".join(f"{count} {by}" for by, count in answers.most_common()) or None),
        ("baseline", replay.baseline_session_id),
        ("result", replay.result_session_id),
        ("version", replay.agent_version),
        ("label", replay.label),
        ("override", shown.value(replay.override, full=full)),
        ("tool policy", shown.value(replay.tool_policy, full=True) if full else shown.policy(replay.tool_policy)),
        ("model policy", shown.policy(replay.model_policy)),
        ("egress guard", replay.guard),
        ("made", shown.when(replay.created_at)),
        ("took", None if replay.started_at is None else shown.lasted(replay.started_at, replay.ended_at)),
    ]


def _ledger_row(index: int, entry: LedgerRow) -> dict[str, object]:
    return {
        "n": index,
        "call": entry.tool or entry.kind,
        "arguments": None if entry.arguments is None else shown.brief(entry.arguments, 50),
        "answer": entry.by,
        "from": None if entry.from_node is None else f"…{entry.from_node[-6:]}",
        "marks": ", ".join(entry.marks),
        "detail": None if entry.detail is None else shown.brief(entry.detail, 100),
    }
