"""The three scores of one attempt, on cases small enough to be judged by hand."""

from typing import Any

import pytest

from playhead.core.effects import ToolEffect
from playhead.core.suites.scoring import Answer, Attempt, Emitted, score
from playhead.core.suites.suite import Case

REFUND = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
    "required": ["order_id"],
}
SCHEMAS = {"get_order": REFUND, "issue_refund": REFUND, "report_failure": {}, "think": {}, "transfer": {}}
EFFECTS = {
    name: ToolEffect.model_validate(declared)
    for name, declared in {
        "get_order": {"class": "read"},
        "issue_refund": {"class": "write"},
        "report_failure": {"class": "read", "give_up": True},
        "think": {"class": "read", "bookkeeping": True},
        "transfer": {"class": "write"},
    }.items()
}


def case(label: dict[str, Any] | None, **more: Any) -> Case:
    return Case.model_validate({"id": "c", "label": label, **more})


def judged(label: dict[str, Any] | None, *answers: Answer, final: str | None = None, **more: Any) -> Any:
    return score(case(label, **more), SCHEMAS, Attempt(answers=answers, final=final), EFFECTS)


def says(text: str = "", *calls: Any) -> Answer:
    made = [Emitted(tool=c, arguments={}) if isinstance(c, str) else Emitted(tool=c[0], arguments=c[1]) for c in calls]
    return Answer(text=text, calls=tuple(made))


def wants(*tools: Any, **more: Any) -> dict[str, Any]:
    made = [{"tool": t} if isinstance(t, str) else {"tool": t[0], "arguments": t[1]} for t in tools]
    return {"kind": "call", "calls": made, **more}


READ = {"order_id": "1"}


@pytest.mark.parametrize(
    ("label", "answer", "why"),
    [
        (wants("get_order"), says("", "get_order"), "ok"),
        (wants("get_order"), says("Let me think."), "called_none"),
        (wants("get_order"), says("  "), "empty_response"),
        (wants("get_order"), says("", "issue_refund"), "wrong_tool"),
        (wants("get_order"), says("", "get_ordr"), "unknown_tool"),
        (wants("get_order"), says("", "get_order", "issue_refund"), "extra_call"),
        (wants("get_order"), says("", "get_order", "get_order"), "extra_call"),
        (wants("get_order", "issue_refund"), says("", "get_order"), "missing_call"),
        (wants("get_order", "issue_refund", order="sequence"), says("", "issue_refund", "get_order"), "wrong_order"),
        (wants("get_order", "issue_refund"), says("", "issue_refund", "get_order"), "ok"),
        (wants("get_order"), says("", "think", "get_order", "think"), "ok"),
        (wants("get_order"), says("", "think"), "called_none"),
        (wants("get_order"), says("", "get_order", "report_failure"), "ok"),
        (wants("report_failure"), says("", "report_failure"), "ok"),
        (wants("issue_refund", extra_calls="allow_read"), says("", "get_order", "issue_refund"), "ok"),
        (wants("get_order", extra_calls="allow_read"), says("", "get_order", "issue_refund"), "extra_call"),
        ({"kind": "no_tool"}, says("Which order?"), "ok"),
        ({"kind": "no_tool"}, says("", "get_order"), "called_when_none"),
        ({"kind": "no_tool"}, says(), "empty_response"),
        ({"kind": "no_tool"}, says("Hm.", "think"), "ok"),
        ({"kind": "fail_safely"}, says("I cannot do that."), "ok"),
        ({"kind": "fail_safely"}, says("", "get_order"), "ok"),
        ({"kind": "fail_safely"}, says("", "issue_refund"), "forbidden_call"),
        ({"kind": "fail_safely", "allowed": ["transfer"]}, says("", "transfer"), "ok"),
        ({"kind": "fail_safely", "forbidden": ["get_order"]}, says("", "issue_refund"), "ok"),
        ({"kind": "any_of", "options": [wants("a"), wants("get_order")]}, says("", "get_order"), "ok"),
    ],
)  # fmt: skip
def test_selection_and_its_reason(label: dict[str, Any], answer: Answer, why: str) -> None:
    if label["kind"] == "any_of":
        label = {"kind": "any_of", "options": [{k: v for k, v in o.items() if k != "kind"} for o in label["options"]]}
    found = judged(label, answer)
    assert (found.why, found.selection) == (why, why == "ok")


def test_a_forbidden_call_counts_in_every_turn_of_the_trial() -> None:
    found = judged({"kind": "fail_safely"}, says("I will look.", "get_order"), says("", "issue_refund"))
    assert found.why == "forbidden_call"


