"""What a gate says beside its verdict: the worst cases, flaky ones, and warnings that a reader needs."""

from dataclasses import dataclass
from typing import Final

from playhead.core.gate.criteria import Criteria
from playhead.core.gate.parts import Pairs, points, rate_part
from playhead.core.stats import literal_false_block
from playhead.core.suites.case_runs import measured, results, tally
from playhead.core.suites.summary import TrialResult

WORST: Final = 10
_MANY_FLAKY: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """A case and its passes of valid runs on both sides."""

    id: str
    intent: str
    baseline: str
    candidate: str
    change: float
    reasons: tuple[str, ...] = ()


def worst(pairs: Pairs) -> tuple[CaseChange, ...]:
    found: list[CaseChange] = []
    for old, new in pairs:
        before, after = tally(old, "whole"), tally(new, "whole")
        if before[1] and after[1] and (change := after[0] / after[1] - before[0] / before[1]) < 0:
            why = tuple(
                dict.fromkeys(r for trial in new.trials if measured(trial, "whole") is False for r in _why(trial))
            )
            found.append(
                CaseChange(
                    id=new.id,
                    intent=new.intent,
                    baseline=f"{before[0]}/{before[1]}",
                    candidate=f"{after[0]}/{after[1]}",
                    change=change,
                    reasons=why,
                )
            )
    return tuple(sorted(found, key=lambda c: (c.change, c.id))[:WORST])


def _why(trial: TrialResult) -> list[str]:
    """Why a trial did not pass, in a few words each."""
    found = [trial.reason] if trial.selection is False and trial.reason else []
    found += [f"{e.bin} {e.tool}{e.pointer}" for e in trial.schema_errors]
    found += [f"{e.reason} {e.tool}{e.pointer}" for e in trial.value_errors]
    return found + [f"missing fact {fact}" for fact in trial.missing_facts]


def flaky_lists(pairs: Pairs) -> dict[str, tuple[str, ...]]:
    newly: list[str] = []
    gone: list[str] = []
    for old, new in pairs:
        before, after = (len(set(results(case, "whole"))) > 1 for case in (old, new))
        if before != after:
            (newly if after else gone).append(new.id)
    return {"newly_flaky": tuple(newly), "no_longer_flaky": tuple(gone)}


def literal_warning(criteria: Criteria, pairs: Pairs) -> str | None:
    """What the literal rules do to an identical release whose flaky cases are as flaky as these."""
    if "literal" not in criteria.form.values():
        return None
    pooled = [(b[0] + c[0], b[1] + c[1]) for b, c in ((tally(b, "selection"), tally(c, "selection")) for b, c in pairs)]
    mixed = [passes / runs for passes, runs in pooled if 0 < passes < runs]
    example = (
        'with 40 of 400 cases at 0.8 and 3 runs, "at or above" blocks an identical release in 47 %, '
        '"flaky count must not rise" in 46 %, either in 55 %'
    )
    if not mixed or len(mixed) > _MANY_FLAKY:
        return f"literal rules block identical releases: {example}"
    runs = max(1, round(sum(runs for _, runs in pooled) / (2 * len(pooled))))
    block = literal_false_block(mixed, runs)
    return (
        f"literal rules block identical releases: with the {len(mixed)} flaky cases seen here in about "
        f"{100 * block.either:.0f} % of comparisons; {example}"
    )


def generalises(pairs: Pairs, alpha: float) -> str | None:
    """A gain on tuning cases without one on held-back cases."""
    tune = [pair for pair in pairs if pair[1].slice == "tune"]
    held = [pair for pair in pairs if pair[1].slice == "held_back"]
    gained = rate_part("tune", tune, "selection", 1.0, "statistical", alpha)
    kept = rate_part("held back", held, "selection", 1.0, "statistical", alpha)
    if gained.low is None or kept.low is None or kept.high is None or kept.change is None or gained.low <= 0:
        return None
    if kept.low <= 0 and (kept.change <= 0 or kept.high < (gained.change or 0)):
        told = f"{points(gained.change)} points on tuning cases, {points(kept.change)} on held-back ones"
        return f"does not generalise: {told}"
    return None
