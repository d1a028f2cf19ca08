"""What a replay needs of its adapter, and what is said where that was measured and not passed."""

from dataclasses import replace

import pytest

from playhead.core.capabilities import needs, summary, unmet
from playhead.core.policy import HistoryModel, LiveModel, ReplayOverride, ToolPolicy
from playhead.core.values import NodeKind, Outcome, OutcomeKind
from playhead.testing.sessions import a_tool_call

PASSTHROUGH = {"default": {"type": "passthrough"}}


def needed(policy=None, model=None, override=None, nodes=()):
    made = ToolPolicy.model_validate(policy or {})
    return {scenario for _, scenario in needs(made, model or LiveModel(), override, nodes)}


@pytest.mark.parametrize(
    ("policy", "scenarios"),
    [
        ({}, {"S2", "S9"}),
        ({"default": {"type": "history", "on_miss": "error_result"}}, {"S2", "S10"}),
        ({"default": {"type": "history", "on_miss": "passthrough"}}, {"S2", "S11"}),
        ({**PASSTHROUGH, "tools": {"t": {"type": "static", "cases": []}}}, {"S11", "S12", "S12-misses", "S9"}),
        (
            {**PASSTHROUGH, "tools": {"t": {"type": "inject", "kind": "timeout", "then": {"type": "history"}}}},
            {"S11", "S12-inject", "S2", "S9"},
        ),
        ({**PASSTHROUGH, "tools": {"t": {"type": "llm", "model": "a:b"}}}, {"S11", "S12-llm"}),
    ],
)
def test_every_policy_and_answer_to_a_miss_is_a_scenario(policy, scenarios):
    assert needed(policy) == scenarios


def test_a_recorded_model_and_each_field_of_an_override_are_scenarios():
    override = ReplayOverride(model="m", model_params={"temperature": 0})
    assert needed(PASSTHROUGH, HistoryModel(), override) == {"S11", "S15", "S15-diff", "S14-model", "S14-model_params"}


def test_what_the_recording_holds_is_needed_where_it_may_be_served():
    paused = a_tool_call(1, "ask", {}, outcome=Outcome(kind=OutcomeKind.INTERRUPT))
    mcp = a_tool_call(2, "price", {}, attributes={"bare_tool": "price"})
    assert needed({}, nodes=[paused, mcp]) == {"S2", "S9", "S19", "S20-granted"}
    assert needed(PASSTHROUGH, nodes=[paused, mcp]) == {"S11"}


def test_agents_inside_two_tools_of_one_response_and_equal_calls_at_once_are_scenarios():
    def asking(number, seq, model_call):
        outer = a_tool_call(seq, "ask", {"n": number}, call={"model_call": model_call})
        return [outer, replace(outer, id=f"inside-{seq}", kind=NodeKind.AGENT_CALL, parent_id=outer.id, call=None)]

    assert needed({}, nodes=[*asking(1, 1, "m"), *asking(2, 2, "m")]) == {"S2", "S9", "S17-covered", "S17-parallel"}
    assert needed({}, nodes=[*asking(1, 1, "m"), *asking(2, 2, "n")]) == {"S2", "S9", "S17-covered"}
    first, second = (a_tool_call(seq, "poll", {}) for seq in (1, 2))
    first, second = replace(first, started_at=10, ended_at=20), replace(second, started_at=20, ended_at=30)
    assert needed({}, nodes=[first, second]) == {"S2", "S9"}
    assert needed({}, nodes=[first, replace(second, started_at=19)]) == {"S2", "S9", "S3"}


FOUND = {
    "S2": ("supported", ""), "S9": ("supported", ""), "S10": ("unsupported", "errors end the run"),
    "S14-model": ("not_applicable", "no models"), "S12": ("unsupported", ""),
}  # fmt: skip


def test_what_is_not_passed_is_named_with_its_reason_and_what_is_not_applicable_refuses_nothing():
    measured = summary("desk", {"name": "d", "version": "1"}, FOUND)
    found = unmet(measured, [("/a", "S2"), ("/b/on_miss", "S10"), ("/c", "S10"), ("/d", "S14-model"), ("/e", "S12")])
    assert found == [
        "/b/on_miss: adapter desk does not pass conformance scenario S10: errors end the run",
        "/e: adapter desk does not pass conformance scenario S12: it failed when it was measured",
    ]
    assert (measured["policies"]["history"], measured["policies"]["static"], measured["model_history"]) == (
        True, False, False,
    )  # fmt: skip
