"""The report of a fuzz run as Markdown, as an HTML file that loads nothing, and as JSON; the rows of its tables."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from playhead.core.reporting import markdown as md
from playhead.core.reporting.page import document
from playhead.core.reporting.page import table as html_table
from playhead.core.reporting.plots import text
from playhead.core.visible import one_line

Row = dict[str, object]


def group_row(group: Mapping[str, Any]) -> Row:
    """What a model did after bad calls of one family and tool."""
    row: Row = {"family": group["family"], "tool": group.get("tool"), "trials": group["trials"]}
    for name in ("corrected", "loop", "gave_up", "other"):
        row[name] = rated(group[name])
    return {**row, "classes": ", ".join(f"{n} {name}" for name, n in group["classes"].items())}


def interface_row(one: Mapping[str, Any]) -> Row:
    """What one change of the tools cost."""
    return {
        "perturbation": one["perturbation"], "cases": one["selection"]["cases"],
        "selection": _change(one["selection"]), "values": _change(one["values"]), "says": one["says"],
    }  # fmt: skip


def query_row(one: Mapping[str, Any]) -> Row:
    """How often requests of one writer led to a bad call."""
    outcomes = ", ".join(f"{n} {name}" for name, n in one["outcomes"].items())
    return {"requests by": one["writer"], "trials": one["of"], "bad calls": rated(one), "outcomes": outcomes}


def finding_row(one: Mapping[str, Any]) -> Row:
    """One finding."""
    return {
        "finding": one["id"], "tool": one["tool"], "family": one["family"], "at": one["pointer"],
        "class": one["outcome"], "error": one_line(one["text"] or one["template"])[:200],
        "arguments": one_line(json.dumps(one.get("arguments"), ensure_ascii=False))[:300],
        "confirmed": f"{one.get('seen', 0)} of {one.get('runs', 0)}" if one["confirmed"] else "no",
    }  # fmt: skip


def rated(rate: Mapping[str, Any]) -> str | None:
    """A rate with its interval; empty where nothing was counted."""
    if not rate["of"]:
        return None
    low, high = rate["interval"]
    return f"{rate['n']}/{rate['of']} ({percent(low)} to {percent(high)})"


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _change(paired: Mapping[str, Any] | None) -> str | None:
    if paired is None:
        return None
    low, high = paired["interval"]
    return (
        f"{percent(paired['unchanged'])} to {percent(paired['changed'])} "
        f"({100 * low:+.0f} to {100 * high:+.0f} points, p {paired['p_drop']:.2g})"
    )


def _identity(report: Mapping[str, Any]) -> Row:
    rate = report["false_discovery_rate"]
    row: Row = {"set": f"{report['set']}, seed {report['seed']}", "cases": report["cases"]}
    for name, run in (("run", report["run"]), ("direct run", report["direct_run"])):
        if run is not None:
            row[name] = f"{run['id']}, {run['model']}, {run['status']}"
    confirmed = sum(one["confirmed"] for one in report["findings"])
    row["findings"] = f"{confirmed} confirmed of {len(report['findings'])}"
    return row | ({} if rate is None else {"false discovery rate": f"{100 * rate:.1f} %"})


def _tables(report: Mapping[str, Any]) -> list[tuple[str, list[Row]]]:
    direct: Sequence[Mapping[str, Any]] = report["direct"]["tools"] if report["direct"] else ()
    return [
        ("Findings", [finding_row(one) for one in report["findings"]]),
        ("Direct calls", [dict(one) for one in direct]),
        ("Error texts", [dict(one) for one in report["direct"]["error_texts"]] if report["direct"] else []),
        ("After a bad call, by family", [group_row(one) for one in report["fed_back"]["families"]]),
        ("After a bad call, by tool", [group_row(one) for one in report["fed_back"]["groups"]]),
        ("Changed tools", [interface_row(one) for one in report["interface"]]),
        ("Requests of users", [query_row(one) for one in report["queries"]]),
    ]


_SCRIPTED = "Made with a scripted model: this measures the harness, not a model."


def _is_scripted(report: Mapping[str, Any]) -> bool:
    return bool(report["run"] and report["run"]["scripted"])


def markdown(report: Mapping[str, Any]) -> str:
    """For a pull request."""
    lines = ["## Fuzzed tools", ""]
    lines += [f"- {name}: {md.code(value)}" for name, value in _identity(report).items()]
    if _is_scripted(report):
        lines += ["", _SCRIPTED]
    for name, rows in _tables(report):
        if rows:
            cells = [["" if value is None else md.code(value) for value in row.values()] for row in rows]
            lines += ["", f"### {name}", "", *md.table(list(rows[0]), cells)]
    return "\n".join(lines).rstrip() + "\n"


def html(report: Mapping[str, Any]) -> str:
    """The page."""
    body = ["<h1>Fuzzed tools</h1>", html_table(["", ""], [list(pair) for pair in _identity(report).items()])]
    if _is_scripted(report):
        body.append(f"<p>{text(_SCRIPTED)}</p>")
    for name, rows in _tables(report):
        if rows:
            body += [f"<h2>{text(name)}</h2>", html_table(list(rows[0]), [list(row.values()) for row in rows])]
    return document("Fuzzed tools", body)


def rendered(report: Mapping[str, Any], form: str) -> str:
    """A report in the form that the end of a file's name asks for."""
    if form == ".html":
        return html(report)
    return markdown(report) if form == ".md" else json.dumps(report, ensure_ascii=True, indent=1) + "\n"
