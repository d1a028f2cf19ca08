"""Reports: what they say, and that nothing recorded in them does anything but be read."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from playhead.core.gate.judge import judge
from playhead.core.reporting.data import report_json
from playhead.core.reporting.markdown import code
from playhead.core.reporting.page import policy
from playhead.core.suites.summary import (
    CaseResult,
    LabelQuality,
    RecoveryResult,
    RunSummary,
    SchemaMismatch,
    ValueMismatch,
)
from playhead.engine.report_files import FORMS, rendered
from playhead.errors import UsageError
from playhead.testing.runs import a_case, a_run, a_trial, simulated_run

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; style=background:url(https://evil.example)",
    "\x1b[31mred\x1b[0m\u202egnp.exe",
    '=HYPERLINK("https://evil.example")',
    "[click](javascript:alert(1)) @everyone ![x](https://evil.example/a.png) `` ` | pipe\n# heading\n<details>",
    "]]>&lt;\x00\ud800\uffff",
]


def hostile_run(text: str, run: str = "new") -> RunSummary:
    trials = (
        a_trial(
            0, False, reason=text, schema=False, schema_errors=(SchemaMismatch(bin="type", tool=text, pointer=text),)
        ),
        a_trial(
            1, True, value_errors=(ValueMismatch(reason="wrong_value", tool=text, pointer=text),), missing_facts=(text,)
        ),
        a_trial(2, True, flags=("loop",)),
    )
    flaky = a_case(text, [], intent=text, trials=trials, findings=(text,))
    failing = a_case(f"{text} 2", [False, False, False], intent=text)
    recovery = tuple(RecoveryResult(case=str(i), kind=text, tool=text, outcome="loop", flags=(text,)) for i in range(3))
    labels = LabelQuality(residual_upper=0.2)
    shown: dict[str, Any] = {"model": text, "suite": text, "params": {text: text}, "notes": (text,), "labels": labels}
    return a_run((flaky, failing), run, recovery=recovery, **shown)


def hostile_report(text: str) -> Any:
    new = hostile_run(text)
    old = replace(new, run=text, cases=tuple(a_case(case.id, [True] * 3, intent=text) for case in new.cases))
    gate = judge(new, old)
    return report_json(new, baseline=old, gate=gate)


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_recorded_text_is_text_in_the_page(text: str) -> None:
    page = Page(rendered(hostile_report(text), ".html"))
    known = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "thead", "tbody", "tr", "th", "td", "ul",
        "li", "p", "span", "svg", "rect", "line", "text",
    }  # fmt: skip
    assert set(page.tags) <= known
    assert not [a for a in page.attributes if a[1].startswith("on") or a[1] in {"href", "src", "style", "xlink:href"}]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800-\udfff]", "".join(page.texts))


def test_the_page_loads_nothing_and_allows_nothing_but_its_own_style() -> None:
    text = rendered(hostile_report("x"), ".html")
    policies = [v for t, n, v in Page(text).attributes if t == "meta" and n == "content" and v and "default-src" in v]
    assert policies == [policy()]
    assert "default-src 'none'" in policy()
    assert "unsafe" not in policy()
    assert "http" not in text.replace("http-equiv", "")


def test_the_policy_names_the_style_that_the_page_has() -> None:
    from base64 import b64encode
    from hashlib import sha256

    style = re.search("<style>(.*?)</style>", rendered(hostile_report("x"), ".html"), re.DOTALL)
    assert style is not None
    assert b64encode(sha256(style[1].encode()).digest()).decode() in policy()


@pytest.mark.parametrize("text", HOSTILE)
def test_recorded_text_is_text_in_junit(text: str) -> None:
    root = ElementTree.fromstring(rendered(hostile_report(text), ".xml"))
    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "testcase", "failure", "flakyFailure", "skipped", "error",
    }  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_recorded_text_is_a_code_span_in_markdown(text: str) -> None:
    page = rendered(hostile_report(text), ".md")
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", page)
    for part in ("<script", "<img", "](", "@everyone", "=HYPERLINK", "\x1b", "\u202e", "# heading"):
        assert part not in outside
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (4, 6, 8) for row in rows)


@pytest.mark.parametrize("text", ["plain", "`", "``a`", "a|b", ""])
def test_a_code_span_ends_where_it_should(text: str) -> None:
    span = code(text)
    fence = re.match("`+", span)
    assert fence is not None
    assert span.endswith(fence[0])
    assert fence[0] not in span[len(fence[0]) : -len(fence[0])].replace(fence[0] + "`", "")


def test_junit_says_what_each_case_is() -> None:
    cases = (
        a_case("good", [True] * 3),
        a_case("bad", [False] * 3),
        a_case("sometimes", [True, False, True]),
        a_case("broken", [], trials=(a_trial(0, None, status="error", schema=None, arguments=None),)),
        replace(a_case("old", []), status="retired"),
        replace(a_case("weak", [True]), active=False),
    )
    root = ElementTree.fromstring(rendered(report_json(a_run(cases)), ".xml"))
    found = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert found == {
        "good": [], "bad": ["failure"], "sometimes": ["flakyFailure"], "broken": ["error"], "old": ["skipped"],
        "cases without a label that counts": ["skipped"],
    }  # fmt: skip
    assert root[0].attrib == {"name": "shop cases", "tests": "6", "failures": "1", "errors": "1", "skipped": "2"}


def test_the_gate_is_a_suite_of_its_own_in_junit() -> None:
    new, old = simulated_run([0.5] * 60, seed="a"), simulated_run([1.0] * 60, seed="b", run="old")
    root = ElementTree.fromstring(rendered(report_json(new, baseline=old, gate=judge(new, old)), ".xml"))
    gate = next(suite for suite in root if suite.get("name") == "gate")
    assert int(gate.get("failures", 0)) >= 1
    assert "selection" in [case.get("name") for case in gate]


def test_rates_come_with_interval_denominator_and_change() -> None:
    new, old = simulated_run([0.7] * 80, seed="a"), simulated_run([1.0] * 80, seed="b", run="old")
    report = report_json(new, baseline=old, gate=judge(new, old))
    selection = report["dimensions"]["selection"]
    assert selection["trials"] == 240
    assert selection["interval"][0] < selection["rate"] < selection["interval"][1]
    assert selection["against"]["change"] == pytest.approx(selection["rate"] - 1)
    assert report["dimensions"]["outcome"] is None
    assert [row["k"] for row in report["pass_k"]] == [1, 2, 3]
    assert {case["id"] for case in report["flaky"]} | {case["id"] for case in report["failing"]} == {
        row["id"] for row in report["differences"]
    }
    assert json.loads(rendered(report, ".json"))["format"] == "playhead.report/1"


def test_argument_errors_are_counted_by_bin_and_place_and_named_first() -> None:
    errors = (SchemaMismatch(bin="type", tool="refund", pointer="/amount", coercible=True),)
    case = a_case("a", [], trials=tuple(a_trial(i, True, schema=False, schema_errors=errors) for i in range(3)))
    report = report_json(a_run((case,)))
    assert report["arguments"]["bins"] == {"type": 3}
    assert report["arguments"]["coercible"] == 3
    assert report["look_first"] == ["refund /amount: type in 3 trials"]


def test_held_back_cases_are_told_in_totals_alone() -> None:
    held: list[CaseResult] = [replace(a_case("secret-case", [False] * 3), slice="held_back")]
    run = a_run((a_case("open", [True] * 3), *held), slice="all", held_back_accesses=12)
    report = report_json(run)
    assert report["held_back"]["cases"] == 1
    for form in FORMS:
        assert "secret-case" not in rendered(report, form)


def test_recovery_is_told_by_kind_class_tool_and_message() -> None:
    results = tuple(
        RecoveryResult(
            case=f"c{i}",
            kind=kind,
            tool="refund",
            recovered=i % 2 == 0,
            steps=2,
            outcome="clear_message" if i % 2 == 0 else "loop",
        )
        for i, kind in enumerate(["timeout"] * 6 + ["not_found"] * 4)
    )
    found = report_json(a_run((a_case("a", [True]),), recovery=results))["recovery"]
    assert (found["rate"], found["injected"]) == (0.5, 10)
    assert found["matrix"]["timeout"] == {"clear_message": 3, "loop": 3}
    assert found["by"]["kind"] == {"not_found": [2, 4], "timeout": [3, 6]}


def test_a_form_that_is_not_known_names_those_that_are() -> None:
    with pytest.raises(UsageError) as caught:
        rendered({}, ".csv")
    assert ".html" in str(caught.value.hint)


@pytest.mark.parametrize(("cases", "met"), [(400, True), (40, False)])
def test_the_target_of_a_suite_is_met_or_says_how_many_cases_are_missing(cases: int, met: bool) -> None:
    run = simulated_run([0.9] * cases, seed="t", target={"margin": 0.05, "power": 0.8})
    report = report_json(run)
    assert report["target"]["met"] is met
    assert (f"{report['target']['needed'] - 40} more cases" in report["target"]["line"]) is not met
    for form in (".html", ".md"):
        assert ("target met" if met else "target not met") in rendered(report, form)
    # 0.9 * 0.1 * 2 / 3 = 0.06 is the variance of a change, so about 149 cases are needed
    assert 100 <= report["target"]["needed"] <= 200


def test_a_suite_without_a_target_or_with_one_run_has_no_answer() -> None:
    assert report_json(a_run([a_case("a", [True])]))["target"] is None
    once = report_json(a_run([a_case("a", [True])], target={"margin": 0.05}))["target"]
    assert (once["met"], once["needed"]) == (False, None)


def test_the_age_of_cases_is_told_as_of_the_run() -> None:
    days = ["2026-03-01T00:00:00Z", "2026-01-01T00:00:00Z", "2025-01-01T00:00:00+00:00", "nonsense", None]
    cases = [replace(a_case(str(i), [True]), captured_at=day) for i, day in enumerate(days)]
    found = report_json(a_run(cases, created_at="2026-03-11T00:00:00Z"))["freshness"]
    assert (found["cases"], found["median_days"], found["older"]) == (3, 69.0, pytest.approx(1 / 3))
    assert report_json(a_run(cases))["freshness"] is None
