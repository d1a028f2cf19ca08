"""The summary of a replay's ledger: faithful, diverged or unproven."""

from collections.abc import Callable, Iterable, Sequence

from playhead.core.compare import Comparison
from playhead.core.values import JSON, Divergence, Fidelity, FidelityKind, LedgerRow

_BROKEN = frozenset({"missed", "stopped", "stale", "ambiguous", "blocked"})
_MADE_UP = {
    "static": "answered by a static case",
    "generated": "written by a model",
    "injected": "a scripted failure",
    "live": "run live",
}
_HARMLESS_MARKS = frozenset({"decided inside", "rejected again", "text", "ended with the recording"})


def fidelity(
    comparison: Comparison, ledger: Sequence[LedgerRow], *, compared: int, doubts: Sequence[str] = ()
) -> Fidelity:  # fmt: skip
    """Judges an unchanged replay.

    Args:
        comparison: baseline against result, as `compare` gives it under the replay's policies.
        ledger: every row of the replay.
        compared: how many calls of the baseline stood to be compared; with none, nothing is proven.
        doubts: what else could not be compared.

    Returns:
        ``diverged`` with the first difference; ``unproven`` with every reason why a replay without difference
        proves nothing; else ``faithful``.
    """
    broken = [row for row in ledger if row.by in _BROKEN or _refused_anew(row)]
    unused = [row for row in ledger if row.by == "unused"]
    if comparison.divergence is not None:
        return Fidelity(
            kind=FidelityKind.DIVERGED,
            reasons=tuple(_text(row) for row in broken or unused),
            divergence=comparison.divergence,
        )
    if broken or unused:
        return Fidelity(
            kind=FidelityKind.DIVERGED,
            reasons=tuple(_text(row) for row in broken or unused),
            divergence=_from_row((broken or unused)[0]),
        )
    doubts = [*_doubts(ledger), *doubts]
    if not compared:
        doubts.insert(0, "nothing was recorded to compare with")
    if doubts:
        return Fidelity(kind=FidelityKind.UNPROVEN, reasons=tuple(doubts))
    return Fidelity(kind=FidelityKind.FAITHFUL)


def _refused_anew(row: LedgerRow) -> bool:
    """A call that was refused before any tool ran, and was not recorded so."""
    return row.by == "rejected" and "rejected again" not in row.marks


def _doubts(ledger: Iterable[LedgerRow]) -> Iterable[str]:
    for row in ledger:
        if row.kind not in ("tool", "model"):
            continue
        if row.kind == "model" and row.by == "live" and not row.marks:
            continue  # a live model is the point of a replay with a live model
        if row.by in _MADE_UP and "decided inside" not in row.marks:
            yield f"{_name(row)} was {_MADE_UP[row.by]}"
        loose = [m for m in row.marks if m not in _HARMLESS_MARKS and not m.startswith("not compared")]
        if row.by in ("served", "covered") and loose:
            yield f"{_name(row)} was served loosely ({', '.join(loose)})"


def _from_row(row: LedgerRow) -> Divergence:
    return Divergence(
        what="missing" if row.by == "unused" else "extra" if row.by in ("missed", "stopped") else "outcome",
        where=_name(row),
        result_node=row.node_id,
        baseline_node=row.from_node,
        explanation=_text(row),
    )


def _name(row: LedgerRow) -> str:
    if row.kind == "model":
        return f"model call {row.occurrence}" if row.occurrence else "a model call"
    return f"{row.tool} (occurrence {row.occurrence})" if row.occurrence else str(row.tool or row.detail or row.kind)


def _text(row: LedgerRow) -> str:
    if row.by == "unused":
        return f"{_name(row)} was recorded and not asked for"
    return f"{_name(row)}: {row.by}" + (f": {row.detail}" if row.detail else "")


def explained(held: Divergence, show: Callable[[JSON], str]) -> list[str]:
    """Lines that tell a first difference: what and where, then how the two sides read, indented."""
    lines = [f"at {pointer or 'the top'}" for pointer in held.pointers]
    if held.diff:
        lines = held.diff.split("\n")
    elif held.expected is not None or held.seen is not None:
        sides = (("recorded: ", held.expected), ("now:      ", held.seen))
        lines += [f"{name}{show(side)}" for name, side in sides if side is not None or held.what == "output"]
    return [f"{held.where}: {held.explanation or held.what.replace('_', ' ')}", *(f"  {line}" for line in lines)]
