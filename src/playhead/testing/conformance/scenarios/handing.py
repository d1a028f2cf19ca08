"""S14, S18, S20 further: sub-agents under overrides, handoffs, tools that run elsewhere."""

from typing import Any

from playhead.core.policy import ReplayOverride
from playhead.core.values import OutcomeKind, ReplayStatus
from playhead.testing.conformance.harness import Call, Lab, Spec, finish
from playhead.testing.conformance.scenarios.registry import scenario

_INSIDE = {"default": {"type": "history"}}


@scenario("S14-agents")
def below(lab: Lab) -> None:
    """Model parameters reach agents inside tools; the system text of the root does not."""
    children: list[Any] = []

    def lookup(q: str) -> str:
        return f"fact {lab.entered(q)}"

    def make() -> Any:
        child = lab.harness.build(
            Spec(name="child", system="be exact", turns=[[Call("lookup", {"q": "x"})]], tools=[lookup])
        )
        children.append(child)
        ask = lab.harness.agent_tool("ask", child)
        return lab.harness.build(
            Spec(name="parent", system="be brief", turns=[[Call("ask", {"q": "one"})]], tools=[ask])
        )

    lab.needs_models()
    run = lab.runner(make)
    baseline = lab.record(run)
    assert baseline.error is None, baseline.error
    policy = {**_INSIDE, "tools": {lab.tool("ask"): {"type": "passthrough"}}}
    override = ReplayOverride(model_params={"max_tokens": 77}, system_prompt="be thorough")
    result = lab.replay(baseline, run, policy=policy, override=override)
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert lab.live == [], lab.live
    assert [n.inputs["params"].get("max_tokens") for n in result.model_calls] == [77] * 4
    assert all(b"be thorough" not in asked for asked in lab.harness.requests(children[-1]))


@scenario("S18")
def handed_over(lab: Lab) -> None:
    """A handoff is no tool call; what the other agent calls is recorded and served."""

    def lookup(q: str) -> str:
        return f"fact {lab.entered(q)}"

    def make() -> Any:
        other = lab.harness.build(Spec(name="other", turns=[[Call("lookup", {"q": "x"})]], tools=[lookup]))
        return lab.harness.handoff(Spec(name="desk"), other)

    baseline, result = lab.unchanged(lab.runner(make))
    assert [n.name for n in baseline.calls] == [lab.tool("lookup")]
    assert [(row.tool, row.by) for row in result.rows] == [(lab.tool("lookup"), "served")], result.rows
    assert len(baseline.model_calls) == 3


@scenario("S20-deferred")
def deferred(lab: Lab) -> None:
    """A tool that runs elsewhere: the pause, then the result that the program brings."""

    def run(prompt: str) -> str:
        tool = lab.harness.deferred_tool("order")
        agent = lab.harness.build(Spec(turns=[[Call("order", {"q": "tea"})]], tools=[tool]))
        return finish(lab.harness.run_deferred(agent, prompt, lambda _: "ordered"))

    baseline = lab.record(run)
    assert baseline.error is None, baseline.error
    assert baseline.calls[0].outcome is not None
    assert baseline.calls[0].outcome.kind is OutcomeKind.INTERRUPT
    assert "ordered" in str(baseline.session.output)
    lab.check_faithful(baseline, lab.replay(baseline, run))
