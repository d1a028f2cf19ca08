"""Ambiguity probes: which pairs and requests are asked, and what the split of the answers says."""

from math import comb
from typing import Any

import pytest

from playhead.core.probes import (
    EXTENDED,
    RUNS,
    Probe,
    ToolPair,
    accepted_pairs,
    by_pair,
    case_probes,
    findings,
    judged,
    named_pairs,
    probe_json,
    read_probe,
    similar_pairs,
    tool_sets,
    written_probe,
)
from playhead.core.suites.suite import Case, ToolSchema


def tool(name: str, description: str) -> ToolSchema:
    return ToolSchema(name=name, description=description)


TOOLS = {
    one.name: one
    for one in (
        tool("search_docs", "Search the pages of the help centre by words, newest first, with their titles"),
        tool("find_docs", "Search the pages of the help centre by words, oldest first, with their titles"),
        tool("refund", "Give money back for an order"),
    )
}
PAIR = ToolPair("find_docs", "search_docs", 0.9)


def a_case(id: str = "one", **more: Any) -> Case:
    return Case.model_validate(
        {
            "id": id,
            "history": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How do I return it?"}],
            "tools": list(TOOLS),
            "model_params": {"temperature": 0.7},
            **more,
        }
    )


def any_of(*names: str) -> dict[str, Any]:
    return {"kind": "any_of", "options": [{"calls": [{"tool": name}]} for name in names]}


PROBE = Probe(id="p", left="find_docs", right="search_docs", query="?", origin="given", case=a_case("p"))


def split(minority: int, n: int) -> list[list[str]]:
    return [["find_docs"]] * minority + [["search_docs"]] * (n - minority)


@pytest.mark.parametrize(
    ("minority", "runs", "verdict"),
    [
        (0, 20, "clear"), (1, 20, "clear"), (2, 20, "undecided"), (5, 20, "undecided"), (6, 20, "ambiguous"),
        (10, 20, "ambiguous"), (0, 10, "undecided"), (4, 10, "ambiguous"),
    ],
)  # fmt: skip
def test_t20_verdicts_before_any_extension(minority: int, runs: int, verdict: str):
    for answers in (split(minority, runs), split(runs - minority, runs)):  # whichever tool is the rarer one
        found = judged(PROBE, answers)
        assert (found.verdict, found.first, found.minority, found.n) == (verdict, verdict, minority, runs)


def test_t20_fair_coins_are_ambiguous_and_rare_slips_are_not():
    def share(verdict: str, p: float) -> float:
        """How often a chooser that takes one tool with probability ``p`` gets a verdict, exactly."""
        return sum(
            comb(RUNS, k) * p**k * (1 - p) ** (RUNS - k)
            for k in range(RUNS + 1)
            if judged(PROBE, split(k, RUNS)).verdict == verdict
        )

    assert 0.93 <= share("ambiguous", 0.5) <= 0.98
    assert share("clear", 0.5) < 0.01
    assert share("ambiguous", 0.05) < 0.01


def test_what_stays_undecided_is_judged_by_all_its_runs_at_a_stricter_confidence():
    first = split(3, RUNS)
    clear = judged(PROBE, [*first, *split(0, EXTENDED - RUNS)])
    assert (clear.verdict, clear.first, clear.extended, clear.runs, clear.confidence) == (
        "clear", "undecided", True, EXTENDED, 0.975,
    )  # fmt: skip
    assert judged(PROBE, [*first, *split(15, EXTENDED - RUNS)]).verdict == "ambiguous"
    # at 95 % these 13 of 60 would be called ambiguous
    kept = judged(PROBE, [*first, *split(9, EXTENDED - RUNS)])
    assert (kept.minority, kept.verdict) == (12, "undecided")


def test_a_verdict_is_not_changed_by_runs_that_were_not_needed():
    assert judged(PROBE, [*split(10, RUNS), *split(0, 40)]).verdict == "ambiguous"


