"""Findings about tool interfaces, and changes between versions of a tool set."""

import copy
from typing import Any

import pytest

from playhead.core.interface_lint import changes, lint, parameters
from playhead.core.suite import ToolSchema

TEXT = "Say which order the customer means"


def tool(name: str = "find_it", description: str = "Find something that the customer asked for", **properties: Any):
    return ToolSchema(name=name, description=description, parameters={"type": "object", "properties": properties})


def rules(*tools: ToolSchema) -> list[tuple[str, str]]:
    return [(finding.rule, finding.pointer) for finding in lint(tools) if finding.rule != "unbounded_list"]


@pytest.mark.parametrize(
    ("name", "schema", "rule"),
    [
        ("user", {"type": "string", "description": TEXT}, "vague_name"),
        ("file_path", {"type": "string", "description": TEXT}, "path_base"),
        ("start_day", {"type": "string", "description": TEXT}, "date_without_format"),
        ("since", {"type": ["string", "null"], "description": TEXT}, "date_without_format"),
        ("city", {"type": "string"}, "no_description"),
        ("size", {"type": "string", "description": "One of small, medium or large"}, "values_in_prose"),
        ("extra", {"type": "object", "description": TEXT}, "open_object"),
    ],
)
def test_each_rule_names_the_parameter(name: str, schema: Any, rule: str):
    assert rules(tool(**{name: schema})) == [(rule, f"/{name}")]
    assert all(finding.fix for finding in lint([tool(**{name: schema})]))


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("user_id", {"type": "string", "description": TEXT}),
        ("file_path", {"type": "string", "description": "Path relative to the project"}),
        ("start_day", {"type": "string", "format": "date", "description": TEXT}),
        ("sometimes", {"type": "string", "description": TEXT}),
        ("amount", {"type": "number", "minimum": 0}),
        ("urgent", {"type": "boolean"}),
        ("size", {"enum": ["small", "large"], "description": "One of small or large"}),
        ("when", {"type": "integer", "description": TEXT}),
    ],
)
def test_what_is_fine_is_left_alone(name: str, schema: Any):
    assert rules(tool(**{name: schema})) == []


def test_parameters_are_found_at_every_depth():
    nested = {
        "type": "array",
        "items": {"type": "object", "properties": {"date": {"type": "string", "description": TEXT}}},
    }
    assert [p.pointer for p in parameters(tool(flights=nested))] == ["/flights", "/flights/*/date"]
    assert rules(tool(flights=nested)) == [("date_without_format", "/flights/*/date")]


def test_references_and_optional_members_are_followed():
    schema = {
        "type": "object",
        "$defs": {"Stop": {"type": "object", "properties": {"id": {"type": "string", "description": TEXT}}}},
        "properties": {"stop": {"anyOf": [{"$ref": "#/$defs/Stop"}, {"type": "null"}]}},
    }
    found = lint([ToolSchema(name="x", description=TEXT, parameters=schema)])
    assert [(f.rule, f.pointer) for f in found] == [("vague_name", "/stop/id")]


def test_a_schema_that_refers_to_itself_ends():
    schema: Any = {"type": "object", "$defs": {"T": {"properties": {"t": {"$ref": "#/$defs/T"}}}}}
    schema["properties"] = {"t": {"$ref": "#/$defs/T"}}
    assert len(parameters(ToolSchema(name="x", parameters=schema))) == 8


def test_a_list_without_a_bound_is_named():
    assert [f.rule for f in lint([tool("search_orders", TEXT)])] == ["unbounded_list"]
    assert lint([tool("search_orders", TEXT, limit={"type": "integer", "minimum": 1})]) == []


def test_tools_that_read_alike_are_named_once():
    about = "Flights between two cities on a date, for all passengers that the customer names, cheapest first"
    left, right = tool("search_flights", about), tool("find_flights", about)
    found = [f for f in lint([left, right]) if f.rule == "overlap"]
    assert [(f.tool, f.details["other"]) for f in found] == [("search_flights", "find_flights")]


STATUS = {"type": "string", "enum": ["open", "done"], "description": TEXT}
OLD = [
    tool("get_order", "Get one order", user_id={"type": "string"}, count={"type": "integer"}),
    tool("set_status", "Set the status of an order", status=STATUS),
    tool("ping", "Is it there"),
    tool("pong", "It is there"),
]


def changed(edit: Any) -> list[tuple[str, str, str]]:
    new = [copy.deepcopy(t) for t in OLD]
    return [(c.kind, c.tool, c.pointer) for c in changes(OLD, edit({t.name: t for t in new}))]


def edited(tool: ToolSchema, **parts: Any) -> ToolSchema:
    return tool.model_copy(update=parts)


def properties(tool: ToolSchema, **changes: Any) -> ToolSchema:
    kept = {k: v for k, v in tool.parameters["properties"].items() if changes.get(k, 0) is not None}
    made = {**kept, **{k: v for k, v in changes.items() if v is not None}}
    return edited(tool, parameters={**tool.parameters, "properties": made})


def test_nothing_changed():
    assert changed(lambda t: [*t.values()]) == []


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda t: [t["get_order"], t["set_status"], t["ping"]], ("tool_removed", "pong", "")),
        (lambda t: [*t.values(), tool("new", "Another one")], ("tool_added", "new", "")),
        (lambda t: [edited(t["get_order"], name="fetch_order"), *[*t.values()][1:]], ("tool_renamed", "get_order", "")),
        (
            lambda t: [properties(t["get_order"], user_id=None, user={"type": "string"}), *[*t.values()][1:]],
            ("parameter_renamed", "get_order", "/user_id"),
        ),
        (
            lambda t: [properties(t["get_order"], count={"type": "string"}), *[*t.values()][1:]],
            ("type_loosened", "get_order", "/count"),
        ),
        (
            lambda t: [t["get_order"], properties(t["set_status"], status={"type": "string", "description": TEXT})],
            ("enum_dropped", "set_status", "/status"),
        ),
        (
            lambda t: [t["get_order"], properties(t["set_status"], status={**STATUS, "enum": ["open"]})],
            ("enum_members_lost", "set_status", "/status"),
        ),
        (
            lambda t: [edited(t["get_order"], parameters={**t["get_order"].parameters, "required": ["count"]})],
            ("now_required", "get_order", "/count"),
        ),
    ],
)
def test_each_change_is_named(edit: Any, expected: Any):
    assert expected in changed(edit)


def test_swapped_descriptions_are_one_change():
    def edit(t: Any) -> list[ToolSchema]:
        ping, pong = t["ping"], t["pong"]
        return [t["get_order"], t["set_status"], edited(ping, description=pong.description),
                edited(pong, description=ping.description)]  # fmt: skip

    assert changed(edit) == [("descriptions_swapped", "ping", "")]
