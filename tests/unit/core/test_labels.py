"""What labels accept, which labels agree, and what the label check says."""

from typing import Any

import pytest

from playhead.core.facts.named import Fact
from playhead.core.suites.labels import accepts, agree, check_label, label_digest, label_json, options_of, read_label
from playhead.core.suites.matchers import fits, mismatches, variants

SCHEMAS = {
    "issue_refund": {
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "amount": {"type": ["number", "string"]},
            "reason": {"type": "string", "enum": ["damaged", "late"]},
        },
        "required": ["order_id", "amount"],
    },
    "get_order": {"type": "object", "properties": {"order_id": {"type": "string"}}, "additionalProperties": False},
}


@pytest.mark.parametrize(
    ("expected", "seen", "fit"),
    [
        (1, 1.0, True),
        (True, 1, False),
        ("a", "A", False),
        ({"$any": True}, None, True),
        ({"$any_of": [129, "129.00"]}, "129.00", True),
        ({"$any_of": [129, "129.00"]}, 130, False),
        ({"$any_of": []}, "", False),
        ({"$pattern": "^POL-"}, "POL-7", True),
        ({"$pattern": "^POL-"}, 7, False),
        ({"$as": "text", "$value": "New York"}, "new-york", True),
        ({"$as": "text", "$value": "New York"}, "New York City", False),
        ({"$as": "money", "$value": "129.00"}, "$129", True),
        ({"$as": "money", "$value": "129.00"}, 129, True),
        ({"$as": "date", "$value": "2024-05-20"}, "May 20, 2024", True),
        ({"$as": "id", "$value": "R-77"}, "r77", True),
        ({"$as": "id", "$value": "R-77"}, ["R-77"], False),
        ({"$each": [1, {"$any_of": [2, 3]}]}, [3, 1], True),
        ({"$each": [1, {"$any_of": [1, 2]}]}, [1, 1], True),
        ({"$each": [1, 1]}, [1, 2], False),
        ({"a": {"$any": True}, "b": [1, {"$optional": True}]}, {"a": 5, "b": [1, 9]}, True),
        ({"a": {"$any": True}}, {"a": 5, "b": 1}, False),
        ({"a": {"$optional": True, "$any_of": [1]}}, {}, True),
    ],
)
def test_one_argument_against_a_label(expected: Any, seen: Any, fit: bool) -> None:
    assert fits(expected, seen) is fit


def test_each_place_of_a_wrong_argument_is_named() -> None:
    expected = {"order_id": "4821", "at": {"city": "Oslo", "zip": {"$any": True}}, "note": {"$optional": True}}
    found = mismatches(expected, {"at": {"city": "Bergen", "zip": 1}, "x": 1}, extra="forbid")
    assert [(m.reason, m.pointer) for m in found] == [
        ("missing_value", "/order_id"), ("wrong_value", "/at/city"), ("extra_value", "/x"),
    ]  # fmt: skip
    assert mismatches({"a": 1}, {"$invalid": "{"}, extra="allow")[0].reason == "missing_value"


def test_variants_show_every_alternative_once() -> None:
    assert variants({"a": {"$any_of": [1, 2]}, "b": {"$any_of": [3, 4]}}) == [
        {"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 1, "b": 4},
    ]  # fmt: skip
    assert variants({"$pattern": "x"}) == []


def test_labels_keep_their_form() -> None:
    given = {"kind": "any_of", "options": [{"calls": [{"tool": "a"}]}, {"calls": [{"tool": "b"}], "order": "sequence"}]}
    label = read_label(given)
    assert read_label(label_json(label)) == label
    assert label_json(read_label({"kind": "no_tool"})) == {"kind": "no_tool"}
    assert label_digest(label) != label_digest(read_label({"kind": "no_tool"}))


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "call"},
        {"kind": "call", "calls": []},
        {"kind": "nothing"},
        {"kind": "no_tool", "calls": []},
        {"kind": "fail_safely", "how": []},
    ],
)
def test_what_is_no_label_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_label(bad)