def test_runs_that_chose_neither_or_both_are_listed_and_not_counted():
    answers = [["find_docs"], ["refund"], [], ["find_docs", "search_docs"], ["refund", "search_docs"]]
    found = judged(PROBE, answers)
    assert found.chosen == {"find_docs": 1, "search_docs": 1}
    assert found.others == {"refund": 1, "no call": 1, "both": 1}
    assert (found.n, found.minority, found.runs) == (2, 1, 5)


def test_no_run_says_nothing():
    found = judged(PROBE, [])
    assert (found.verdict, found.share, found.interval) == ("undecided", None, (0.0, 1.0))


def test_pairs_are_those_that_read_alike_where_they_are_offered_together():
    together = tool_sets([a_case()], TOOLS)
    pairs = similar_pairs(together)
    assert [(pair.left, pair.right) for pair in pairs] == [("find_docs", "search_docs")]
    apart = [a_case("a", tools=["search_docs", "refund"]), a_case("b", tools=["find_docs", "refund"])]
    assert similar_pairs(tool_sets(apart, TOOLS)) == []
    assert similar_pairs(tool_sets([], TOOLS))  # a suite without cases: all of its tools


def test_named_pairs_need_not_be_alike_but_must_be_offered_together():
    sets = tool_sets([a_case()], TOOLS)
    (pair,) = named_pairs([("refund", "find_docs")], sets)
    assert (pair.left, pair.right) == ("find_docs", "refund")
    assert pair.similarity is not None
    assert pair.similarity < 0.8
    for wrong, said in (
        (("refund", "nothing"), "no case offers a tool 'nothing'"),
        (("refund", "refund"), "twice"),
    ):
        with pytest.raises(ValueError, match=said):
            named_pairs([wrong], sets)
    apart = tool_sets([a_case("a", tools=["search_docs"]), a_case("b", tools=["refund"])], TOOLS)
    with pytest.raises(ValueError, match="no case offers search_docs and refund together"):
        named_pairs([("search_docs", "refund")], apart)


def test_a_written_request_is_asked_as_the_case_with_the_most_tools_would_be():
    small = a_case("small", tools=["find_docs", "search_docs"], history=[{"role": "user", "content": "Hi"}])
    probe = written_probe(PAIR, "Where is the return policy?", [small, a_case()], TOOLS)
    assert [(m.role, m.content) for m in probe.case.history] == [
        ("system", "Be brief."), ("user", "Where is the return policy?"),
    ]  # fmt: skip
    assert (probe.case.tools, probe.case.model_params) == (tuple(TOOLS), {"temperature": 0.7})
    again = written_probe(PAIR, "Where is the return policy?", [small, a_case()], TOOLS)
    assert probe.id == again.id
    assert probe.id != written_probe(PAIR, "Another?", [a_case()], TOOLS).id
    assert read_probe(probe_json(probe)) == probe


def test_cases_whose_label_accepts_either_tool_are_requests():
    either = a_case("either", label=any_of("search_docs", "find_docs"), facts=[{"name": "x", "as": "id", "value": "1"}])
    other = a_case("other", label=any_of("search_docs", "refund"))
    (probe,) = case_probes(PAIR, [either, other, a_case("none")], TOOLS)
    assert (probe.origin, probe.query) == ("case", "case either: How do I return it?")
    assert (probe.case.history, probe.case.facts) == (either.history, ())
    assert accepted_pairs([either, either, other])[0] == ("find_docs", "search_docs")


def test_a_pair_is_as_bad_as_its_worst_request_and_ambiguous_ones_are_findings():
    bad = judged(PROBE, split(9, RUNS))
    good = judged(PROBE, split(0, RUNS))
    (pair,) = by_pair([PAIR, ToolPair("a", "b")], [good, bad])
    assert pair.verdict == "ambiguous"
    (finding,) = findings([pair])
    assert finding.rule == "ambiguous"
    assert "find_docs and search_docs" in finding.message
    assert "9 to 11" in finding.message
    (clear,) = by_pair([PAIR], [good])
    assert clear.verdict == "clear"
    assert findings([clear]) == []
