"""``playhead suite report | compare``."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.core.gate.parts import percent, points
from playhead.errors import UsageError

_SHOWN = 20


def report(
    run: str = "last", /, *, context: Ctx, against: str | None = None, recovery: str | None = None,
    to: tuple[str, ...] = (),
) -> Result:  # fmt: skip
    """Show what a run of a suite scored, as text or as a page.

    Args:
        run: Id of a suite run, last, last~1, or a file that suite run --export wrote.
        against: A run to compare with, named in the same way, or last-release.
        recovery: Run with injected failures.
        to: Also write the report to this file (.html, .md, .xml or .json); may be given several times.
    """
    from playhead.core.reporting.data import report_json
    from playhead.engine.report_files import FORMS, write_reports
    from playhead.engine.suites.releases import contents_of, history_of

    for path in to:
        if Path(path).suffix not in FORMS:
            raise UsageError(f"no report has the form {path!r}", hint=f"end the name with one of {', '.join(FORMS)}")
    found = _read(context, run)
    baseline = None if against is None else _read(context, against, found.suite)
    injected = None if recovery is None else _read(context, recovery)
    history = history_of(run, found, lambda: context.store)
    redactor = context.project.redactor()
    contents = contents_of(run, lambda: context.store)
    told = report_json(found, baseline=baseline, recovery_run=injected, history=history, contents=contents)
    data: Any = redactor.redact(told)[0]
    if to:
        paths = [Path(path) for path in to]
        write_reports(
            paths, found, baseline=baseline, recovery=injected, history=history, contents=contents,
            redact=lambda value: redactor.redact(value)[0],
        )  # fmt: skip
    return Result(data=data, text=_report_text(data))


def _read(context: Context, name: str, suite: str | None = None) -> Any:
    from playhead.engine.suites.releases import read_run

    return read_run(name, lambda: context.store, releases=context.project.folder / "releases", suite=suite)


def _report_text(data: dict[str, Any]) -> list[Block]:
    run = data["run"]
    head: list[tuple[str, object]] = [("suite", run["suite"]), ("model", run["model"]), ("run", run["id"])]
    head += [("trials", f"{run['trials']}, {run['errors']} errors"), ("cost", _usd(run["cost_usd"]))]
    head.append(("target", data["target"] and data["target"]["line"]))
    head.append(("note", "\n".join(data["notes"]) or None))
    text: list[Block] = [Fields(head), _rate_table("dimension", data["dimensions"])]
    text.append(_rate_table("intent", {row["intent"]: row["selection"] for row in data["intents"]}))
    unstable = [*data["flaky"], *data["failing"]][:_SHOWN]
    if unstable:
        rows = [
            {"case": c["id"], "class": c["class"], "runs": _runs(c), "why": ", ".join(c["reasons"])} for c in unstable
        ]
        text.append(Table(("case", "class", "runs", "why"), rows))
    if data["history"]:
        text += ["", data["history"]["line"]]
    if data["arguments"]["places"]:
        text.append(Table(("tool", "pointer", "error", "trials"), data["arguments"]["places"][:_SHOWN]))
    if data["recovery"]:
        matrix = [{"kind": kind, **found} for kind, found in data["recovery"]["matrix"].items()]
        columns = dict.fromkeys(name for row in matrix for name in row)
        text += [f"recovered: {percent(data['recovery']['rate'])}", Table(tuple(columns), matrix)]
    if data["checklist"]:
        rows = [{**row, "evidence": "; ".join(row["evidence"]) or None} for row in data["checklist"]]
        text.append(Table(("tool", "check", "answer", "evidence"), rows))
    condition = [("freshness", _fresh(data["freshness"])), ("held back", _held_back(data["held_back"]))]
    if any(line is not None for _, line in condition):
        text.append(Fields(condition))
    if data["look_first"]:
        text += ["", "where to look first:", *(f"  {line}" for line in data["look_first"])]
    return text


def _fresh(found: dict[str, Any] | None) -> str | None:
    if found is None:
        return None
    return (
        f"median age {found['median_days']:.0f} days, {percent(found['older'])} older than "
        f"{found['older_than_days']} days, of {found['cases']} cases"
    )


def _held_back(found: dict[str, Any] | None) -> str | None:
    if found is None:
        return None
    read = "" if found["accesses"] is None else f", read {found['accesses']} times since the last refresh"
    return f"{found['cases']} cases in this run{read}"


def _runs(case: dict[str, Any]) -> str:
    return "".join("+" if run else "-" for run in case["runs"])


def _rate_table(name: str, found: dict[str, Any]) -> Table:
    rows: list[dict[str, object]] = []
    for key, rate in found.items():
        if rate:
            low, high = rate["interval"]
            against = rate.get("against")
            change = points(against["change"]) if against else None
            rows.append({
                name: key, "rate": percent(rate["rate"]), "interval": f"{100 * low:.1f} to {100 * high:.1f} %",
                "passes": f"{rate['passes']} of {rate['trials']}", "change": change,
            })  # fmt: skip
    return Table((name, "rate", "interval", "passes", "change"), rows, empty="nothing was scored")


def _usd(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g} USD"


def compare(
    first: str,
    second: str,
    /,
    *more: str,
    context: Ctx,
    reference: str | None = None,
    cheapest_within: Annotated[float | None, Parameter(name="--cheapest-within")] = None,
    floor: float = 0.8,
    recovery: tuple[str, ...] = (),
) -> Result:
    """Compare runs of several models, and name the cheapest good enough.

    All models are compared by Cochran's Q, then pair by pair by McNemar's exact test with Holm's adjustment, on cases
    that a model passes in most of its runs. Exit code 1 when --cheapest-within finds none.

    Args:
        first: A run: id, last, last~1, or file.
        second: Another.
        more: Further ones.
        reference: Run or model that the others must not be worse than.
        cheapest_within: Margin (0.05 is five points) that selection and arguments may not lose to the reference.
        floor: Recovery rate that has to be shown, where failures were injected.
        recovery: Run of playhead inject, for the model that it is of; may be given several times. A model without one
            is then not good enough.
    """
    from playhead.core.gate.report_json import plain_json
    from playhead.core.models_compared import FORMAT, compare_models

    if (reference is None) != (cheapest_within is None):
        raise UsageError("--reference and --cheapest-within belong together")
    runs = [_read(context, name) for name in (first, second, *more)]
    injected = {one.model: one.recovery for one in (_read(context, name) for name in recovery)}
    try:
        found = compare_models(
            runs, reference=reference, margin=cheapest_within or 0.05, floor=floor, recovery=injected or None
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    missing = reference is not None and found.cheapest is None
    text = _compared(found)
    if reference is not None and not injected:
        text.append("recovery was not compared: --recovery names runs of playhead inject")
    return Result(data={"format": FORMAT, **plain_json(found)}, text=text, exit_code=1 if missing else 0)


def _compared(found: Any) -> list[Block]:
    rows: list[dict[str, object]] = []
    for row in found.rows:
        rates = {name: _rated(getattr(row, name)) for name in ("selection", "arguments", "outcome", "whole")}
        spent = {"cost": _usd(row.cost_usd), "latency": None if row.latency_ms is None else f"{row.latency_ms:.0f} ms"}
        good = None if row.good_enough is None else "yes" if row.good_enough else "; ".join(row.why)
        rows.append(
            {"model": row.model, "run": row.run, **rates, **spent, "only_it": len(row.only_it), "good_enough": good}
        )
    columns = (
        "model",
        "run",
        "selection",
        "arguments",
        "outcome",
        "whole",
        "cost",
        "latency",
        "only_it",
        "good_enough",
    )
    pairs = [
        {
            "pair": f"{found.rows[p.left].model} / {found.rows[p.right].model}", "first_only": p.left_only,
            "second_only": p.right_only, "p": f"{p.p:.3g}", "adjusted": f"{p.holm:.3g}",
        }
        for p in found.q.pairs
    ]  # fmt: skip
    told = f"{found.cases} shared cases; Cochran's Q {found.q.q:.3g}, p {found.q.p:.3g}"
    text: list[Block] = [
        told,
        Table(columns, rows),
        Table(("pair", "first_only", "second_only", "p", "adjusted"), pairs),
    ]
    for row in found.rows:
        if row.only_it:
            text.append(f"only {row.model} passes: {', '.join(row.only_it[:_SHOWN])}")
    if found.reference is not None:
        text.append(f"cheapest good enough: {found.cheapest or 'none'}")
    return text


def _rated(rate: Any) -> str | None:
    return (
        None
        if rate is None
        else f"{percent(rate.rate)} ({100 * rate.interval.low:.0f} to {100 * rate.interval.high:.0f})"
    )
