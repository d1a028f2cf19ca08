"""What a model is told after a bad call, and how what it does then is judged."""

from typing import Any

import pytest

from playhead.core.fuzz.cases import FuzzCase
from playhead.core.fuzz.feedback import FedBack, fed_back, feed_back, recorded_failures, rejection, started
from playhead.core.fuzz.grown import over_context, rows
from playhead.core.lint.errors import Failure
from playhead.core.protocol import parts
from playhead.core.suites.drive import ModelAsk, ModelSaid, drive
from playhead.core.suites.suite import Case, ToolSchema
from playhead.core.values import JSON

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "reason": {"type": "string", "enum": ["damaged", "late"]}},
    "required": ["order_id", "reason"],
}
TOOLS = {
    "refund": ToolSchema(name="refund", description="Refund one order", parameters=SCHEMA),
    "look": ToolSchema(name="look", description="Looks an order up", parameters={"type": "object", "properties": {
        "order_id": {"type": "string"}}}),
    "give_up": ToolSchema(name="give_up"),
}  # fmt: skip
EFFECTS: dict[str, Any] = {}
CASE = Case.model_validate(
    {
        "id": "c", "tools": ["refund", "look", "give_up"], "history": [{"role": "user", "content": "Refund W4821"}],
        "recorded": [
            {"calls": [{"id": "a", "tool": "look", "arguments": {"order_id": "W4821"}}],
             "outcomes": {"a": {"kind": "value", "value": {"lines": [1, 2]}}}},
            {"calls": [{"id": "b", "tool": "refund", "arguments": {"order_id": "W4821", "reason": "damaged"}}],
             "outcomes": {"b": {"kind": "value", "value": {"refund_id": "R-77"}}}},
        ],
        "answer": "Refund R-77 is on its way.", "facts": [{"name": "refund", "as": "id", "value": "R-77"}],
    }
)  # fmt: skip
BAD = FuzzCase(
    id="f", tool="refund", family="constraint", mutation="enum_synonym", pointer="/reason",
    arguments={"order_id": "W4821", "reason": "broken"}, base={"order_id": "W4821", "reason": "damaged"},
    source="c", round=1,
)  # fmt: skip
LARGE = FuzzCase(
    id="g", tool="look", family="oversized", mutation="many_rows", expectation="semantic", source="c", round=0,
    arguments={"order_id": "W4821"}, base={"order_id": "W4821"}, result={"lines": [1, 2] * 400},
)  # fmt: skip


def say(text: str = "", *calls: tuple[str, JSON]) -> ModelSaid:
    made = [*parts.texts([text]), *(parts.call(tool, given, f"n{place}") for place, (tool, given) in enumerate(calls))]
    return ModelSaid(message=parts.message("assistant", made))


def after(fuzz: FuzzCase, *answers: ModelSaid, asked: list[ModelAsk] | None = None) -> FedBack:
    from playhead.core.effects import ToolEffect

    effects = {"look": ToolEffect.model_validate({"class": "read"}), "refund": ToolEffect.model_validate(
        {"class": "write"}), "give_up": ToolEffect.model_validate({"class": "read", "give_up": True})}  # fmt: skip
    case = started(CASE, fuzz.round, fuzz.id)
    told = rejection(fuzz, SCHEMA)
    waiting = list(answers)

    def ask(request: ModelAsk) -> ModelSaid:
        if asked is not None:
            asked.append(request)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    trace = drive(feed_back(fuzz, case, TOOLS, told, effects), ask)
    return fed_back(trace, fuzz, case, TOOLS, told, effects)


GOOD = ("refund", {"order_id": "W4821", "reason": "damaged"})
SAME = ("refund", {"order_id": "W4821", "reason": "broken"})


