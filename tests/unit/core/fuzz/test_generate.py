"""Which bad arguments are made of a schema, and which are not."""

from typing import Any

import pytest

from playhead.core.argument_schema import argument_errors
from playhead.core.fuzz.cases import FuzzCase
from playhead.core.fuzz.generate import Base, bases, tool_cases
from playhead.core.fuzz.near_misses import misspelt, synonyms
from playhead.core.fuzz.places import drop, example, made_arguments, places, put, schema_at
from playhead.core.suites.suite import ToolSchema


def made(properties: dict[str, Any], *families: str, required: list[str] | None = None, **more: Any) -> list[FuzzCase]:
    tool = ToolSchema(
        name="t",
        parameters={"type": "object", "properties": properties, "required": required or list(properties)},
    )
    recorded = more.pop("recorded", ())
    wanted: Any = families or ("type_confusion", "constraint")
    return tool_cases(tool, wanted, recorded, per_tool=more.pop("per_tool", 200), seed=more.pop("seed", 0))


def values(cases: list[FuzzCase], name: str) -> list[Any]:
    return [case.arguments[name] for case in cases if name in case.arguments]


def test_types_that_the_schema_permits_are_skipped():
    found = made({"n": {"type": ["integer", "string", "null"]}}, "type_confusion")
    kinds = {type(value) for value in values(found, "n")}
    assert not kinds & {int, str, type(None)}
    assert kinds == {list, float}
    assert any("n" not in case.arguments for case in found)  # left out


def test_each_declared_type_is_confused():
    texts = {"type": "array", "items": {"type": "string"}}
    found = made(
        {"n": {"type": "integer"}, "b": {"type": "boolean"}, "l": texts, "s": {"type": "string"}}, "type_confusion"
    )
    assert {"many", "1", None} <= {v for v in values(found, "n") if not isinstance(v, list)}
    assert {"true", None} <= set(values(found, "b"))
    assert any(value == 1 and value is not True for value in values(found, "b"))
    assert "text" in values(found, "l")
    assert {case.mutation for case in found if case.pointer == "/s"} == {
        "list_for_text", "object_for_text", "number_for_text", "boolean_for_text", "null", "left_out",
    }  # fmt: skip


def test_bounds_lengths_and_patterns_are_missed_by_little():
    found = made(
        {
            "n": {"type": "integer", "minimum": 2, "maximum": 9},
            "x": {"type": "number", "exclusiveMinimum": 0},
            "s": {"type": "string", "minLength": 3, "maxLength": 5},
            "p": {"type": "string", "pattern": "^POL-\\d+$"},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        },
        "constraint",
    )
    schema = [case for case in found if case.expectation == "schema"]
    assert {1, 10} <= set(values(schema, "n"))
    assert 0 in values(schema, "x")
    assert {2, 6} <= {len(value) for value in values(schema, "s")}
    assert any(case.mutation == "broken_pattern" for case in schema)
    assert {0, 3} <= {len(value) for value in values(schema, "l")}


def test_enums_dates_and_ids_are_missed_by_little():
    found = made(
        {
            "status": {"type": "string", "enum": ["open", "completed"]},
            "date": {"type": "string", "description": "Day of departure"},
            "order": {"type": "string"},
        },
        "constraint",
        recorded=[Base(arguments={"status": "open", "date": "2030-03-01", "order": "W4821"}, source="c")],
    )
    status = [case for case in found if case.pointer == "/status"]
    assert "done" in values(status, "status")
    assert {"OPEN", "opens"} <= set(values(status, "status"))
    assert all(case.expectation == "schema" for case in status)
    dates = {case.mutation: case for case in found if case.pointer == "/date"}
    assert {"date_impossible", "date_past", "date_other_format"} <= set(dates)
    assert all(case.expectation == "semantic" for case in dates.values())
    ids = [case for case in found if case.mutation == "near_miss_id" and case.pointer == "/order"]
    assert [case.arguments["order"] for case in ids] == ["W4281"]
    assert {case.source for case in found} == {"c"}