def calls(*tools: Any, **more: Any) -> Any:
    made = [{"tool": t} if isinstance(t, str) else {"tool": t[0], "arguments": t[1]} for t in tools]
    return read_label({"kind": "call", "calls": made, **more})


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (calls("a"), calls("a"), True),
        (calls("a"), calls("b"), False),
        (calls("a", "b"), calls("b", "a"), True),
        (calls("a", "b", order="sequence"), calls("b", "a", order="sequence"), False),
        (calls("a"), calls("a", "a"), False),
        (calls(("a", {"x": 1})), calls(("a", {"x": 1.0})), True),
        (calls(("a", {"x": 1})), calls(("a", {"x": 2})), False),
        (calls(("a", {"x": {"$any_of": [1, 2]}})), calls(("a", {"x": {"$any_of": [2, 3]}})), True),
        (calls(("a", {"x": {"$pattern": "^O"}})), calls(("a", {"x": "Oslo"})), True),
        (calls(("a", {"x": {"$pattern": "^B"}})), calls(("a", {"x": "Oslo"})), False),
        (calls(("a", {"x": 1})), calls("a"), True),
        (calls(("a", {"x": 1})), calls("a", extra_arguments="forbid"), False),
        (calls("a"), read_label({"kind": "no_tool"}), False),
        (read_label({"kind": "no_tool"}), read_label({"kind": "no_tool", "answer": "clarify"}), True),
        (
            read_label({"kind": "no_tool", "answer": "direct"}),
            read_label({"kind": "no_tool", "answer": "clarify"}),
            False,
        ),
    ],
)
def test_labels_agree_where_some_calls_satisfy_both(left: Any, right: Any, same: bool) -> None:
    assert agree(left, right) is agree(right, left) is same


def test_the_calls_that_an_option_accepts() -> None:
    (option,) = options_of(calls(("a", {"x": 1}), ("a", {"x": {"$any_of": [1, 2]}})))
    assert accepts(option, [("a", {"x": 2}), ("a", {"x": 1})])
    assert not accepts(option, [("a", {"x": 2}), ("a", {"x": 2})])
    assert not accepts(option, [("a", {"x": 1})])
    (ordered,) = options_of(calls(("a", {}), ("b", {}), order="sequence"))
    assert accepts(ordered, [("a", {}), ("b", {})])
    assert not accepts(ordered, [("b", {}), ("a", {})])


@pytest.mark.parametrize(
    ("label", "code", "place"),
    [
        (calls("isue_refund"), "not_offered", ""),
        (calls(("get_order", {"id": 1})), "unknown_parameter", "/id"),
        (
            calls(("issue_refund", {"order_id": {"$optional": True, "$any_of": ["1"]}})),
            "required_is_optional",
            "/order_id",
        ),
        (calls(("issue_refund", {"reason": {"$any_of": ["late", "lost"]}})), "value_not_valid", "/reason"),
        (read_label({"kind": "fail_safely", "forbidden": ["pay"]}), "not_offered", ""),
    ],
)
def test_the_label_check_names_place_and_reason(label: Any, code: str, place: str) -> None:
    found = check_label(label, SCHEMAS)
    assert [(f.code, f.pointer) for f in found] == [(code, place)]
    assert str(found[0])


def test_a_good_label_has_no_finding() -> None:
    assert check_label(calls(("issue_refund", {"order_id": "1", "reason": "late"})), SCHEMAS) == []


def test_facts_that_cannot_hold_together_are_found() -> None:
    def fact(name: str, value: str, **more: Any) -> Fact:
        return Fact.model_validate({"name": name, "as": "id", "value": value, **more})

    label = read_label({"kind": "no_tool"})
    both = [fact("a", "R-1"), fact("b", "R-1", must_not=True)]
    assert [f.code for f in check_label(label, SCHEMAS, both)] == ["contradictory_facts"]
    only = [fact("a", "R-1", exclusive=True), fact("b", "R-2")]
    assert [f.code for f in check_label(label, SCHEMAS, only)] == ["contradictory_facts"]
    assert check_label(label, SCHEMAS, [fact("a", "R-1"), fact("b", "R-2")]) == []
