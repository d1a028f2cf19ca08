"""Compares two sessions: aligned calls, every difference, and the first one.

The first pair of aligned calls that differs is the divergence, also when a later equal recording answered the call.
"""

import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from playhead.core.alignment import Ignore, Pair, Place, align, call_token, same_call, same_request, value_text
from playhead.core.match import differences
from playhead.core.protocol.request import request_diff
from playhead.core.recording import same_outcome
from playhead.core.values import (
    JSON,
    OUTPUT_NOT_STORED,
    Divergence,
    ErrorInfo,
    Node,
    NodeKind,
    OutcomeKind,
    Session,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over one session. ``latency_ns`` is from start to end; None is unknown."""

    input_tokens: int | None
    output_tokens: int | None
    cost: str | None
    latency_ns: int | None
    model_calls: int
    tool_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between two sessions. ``differences`` is every difference, in the order of the result."""

    baseline_id: str
    result_id: str
    divergence: Divergence | None
    differences: tuple[Divergence, ...]
    aligned: tuple[tuple[str, str], ...]
    status: tuple[str, str]
    output_equal: bool
    output_diff: str | None
    baseline: Totals
    result: Totals


def compare(
    baseline: Session,
    baseline_nodes: Sequence[Node],
    result: Session,
    result_nodes: Sequence[Node],
    *,
    ignore: Ignore | None = None,
    models: bool = True,
    output: bool = True,
) -> Comparison:
    """Compares a result with its baseline, or any two sessions.

    Args:
        ignore: pointers per tool that do not count (the ``ignore`` of a policy).
        models: whether model requests count as differences (they do under model history).
        output: whether the ends of the run and of its turns count: status, error, output.
    """
    pairs = align(baseline_nodes, result_nodes, ignore=ignore or {})
    places = _places(pairs, ignore or {})
    entered = {n.parent_id for n in result_nodes if n.call is not None and n.parent_id is not None}
    found = [d for pair in pairs if (d := _pair_difference(pair, places, ignore or {}, models)) is not None]
    found += [d for pair in pairs if (d := _outcome_difference(pair, entered)) is not None]
    output_equal = _same(baseline.output, result.output)
    output_diff = None if output_equal else text_diff(_text(baseline.output), _text(result.output))
    if output:
        found += _turn_differences(baseline, result)
        found += _end_difference(baseline, result, output_diff)
    return Comparison(
        baseline_id=baseline.id,
        result_id=result.id,
        divergence=found[0] if found else None,
        differences=tuple(found),
        aligned=tuple((p.baseline.id, p.result.id) for p in pairs if p.baseline and p.result),
        status=(baseline.status.value, result.status.value),
        output_equal=output_equal,
        output_diff=output_diff,
        baseline=totals(baseline, baseline_nodes),
        result=totals(result, result_nodes),
    )


def _pair_difference(pair: Pair, places: "_Places", ignore: Ignore, models: bool) -> Divergence | None:
    node = pair.result or pair.baseline
    assert node is not None
    if node.kind is NodeKind.MODEL_CALL:
        return _model_difference(pair) if models else None
    return _tool_difference(pair, places, ignore)


_Token = tuple[Place, tuple[str, str | bytes]]
_Places = tuple[dict[_Token, int], dict[_Token, int]]  # the last place of each call in baseline and result


def _places(pairs: Sequence[Pair], ignore: Ignore) -> _Places:
    theirs: dict[_Token, int] = {}
    ours: dict[_Token, int] = {}
    for pair in pairs:
        for node, places in ((pair.baseline, theirs), (pair.result, ours)):
            if node is not None and node.call is not None:
                places[(pair.place, call_token(node, ignore))] = pair.number
    return theirs, ours


def _tool_difference(pair: Pair, places: _Places, ignore: Ignore) -> Divergence | None:
    theirs, ours = pair.baseline, pair.result
    where = place_name(pair)
    if ours is None:
        assert theirs is not None
        assert theirs.call is not None
        return _tool_divergence("missing", where, pair, f"{theirs.call.tool} was recorded here and was not called")
    assert ours.call is not None
    if theirs is None:
        return _tool_divergence("extra", where, pair, f"{ours.call.tool} was called and nothing was recorded here")
    assert theirs.call is not None
    if same_call(theirs, ours, ignore):
        return None
    later_ours = places[1].get((pair.place, call_token(theirs, ignore)), 0) > pair.number
    later_theirs = places[0].get((pair.place, call_token(ours, ignore)), 0) > pair.number
    what, why = _kind_of_difference(theirs, ours, later_ours, later_theirs)
    return _tool_divergence(what, where, pair, why)


def _outcome_difference(pair: Pair, entered: Collection[str]) -> Divergence | None:
    """Equal calls of which the replay's gave something else, where that is not the point of its policy: a call answered
    by another recording than the one in its place, or run only for the calls inside it (``entered``)."""
    theirs, ours = pair.baseline, pair.result
    if theirs is None or ours is None or ours.call is None:
        return None
    provenance = ours.call.provenance
    if provenance is None or provenance.node_id == theirs.id:
        return None
    counts = provenance.by == "served" or (provenance.by == "live" and ours.id in entered)
    if not counts or same_outcome(theirs.outcome, ours.outcome):
        return None
    expected, seen = _shown_outcome(theirs), _shown_outcome(ours)
    return Divergence(
        what="outcome",
        where=place_name(pair),
        baseline_node=theirs.id,
        result_node=ours.id,
        expected=expected,
        seen=seen,
        diff=text_diff(_text(expected), _text(seen)),
        explanation=f"{ours.call.tool} gave something else than in the recording",
    )


def _shown_outcome(node: Node) -> JSON:
    outcome = node.outcome
    if outcome is None:
        return None
    return outcome.value if outcome.error is None else f"{outcome.error.class_name}: {outcome.error.message}"


_What = Literal["tool", "arguments", "order", "extra", "missing", "model_request", "output", "status", "outcome"]


def _kind_of_difference(theirs: Node, ours: Node, later_ours: bool, later_theirs: bool) -> tuple[_What, str]:
    assert theirs.call is not None
    assert ours.call is not None
    if later_ours and later_theirs:
        return "order", f"{ours.call.tool} came before {theirs.call.tool}, which was recorded first"
    if theirs.call.tool == ours.call.tool and not later_ours:
        return "arguments", f"{ours.call.tool} was called with other arguments"
    if later_theirs:
        return "missing", f"{theirs.call.tool} was recorded here and was not called"
    if later_ours:
        return "extra", f"{ours.call.tool} was called before {theirs.call.tool} and was not recorded here"
    return "tool", f"{theirs.call.tool} was recorded here, {ours.call.tool} was called"


def _tool_divergence(what: _What, where: str, pair: Pair, why: str) -> Divergence:
    theirs = pair.baseline.call if pair.baseline else None
    ours = pair.result.call if pair.result else None
    pointers: tuple[str, ...] = ()
    if theirs is not None and ours is not None and theirs.tool == ours.tool:
        pointers = tuple(d.pointer for d in differences(theirs.arguments, ours.arguments))
    return Divergence(
        what=what,
        where=where,
        baseline_node=pair.baseline.id if pair.baseline else None,
        result_node=pair.result.id if pair.result else None,
        pointers=pointers,
        expected={"tool": theirs.tool, "arguments": theirs.arguments} if theirs else None,
        seen={"tool": ours.tool, "arguments": ours.arguments} if ours else None,
        explanation=why,
    )


def _model_difference(pair: Pair) -> Divergence | None:
    theirs, ours = pair.baseline, pair.result
    where = place_name(pair)
    if theirs is None or ours is None:
        why = "a model call was made that was not recorded" if theirs is None else "a recorded model call was not made"
        return Divergence(
            what="extra" if theirs is None else "missing",
            where=where,
            baseline_node=theirs.id if theirs else None,
            result_node=ours.id if ours else None,
            explanation=why,
        )
    if same_request(theirs, ours):
        return None
    assert theirs.model is not None
    assert ours.model is not None
    found = request_diff(
        theirs.inputs or {},
        ours.inputs or {},
        models=(theirs.model.requested, ours.model.requested),
        missing=theirs.model.missing,
    )
    if found is None:
        return None
    return Divergence(
        what="model_request",
        where=where,
        baseline_node=theirs.id,
        result_node=ours.id,
        pointers=(f"/messages/{found.index}",) if found.index is not None else (f"/{found.where}",),
        diff=found.diff,
        explanation=f"the request differs first in {found.where}",
    )


def _turn_differences(baseline: Session, result: Session) -> Iterator[Divergence]:
    if len(baseline.turns) != len(result.turns):
        return  # turns are what a framework's runs are; an entry point may run them in one go
    for number, (theirs, ours) in enumerate(zip(baseline.turns, result.turns, strict=True), 1):
        if not _same(theirs.output, ours.output):
            yield Divergence(
                what="output",
                where=f"turn {number}",
                expected=theirs.output,
                seen=ours.output,
                diff=text_diff(_text(theirs.output), _text(ours.output)),
                explanation=f"the output of turn {number} differs",
            )


def _end_difference(baseline: Session, result: Session, output_diff: str | None) -> Iterator[Divergence]:
    if baseline.status != result.status or not _same_failure(baseline.error, result.error):
        yield _status_difference(baseline, result)
    elif output_diff is not None and not (lost_output(baseline) or lost_output(result)):
        yield Divergence(
            what="output",
            where="output",
            expected=baseline.output,
            seen=result.output,
            diff=output_diff,
            explanation="the final output differs",
        )


def lost_output(session: Session) -> bool:
    """Whether the session had an output that has no stored form, so that nothing can be held against it."""
    return session.output is None and any(w.startswith(OUTPUT_NOT_STORED) for w in session.warnings)


def _same_failure(theirs: ErrorInfo | None, ours: ErrorInfo | None) -> bool:
    """Whether two runs failed alike. A recorded error may come back as the class that stands for its own."""
    if theirs is None or ours is None:
        return theirs is ours
    if theirs.message != ours.message:
        return False
    return theirs.class_name == ours.class_name or "ReplayedToolError" in (theirs.class_name, ours.class_name)


def _status_difference(baseline: Session, result: Session) -> Divergence:
    error = result.error or baseline.error
    why = f"the baseline {baseline.status.value}, the result {result.status.value}"
    if baseline.status == result.status and baseline.error is not None and result.error is not None:
        why = f"the baseline {_shown(baseline.error)}, and the result"
    return Divergence(
        what="status",
        where="end of the run",
        expected=baseline.status.value,
        seen=result.status.value,
        explanation=f"{why}: {_shown(error)}" if error else why,
    )


def _shown(error: ErrorInfo) -> str:
    return f"{error.class_name}: {error.message}"


def place_name(pair: Pair) -> str:
    """A readable node path: ``tool call 3 refund_payment``, inside others where it is nested."""
    node = pair.result or pair.baseline
    assert node is not None
    label = "model call" if node.kind is NodeKind.MODEL_CALL else "tool call"
    name = f" {node.call.tool}" if node.call else ""
    lane = f" of {pair.lane_name}" if pair.lane_name else ""
    around = f", inside {len(pair.place.path)} enclosing call(s)" if pair.place.path else ""
    return f"{label} {pair.number}{name}{lane}{around}"


def totals(session: Session, nodes: Sequence[Node]) -> Totals:
    """Tokens, cost, time and number of calls of one session."""
    usage = session.usage
    sums = (
        _sum(usage.input_uncached, usage.input_cache_read, usage.input_cache_write) if usage else None,
        _sum(usage.output_visible, usage.output_reasoning) if usage else None,
    )
    return Totals(
        input_tokens=sums[0],
        output_tokens=sums[1],
        cost=session.cost.amount if session.cost else None,
        latency_ns=session.ended_at - session.started_at if session.ended_at is not None else None,
        model_calls=sum(n.kind is NodeKind.MODEL_CALL for n in nodes),
        tool_calls=sum(n.kind is NodeKind.TOOL_CALL for n in nodes),
    )


def _sum(*parts: int | None) -> int | None:
    known = [p for p in parts if p is not None]
    return sum(known) if known else None


def text_diff(left: str, right: str, *, lines: int = 80) -> str:
    """A unified diff of two texts, at most ``lines`` lines, cut with a mark."""
    found = list(difflib.unified_diff(left.splitlines(), right.splitlines(), "recorded", "now", lineterm="", n=2))
    if len(found) > lines:
        found = [*found[:lines], f"... {len(found) - lines} more lines"]
    return "\n".join(found)


def _same(left: JSON, right: JSON) -> bool:
    return left is right or not differences(left, right)


def _text(value: JSON) -> str:
    if isinstance(value, str):
        return value
    return value_text(value).decode("utf-8", "replace")


def failed_outcome(node: Node) -> bool:
    """Whether the call ended in anything but a value."""
    return node.outcome is not None and node.outcome.kind is not OutcomeKind.VALUE