@pytest.mark.parametrize(
    ("answers", "outcome", "group"),
    [
        ([say("", GOOD), say("Refund R-77 is on its way.")], "corrected_retry", "corrected"),
        ([say("", ("refund", {"order_id": "W4821", "reason": "late"})), say("Done.")], "corrected_retry", "corrected"),
        ([say("", SAME)], "loop", "loop"),
        ([say("", SAME), say("I cannot do it.")], "blind_repeat", "other"),
        ([say("", ("refund", {"order_id": "W4821", "reason": "bad"})), say("Okay.")], "unclear_end", "other"),
        ([say("I cannot refund it: the reason is not valid.")], "clear_message", "gave_up"),
        ([say("", ("give_up", {})), say("A colleague follows up.")], "give_up_tool", "gave_up"),
        ([say("", ("look", {"order_id": "W4821"})), say("That failed.")], "alternative_tool", "other"),
        ([say("Refund R-77 is on its way.")], "silent_wrong_answer", "other"),
        ([say("Okay.")], "unclear_end", "other"),
    ],
)
def test_what_follows_a_rejected_call(answers: list[ModelSaid], outcome: str, group: str):
    found = after(BAD, *answers)
    assert (found.outcome, found.group) == (outcome, group)


def test_the_model_sees_its_bad_call_and_gets_the_same_rejection_again():
    asked: list[ModelAsk] = []
    after(BAD, say("", SAME), say("I cannot do it."), asked=asked)
    roles = [message["role"] for message in asked[0].messages]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]  # what was recorded before, then the bad call
    told = [p["content"] for p in asked[1].messages[-1]["parts"]] + [
        p["content"] for p in asked[0].messages[-1]["parts"]
    ]
    assert told[0] == told[1]
    assert "Allowed values" in told[0]
    assert '"damaged", "late"' in told[0]


@pytest.mark.parametrize(
    ("answers", "group"),
    [
        ([say("", ("look", {"order_id": "W4821", "limit": 5})), say("Done.")], "corrected"),
        ([say("", GOOD), say("Refund R-77 is on its way.")], "corrected"),
        ([say("", ("look", {"order_id": "W4821"}))], "loop"),
        ([say("I could not read that many lines.")], "gave_up"),
        ([say("Okay.")], "other"),
    ],
)
def test_what_follows_a_huge_result(answers: list[ModelSaid], group: str):
    assert after(LARGE, *answers).group == group


def test_whose_words_reject_a_call():
    recorded = [Failure("refund", {}, "no such order"), Failure("refund", {}, "reason must be damaged or late"),
                Failure("look", {}, "gone")]  # fmt: skip
    assert rejection(BAD, SCHEMA, said="ValueError: no", recorded=recorded).by == "validator"
    named = rejection(BAD, SCHEMA, recorded=recorded)
    assert (named.by, named.outcome.value) == ("recorded", "reason must be damaged or late")
    assert rejection(BAD, SCHEMA, recorded=recorded[:1]).outcome.value == "no such order"
    assert rejection(BAD, SCHEMA, recorded=recorded[2:]).by == "generated"
    assert rejection(LARGE, SCHEMA, said="x").by == "result"


def test_recorded_failures_are_found_before_and_after_the_turn():
    failing = CASE.model_copy(update={"recorded": (*CASE.recorded[:1], CASE.recorded[1].model_copy(
        update={"outcomes": {"b": {"kind": "result_error", "value": "no such order"}}}))})  # fmt: skip
    later = started(failing, 2, "later")
    assert [one.text for one in recorded_failures([failing])] == ["no such order"]
    assert [(one.tool, one.text) for one in recorded_failures([later])] == [("refund", "no such order")]


def test_results_are_grown():
    assert len(rows({"a": {"lines": [1, 2]}, "b": [3]})["a"]["lines"]) == 800
    assert rows({"n": 1}, 3) == [{"n": 1}] * 3
    assert rows("a\nb", 4) == "a\nb\na\nb"
    assert len(str(over_context({"lines": [{"item": "A1"}]}, 4000))) >= 1.5 * 4 * 4000
