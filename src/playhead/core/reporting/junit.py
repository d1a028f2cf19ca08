"""A report as JUnit XML, which every CI shows: a case is a test, a criterion is one too."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from playhead.core.visible import one_line


def junit(report: Mapping[str, Any]) -> str:
    """The document. A case that fails in every run is a failure, a flaky one passes with ``flakyFailure``."""
    gate = report["gate"]
    tests = [_case(case) for case in report["cases"]]
    tests += [
        f'<testcase classname="retired" name="{attr(name)}"><skipped message="retired"/></testcase>'
        for name in report["retired"]
    ]
    if report["unscored"]:
        tests.append(
            f'<testcase classname="labels" name="cases without a label that counts">'
            f'<skipped message="{report["unscored"]} inactive"/></testcase>'
        )
    suites = [suite(f"{report['run']['suite']} cases", tests)]
    if gate:
        suites.append(gate_suite(gate))
    return document(suites)


def document(suites: Sequence[str]) -> str:
    """A whole document around its suites."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' + "\n".join(suites) + "\n</testsuites>\n"


def gate_suite(gate: Mapping[str, Any]) -> str:
    """The criteria of a gate, each as a test."""
    return suite("gate", [_criterion(part) for part in (*gate["parts"], *gate["held_back"])] + _zero(gate))


def attr(value: object) -> str:
    """Text within quotes."""
    return escape(one_line(value), quote=True)


def suite(name: str, tests: Sequence[str]) -> str:
    """Tests under a name, counted."""
    failed = sum("<failure" in test for test in tests)
    skipped = sum("<skipped" in test for test in tests)
    errors = sum("<error" in test for test in tests)
    counts = f'tests="{len(tests)}" failures="{failed}" errors="{errors}" skipped="{skipped}"'
    return f'<testsuite name="{attr(name)}" {counts}>\n' + "\n".join(tests) + "\n</testsuite>"


def _case(case: Mapping[str, Any]) -> str:
    head = f'<testcase classname="{attr(case["intent"])}" name="{attr(case["id"])}">'
    why = f"{sum(case['runs'])} of {len(case['runs'])} runs passed: {', '.join(case['reasons'])}".removesuffix(": ")
    if case["class"] is None:
        inside = '<error message="no valid run"/>' if case["errors"] else '<skipped message="not scored"/>'
    elif case["class"] == "fail":
        inside = f'<failure message="{attr(why)}"/>'
    elif case["class"] == "flaky":
        inside = f'<flakyFailure message="{attr(why)}"/>'
    else:
        inside = ""
    return f"{head}{inside}</testcase>"


def _criterion(part: Mapping[str, Any]) -> str:
    why = attr("; ".join(part["reasons"]))
    inside = ""
    if part["verdict"] == "fail":
        inside = f'<failure message="{why or "failed"}"/>'
    elif part["verdict"] == "inconclusive":
        inside = f'<skipped message="inconclusive: {why}"/>'
    return f'<testcase classname="gate" name="{attr(part["name"])}">{inside}</testcase>'


def _zero(gate: Mapping[str, Any]) -> list[str]:
    return [
        f'<testcase classname="zero tolerance" name="{attr(item["name"])}">'
        + (f'<failure message="{item["seen"]} of {item["of"]} trials"/>' if item["seen"] else "")
        + "</testcase>"
        for item in gate["zero"]
    ]