def test_inner_parameters_are_reached_to_the_third_level_and_no_further():
    leaf = {"type": "integer"}
    deep: dict[str, Any] = {"a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "object",
            "properties": {"c": {"type": "object", "properties": {"d": leaf}}}}}}}}  # fmt: skip
    pointers = {case.pointer for case in made(deep, "type_confusion")}
    assert "/a/b/0/c" in pointers
    assert not [pointer for pointer in pointers if pointer.endswith("/d")]


def test_oversized_arguments_are_long_texts_and_many_items():
    found = made({"s": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}}, "oversized")
    assert {(case.mutation, case.expectation) for case in found} == {
        ("long_text", "semantic"), ("many_items", "semantic"),
    }  # fmt: skip
    assert len(values(found[:1], "s")[0]) == 100_000
    bounded = made({"s": {"type": "string", "maxLength": 9}}, "oversized")
    assert [case.expectation for case in bounded] == ["schema"]


def test_few_cases_are_spread_over_places_and_what_is_declared_goes_first():
    found = made(
        {"a": {"type": "string"}, "b": {"type": "string", "enum": ["x", "y"]}, "c": {"type": "integer"}},
        "constraint",
        per_tool=3,
    )
    assert len({case.pointer for case in found}) == 3
    assert found[0].pointer == "/b"
    assert found[0].expectation == "schema"
    every = made({"a": {"type": "string"}}, "type_confusion", per_tool=2)
    assert len(every) == 2
    others = [made({"a": {"type": "string"}}, "type_confusion", per_tool=2, seed=seed) for seed in range(8)]
    assert any(other != every for other in others)


def test_recorded_arguments_are_taken_where_they_are_valid():
    tool = ToolSchema(name="t", parameters={"type": "object", "properties": {"n": {"type": "integer"}}})
    good, bad = Base(arguments={"n": 7}, source="a"), Base(arguments={"n": "7"}, source="b")
    assert bases(tool, [bad, good, good]) == [good]
    assert bases(tool, [bad])[0].source is None
    assert bases(tool, [bad])[0].arguments == {"n": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"enum": ["q"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[A-Z]{3}-\\d{3}$"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"allOf": [{"type": "object", "properties": {"b": {"const": 4}},
                                                           "required": ["b"]}]}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "minItems": 3,
                                                "uniqueItems": True}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": 3, "multipleOf": 2}}},
        {},
    ],
)  # fmt: skip
def test_arguments_are_made_for_schemas_of_many_kinds(schema: Any):
    assert not argument_errors(schema, made_arguments(schema))


def test_an_impossible_schema_has_no_cases():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?!.*)$"}}, "required": ["a"]}
    assert made_arguments(schema) is None
    assert tool_cases(ToolSchema(name="t", parameters=schema), ("type_confusion",), per_tool=5, seed=0) == []


def test_changes_leave_the_original_alone():
    held = {"a": [{"b": 1}]}
    assert put(held, ("a", 0, "b"), 2) == {"a": [{"b": 2}]}
    assert drop(held, ("a", 0, "b")) == {"a": [{}]}
    assert drop(held, ("a", 0)) == {"a": []}
    assert held == {"a": [{"b": 1}]}
    schema = {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"type": "integer"}}}}}}
    assert schema_at(schema, "/a/0/b") == {"type": "integer"}
    assert [place.pointer for place in places(schema, held)] == ["/a", "/a/0", "/a/0/b"]
    assert example({}, {"type": "string", "minLength": 12}, 1) == "texttttttttt"


def test_slips_and_synonyms():
    assert misspelt("Tokyo") not in ("Tokyo", "")
    assert misspelt("aa") == "aaa"
    assert misspelt("") == "x"
    assert "done" in synonyms("Completed")
    assert synonyms("zzz") == []
