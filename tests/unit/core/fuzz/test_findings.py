"""Findings: which are one, how many were confirmed, and how small they get."""

from typing import Any

import pytest

from playhead.core.fuzz.cases import FuzzCase
from playhead.core.fuzz.direct import Told, class_of, template_of
from playhead.core.fuzz.findings import Finding, Shown, false_discovery_rate, finding_id, grouped, shrunk


def case(id: str = "c", pointer: str = "/door", **more: Any) -> FuzzCase:
    return FuzzCase(id=id, tool="lock", family="constraint", mutation="near_miss", pointer=pointer, **more)


@pytest.mark.parametrize(
    ("told", "schema", "semantic"),
    [
        (Told(kind="value"), "silently_accepted", "ok"),
        (Told(kind="error"), "rejected", "rejected"),
        (Told(kind="hung"), "hung", "hung"),
        (Told(kind="ended"), "crashed", "crashed"),
        (Told(kind="raised", classes=("ValueError", "Exception")), "rejected", "rejected"),
        (Told(kind="raised", classes=("UnicodeError", "ValueError")), "rejected", "rejected"),
        (Told(kind="raised", classes=("TypeError", "Exception")), "rejected", "crashed"),
        (Told(kind="raised", classes=("TypeError",), binding=True), "rejected", "rejected"),
        (Told(kind="raised", classes=("KeyError", "LookupError")), "crashed", "crashed"),
        (Told(kind="raised", classes=("ToolError", "KeyError"), own=True), "rejected", "rejected"),
    ],
)
def test_classes_of_direct_calls(told: Told, schema: str, semantic: str):
    assert class_of(told, "schema") == schema
    assert class_of(told, "semantic") == semantic


def test_one_error_with_other_values_is_one_finding():
    def shown(door: str, id: str) -> Shown:
        told = Told(kind="raised", classes=("KeyError",), text=f"'{door}'")
        return Shown(case=case(id), outcome="crashed", template=template_of("lock", {"door": door}, told, "crashed"))

    groups = grouped([shown("hood", "a"), shown("trunk", "b"), Shown(case=case("c"), outcome="hung")])
    assert [[one.case.id for one in group] for group in groups] == [["a", "b"], ["c"]]
    other = Shown(case=case("d", pointer="/unlock"), outcome="hung")
    assert finding_id(other) != finding_id(groups[1][0])


def test_the_rate_of_false_discoveries():
    def finding(confirmed: bool) -> Finding:
        return Finding(
            id="f", source="direct", tool="t", family="constraint", pointer="", mutation="m", outcome="hung",
            confirmed=confirmed,
        )  # fmt: skip

    assert false_discovery_rate([]) is None
    assert false_discovery_rate([finding(True)] * 3 + [finding(False)]) == 0.25


@pytest.mark.parametrize(
    ("value", "still", "smallest"),
    [
        ({"a": "x" * 5000 + "%" + "y" * 5000, "b": [1, 2], "c": 3}, lambda v: "%" in v.get("a", ""), {"a": "%"}),
        ({"n": 10**15}, lambda v: v.get("n", 0) >= 10**6, {"n": 10**6}),
        ({"l": [{"k": 1}] * 10_000}, lambda v: len(v.get("l", ())) >= 2, {"l": [{}, {}]}),
        ({"a": 1}, lambda v: True, {}),
        ({"a": [True, None]}, lambda v: v == {"a": [True, None]}, {"a": [True, None]}),
        ({"x": 2.0}, lambda v: "x" in v, {"x": 0}),
    ],
)
def test_what_shows_a_finding_is_made_small(value: Any, still: Any, smallest: Any):
    assert shrunk(value, still, tries=2000) == smallest


def test_shrinking_asks_no_more_often_than_it_may():
    asked: list[Any] = []
    shrunk({"a": "x" * 100, "b": [1, 2, 3]}, lambda v: asked.append(v) or False, tries=7)
    assert len(asked) == 7
