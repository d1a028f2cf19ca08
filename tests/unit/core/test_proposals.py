"""Proposals of tool interfaces: which are usable, and what they change of a suite."""

import json
from typing import Any

import pytest

from playhead.core.proposals import check_interface, interface_json, proposed_contents, read_proposals
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Suite, ToolSchema

FIND = ToolSchema(
    name="find", description="Finds", parameters={"type": "object", "properties": {"user": {"type": "string"}}}
)
TOOLS = {"find": FIND, "note": ToolSchema(name="note")}
RENAMED = {
    "tool": "find", "name": "find_orders", "why": "clearer", "renamed": {"user": "user_id"},
    "parameters": {"type": "object", "properties": {"user_id": {"type": "string"}}},
}  # fmt: skip


def read(*proposals: Any) -> tuple[list[Any], list[str]]:
    return read_proposals(json.dumps({"proposals": list(proposals)}), TOOLS)


@pytest.mark.parametrize(
    ("proposal", "why"),
    [
        ("rename it", "no object"),
        ({"tool": "search"}, "there is no tool 'search'"),
        ({"tool": "find"}, "it changes nothing"),
        ({"tool": "find", "name": "note"}, "there is a tool 'note' already"),
        ({"tool": "find", "parameters": {"type": "nothing"}}, "no JSON Schema"),
        ({"tool": "find", "parameters": "none"}, "no JSON Schema"),
        ({"tool": "find", "description": "x", "renamed": {"a": "user"}}, "it renames a to user"),
    ],
)
def test_what_is_no_proposal_is_refused_with_the_reason(proposal: Any, why: str):
    found, refused = read(proposal)
    assert found == []
    assert why in refused[0]


def test_one_proposal_for_each_tool():
    found, refused = read({"tool": "find", "description": "Finds orders"}, {"tool": "find", "description": "Other"})
    assert [one.after.description for one in found] == ["Finds orders"]
    assert refused == ["proposal 2: find is proposed twice"]


@pytest.mark.parametrize("text", ["", "no", "[1]", '{"proposals": 1}', "{"])
def test_texts_without_proposals(text: str):
    assert read_proposals(text, TOOLS)[0] == []


def test_a_diff_shows_the_lines_that_change():
    (one,), _ = read({"tool": "find", "description": "Finds orders"})
    assert '- "description": "Finds",' in one.diff
    assert '+ "description": "Finds orders",' in one.diff
    assert [change.kind for change in one.changes] == ["description"]


def test_labels_histories_and_effects_take_the_new_names_and_other_cases_stay():
    call = {"id": "c1", "tool": "find", "arguments": {"user": "17"}}
    label = {"kind": "call", "calls": [{"tool": "find", "arguments": {"user": "17"}}]}
    mine = Case.model_validate({
        "id": "mine", "tools": ["find", "note"], "label": label,
        "history": [{"role": "assistant", "calls": [call]}],
        "recorded": [{"calls": [{**call, "id": "c2"}], "outcomes": {"c2": {"kind": "value", "value": 1}}}],
        "facts": [{"name": "x", "as": "id", "value": "17"}],
    })  # fmt: skip
    other = Case(id="other", tools=("note",))
    entry = LabelEntry(case="mine", state="weak", label=label)
    suite = Suite.model_validate({"name": "s", "effects": {"find": {"class": "read"}}})
    contents = Contents(suite=suite, cases=(mine, other), tools=TOOLS, labels=(entry,))
    (proposal,), _ = read(RENAMED)
    held = check_interface(json.loads(json.dumps(interface_json([proposal]))), contents)
    made = proposed_contents(contents, held)
    changed, same = made.cases
    assert same == other
    names = [made.tools[name].name for name in changed.tools]
    assert names == ["find_orders", "note"]
    assert changed.history[0].calls[0].arguments == {"user_id": "17"}
    assert changed.recorded[0].calls[0].tool == "find_orders"
    assert changed.facts == mine.facts
    new: Any = made.labels[0].label
    assert new["calls"][0]["tool"] == "find_orders"
    assert new["calls"][0]["arguments"] == {"user_id": "17"}
    assert set(made.suite.effects) == {"find_orders"}
    assert made.findings() == {}
    assert contents.cases[0] == mine
