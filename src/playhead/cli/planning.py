"""``playhead plan``."""

from typing import Any

from playhead.cli.context import Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.errors import UsageError

_TABLE = (0.07, 0.10, 0.15, 0.20)
_FLAKES = (0.95, 0.9, 0.8)


def plan(
    *,
    context: Ctx,
    cases: int = 400,
    rate: float = 0.88,
    discordance: str = "auto",
    margin: float = 0.05,
    runs: int = 3,
    before: str | None = None,
    again: str | None = None,
) -> Result:
    """Say how many cases and runs are needed, and what a suite can see.

    Args:
        cases: Cases of the suite.
        rate: Pass rate that is expected.
        discordance: Share of cases that differ between two runs of one configuration; auto takes it from --before and
            --again, else shows 7, 10, 15 and 20 %.
        margin: Drop that has to be seen, as a share (0.05 is five points).
        runs: Runs per case.
        before: A run (id, last, or file) whose intents are checked, and with --again the discordance.
        again: A second run of the same configuration.
    """
    levels, measured = _levels(context, discordance, before, again)
    if cases < 1 or not 0 < rate < 1 or not 0 < margin < 1:
        raise UsageError("--cases is at least 1, --rate and --margin lie between 0 and 1")
    data = planned(cases, rate, margin, runs, levels)
    data["discordance"] = "measured" if measured else "assumed"
    if before is not None:
        data["intents"] = _intents(context, before, margin)
    return Result(data=data, text=_text(data))


def planned(cases: int, rate: float, margin: float, runs: int, levels: tuple[float, ...]) -> dict[str, Any]:
    """Everything that `plan` says, as plain values."""
    from playhead.core import stats

    low, high = stats.rate_interval(round(rate * cases), cases)
    return {
        "cases": cases, "rate": rate, "margin": margin, "runs": runs,
        "halfwidth": stats.wald_halfwidth(rate, cases),
        "interval": [low, high],
        "unpaired_power": stats.power_independent(rate, max(1e-9, rate - margin), cases),
        "cases_unpaired": stats.n_independent(rate, max(1e-9, rate - margin)),
        "paired": [_paired(cases, margin, level) for level in levels if level >= margin],
        "cases_for_halfwidth": {str(h): stats.n_for_halfwidth(rate, h) for h in (0.05, 0.04, 0.03, 0.02)},
        "flakes": [
            {"rate": p, "seen": stats.flake_seen_probability(p, runs), "runs_for_90": stats.flake_runs_needed(p)}
            for p in _FLAKES
        ],
        "zero_events_upper": stats.zero_event_upper(cases * runs),
        "smallest_intent": stats.zero_event_n(margin),
    }  # fmt: skip


def _paired(cases: int, margin: float, level: float) -> dict[str, Any]:
    from playhead.core import stats

    lost, won = (level + margin) / 2, (level - margin) / 2
    return {
        "discordance": level,
        "power": stats.power_paired(cases, lost, won),
        "cases_for_80": stats.n_paired_connor(lost, won, 0.8),
        "cases_for_90": stats.n_paired_connor(lost, won, 0.9),
        "no_loss_80": stats.n_noninferiority(level, margin, 0.8),
        "no_loss_90": stats.n_noninferiority(level, margin, 0.9),
    }


def _levels(context: Ctx, given: str, before: str | None, again: str | None) -> tuple[tuple[float, ...], bool]:
    if given != "auto":
        try:
            level = float(given.removesuffix("%")) / (100 if given.endswith("%") else 1)
        except ValueError as error:
            raise UsageError(f"--discordance {given!r} is no share", hint="auto, 0.1 or 10%") from error
        if not 0 < level <= 1:
            raise UsageError(f"--discordance {given!r} is no share", hint="auto, 0.1 or 10%")
        return (level,), False
    if before is None or again is None:
        return _TABLE, False
    from playhead.core.stats import paired_rates
    from playhead.core.suites.case_runs import counted, tally

    first, second = ({c.id: c for c in counted(run.cases)} for run in (_run(context, before), _run(context, again)))
    shared = [name for name in first if name in second]
    sides = [[tally(side[name], "selection") for name in shared] for side in (first, second)]
    compared = paired_rates(sides[0], sides[1])
    variance = sum((d / compared.denominator) ** 2 for d in compared.differences) / compared.cases
    return (max(variance, 1 / compared.cases),), True


def _run(context: Ctx, name: str) -> Any:
    from playhead.engine.suites.releases import read_run

    return read_run(name, lambda: context.store, releases=context.project.folder / "releases")


def _intents(context: Ctx, name: str, margin: float) -> list[dict[str, Any]]:
    """Cases of each intent, and whether they can ever be enough for the margin."""
    from collections import Counter

    from playhead.core.stats import zero_event_n
    from playhead.core.suites.case_runs import counted

    least = zero_event_n(margin)
    sizes = Counter(case.intent for case in counted(_run(context, name).cases))
    return [{"intent": i, "cases": n, "too_small": n < least} for i, n in sorted(sizes.items())]


def _text(data: dict[str, Any]) -> list[Block]:
    low, high = data["interval"]
    text: list[Block] = [
        Fields([
            ("cases", data["cases"]),
            ("rate", f"{100 * data['rate']:g} %"),
            ("either side", f"{100 * data['halfwidth']:.1f} points (Wilson {100 * low:.1f} to {100 * high:.1f} %)"),
            ("a drop of", f"{100 * data['margin']:g} points"),
            ("unpaired power", f"{100 * data['unpaired_power']:.1f} %, {data['cases_unpaired']} cases for 80 %"),
            ("never seen means", f"at most {100 * data['zero_events_upper']:.2f} % of trials, {data['runs']} runs"),
            ("smallest intent", f"{data['smallest_intent']} cases, when nothing differs"),
        ])
    ]  # fmt: skip
    rows = [
        {
            "differ": f"{100 * row['discordance']:.3g} %", "power": f"{100 * row['power']:.1f} %",
            "cases_for_80": row["cases_for_80"], "cases_for_90": row["cases_for_90"],
            "no_loss_80": row["no_loss_80"], "no_loss_90": row["no_loss_90"],
        }
        for row in data["paired"]
    ]  # fmt: skip
    text.append(Table(("differ", "power", "cases_for_80", "cases_for_90", "no_loss_80", "no_loss_90"), rows))
    flakes = [
        {
            "case_rate": f"{100 * row['rate']:g} %",
            "seen_mixed": f"{100 * row['seen']:.0f} %",
            "runs_for_90": row["runs_for_90"],
        }
        for row in data["flakes"]
    ]
    text.append(Table(("case_rate", "seen_mixed", "runs_for_90"), flakes))
    if "intents" in data:
        text.append(Table(("intent", "cases", "too_small"), data["intents"]))
    return text