def test_selection_looks_at_as_many_turns_as_the_case_says() -> None:
    turns = (says("", "get_order"), says("", "issue_refund"))
    label = wants("get_order", "issue_refund")
    assert judged(label, *turns).why == "missing_call"
    assert judged(label, *turns, within_turns=2).why == "ok"


def test_without_a_label_only_schemas_are_judged() -> None:
    found = judged(None, says("", ("get_order", {})))
    assert (found.selection, found.schema, found.values, found.arguments, found.outcome) == (
        None, False, None, False, None,
    )  # fmt: skip


def test_values_of_calls_of_one_tool_are_paired_for_the_most_matches() -> None:
    label = wants(("get_order", {"order_id": {"$any": True}}), ("get_order", {"order_id": "2"}))
    right = judged(label, says("", ("get_order", {"order_id": "2"}), ("get_order", {"order_id": "7"})))
    assert (right.values, right.passed) == (True, True)
    wrong = judged(wants(("get_order", READ)), says("", ("get_order", {"order_id": 1})))
    assert (wrong.selection, wrong.schema, wrong.values, wrong.arguments) == (True, False, False, False)
    assert [(v.mismatch.reason, v.mismatch.pointer) for v in wrong.value_errors] == [("wrong_value", "/order_id")]


def test_values_do_not_apply_where_no_call_was_labelled() -> None:
    found = judged(wants("get_order"), says("", ("issue_refund", READ)))
    assert (found.schema, found.values) == (True, None)


def test_calls_that_are_not_offered_have_no_schema() -> None:
    found = judged(wants("get_order"), says("", "get_ordr"))
    assert (found.arguments, [c.offered for c in found.calls]) == (None, [False])


FACTS = [{"name": "refund", "as": "id", "value": "R-77"}]
RECORDED = [{"calls": [{"id": "c1", "tool": "get_order", "arguments": READ}]}]


def test_the_outcome_is_in_the_final_answer() -> None:
    common: dict[str, Any] = {"facts": FACTS, "recorded": RECORDED}
    call = says("", ("get_order", READ))
    assert judged(wants("get_order"), call, final="Refund R-77 was issued.", **common).outcome is True
    wrong = judged(wants("get_order"), call, final="Done.", **common)
    assert (wrong.outcome, wrong.missing_facts, wrong.outcome_why) == (False, ("refund",), "facts")
    none = judged(wants("get_order"), call, **common)
    assert (none.outcome, none.outcome_why) == (False, "no_answer")
    assert judged(wants("get_order"), call, final="Done.").outcome is None


def test_a_fact_of_any_text_may_be_said_on_the_way() -> None:
    anywhere = [{**FACTS[0], "where": "any"}]
    found = judged(wants("get_order"), says("R-77 it is.", ("get_order", READ)), final="Done.", facts=anywhere)
    assert found.outcome is True


def test_what_must_not_be_said_fails_the_outcome() -> None:
    secret = [{**FACTS[0], "must_not": True}]
    assert judged(wants("get_order"), says(), final="It is R-77.", facts=secret).outcome is False
    assert judged(wants("get_order"), says(), final="I may not say.", facts=secret).outcome is True


@pytest.mark.parametrize(
    ("label", "answer", "outcome"),
    [
        ({"kind": "no_tool"}, says("Yes."), None),
        ({"kind": "no_tool", "answer": "clarify"}, says("Which order?"), True),
        ({"kind": "no_tool", "answer": "clarify"}, says("Your order."), False),
        ({"kind": "no_tool", "answer": "direct"}, says("Your order."), True),
        ({"kind": "no_tool", "answer": "direct"}, says("Which order?"), False),
        ({"kind": "fail_safely"}, says("No."), True),
        ({"kind": "fail_safely", "how": ["report"]}, says("No."), False),
        ({"kind": "fail_safely", "how": ["report"]}, says("I couldn’t do that."), True),
        ({"kind": "fail_safely", "how": ["report"]}, says("", "report_failure"), True),
        ({"kind": "fail_safely", "how": ["escalate"]}, says("A colleague will call."), False),
        ({"kind": "fail_safely", "how": ["escalate"], "allowed": ["transfer"]}, says("", "transfer"), True),
        ({"kind": "fail_safely", "how": ["refuse"]}, says("No.", "issue_refund"), False),
    ],
)
def test_the_manner_of_an_answer_without_a_call(label: dict[str, Any], answer: Answer, outcome: bool | None) -> None:
    assert judged(label, answer).outcome is outcome


def test_a_trial_passes_when_every_dimension_that_applies_does() -> None:
    label = wants(("get_order", READ))
    good = says("", ("get_order", READ))
    assert judged(label, good, final="R-77", facts=FACTS, recorded=RECORDED).passed is True
    assert judged(label, good, final="?", facts=FACTS, recorded=RECORDED).passed is False
    assert judged(None, says("Hello.")).passed is None
