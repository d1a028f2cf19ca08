"""A report for a pull request: verdict, criteria, the worst cases."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from playhead.core.gate.parts import is_spending
from playhead.core.visible import one_line

_SHOWN = 10
_MARKS = {"pass": "✅ pass", "fail": "❌ fail", "inconclusive": "⚠️ inconclusive", "no_verdict": "⛔ no verdict"}


def code(value: object) -> str:
    """Recorded text as a code span: no markup, link, mention or HTML in it has any effect, nor a pipe in a table."""
    text = one_line(value).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown(report: Mapping[str, Any]) -> str:
    """The page."""
    lines: list[str] = []
    gate = report["gate"]
    run = report["run"]
    if gate:
        lines += _verdict(gate)
    else:
        lines += ["## Tool testing"]
    lines += [
        "",
        f"Suite {code(run['suite'])}, model {code(run['model'])}, {run['trials']} trials, {run['errors']} errors.",
    ]
    if run["scripted"]:
        lines += ["", "Made with a scripted model: this measures the harness, not a model."]
    if report["target"]:
        lines += ["", code(report["target"]["line"])]
    if gate:
        lines += ["", *_measured(gate)]
    lines += ["", *_rates(report["dimensions"]), *_flaky(report["flaky"])]
    if report["history"]:
        lines += ["", f"History: {code(report['history']['line'])}"]
    if report["look_first"]:
        lines += ["", "### Where to look first", "", *(f"- {code(text)}" for text in report["look_first"][:_SHOWN])]
    return "\n".join(lines).rstrip() + "\n"


def gate_lines(gate: Mapping[str, Any]) -> list[str]:
    """A gate's report alone."""
    return [*_verdict(gate), "", *_measured(gate)]


def _verdict(gate: Mapping[str, Any]) -> list[str]:
    lines = [f"## Release gate: {_MARKS[gate['verdict']]}", ""]
    lines += [f"- {code(reason)}" for reason in gate["reasons"]]
    return lines + [f"- would settle it: {code(text)}" for text in gate["settle"]]


def _measured(gate: Mapping[str, Any]) -> list[str]:
    notes = [f"- note: {code(text)}" for text in gate["warnings"]]
    return [*_criteria(gate), *_zero(gate), *_worst(gate["worst"]), *notes]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def _criteria(gate: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            code(part["name"]), part["verdict"], _percent(part["baseline"]), _percent(part["candidate"]),
            _points(part["change"]), _percent(part["limit"]), _p(part["p_adjusted"]),
        ]
        for part in (*gate["parts"], *gate["held_back"])
        if not is_spending(part["name"])
    ]  # fmt: skip
    return table(["criterion", "verdict", "baseline", "candidate", "change", "margin or floor", "adjusted p"], rows)


def _zero(gate: Mapping[str, Any]) -> list[str]:
    rows = [[code(z["name"]), f"{z['seen']} of {z['of']}", f"{100 * z['upper']:.2f} %"] for z in gate["zero"]]
    return table(["none tolerated", "seen", "at most"], rows)


def _worst(worst: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [code(c["id"]), code(c["intent"]), c["baseline"], c["candidate"], code("; ".join(c["reasons"]))]
        for c in worst[:_SHOWN]
    ]
    return table(["worst cases", "intent", "before", "now", "why"], rows)


def _rates(dimensions: Mapping[str, Any]) -> list[str]:
    rows: list[list[str]] = []
    for name, found in dimensions.items():
        if found:
            low, high = found["interval"]
            against = found.get("against")
            change = _points(against["change"]) if against else ""
            interval = f"{100 * low:.1f} to {100 * high:.1f} %"
            rows.append([name, _percent(found["rate"]), interval, f"{found['passes']} of {found['trials']}", change])
    return table(["dimension", "rate", "95 %, by case", "trials", "change"], rows)


def _flaky(flaky: Sequence[Mapping[str, Any]]) -> list[str]:
    if not flaky:
        return []
    lines = ["", f"<details><summary>{len(flaky)} flaky cases</summary>", ""]
    lines += [f"- {code(case['id'])}: {''.join('✓' if run else '✗' for run in case['runs'])}" for case in flaky]
    return [*lines, "", "</details>"]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f}"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
