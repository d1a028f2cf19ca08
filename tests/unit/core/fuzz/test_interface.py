"""Changed tool sets: what changes, and how a case is mapped along."""

from typing import Any

import pytest

from playhead.core.fuzz.cases import FuzzCase, FuzzSet, Perturbed, read_set
from playhead.core.fuzz.interface import PERTURBATIONS, UNCHANGED, interface_cases, perturbed_case
from playhead.core.fuzz.queries import RANDOM, random_query, request_for, writable
from playhead.core.suites.drive import answer_of
from playhead.core.suites.messages import round_messages
from playhead.core.suites.scoring import Attempt, score
from playhead.core.suites.suite import Case, ToolSchema, schemas


def tool(name: str, **more: Any) -> ToolSchema:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "Number of the order"},
            "amount": {"type": "number", "minimum": 0, "description": "How much"},
            "reason": {"type": "string", "enum": ["damaged", "late"]},
        },
        "required": ["order_id"],
    }
    return ToolSchema(name=name, description=f"Does {name} for one order", parameters=schema, **more)


TOOLS = {name: tool(name) for name in ("refund", "cancel", *(f"other_{n}" for n in range(12)))}
CASE = Case.model_validate(
    {
        "id": "c", "tools": ["refund", "cancel"], "history": [{"role": "user", "content": "Refund W1"}],
        "recorded": [{"calls": [{"id": "a", "tool": "refund", "arguments": {"order_id": "W1", "amount": 129}}]}],
        "label": {"kind": "call", "calls": [{"tool": "refund", "arguments": {
            "order_id": "W1", "amount": {"$any_of": [129, 130]}}}]},
    }
)  # fmt: skip


def perturbations() -> dict[str, Perturbed]:
    found = interface_cases([CASE], TOOLS, per_tool=5, seed=0)
    return {case.mutation: case.perturbed for case in found if case.perturbed is not None}


def test_every_change_is_made_where_it_changes_something():
    assert set(perturbations()) == {UNCHANGED, *PERTURBATIONS}
    bare = {"a": ToolSchema(name="a")}
    alone = CASE.model_copy(update={"tools": ("a",)})
    assert {case.mutation for case in interface_cases([alone], bare, per_tool=5, seed=0)} <= {
        UNCHANGED, "opaque_tool_names",
    }  # fmt: skip
    assert interface_cases([CASE.model_copy(update={"label": None})], TOOLS, per_tool=5, seed=0) == []


def test_what_each_change_does():
    made = {name: list(one.tools.values()) for name, one in perturbations().items()}

    def properties(name: str) -> dict[str, Any]:
        return made[name][0]["parameters"]["properties"]

    assert [one["name"] for one in made["opaque_tool_names"]] == ["tool_1", "tool_2"]
    assert list(properties("opaque_parameter_names")) == ["p1", "p2", "p3"]
    assert made["opaque_parameter_names"][0]["parameters"]["required"] == ["p1"]
    assert "description" not in made["opaque_descriptions"][0]
    assert "description" not in properties("opaque_descriptions")["order_id"]
    assert "cancel" in made["swapped_descriptions"][0]["description"]
    assert "enum" not in properties("dropped_enums")["reason"]
    assert properties("loosened_types")["amount"]["type"] == "string"
    assert [one["name"] for one in made["shuffled_order"]] == ["cancel", "refund"]
    assert [len(made[name]) for name in ("distractors_3", "distractors_10", "distractors_all")] == [5, 12, 14]


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_the_recording_of_a_case_satisfies_the_label_that_is_mapped_along(name: str):
    case, tools = perturbed_case(CASE, perturbations()[name], "f")
    answer = answer_of(round_messages(case.recorded[0])[0])
    found = score(case, schemas(case, tools), Attempt(answers=(answer,)))
    assert (found.selection, found.values) == (True, True)
    assert [message.content for message in case.history] == ["Refund W1"]


def test_where_types_are_loose_numbers_may_be_text():
    case, tools = perturbed_case(CASE, perturbations()["loosened_types"], "f")
    call = case.recorded[0].calls[0].model_copy(update={"arguments": {"order_id": "W1", "amount": "129"}})
    one = case.recorded[0].model_copy(update={"calls": (call,)})
    found = score(case, schemas(case, tools), Attempt(answers=(answer_of(round_messages(one)[0]),)))
    assert (found.schema, found.values) == (True, True)


def test_few_cases_are_taken_of_each_tool():
    many = [CASE.model_copy(update={"id": f"c{n}"}) for n in range(20)]
    found = interface_cases(many, TOOLS, per_tool=3, seed=0)
    assert len({case.source for case in found}) == 3
    others = [{c.source for c in interface_cases(many, TOOLS, per_tool=3, seed=seed)} for seed in range(5)]
    assert len({frozenset(other) for other in others}) > 1


def test_sets_are_stored_and_read_whole():
    made = FuzzSet(cases=tuple(interface_cases([CASE], TOOLS, per_tool=1, seed=0)))
    assert read_set(made.json()) == made
    assert list(read_set(made.json()).cases[7].perturbed.tools) == list(made.cases[7].perturbed.tools)  # type: ignore[union-attr]


def test_requests_are_asked_for_without_the_names_that_a_user_does_not_know():
    bad = FuzzCase(
        id="f", tool="refund", family="constraint", mutation="enum_synonym", pointer="/reason", source="c",
        arguments={"order_id": "W1", "reason": "broken"}, base={"order_id": "W1", "reason": "damaged"},
    )  # fmt: skip
    asked = request_for(bad, TOOLS["refund"]).messages
    assert "broken" in asked[1]["parts"][0]["text"]
    assert not request_for(bad, TOOLS["refund"]).tools
    one, other = random_query(bad, 0), random_query(bad, 1)
    assert one == random_query(bad, 0)
    assert one.query != other.query
    assert (one.writer, len(one.query or "")) == (RANDOM, 60)
    assert writable([bad, one]) == [bad]
