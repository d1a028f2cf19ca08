"""Findings about tool interfaces, and changes between versions of a tool set."""

import copy
from typing import Any

import pytest

from playhead.core.lint.interface import Finding, changes, lint, parameters
from playhead.core.suites.suite import ToolSchema

TEXT = "Say which order the customer means"


def tool(name: str = "find_it", description: str = "Find something that the customer asked for", **properties: Any):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSchema(name=name, description=description, parameters=schema)


def rules(*tools: ToolSchema) -> list[tuple[str, str]]:
    return [(finding.rule, finding.pointer) for finding in lint(tools) if finding.rule != "unbounded_list"]


def one(name: str, schema: Any) -> ToolSchema:
    """A tool with one parameter."""
    properties: dict[str, Any] = {name: schema}
    return tool(**properties)


def quiet(tools: list[ToolSchema]) -> list[Finding]:
    """Findings without those that the name of the tool itself gives."""
    return [finding for finding in lint(tools) if finding.rule != "unbounded_list"]


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
    assert rules(one(name, schema)) == [(rule, f"/{name}")]
    assert all(finding.fix for finding in lint([one(name, schema)]))


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
    assert rules(one(name, schema)) == []


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
    ToolSchema(name="note", parameters={"type": "object", "properties": {"text": {"type": "string"}}}),
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
            ("no_longer_required", "get_order", "/user_id"),
        ),
        (
            lambda t: [edited(t["note"], parameters={**t["note"].parameters, "required": ["text"]})],
            ("now_required", "note", "/text"),
        ),
    ],
)
def test_each_change_is_named(edit: Any, expected: Any):
    assert expected in changed(edit)


def test_swapped_descriptions_are_named_for_both_tools_and_as_nothing_else():
    def edit(t: Any) -> list[ToolSchema]:
        ping, pong = t["ping"], t["pong"]
        return [t["get_order"], t["set_status"], t["note"], edited(ping, description=pong.description),
                edited(pong, description=ping.description)]  # fmt: skip

    assert changed(edit) == [("descriptions_swapped", "ping", ""), ("descriptions_swapped", "pong", "")]


@pytest.mark.parametrize(
    ("name", "about", "other"),
    [
        ("note", "The number of people at the table", "a number"),
        ("total_price", TEXT, "a number"),
        ("note", "An integer that says how often", "a number"),
        ("notes", "A list of the notes to send", "a list"),
        ("urgent", "Whether it is sent at once", "true or false"),
        ("urgent", "Must be set to true for it to be sent", "true or false"),
    ],
)
def test_a_text_that_reads_as_another_type(name: str, about: str, other: str):
    (finding,) = quiet([one(name, {"type": "string", "description": about})])
    assert (finding.rule, finding.fix) == ("type_in_prose", f"declare it as {other}")
    right = {"a number": "number", "a list": "array", "true or false": "boolean"}[other]
    assert quiet([one(name, {"type": right, "items": {"type": "string"}, "description": about})]) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "The passport number of the traveller"},
        {"type": "string", "description": "A list of names, separated by commas"},
        {"type": "string", "pattern": "^[0-9]+$", "description": "The number of seats"},
        {"type": "string", "description": "The text that is read as a number of some kind in the end"},
    ],
)
def test_texts_that_only_speak_of_numbers_and_lists(schema: Any):
    wanted = [] if "in the end" not in schema["description"] else ["type_in_prose"]
    assert [finding.rule for finding in quiet([tool(note=schema)])] == wanted


def test_a_choice_of_which_no_value_is_told():
    def said(about: str, name: str = "order_status", **more: Any) -> list[str]:
        return [f.rule for f in quiet([one(name, {"type": "string", "description": about, **more})])]

    assert said("The status of the order") == ["values_unsaid"]
    assert said("The status of the order, such as open") == []
    assert said("The status of the order (open or closed)") == []
    assert said("The status of the order", enum=["open", "closed"]) == []
    assert said("The name of the customer", name="customer") == []


def test_what_may_be_left_out_says_what_happens_then():
    def said(required: list[str], about: str = TEXT, **more: Any) -> list[tuple[str, str]]:
        one, other = ({"type": "string", "description": text} for text in (TEXT, about))
        schema = {"type": "object", "properties": {"city": one, "zone": {**other, **more}}, "required": required}
        made = ToolSchema(name="look", description="Look for places in a city or a zone", parameters=schema)
        return [(f.rule, f.pointer) for f in lint([made])]

    assert said(["city", "zone"]) == []
    assert said(["city"]) == [("optional_unsaid", "/zone")]
    assert said(["city"], "Zone of the city; all of them when none is given") == []
    assert said(["city"], default=None) == []
    assert said(["city"], type=["string", "null"]) == []
    assert said([]) == [("optional_unsaid", "")]  # one finding, not one for each


def test_members_of_an_update_may_all_be_left_out():
    change = {"type": "object", "properties": {"city": {"type": "string", "description": TEXT}}, "description": TEXT}
    assert quiet([tool(change=change)]) == []
    part = {**change["properties"], "street": {"type": "string", "description": TEXT}}
    assert rules(tool(change={**change, "properties": part, "required": ["city"]})) == [
        ("optional_unsaid", "/change/street")
    ]


def test_descriptions_that_speak_of_each_other():
    one = tool("send_money", "List the most recent transactions of the account")
    other = tool("get_recent_transactions", "Send money to somebody, at once")
    (finding,) = [f for f in lint([one, other]) if f.rule == "description_elsewhere"]
    assert (finding.tool, finding.details) == ("send_money", {"other": "get_recent_transactions"})
    right = [tool("send_money", other.description), tool("get_recent_transactions", one.description)]
    assert lint(right) == []


def test_a_list_of_objects_without_members_is_open():
    assert rules(tool(rows={"type": "array", "items": {"type": "object"}, "description": TEXT})) == [
        ("open_object", "/rows")
    ]


def test_examples_are_no_list_of_values():
    def said(about: str) -> list[str]:
        return [f.rule for f in quiet([tool(city={"type": "string", "description": about})])]

    assert said("The city, such as 'Rome', 'Paris', or 'Oslo'") == []
    assert said("The city: 'Rome', 'Paris', or 'Oslo'") == ["values_in_prose"]
    assert said("It can be 'Rome' or 'Paris'") == ["values_in_prose"]
    assert said("Where to go to (Rome/Paris)") == ["values_in_prose"]
    assert said("The length of one of the sides of the city") == []
