"""Cases that other tools for recording got wrong, where an adapter has a part in them."""

from typing import Any

from playhead.core.values import FidelityKind, ReplayStatus
from playhead.testing.conformance.harness import Call, Lab, Refused, Spec
from playhead.testing.conformance.scenarios.misses import searching
from playhead.testing.conformance.scenarios.registry import scenario


def asking(lab: Lab, arguments: list[Any]) -> Any:
    """Builds an agent that calls ``find`` once for each of the arguments, whatever the list holds then."""

    def find(q: Any) -> str:
        return f"found {lab.entered(q)}"

    def make() -> Any:
        return lab.harness.build(Spec(turns=[[Call("find", {"q": q})] for q in arguments], tools=[find]))

    return lab.runner(make)


def missed(lab: Lab, result: Any, *shown: str) -> None:
    assert lab.live == [], f"live tools were entered: {lab.live}"
    assert result.replay.status is ReplayStatus.FAILED
    assert "missed" in result.by
    for text in shown:
        assert text in result.message, result.message


@scenario("R01")
def order_of_members(lab: Lab) -> None:
    """The order of members makes no difference at any depth; the order of a list does."""
    given: list[Any] = [{"x": 1, "y": {"a": [{"k": 1, "j": 2}], "l": [1, 2]}}]
    run = asking(lab, given)
    baseline = lab.record(run)
    given[0] = {"y": {"l": [1, 2], "a": [{"j": 2, "k": 1}]}, "x": 1}
    assert lab.replay(baseline, run).by == ["served"]
    given[0] = {"x": 1, "y": {"a": [{"k": 1, "j": 2}], "l": [2, 1]}}
    missed(lab, lab.replay(baseline, run))


@scenario("R04")
def text_outside_ascii(lab: Lab) -> None:
    """Text outside ASCII is recorded and matched as it is: composed and decomposed are two texts."""
    given: list[Any] = ["\u00e9", "e\u0301", "\u0669(\u25cf)\u06f6", "\ufb01\U0001f600"]
    run = asking(lab, given)
    baseline, _ = lab.unchanged(run)
    assert len({n.call.key for n in baseline.calls if n.call}) == 4


@scenario("R08")
def argument_that_always_changes(lab: Lab) -> None:
    """A miss shows the argument that differs; ignored, the call is answered and marked as loose."""
    given: list[Any] = [{"text": "x", "ts": 1}]
    run = asking(lab, given)
    baseline = lab.record(run)
    given[0] = {"text": "x", "ts": 2}
    missed(lab, lab.replay(baseline, run), "/q/ts", "ignore")
    result = lab.replay(baseline, run, policy={"default": {"type": "history", "ignore": ["/q/ts"]}})
    assert lab.live == []
    assert [(row.by, "loose" in " ".join(row.marks)) for row in result.rows] == [("served", True)]


@scenario("R09")
def white_space(lab: Lab) -> None:
    """White space and case are data."""
    given: list[Any] = ["A-1"]
    run = asking(lab, given)
    baseline = lab.record(run)
    for other in (" A-1\n", "a-1"):
        given[0] = other
        missed(lab, lab.replay(baseline, run))


@scenario("R14")
def one_too_many(lab: Lab) -> None:
    """A poll gets its answers in turn; one call too many is a miss, or what ``repeat`` says."""
    given: list[Any] = ["q", "q", "q"]
    run = asking(lab, given)
    baseline, _ = lab.unchanged(run)
    given.append("q")
    missed(lab, lab.replay(baseline, run), "all 3 recorded answers")
    told = lab.replay(baseline, run, policy={"default": {"type": "history", "on_miss": "error_result"}})
    assert (told.replay.status, told.by) == (ReplayStatus.COMPLETED, ["served"] * 3 + ["missed"])
    for repeat, answer in (("last", "found 3"), ("first", "found 1")):
        result = lab.replay(baseline, run, policy={"default": {"type": "history", "repeat": repeat}})
        assert lab.live == []
        values = [n.outcome.value for n in result.calls if n.outcome]
        assert values == ["found 1", "found 2", "found 3", answer]


@scenario("R16")
def another_order(lab: Lab) -> None:
    """Asked in another order, each call gets its own answer, and the replay says that the order differs."""
    words = ["flights", "hotels"]
    run = lab.runner(searching(lab, words))
    baseline = lab.record(run)
    words.reverse()
    result = lab.replay(baseline, run)
    assert lab.live == []
    assert [n.outcome.value for n in result.calls if n.outcome] == ["hotels: 2", "flights: 1"]
    assert result.replay.fidelity is not None
    assert result.replay.fidelity.kind is FidelityKind.DIVERGED


@scenario("R18")
def places_swapped(lab: Lab) -> None:
    """Two different tools that swap places in one response are both answered, and the order is told."""
    names = ["left", "right"]

    def make_tool(name: str) -> Any:
        def tool() -> str:
            lab.entered(name)
            return name

        tool.__name__ = tool.__qualname__ = name
        return tool

    tools = [make_tool(name) for name in names]
    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[Call(name, {}) for name in names]], tools=tools)))
    baseline = lab.record(run)
    names.reverse()
    result = lab.replay(baseline, run)
    assert lab.live == []
    assert result.by == ["served", "served"], result.message
    assert result.replay.fidelity is not None
    assert result.replay.fidelity.kind is FidelityKind.DIVERGED


@scenario("R19")
def fails_then_succeeds(lab: Lab) -> None:
    """A call that failed and then, asked again with the same arguments, went well does so again."""

    def pay(id: str) -> str:
        if lab.entered(id) == 1:
            raise Refused("timed out")
        return "paid"

    turns = [[Call("pay", {"id": "x"})], [Call("pay", {"id": "x"})]]
    baseline, _ = lab.unchanged(lab.runner(lambda: lab.harness.build(Spec(turns=turns, tools=[pay]))))
    first, second = (n.outcome.kind.value for n in baseline.calls if n.outcome)
    assert first in ("result_error", "error")
    assert second == "value"


@scenario("R23")
def swallowed(lab: Lab) -> None:
    """Every call changed, and code that swallows what tools raise: the replay fails, nothing was served."""
    words = ["a", "b"]
    build = lab.runner(searching(lab, words))

    def run(prompt: str) -> str:
        try:
            return build(prompt)
        except Exception:  # noqa: BLE001 - what careless code does
            return "sorry"

    baseline = lab.record(run)
    words[:] = ["c", "d"]
    missed(lab, lab.replay(baseline, run), "search")


@scenario("R37")
def not_asked_for(lab: Lab) -> None:
    """Recorded calls that nobody asks for are left over, with tool and arguments, and the replay diverged."""
    words = ["a", "b", "c"]
    run = lab.runner(searching(lab, words))
    baseline = lab.record(run)
    del words[1:]
    result = lab.replay(baseline, run)
    left = [row for row in result.replay.ledger if row.kind == "leftover"]
    assert [(row.tool, row.arguments) for row in left] == [(lab.tool("search"), {"q": q}) for q in ("b", "c")]
    assert result.replay.fidelity is not None
    assert result.replay.fidelity.kind is FidelityKind.DIVERGED
