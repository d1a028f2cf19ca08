"""S5, S7, S8: what a tool can give."""

from collections.abc import Callable
from typing import Any

from playhead.core.values import NodeStatus, OutcomeKind
from playhead.engine import seam
from playhead.testing.conformance.harness import Call, Lab, Refused, Retry, Spec
from playhead.testing.conformance.scenarios.registry import scenario

VALUES: list[Any] = [
    None, "", 0, False, [], {}, {"a": {"b": [1, None, "x"]}}, "é \U0001f600", 2**63, 0.1, "line\nbreak", [[], [[]]],
]  # fmt: skip


def giving(lab: Lab, give: Callable[[], Any]) -> Callable[[], Any]:
    """Builds an agent with one tool that does ``give``."""

    def tool() -> Any:
        lab.entered("tool")
        return give()

    return lambda: lab.harness.build(Spec(turns=[[Call("tool", {})]], tools=[tool]))


@scenario("S5")
def values(lab: Lab) -> None:
    """Every JSON value comes back as itself, nothing and empty ones included."""

    def give(n: int) -> Any:
        lab.entered(n)
        return VALUES[n]

    turns = [[Call("give", {"n": n}) for n in range(len(VALUES))]]
    baseline, result = lab.unchanged(lab.runner(lambda: lab.harness.build(Spec(turns=turns, tools=[give]))))
    for run in (baseline, result):
        found = [seam.value_of(call.outcome) for call in run.calls if call.outcome]
        wanted = lab.shown(*VALUES)
        assert found == wanted, f"{found} for {wanted}"
        assert [type(value) for value in found] == [type(value) for value in wanted]


@scenario("S5-copies")
def fresh_copies(lab: Lab) -> None:
    """A served value that the agent changes is unchanged for the next replay."""
    seen: list[Any] = []

    def tool() -> Any:
        lab.entered("tool")
        return {"items": [1]}

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[Call("tool", {})]], tools=[tool])))
    baseline = lab.record(run)
    for _ in range(2):
        result = lab.replay(baseline, run)
        lab.check_faithful(baseline, result)
        seen.append(result.calls[0].outcome)
    assert seen[0] == seen[1]


def _status_error() -> Exception:
    error = ConnectionError("gateway timeout")
    error.__cause__ = KeyError("upstream")
    return error


ERRORS: list[Callable[[], Exception]] = [
    _status_error,
    lambda: KeyError("missing"),
    lambda: TimeoutError("too slow"),
    lambda: ValueError("x", 1),
]


@scenario("S7")
def raised(lab: Lab) -> None:
    """A tool's exception comes back with class, text, args and cause, and ends the run as it did."""
    for make in ERRORS:

        def fail(make: Callable[[], Exception] = make) -> Any:
            raise make()

        lab.live.clear()
        run = lab.runner(giving(lab, fail))
        baseline = lab.record(run)
        result = lab.replay(baseline, run)
        assert lab.live == [], "the live tool was entered"
        expected = make()
        for one in (baseline, result):
            (call,) = one.calls
            assert call.outcome is not None
            assert call.outcome.error is not None
            info = call.outcome.error
            assert (info.class_name, info.message, info.repr) == (
                type(expected).__name__, str(expected), repr(expected),
            )  # fmt: skip
            assert (info.cause is None) == (expected.__cause__ is None)
        assert result.session.status is baseline.session.status
        assert result.session.output == baseline.session.output


@scenario("S8-retry")
def retry_signal(lab: Lab) -> None:
    """The framework's own retry signal."""

    def book(day: str) -> str:
        lab.entered(day)
        if day != "tomorrow":
            raise Retry("day must be today or tomorrow")
        return "booked"

    turns = [[Call("book", {"day": "tomorow"})], [Call("book", {"day": "tomorrow"})]]
    baseline, _ = lab.unchanged(lab.runner(lambda: lab.harness.build(Spec(turns=turns, tools=[book]))))
    assert [n.outcome.kind for n in baseline.calls if n.outcome] == [OutcomeKind.RETRY, OutcomeKind.VALUE]


@scenario("S8-error")
def readable_error(lab: Lab) -> None:
    """An error result that the model can read."""

    def find(id: int) -> str:
        lab.entered(id)
        raise Refused(f"no order {id}")

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[Call("find", {"id": 3})]], tools=[find])))
    baseline, _ = lab.unchanged(run)
    (call,) = baseline.calls
    assert call.outcome is not None
    assert call.outcome.kind in (OutcomeKind.RESULT_ERROR, OutcomeKind.ERROR)
    assert "no order 3" in str(baseline.session.output)


def _rejected(lab: Lab, call: Call) -> None:
    def add(x: int) -> int:
        lab.entered(x)
        return x + 1

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[call], [Call("add", {"x": 1})]], tools=[add])))
    baseline, result = lab.unchanged(run)
    assert len(baseline.calls) == 2, "the rejected call left no node"
    refused, good = baseline.calls
    assert good.outcome is not None
    if not lab.harness.tells_refusals:
        assert (refused.status, good.outcome.value) == (NodeStatus.NEVER_RAN, *lab.shown(2))
        assert [(row.tool, row.by) for row in result.rows] == [(lab.tool("add"), "served")]
        return
    assert refused.outcome is not None
    told = refused.call is not None and refused.call.source == "transcript"  # by a loop, in words of its own
    assert told or refused.outcome.kind in (OutcomeKind.INVALID_ARGS, OutcomeKind.RESULT_ERROR)
    assert [good.outcome.value] == lab.shown(2)
    first, second = result.rows
    assert second.by == "served"
    if first.by == "rejected":
        assert "rejected again" in first.marks
    else:  # the framework asked for a decision before it looked at the arguments
        assert (first.by, refused.outcome.kind) == ("served", OutcomeKind.RESULT_ERROR)


@scenario("S8-schema")
def invalid_by_schema(lab: Lab) -> None:
    """Arguments that the tool's schema refuses."""
    _rejected(lab, Call("add", {"x": "no number"}))


@scenario("S8-unparsable")
def unparsable(lab: Lab) -> None:
    """Arguments that are no JSON."""
    _rejected(lab, Call("add", '{"x": '))


@scenario("S8-unknown")
def unknown_tool(lab: Lab) -> None:
    """A tool that the agent does not have."""
    _rejected(lab, Call("nope", {"x": 1}))
