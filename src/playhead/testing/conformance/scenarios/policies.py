"""S12 further: every policy beside others, and every answer to a miss under static cases."""

from typing import Any

from playhead.core.values import OutcomeKind, ReplayStatus
from playhead.testing.conformance.harness import Call, Lab, Spec
from playhead.testing.conformance.scenarios.misses import searching
from playhead.testing.conformance.scenarios.registry import scenario


@scenario("S12-misses")
def static_misses(lab: Lab) -> None:
    """A call that no static case matches: stopped, answered with an error, or live, as ``on_miss`` says."""
    run = lab.runner(searching(lab, ["a", "b"]))
    baseline = lab.record(run)
    cases = [{"match": {"q": "a"}, "result": "case"}]
    wanted = {
        "fail": ReplayStatus.FAILED,
        "error_result": ReplayStatus.COMPLETED,
        "passthrough": ReplayStatus.COMPLETED,
    }
    for on_miss, status in wanted.items():
        policy = {"default": {"type": "static", "cases": cases, "on_miss": on_miss}}
        result = lab.replay(baseline, run, policy=policy)
        assert lab.live == (["b"] if on_miss == "passthrough" else []), f"{on_miss}: {lab.live}"
        assert result.replay.status is status, f"{on_miss}: {result.message}"
        assert result.by[:2] == ["static", "missed"], f"{on_miss}: {result.by}"
        if on_miss == "error_result":
            assert [n.outcome.kind for n in result.calls if n.outcome][1] is OutcomeKind.RESULT_ERROR


@scenario("S12-tools")
def each_tool_its_own(lab: Lab) -> None:
    """One tool from the recording, one from static cases, one live, beside a default for the rest."""

    def make_tool(name: str) -> Any:
        def tool(q: str) -> str:
            lab.entered(name)
            return f"{name} {q}"

        tool.__name__ = tool.__qualname__ = name
        return tool

    names = ["find", "price", "book"]
    turns = [[Call(name, {"q": "x"}) for name in names]]
    tools = [make_tool(name) for name in names]
    run = lab.runner(lambda: lab.harness.build(Spec(turns=turns, tools=tools)))
    baseline = lab.record(run)
    policy: dict[str, Any] = {
        "default": {"type": "static", "cases": []},
        "tools": {
            lab.tool("find"): {"type": "history"},
            lab.tool("price"): {"type": "static", "cases": [{"result": "7"}]},
            lab.tool("book"): {"type": "passthrough"},
        },
    }
    result = lab.replay(baseline, run, policy=policy)
    assert lab.live == ["book"], lab.live
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert {row.tool: row.by for row in result.rows} == {
        lab.tool("find"): "served", lab.tool("price"): "static", lab.tool("book"): "live",
    }  # fmt: skip
    values = {n.name: n.outcome.value for n in result.calls if n.outcome}
    assert values == {lab.tool("find"): "find x", lab.tool("price"): "7", lab.tool("book"): "book x"}
