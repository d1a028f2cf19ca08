"""What a guard finds wrong with a result, and what a model is handed in its place."""

from typing import Any

import pytest

from playhead.core.guards import Fault, Guard, again, correction, fault, read_guards, told
from playhead.core.values import OutcomeKind

SCHEMA = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}


@pytest.mark.parametrize("value", [None, "", "  ", [], {}, {"rows": [], "next": None}, [[], ""], "[]", '{"rows": []}'])
def test_nothing_is_empty(value: Any):
    found = fault(Guard(not_empty=True), value)
    assert found is not None
    assert found.kind == "empty"
    assert fault(Guard(), value) is None


@pytest.mark.parametrize("value", [0, False, "no", [0], {"rows": [], "total": 0}, "[1]"])
def test_something_is_not_empty(value: Any):
    assert fault(Guard(not_empty=True), value) is None


def test_what_does_not_fit_the_schema_is_malformed_and_named():
    guard = Guard.model_validate({"schema": SCHEMA})
    assert fault(guard, {"total": 3}) is None
    assert fault(guard, '{"total": 3}') is None  # JSON as text is what it holds
    assert fault(guard, {"total": "many"}) == Fault("malformed", "it does not fit what the tool promises", "/total")
    assert fault(guard, "all of them") == Fault("malformed", "it does not fit what the tool promises", "")


@pytest.mark.parametrize("value", ['{"total": 3', "[1, 2", '{"total": }'])
def test_json_that_breaks_off_is_malformed_without_a_schema(value: str):
    found = fault(Guard(), value)
    assert found is not None
    assert found.kind == "malformed"


@pytest.mark.parametrize(
    ("value", "inside"),
    [(0, True), (100, True), (-1, False), (101, False), ("7", True), ("many", False), (True, False), (None, False),
     (float("nan"), False)],
)  # fmt: skip
def test_numbers_are_held_to_their_range(value: Any, inside: bool):
    found = fault(Guard(range={"/total": (0, 100)}), {"total": value})
    assert (found is None) == inside
    if found is not None:
        assert (found.kind, found.pointer) == ("out_of_range", "/total")


def test_a_range_may_be_open_and_says_nothing_of_what_is_not_there():
    assert fault(Guard(range={"/total": (1, None)}), {"total": 10**30}) is None
    assert fault(Guard(range={"/total": (1, None)}), {"total": 0}) is not None
    assert fault(Guard(range={"/total": (1, None)}), {}) is None


def test_the_text_says_what_is_wrong_and_what_can_be_done():
    empty, broken = Fault("empty", "there is nothing in it"), Fault("malformed", "it does not fit", "/total")
    guard = Guard(not_empty=True)
    said = correction("search", guard, empty, safe=True, retried=False)
    assert said.kind is OutcomeKind.RESULT_ERROR
    assert "search gave an empty result" in str(said.value)
    assert "/total" in str(correction("search", guard, broken, safe=True, retried=False).value)
    assert "call it once more" in str(correction("search", guard, broken, safe=True, retried=False).value)
    assert "call it once more" not in str(correction("search", guard, broken, safe=True, retried=True).value)
    assert "Whether the call took effect" in str(correction("pay", guard, broken, safe=False, retried=False).value)
    assert correction("search", Guard(message="Try Rome."), empty, safe=True, retried=False).value == "Try Rome."


def test_only_calls_that_may_be_repeated_are_made_again():
    assert again(Guard(action="retry"), safe=True)
    assert not again(Guard(action="retry"), safe=False)
    assert not again(Guard(), safe=True)


def test_what_is_kept_is_bounded():
    kept = told(Fault("malformed", "x"), action="message", attempts=1, withheld="y" * 5000)
    assert len(str(kept["withheld"])) == 2001
    assert told(Fault("empty", "x"), action="message", attempts=1, withheld=[])["withheld"] == []


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"search": {"not_emtpy": True}}, "guard of 'search': not_emtpy"),
        ({"search": {"schema": {"type": "nothing"}}}, "is no JSON Schema"),
        ({"search": {"range": {"total": [0, 1]}}}, "is no JSON pointer"),
        ({"search": {"range": {"/total": [2, 1]}}}, "2 is more than 1"),
        ({"search": {"action": "again"}}, "action"),
    ],
)
def test_what_is_no_guard_is_named(given: Any, part: str):
    with pytest.raises(ValueError, match=r"guard of 'search'") as found:
        read_guards(given)
    assert part in str(found.value)


def test_guards_are_read_from_json_or_taken_as_they_are():
    guard = Guard(not_empty=True)
    assert read_guards({"a": guard, "b": {"range": {"/total": [0, 100000]}, "action": "retry"}}) == {
        "a": guard,
        "b": Guard(range={"/total": (0, 100000)}, action="retry"),
    }
