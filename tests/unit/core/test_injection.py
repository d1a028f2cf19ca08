"""Scripted failures: particulars, texts, fixes, choice."""

import json
from typing import Any

import pytest
from recorded_calls import keyed

from playhead.core.injection import (
    TIMED_OUT,
    Surroundings,
    allowed_values,
    at_pointer,
    build,
    default_pointer,
    empty_like,
    is_fix,
    malformed,
    scene,
)
from playhead.core.overlay import Overlay, chosen
from playhead.core.policy import CallView, InjectConfig
from playhead.core.values import Outcome, OutcomeKind

PARAMETERS = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer"},
        "note": {"type": "string"},
        "cabin": {"anyOf": [{"$ref": "#/$defs/Cabin"}, {"type": "null"}]},
    },
    "required": ["limit", "note"],
    "$defs": {"Cabin": {"enum": ["economy", "business"]}},
}


def view(arguments: Any, ref: str = "start:1#1", parameters: Any = None, **more: Any) -> CallView:
    key, no_key = keyed("book", arguments)
    return CallView(
        ref=ref, tool="book", arguments=arguments, key=key, no_key=no_key, parameters=parameters, **more
    )  # fmt: skip


def config(kind: str, **more: Any) -> InjectConfig:
    return InjectConfig.model_validate({"kind": kind, **more})


@pytest.mark.parametrize(
    ("parameters", "arguments", "pointer"),
    [
        (PARAMETERS, {"cabin": "economy", "note": "x"}, "/cabin"),
        (PARAMETERS, {"limit": 1, "note": "x"}, "/note"),
        (PARAMETERS, {"limit": 1}, "/limit"),
        (PARAMETERS, {}, "/cabin"),
        ({"required": ["ghost"]}, {"ghost": 1}, "/ghost"),
        (None, {"a/b": 1}, "/a~1b"),
        (None, {}, ""),
        (None, ["no object"], ""),
    ],
)
def test_the_failing_place_is_the_enum_else_the_required_text_else_what_is_required(
    parameters: Any, arguments: Any, pointer: str
) -> None:
    assert default_pointer(parameters, arguments) == pointer


@pytest.mark.parametrize(
    ("pointer", "value", "allowed"),
    [
        ("/cabin", "economy", ("business",)),
        ("/note", "x", ("A-x",)),
        ("/limit", 4, (5,)),
        ("/limit", True, (False,)),
        ("/limit", [1], ()),
    ],
)
def test_allowed_is_the_enum_without_the_value_else_one_made_from_it(
    pointer: str, value: Any, allowed: tuple[Any, ...]
) -> None:
    assert allowed_values(PARAMETERS, pointer, value) == allowed


def test_a_prescriptive_text_names_the_place_the_reason_and_the_way_out() -> None:
    call = view({"cabin": "economy"}, parameters=PARAMETERS)
    text = build(config("validation_error"), call).value
    for words in ("book", "'cabin'", '"economy"', '"business"', "call the tool again"):
        assert words in text
    nothing = build(config("validation_error", allowed=[]), call).value
    assert "Allowed values" not in nothing
    lost = build(config("not_found", candidates=["b1", "b2"]), view({"id": "x"})).error
    assert lost is not None
    assert 'Did you mean "b1" or "b2"?' in lost.message
    unknown = build(config("not_found"), view({"id": "x"})).error
    assert unknown is not None
    assert "Look up the right id" in unknown.message
    limited = build(config("rate_limit", retry_after=7), view({})).error
    assert limited is not None
    assert (limited.status, limited.retry_after, limited.retryable) == (429, 7, True)
    assert "Wait 7 seconds" in limited.message
    broken = build(config("error", status=502), view({})).error
    assert broken is not None
    assert broken.status == 502
    assert "502" in broken.message


@pytest.mark.parametrize("message", ["prescriptive", "plain", "production"])
def test_a_timeout_says_nothing_more(message: str) -> None:
    error = build(config("timeout", message=message), view({})).error
    assert error is not None
    assert (error.class_name, error.module, error.message) == ("TimeoutError", "builtins", TIMED_OUT)


