"""The report of an experiment's run as text and as Markdown."""

from collections.abc import Sequence
from typing import Any

from playhead.cli.output import Block, Fields, Table, one_line
from playhead.core.values import JSON

_ARMS = ("arm", "replays", "fidelity", "cost", "tokens", "latency")
_RATES = ("arm", "verdict", "rate", "interval", "cases", "flaky")
_CHANGES = ("arm", "against", "what", "change", "interval", "p_drop", "wins", "losses", "ties")


def blocks(told: JSON) -> list[Block]:
    """A report for a terminal."""
    run = told["run"]
    text: list[Block] = [
        Fields(
            [
                ("run", run["id"]),
                ("cohort", run["cohort"]),
                ("cases", run["cases"]),
                ("repeats", run["repeats"]),
                ("left out", len(run["refused"]) or None),
                ("erased", len(run["erased"]) or None),
                ("stopped", run["stopped"]),
            ]
        ),
        Table(_ARMS, _arm_rows(told)),
    ]
    rates = _rate_rows(told)
    if rates:
        text.append(Table(_RATES, rates))
    changes = _change_rows(told)
    if changes:
        text.append(Table(_CHANGES, changes))
    text += _failures(told)
    text += _decisive(told)
    return text


def tables(told: JSON) -> dict[str, list[dict[str, object]]]:
    """The tables of a report under their headings."""
    return {"Arms": _arm_rows(told), "Verdicts": _rate_rows(told), "Changes": _change_rows(told), "Cases": _cases(told)}


def _cases(told: JSON) -> list[dict[str, object]]:
    """The cases that decided, the largest change first."""
    return [
        {"arm": arm["arm"], "verdict": change["verdict"], moved: ", ".join(change[key])}
        for arm in told["arms"]
        for change in arm["against_baseline"]["verdicts"]
        for moved, key in (("lost", "lost_cases"), ("won", "won_cases"))
        if change.get(key)
    ]


def markdown(told: JSON) -> str:
    """A report for a comment on a change."""
    run, gate = told["run"], told.get("gate")
    lines = [
        f"## {_cell(run['experiment'])} on {_cell(run['cohort'])}",
        "",
        f"{run['cases']} sessions, {run['repeats']} repeats, run `{run['id']}`"
        + (f", **stopped: {_cell(run['stopped'])}**" if run["stopped"] else ""),
    ]
    if gate:
        from playhead.core.reporting.markdown import gate_lines

        lines += ["", *gate_lines(gate)]
    for columns, rows in (
        (_ARMS, _arm_rows(told)),
        (_RATES, _rate_rows(told)),
        (_CHANGES, _change_rows(told)),
    ):
        if rows:
            lines += ["", _line(columns), _line(["---"] * len(columns))]
            lines += [_line([row.get(name) for name in columns]) for row in rows]
    for block in (*_failures(told), *_decisive(told)):
        lines += ["", *(f"- {_cell(line)}" for line in str(block).splitlines())]
    return "\n".join(lines) + "\n"


def _line(values: Sequence[object]) -> str:
    return "| " + " | ".join(_cell(value) for value in values) + " |"


def _cell(value: object) -> str:
    """Text that Markdown shows as it is: recorded names and errors are anybody's."""
    text = "" if value is None else one_line(value)
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+!|~@&" else c for c in text)


def _sides(told: JSON) -> list[Any]:
    return [told["baseline"], *told["arms"]]


def _arm_rows(told: JSON) -> list[dict[str, object]]:
    return [
        {
            "arm": side["arm"],
            "replays": _counts(side["replays"]),
            "fidelity": _counts(side["fidelity"]),
            "cost": None if side["cost"] is None else f"{side['cost']['sum']:.4g} USD",
            "tokens": None if side["tokens"] is None else f"{side['tokens']['sum']:.0f}",
            "latency": None if side["latency_ms"] is None else f"{side['latency_ms']['mean']:.1f} ms",
        }
        for side in _sides(told)
    ]


def _rate_rows(told: JSON) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for side in _sides(told):
        for verdict in side["verdicts"]:
            if verdict["rate"] is None and "score" not in verdict:
                continue
            rate = verdict["rate"]
            score = verdict.get("score")
            rows.append(
                {
                    "arm": side["arm"],
                    "verdict": verdict["verdict"],
                    "rate": f"{rate:.1%}" if rate is not None else f"mean {score['mean']:.4g}",
                    "interval": _percent(verdict["interval"]),
                    "cases": verdict["cases"] or score["cases"],
                    "flaky": len(verdict.get("flaky", ())) or None,
                }
            )
    return rows


def _change_rows(told: JSON) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for arm in told["arms"]:
        for against in ("against_baseline", "against_unchanged", "against_run"):
            compared = arm.get(against)
            if compared is None:
                continue
            head = {"arm": arm["arm"], "against": against.removeprefix("against_")}
            rows += [{**head, **_verdict_row(change)} for change in compared["verdicts"] if change["cases"]]
            numbers = {**compared["scores"], **{name: compared[name] for name in ("cost", "tokens", "latency_ms")}}
            rows += [
                {**head, "what": name, **_number(change)} for name, change in numbers.items() if change is not None
            ]
    return rows


def _verdict_row(change: Any) -> dict[str, object]:
    return {
        "what": change["verdict"],
        "change": f"{change['difference']:+.1%}",
        "interval": _percent(change["interval"], sign=True),
        "p_drop": f"{change['p_drop']:.3g}",
        "wins": change["wins"],
        "losses": change["losses"],
        "ties": change["ties"],
    }


def _number(change: Any) -> dict[str, object]:
    interval = change["interval"]
    return {
        "change": f"{change['difference']:+.4g}",
        "interval": None if interval is None else f"{interval[0]:+.4g} to {interval[1]:+.4g}",
    }


def _failures(told: JSON) -> list[str]:
    lines = [
        f"{arm['arm']}: replay {failure['replay']} failed: {failure['error']}"
        for arm in told["arms"]
        for failure in arm["failures"]
    ]
    return ["\n".join(lines)] if lines else []


def _decisive(told: JSON) -> list[str]:
    """The cases that a change lost: where to look first."""
    lines = [
        f"{arm['arm']} loses {change['verdict']} in: {', '.join(change['lost_cases'])}"
        for arm in told["arms"]
        for change in arm["against_baseline"]["verdicts"]
        if change.get("lost_cases")
    ]
    return ["\n".join(lines)] if lines else []


def _percent(interval: Any, *, sign: bool = False) -> str | None:
    if interval is None:
        return None
    low, high = interval
    return f"{low:+.1%} to {high:+.1%}" if sign else f"{low:.1%} to {high:.1%}"


def _counts(counts: dict[str, int]) -> str | None:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or None
