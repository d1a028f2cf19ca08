"""S25, S26: one call seen twice, and recordings that another adapter made."""

from typing import Any

from playhead.core.values import ReplayStatus
from playhead.engine import seam
from playhead.testing.conformance.harness import Call, Lab, Spec
from playhead.testing.conformance.scenarios.registry import scenario


def call_directly(tool: str, arguments: dict[str, Any], body: Any) -> Any:
    """A call of plain code, as a decorated function makes it."""
    active = seam.current()
    if active is None:
        return body(**arguments)
    step = active.tool_call(tool, arguments=arguments)
    answer = step.decide()
    if answer is not None:
        step.observe(answer)
        return seam.value_of(answer)
    with step.inside():
        value = body(**arguments)
    step.returned(value)
    return value


@scenario("S25")
def one_node(lab: Lab) -> None:
    """A tool of the framework that is decorated too is one call, not two."""

    def body(x: int) -> str:
        return f"{x} {lab.entered(x)}"

    def look(x: int) -> str:
        return call_directly("look", {"x": x}, body)

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[Call("look", {"x": 1})]], tools=[look])))
    baseline, result = lab.unchanged(run)
    assert [n.name for n in baseline.calls] == [lab.tool("look")]
    assert result.by == ["served"]


def _look(lab: Lab) -> Any:
    def look(x: int) -> str:
        return f"seen {x} {lab.entered(x)}"

    return look


def _plain(lab: Lab) -> Any:
    def run(prompt: str) -> str:
        return " ".join(call_directly(lab.tool("look"), {"x": x}, _look(lab)) for x in (1, 2, 1))

    return run


def _turns() -> list[list[Call]]:
    return [[Call("look", {"x": x})] for x in (1, 2, 1)]


@scenario("S26-from")
def from_plain_code(lab: Lab) -> None:
    """A session that plain code recorded answers the framework's tools."""
    baseline = lab.record(_plain(lab))
    run = lab.runner(lambda: lab.harness.build(Spec(turns=_turns(), tools=[_look(lab)])))
    result = lab.replay(baseline, run)
    assert lab.live == [], f"live tools were entered: {lab.live}"
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert result.by == ["served"] * 3
    assert all(f"seen {x} {n}" in str(result.session.output) for n, x in enumerate((1, 2, 1), 1))


@scenario("S26-to")
def to_plain_code(lab: Lab) -> None:
    """A session that the framework recorded answers the calls of plain code."""
    baseline = lab.record(lab.runner(lambda: lab.harness.build(Spec(turns=_turns(), tools=[_look(lab)]))))
    result = lab.replay(baseline, _plain(lab))
    assert lab.live == [], f"live tools were entered: {lab.live}"
    assert result.by == ["served"] * 3, result.message
    assert result.session.output == "seen 1 1 seen 2 2 seen 1 3"