def test_production_without_a_recorded_text_is_plain() -> None:
    assert build(config("validation_error", message="production"), view({})).value == {"error": "invalid input"}
    assert build(config("validation_error", message="production"), view({}), recorded="as seen").value == "as seen"


def test_partial_fails_the_last_item_of_the_first_list() -> None:
    value = build(config("partial"), view({"order": 1, "items": ["A", "B", "C"]})).value
    assert value["done"] == ["A", "B"]
    assert value["failed"][0]["item"] == "C"
    assert "only the failed items" in value["failed"][0]["error"]
    given = build(config("partial", failed=[{"item": "A", "error": "gone"}]), view({"items": ["A", "B"]})).value
    assert given == {"status": "partial", "done": ["B"], "failed": [{"item": "A", "error": "gone"}]}
    assert build(config("partial"), view({})).value == {"status": "partial", "done": [], "failed": []}


@pytest.mark.parametrize(
    ("value", "empty"),
    [
        ({"a": 1}, {}),
        ([1], []),
        ("x", ""),
        (5, 0),
        (2.5, 0),
        (True, False),
        (None, None),
        ({"$decimal": "1"}, None),
        ({"$$x": 1}, {}),
    ],
)
def test_empty_keeps_the_type(value: Any, empty: Any) -> None:
    seen = empty_like(value)
    assert seen == empty
    assert type(seen) is type(empty)


def test_without_a_recording_the_declared_output_type_is_emptied() -> None:
    assert build(config("empty"), view({}, output_schema={"type": "array"})).value == []
    assert build(config("empty"), view({}, output_schema={"type": ["array", "null"]})).value == {}
    assert build(config("empty"), view({})).value == {}
    hidden = Outcome(kind=OutcomeKind.RESULT_ERROR, value="x")
    assert build(config("empty"), view({}), hidden).value == {}


@pytest.mark.parametrize("value", [{"a": [1, 2, 3], "b": "text"}, [1, 2], "text", 12345, None, {}, True])
def test_a_truncated_result_is_no_json(value: Any) -> None:
    cut = malformed(value, "truncated_json")
    assert isinstance(cut, str)
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut)


@pytest.mark.parametrize("value", [{"a": 1}, [1], "x", 3, 2.5, True, None])
def test_a_wrong_type_is_another_type(value: Any) -> None:
    assert type(malformed(value, "wrong_type")) is not type(value)


def test_out_of_range_changes_the_first_number_only_and_not_the_recording() -> None:
    value = {"a": "x", "b": [{"n": 1}, {"n": 2}], "c": True}
    assert malformed(value, "out_of_range") == {"a": "x", "b": [{"n": -999_999_999_999}, {"n": 2}], "c": True}
    assert value["b"] == [{"n": 1}, {"n": 2}]
    assert malformed({"a": "x"}, "out_of_range") == '{"a":"x"}'


def test_nowhere_equals_nothing() -> None:
    nowhere = at_pointer({"a": [1]}, "/a/x")
    assert at_pointer({"a": [1]}, "/a/0") == 1
    assert nowhere is not None
    assert nowhere != nowhere.__class__()


# --- fixes ----------------------------------------------------------------------------------------------------------


def fixes(kind: str, failed: Any, later: Any, around: Surroundings | None = None, **more: Any) -> bool:
    parameters = more.pop("parameters", None)
    made, one, two = config(kind, **more), view(failed, parameters=parameters), view(later, parameters=parameters)
    return is_fix(made, scene(made, one), one, two, around or Surroundings())


def test_a_validation_error_is_mended_by_an_allowed_value() -> None:
    assert fixes("validation_error", {"cabin": "economy"}, {"cabin": "business"}, parameters=PARAMETERS)
    assert not fixes("validation_error", {"cabin": "economy"}, {"cabin": "first"}, parameters=PARAMETERS)
    assert not fixes("validation_error", {"cabin": "economy"}, {}, parameters=PARAMETERS)


