"""Errors of arguments, sorted into bins."""

from typing import Any

import pytest

from playhead.core.argument_schema import argument_errors

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1},
        "city": {"enum": ["Tokyo", "Oslo"]},
        "day": {"type": "string", "format": "date"},
        "id": {"type": "string", "pattern": "^R-"},
        "who": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["name", "mail"]}]},
        "flag": {"type": "boolean"},
        "text": {"type": "string"},
    },
    "required": ["n"],
    "additionalProperties": False,
}


def found(**arguments: Any) -> list[tuple[str, str]]:
    return [(e.bin, e.pointer) for e in argument_errors(SCHEMA, {"n": 1, **arguments})]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({}, []),
        ({"n": "7"}, [("type", "/n")]),
        ({"n": 0}, [("range", "/n")]),
        ({"n": 1.0}, []),
        ({"city": "tokyo"}, [("enum", "/city")]),
        ({"day": "tomorrow"}, [("format", "/day")]),
        ({"id": "77"}, [("format", "/id")]),
        ({"other": 1}, [("unknown_parameter", "")]),
        ({"who": "x"}, [("type", "/who")]),
        ({"who": {"name": 1}}, [("type", "/who")]),
        ({"n": None, "city": 1}, [("enum", "/city"), ("type", "/n")]),
    ],
)
def test_bins(arguments: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    assert sorted(found(**arguments)) == wanted


def test_a_required_parameter_names_its_place() -> None:
    assert [(e.bin, e.pointer) for e in argument_errors(SCHEMA, {})] == [("required", "/n")]


@pytest.mark.parametrize("arguments", [None, ""])
def test_nothing_counts_as_an_empty_object(arguments: Any) -> None:
    assert [e.bin for e in argument_errors(SCHEMA, arguments)] == ["required"]


@pytest.mark.parametrize("arguments", [{"$invalid": '{"n": '}, [1], "text", 3])
def test_what_is_no_object_is_no_json(arguments: Any) -> None:
    assert [e.bin for e in argument_errors(SCHEMA, arguments)] == ["json"]


@pytest.mark.parametrize(
    ("given", "coercible"),
    [({"n": "7"}, True), ({"n": "x"}, False), ({"flag": "true"}, True), ({"text": 7}, True), ({"n": "7.5"}, False)],
)
def test_what_a_lenient_reader_would_take_is_counted(given: dict[str, Any], coercible: bool) -> None:
    (error,) = argument_errors(SCHEMA, {"n": 1, **given})
    assert (error.bin, error.coercible) == ("type", coercible)


@pytest.mark.parametrize("schema", [None, {"type": 7}, {"$ref": "https://example.com/x.json"}, "x"])
def test_a_schema_that_cannot_be_used_says_nothing(schema: Any) -> None:
    assert argument_errors(schema, {"a": 1}) == []
