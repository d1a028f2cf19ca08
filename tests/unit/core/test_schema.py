"""JSON Schema against stored values."""

from typing import Any

import pytest

from playhead.core.schema import first_error, schema_errors, usable

ORDER = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}


def places(schema: Any, value: Any) -> list[str]:
    return [e.pointer for e in schema_errors(schema, value)]


def test_places_that_do_not_fit_are_named() -> None:
    assert places(ORDER, {"id": 1, "n": "x"}) == ["/id", "/n"]
    assert places(ORDER, {}) == [""]
    assert places({"items": ORDER}, [{"id": "a"}, {"id": "a", "n": 0.5}]) == ["/1/n"]
    assert first_error(ORDER, {"id": "a"}) is None
    assert first_error({"properties": {"a/b~": {"type": "null"}}}, {"a/b~": 1}) is not None
    assert places({"properties": {"a/b~": {"type": "null"}}}, {"a/b~": 1}) == ["/a~1b~0"]


def test_declarations_of_gemini_are_checked_too() -> None:
    kinds = {"n": {"type": "INTEGER", "nullable": True}, "type": {"type": "ARRAY", "items": {"type": "STRING"}}}
    schema: Any = {"type": "OBJECT", "properties": kinds, "required": ["n"]}
    assert places(schema, {"n": 1, "type": ["a"]}) == []
    assert places(schema, {"n": None}) == []
    assert places(schema, {"n": "one", "type": [1]}) == ["/n", "/type/0"]


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"type": "string"}, {"$datetime": "2026-01-02T00:00:00"}, []),
        ({"type": "number"}, {"$decimal": "1.5"}, []),
        ({"type": "integer"}, {"$int": "9007199254740993"}, []),
        ({"type": "string"}, {"$int": "9007199254740993"}, [""]),
        ({"type": "array", "items": {"type": "integer"}}, {"$set": [1, "x"]}, ["/1"]),
        ({"type": "object", "required": ["a"]}, {"$object": ["Order", {"b": 1}]}, [""]),
        ({"type": "integer"}, {"$enum": ["Color", "red"]}, [""]),
        ({"type": "integer"}, {"$enum": []}, [""]),
        ({"required": ["$int"]}, {"$$int": "1"}, []),
        ({"type": "object"}, {"$map": [[1, 2]]}, []),
        ({"type": "object", "required": ["$ref"]}, {"$ref": 1}, []),
    ],
)
def test_typed_values_are_shown_as_they_are_written(schema: Any, value: Any, found: list[str]) -> None:
    assert places(schema, value) == found


def test_what_redaction_changed_does_not_count() -> None:
    schema = {"properties": {"key": {"maxLength": 3}, "o": {"required": ["name"]}, "p": {"required": ["name"]}}}
    value = {"key": "a [REDACTED:K]", "o": {"[REDACTED:K]": 1}, "p": {}}
    assert places(schema, value) == ["/p"]


@pytest.mark.parametrize(
    "schema",
    [None, 3, "x", {"type": "nonsense"}, {"$ref": "#/nowhere"}, {"$ref": "http://127.0.0.1:1/x.json"}, {"x": {1, 2}}],
)
def test_a_schema_that_cannot_be_used_says_nothing(schema: Any) -> None:
    assert not usable(schema)
    assert schema_errors(schema, {"anything": 1}) == []


def test_schemas_may_be_true_or_false() -> None:
    assert usable(True)
    assert places(True, 1) == []
    assert places(False, 1) == [""]


def test_text_that_is_no_unicode_is_checked() -> None:
    assert places({"properties": {"a": {"type": "integer"}}}, {"a": "\ud800", "\ud800": 1}) == ["/a"]


def test_a_value_too_deep_to_check_is_an_error() -> None:
    value: Any = 1
    for _ in range(500):
        value = [value]
    assert len(schema_errors({"type": "array"}, value)) == 1