def test_an_absent_identifier_is_mended_by_one_that_was_seen() -> None:
    assert fixes("not_found", {"id": "1"}, {"id": "2"}, candidates=["2"])
    assert not fixes("not_found", {"id": "1"}, {"id": "3"}, candidates=["2"])
    assert fixes("not_found", {"id": "1"}, {"id": "3"}, Surroundings(occurs=lambda v: v == "3"))
    assert not fixes("not_found", {"id": "1"}, {"id": "1", "x": 1}, Surroundings(occurs=lambda v: True))
    assert not fixes("not_found", {"id": "1"}, {"other": "2"}, Surroundings(occurs=lambda v: True))


def test_a_partial_result_is_mended_by_the_failed_items_only() -> None:
    assert fixes("partial", {"items": ["A", "B"]}, {"items": ["B"]})
    assert not fixes("partial", {"items": ["A", "B"]}, {"items": ["B", "C"]})
    assert not fixes("partial", {"items": ["A", "B"]}, {"items": []})
    assert not fixes("partial", {"items": ["A", "B"]}, {})


def test_an_empty_result_is_mended_by_other_valid_arguments() -> None:
    assert fixes("empty", {"limit": 1, "note": "x"}, {"limit": 2, "note": "x"}, parameters=PARAMETERS)
    assert not fixes("empty", {"limit": 1, "note": "x"}, {"limit": "2", "note": "x"}, parameters=PARAMETERS)


def test_a_malformed_result_is_mended_only_where_a_retry_is_safe() -> None:
    safe = Surroundings(retry_safe=lambda tool, arguments: tool == "book")
    assert fixes("malformed", {"a": 1}, {"a": 2}, safe)
    assert not fixes("malformed", {"a": 1}, {"a": 2})


@pytest.mark.parametrize("kind", ["rate_limit", "timeout", "error"])
def test_other_failures_are_mended_by_the_same_call_only(kind: str) -> None:
    assert not fixes(kind, {"a": 1}, {"a": 2}, Surroundings(occurs=lambda v: True, retry_safe=lambda t, a: True))


# --- which calls ----------------------------------------------------------------------------------------------------


def test_a_probability_is_drawn_by_seed_and_call() -> None:
    calls = [view({"n": n}) for n in range(400)]
    half = config("empty", probability=0.5, seed=3)
    first = [chosen(half, c, n) for n, c in enumerate(calls, 1)]
    assert first == [chosen(half, c, n) for n, c in enumerate(calls, 1)]
    assert 150 < sum(first) < 250
    assert first != [chosen(config("empty", probability=0.5, seed=4), c, n) for n, c in enumerate(calls, 1)]
    keyless = [chosen(half, view({"v": {"$float": "nan"}}), n) for n in range(50)]
    assert len(set(keyless)) == 2


def test_the_same_failed_call_always_fails_where_the_kind_says_always() -> None:
    overlay = Overlay(config("validation_error"), Surroundings())
    steps = [overlay.step(f"start:{n}", view({"note": "x"}), n).what for n in range(1, 5)]
    assert steps == ["inject"] * 4


def test_calls_without_a_key_are_the_same_by_their_arguments() -> None:
    overlay = Overlay(config("timeout"), Surroundings())
    nan = {"v": {"$float": "nan"}}
    assert overlay.step("start:1", view(nan), 1).what == "inject"
    assert overlay.step("start:2", view({"v": {"$float": "inf"}}), 2).what == "then"
    assert overlay.step("start:3", view(nan), 3) == ("corrected", "start:1")


def test_a_fix_is_answered_once() -> None:
    overlay = Overlay(config("not_found", candidates=["2"]), Surroundings())
    assert overlay.step("start:1", view({"id": "1"}), 1).what == "inject"
    assert overlay.step("start:2", view({"id": "2"}), 2).what == "corrected"
    assert overlay.step("start:3", view({"id": "2"}), 3).what == "then"
    assert overlay.step("start:4", view({"id": "1"}), 4).what == "inject"
