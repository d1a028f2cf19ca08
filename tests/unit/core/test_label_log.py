"""The life of labels: what the log adds up to, the review queue, the bound on what is still wrong."""

from typing import Any

import pytest

from playhead.core.suites.label_log import (
    LabelEntry,
    active,
    agreements,
    audits,
    review_queue,
    settle,
    settled,
)
from playhead.core.suites.labels import label_json, read_label
from playhead.core.suites.suite import Case, Intent

NONE = {"kind": "no_tool"}


def wants(tool: str) -> dict[str, Any]:
    return {"kind": "call", "calls": [{"tool": tool}]}


def case(id: str = "c", **more: Any) -> Case:
    return Case.model_validate({"id": id, **more})


def entry(state: Any, label: Any, **more: Any) -> LabelEntry:
    return LabelEntry(**{"case": "c", "state": state, "label": label, **more})


def test_a_label_without_a_log_is_its_authors() -> None:
    found = settled(case(label=NONE), ())
    assert (found.state, found.disputed) == ("reviewed", False)
    assert active(found, {})
    assert settled(case(), ()).state is None


@pytest.mark.parametrize(
    ("entries", "state", "tool"),
    [
        ([entry("proposed", wants("a")), entry("weak", wants("b"))], "weak", "b"),
        ([entry("weak", wants("a")), entry("mined", wants("b"))], "mined", "b"),
        (
            [
                entry("mined", wants("a")),
                entry("proposed", wants("b"), source="m1"),
                entry("proposed", wants("b"), source="m2"),
            ],
            "proposed",
            "b",
        ),
        ([entry("weak", wants("a")), entry("reviewed", wants("b"), who="kim")], "reviewed", "b"),
        ([entry("weak", wants("a")), entry("weak", wants("b"))], "weak", "b"),
    ],
)
def test_which_source_counts(entries: list[LabelEntry], state: str, tool: str) -> None:
    found = settle(case(), entries)
    assert (found.state, label_json(found.label)) == (state, wants(tool))


def test_a_rejected_label_is_gone() -> None:
    found = settle(case(), [entry("weak", wants("a")), entry("rejected", None, reason="wrong user")])
    assert (found.state, found.label, found.wrong) == ("rejected", None, True)
    assert not active(found, {}, trust=("weak",))


def test_disputed_labels_never_count_unless_a_person_decided() -> None:
    two = [entry("weak", wants("a")), entry("proposed", wants("b"))]
    assert settle(case(), two).disputed
    assert not active(settle(case(), two), {}, trust=("weak", "proposed"))
    assert active(settle(case(), [*two, entry("reviewed", wants("b"))]), {})


def suite(disagree: int, of: int) -> tuple[list[Case], list[LabelEntry]]:
    cases = [case(f"c{n:03}") for n in range(of)]
    entries: list[LabelEntry] = []
    for n, one in enumerate(cases):
        entries.append(LabelEntry(case=one.id, state="weak", label=wants("a")))
        entries.append(LabelEntry(case=one.id, state="proposed", label=wants("b" if n < disagree else "a")))
    return cases, entries


def found_of(cases: list[Case], entries: list[LabelEntry]) -> dict[str, Any]:
    return {one.id: settled(one, entries) for one in cases}


def test_t25_the_queue_is_the_disagreements_and_a_sample_that_is_the_same_everywhere() -> None:
    cases, entries = suite(40, of=400)
    found = found_of(cases, entries)
    queue = review_queue("desk", cases, found)
    assert [sum(q.why == why for q in queue) for why in ("disagreement", "sample")] == [40, 60]
    assert {q.case for q in queue if q.why == "disagreement"} == {f"c{n:03}" for n in range(40)}
    assert [q.case for q in queue if q.why == "sample"][:5] == ["c041", "c050", "c059", "c060", "c061"]
    assert review_queue("desk", list(reversed(cases)), found) == queue
    other = [q.case for q in review_queue("other", cases, found) if q.why == "sample"]
    assert other != [q.case for q in queue if q.why == "sample"]
    assert len(review_queue("desk", cases, found, findings=["c399", "c000"])) in (100, 101)


def reviewed(wrong: int) -> dict[str, Any]:
    cases, entries = suite(40, of=400)
    queue = review_queue("desk", cases, found_of(cases, entries))
    sample = [q.case for q in queue if q.why == "sample"]
    for q in queue:
        right = wants("b") if q.case in sample[:wrong] else wants("a")
        entries.append(LabelEntry(case=q.case, state="reviewed", label=right, who="kim"))
    return found_of(cases, entries)


def test_t25_three_wrong_of_sixty_leave_at_most_9_percent_and_the_rest_counts() -> None:
    found = reviewed(3)
    (audit,) = audits(found.values())
    assert (audit.labels, audit.agreements, audit.audited, audit.wrong) == (400, 360, 60, 3)
    assert audit.errors_left == pytest.approx(15)
    assert audit.rate == pytest.approx(0.0375)
    assert audit.upper == pytest.approx(0.0931, abs=5e-5)
    groups = {audit.group: audit}
    assert sum(active(one, groups) for one in found.values()) == 400
    assert sum(active(one, groups) and one.state != "reviewed" for one in found.values()) == 300


def test_t25_five_wrong_of_sixty_leave_the_rest_inactive() -> None:
    found = reviewed(5)
    (audit,) = audits(found.values())
    assert audit.upper > 0.10
    assert sum(active(one, {audit.group: audit}) for one in found.values()) == 100
    assert sum(active(one, {audit.group: audit}, trust=("weak",)) for one in found.values()) == 400


def test_the_sample_is_not_drawn_again_when_part_of_it_is_reviewed() -> None:
    cases, entries = suite(0, of=100)
    first = review_queue("desk", cases, found_of(cases, entries))
    entries.append(LabelEntry(case=first[0].case, state="reviewed", label=wants("a")))
    assert review_queue("desk", cases, found_of(cases, entries)) == first[1:]


def test_the_queue_begins_with_the_traffic() -> None:
    cases = [case("a", intent="rare"), case("b", intent="often")]
    entries = [LabelEntry(case=one.id, state="weak", label=NONE) for one in cases]
    queue = review_queue("desk", cases, found_of(cases, entries), intents={"often": Intent(traffic=0.9)})
    assert [q.case for q in queue] == ["b", "a"]


def test_agreement_of_every_pair_of_sources() -> None:
    cases, entries = suite(1, of=4)
    entries.append(LabelEntry(case="c000", state="proposed", label=NONE))
    (pair,) = agreements(found_of(cases, entries).values())
    assert (pair.sources, pair.n, pair.raw, pair.calls) == (("proposed", "weak"), 4, 0.75, 1.0)
    assert read_label(NONE).kind == "no_tool"
