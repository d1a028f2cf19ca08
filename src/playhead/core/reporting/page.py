"""A report as one HTML file that loads nothing: no script, no network, recorded text as text."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from playhead.core.gate.parts import is_spending
from playhead.core.reporting.plots import differences_plot, recovery_plot, stability_plot, text

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td { overflow-wrap: anywhere; }
.pass { color: #2a7f4f; } .fail { color: #b3362b; } .inconclusive, .no_verdict { color: #9a6700; }
svg { max-width: 100%; height: auto; }
"""


def policy() -> str:
    """The content policy of the page: its own style and nothing else."""
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def html(report: Mapping[str, Any]) -> str:
    """The page."""
    run, gate = report["run"], report["gate"]
    title = f"{run['suite']}: {gate['verdict'].replace('_', ' ') if gate else 'tool testing'}"
    body = [f"<h1>{text(title)}</h1>", _identity(report)]
    if gate:
        body += gate_section(gate)
    body += ["<h2>Rates</h2>", _rates(report["dimensions"]), _pass_k(report["pass_k"])]
    body += ["<h2>Intents</h2>", _rates({row["intent"]: row["selection"] for row in report["intents"]})]
    if report["differences"]:
        body += ["<h2>Change per case</h2>", differences_plot(report["differences"])]
    unstable = [*report["flaky"], *report["failing"]]
    if unstable:
        body += [
            f"<h2>{len(report['flaky'])} flaky and {len(report['failing'])} failing cases</h2>",
            stability_plot(unstable),
        ]
        body.append(_cases(unstable))
    body += _history(report["history"])
    body += _recovery(report["recovery"]) + _arguments(report["arguments"]) + _quality(report)
    body += _checklist(report["checklist"])
    if report["look_first"]:
        body += ["<h2>Where to look first</h2>", listed(report["look_first"])]
    return document(title, body)


def document(title: str, body: Sequence[str]) -> str:
    """A whole page around pieces of markup."""
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy()}">'
    view = '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
    style = f"<title>{text(title)}</title><style>{_STYLE}</style>"
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}{view}{style}</head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Cells are text; a verdict is coloured by its class."""
    top = "".join(f"<th>{text(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"


def _cell(value: object) -> str:
    kind = f' class="{value}"' if value in ("pass", "fail", "inconclusive") else ""
    return f"<td{kind}>{'' if value is None else text(value)}</td>"


def listed(items: Sequence[object]) -> str:
    """A list whose items are text."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def _identity(report: Mapping[str, Any]) -> str:
    rows: list[list[object]] = []
    sides = [side for side in (report["run"], report["baseline"]) if side]
    for name in sides[0]:
        if any(side[name] not in (None, {}, False) for side in sides):
            rows.append([name.replace("_", " "), *(_short(side[name]) for side in sides)])
    return table(["", "candidate", "baseline"][: len(sides) + 1], rows)


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def gate_section(gate: Mapping[str, Any]) -> list[str]:
    """Verdict, reasons and criteria of a gate."""
    body = [f'<h2>Gate: <span class="{text(gate["verdict"])}">{text(gate["verdict"].replace("_", " "))}</span></h2>']
    body.append(listed([*gate["reasons"], *(f"would settle it: {line}" for line in gate["settle"])]))
    rows = [
        [
            part["name"], part["verdict"], _amount(part, "baseline"), _amount(part, "candidate"),
            _points(part["change"]),
            _percent(part["limit"]), None if part["p_adjusted"] is None else f"{part['p_adjusted']:.2g}", part["cases"],
            "; ".join(part["reasons"]),
        ]
        for part in (*gate["parts"], *gate["held_back"])
    ]  # fmt: skip
    names = [
        "criterion",
        "verdict",
        "baseline",
        "candidate",
        "change",
        "margin or floor",
        "adjusted p",
        "cases",
        "said",
    ]
    body.append(table(names, rows))
    zero = [
        [z["name"], z["seen"], z["of"], f"{100 * z['upper']:.2f} %", ", ".join(z["where"][:10])] for z in gate["zero"]
    ]
    body.append(table(["none tolerated", "seen", "trials", "at most", "cases"], zero))
    worst = [[c["id"], c["intent"], c["baseline"], c["candidate"], "; ".join(c["reasons"])] for c in gate["worst"]]
    if worst:
        body.append(table(["worst cases", "intent", "before", "now", "why"], worst))
    lists = [
        (name.replace("_", " "), gate[name]) for name in ("newly_flaky", "no_longer_flaky", "retired", "relabelled")
    ]
    rows = [[name, ", ".join(found)] for name, found in lists if found]
    rows += [["earlier look", f"{look['at']} {look['verdict']}"] for look in gate["earlier"]]
    return body + ([table(["", ""], rows)] if rows else []) + ([listed(gate["warnings"])] if gate["warnings"] else [])


