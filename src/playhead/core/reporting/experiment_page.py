"""The report of an experiment's run as one HTML file that loads nothing, and as JUnit XML."""

from collections.abc import Mapping, Sequence
from typing import Any

from playhead.core.reporting import junit as xml
from playhead.core.reporting.page import document, gate_section, listed, table
from playhead.core.reporting.plots import text

Rows = Sequence[Mapping[str, object]]


def html(report: Mapping[str, Any], tables: Mapping[str, Rows]) -> str:
    """The page.

    Args:
        report: as `core.experiments.report.report` gives it, with the gate's report under ``gate``, or None.
        tables: rows under their heading, as a terminal shows them.
    """
    run, gate = report["run"], report["gate"]
    told = gate["verdict"].replace("_", " ") if gate else "experiment"
    title = f"{run['experiment']} on {run['cohort']}: {told}"
    body = [f"<h1>{text(title)}</h1>", table(["", ""], _identity(run))]
    if gate:
        body += gate_section(gate)
    for name, rows in tables.items():
        if rows:
            columns = list(dict.fromkeys(column for row in rows for column in row))
            heads = [column.replace("_", " ") for column in columns]
            body += [f"<h2>{text(name)}</h2>", table(heads, [[row.get(column) for column in columns] for row in rows])]
    body += _failures(report)
    if run["refused"]:
        body += ["<h2>Left out</h2>", table(["session", "why"], list(run["refused"].items()))]
    return document(title, body)


def _identity(run: Mapping[str, Any]) -> list[tuple[str, object]]:
    names = ("id", "cohort", "cases", "repeats", "stopped", "digest")
    return [(name, run[name]) for name in names if run[name] is not None]


def _failures(report: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{arm['arm']}: replay {failure['replay']} failed: {failure['error']}"
        for arm in report["arms"]
        for failure in arm["failures"]
    ]
    return ["<h2>Replays that came to no end</h2>", listed(lines)] if lines else []


def junit(report: Mapping[str, Any]) -> str:
    """The document: of each arm, a session that lost a verdict is a failure, a mixed one ``flakyFailure``; the
    criteria of the gate are tests too. Replays that came to no end are errors."""
    suites = [xml.suite(f"{report['run']['experiment']} {arm['arm']}", _tests(arm)) for arm in report["arms"]]
    if report["gate"]:
        suites.append(xml.gate_suite(report["gate"]))
    return xml.document(suites)


def _tests(arm: Mapping[str, Any]) -> list[str]:
    tests: list[str] = []
    for change in arm["against_baseline"]["verdicts"]:
        name = change["verdict"]
        flaky = next((rate.get("flaky", ()) for rate in arm["verdicts"] if rate["verdict"] == name), ())
        lost = change.get("lost_cases", ())
        tests += [_test(name, case, '<failure message="passes less often than the recording"/>') for case in lost]
        tests += [
            _test(name, case, '<flakyFailure message="passes in some repeats"/>') for case in flaky if case not in lost
        ]
        if change["cases"]:
            counts = f"{change['wins']} won, {change['losses']} lost, {change['ties']} unchanged of {change['cases']}"
            tests.append(_test(name, counts, ""))
    return tests + [
        _test("replay", failure["replay"], f'<error message="{xml.attr(failure["error"])}"/>')
        for failure in arm["failures"]
    ]


def _test(group: str, name: object, inside: str) -> str:
    return f'<testcase classname="{xml.attr(group)}" name="{xml.attr(name)}">{inside}</testcase>'