def _amount(part: Mapping[str, Any], side: str) -> str:
    value = part[side]
    return f"{value:.4g}" if value is not None and is_spending(part["name"]) else _percent(value)


def _rates(dimensions: Mapping[str, Any]) -> str:
    rows: list[list[object]] = []
    for name, found in dimensions.items():
        if not found:
            rows.append([name, "not applicable", "", "0", "", ""])
            continue
        low, high = found["interval"]
        against = found.get("against")
        change = (
            f"{_points(against['change'])} ({_points(against['bounds'][0])} to {_points(against['bounds'][1])})"
            if against
            else ""
        )
        of = f"{found['passes']} of {found['trials']}"
        rows.append(
            [name, _percent(found["rate"]), f"{100 * low:.1f} to {100 * high:.1f} %", of, found["cases"], change]
        )
    return table(["", "rate", "95 %, by case", "trials", "cases", "change (one-sided bounds)"], rows)


def _pass_k(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [[r["k"], _percent(r["pass_hat"]), _percent(r["pass_at"]), r["cases"], r["left_out"]] for r in rows]
    return table(["k", "pass^k", "pass@k", "cases", "left out"], shown)


def _cases(cases: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [c["id"], c["intent"], c["class"], "".join("✓" if r else "✗" for r in c["runs"]), ", ".join(c["reasons"])]
        for c in cases
    ]
    return table(["case", "intent", "class", "runs", "why"], rows)


def _history(found: Mapping[str, Any] | None) -> list[str]:
    """What the pool of runs says of cases that are not simply good."""
    if not found:
        return []
    rows = [
        [c["id"], f"{c['passes']} of {c['runs']}", c["kind"], c["before"], c["first_seen"], c["flipped_since"]]
        for c in found["cases"]
        if c["kind"] != "pass" or c["before"] not in (None, "pass") or c["flipped_since"]
    ]
    names = ["case", "passed", "now", "before", "first seen", "flipped since"]
    return ["<h2>History</h2>", f"<p>{text(found['line'])}</p>", *([table(names, rows)] if rows else [])]


def _recovery(found: Mapping[str, Any] | None) -> list[str]:
    if not found:
        return []
    low, high = found["interval"]
    told = f"{_percent(found['rate'])} of {found['injected']} injected failures recovered"
    told = f"{told} ({100 * low:.1f} to {100 * high:.1f} %)"
    doubles = ", ".join(f"{n} {kind}" for kind, n in found["doubles"].items()) or "none"
    groups = [[by, name, f"{r} of {n}"] for by, held in found["by"].items() for name, (r, n) in held.items()]
    return [
        "<h2>Recovery</h2>",
        f"<p>{text(told)}; double side effects: {text(doubles)}</p>", recovery_plot(found["matrix"]),
        table(["by", "", "recovered"], groups),
    ]  # fmt: skip


def _checklist(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        return []
    cells = [(row["tool"], row["check"], row["answer"], "; ".join(row["evidence"])) for row in rows]
    return ["<h2>Recovery checklist</h2>", table(("tool", "check", "answer", "evidence"), cells)]


def _arguments(found: Mapping[str, Any]) -> list[str]:
    if not found["places"] and not found["bins"]:
        return []
    rows = [[row["tool"], row["pointer"], row["error"], row["trials"]] for row in found["places"][:100]]
    bins = ", ".join(f"{name} {count}" for name, count in found["bins"].items())
    places = table(["tool", "parameter", "error", "trials"], rows)
    return ["<h2>Argument errors</h2>", f"<p>{text(bins)}; coercible {found['coercible']}</p>", places]


def _quality(report: Mapping[str, Any]) -> list[str]:
    labels, held = report["labels"], report["held_back"]
    rows: list[Sequence[object]] = [["cases without a label that counts", report["unscored"]]]
    if labels:
        upper = labels["residual_upper"]
        rows += [
            ["labels that may be wrong, at most", None if upper is None else _percent(upper)],
            ["waiting for review", labels["queue"]],
        ]
    if held:
        rows += [["held-back cases", held["cases"]], ["times they were read since the last refresh", held["accesses"]]]
    if report["freshness"]:
        young = report["freshness"]
        rows.append([f"cases older than {young['older_than_days']} days", _percent(young["older"])])
        rows.append(["median age of a case, days", f"{young['median_days']:.0f}"])
    if report["target"]:
        rows.append(["target", report["target"]["line"]])
    findings = [f"{row['case']}: {row['finding']}" for row in report["label_findings"]]
    return ["<h2>Labels</h2>", table(["", ""], rows), listed(findings) if findings else ""]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f}"
