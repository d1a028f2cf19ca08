"""How fit a suite is for the question: enough cases for its target, and cases young enough."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from playhead.core.stats import n_noninferiority, zero_event_n
from playhead.core.suites.case_runs import counted, tallies
from playhead.core.suites.summary import CaseResult, RunSummary

OLD_DAYS = 90


def target_line(run: RunSummary) -> dict[str, Any] | None:
    """Whether the suite has the cases that its target asks for; None without a target.

    The variance of a change between two runs of one release comes from the runs of each case, so at least two are
    needed.
    """
    margin, power = run.target.get("margin"), run.target.get("power", 0.8)
    if (
        not isinstance(margin, int | float)
        or not isinstance(power, int | float)
        or not 0 < margin < 1
        or not 0 < power < 1
    ):
        return None
    known = [(c, k) for c, k in tallies(counted(run.cases), "selection") if k > 1]
    goal = f"show no loss of {100 * margin:g} points with a power of {100 * power:g} %"
    if not known:
        return {"met": False, "cases": 0, "needed": None, "line": f"target not met: no case has two runs to {goal}"}
    variance = math.fsum(2 * c * (k - c) / (k * k * (k - 1)) for c, k in known) / len(known)
    needed = max(zero_event_n(margin), n_noninferiority(variance, margin, power) if variance else 0)
    have = len(known)
    if have >= needed:
        line = f"target met: {have} cases, {needed} are needed to {goal}"
    else:
        line = f"target not met: {needed - have} more cases than the {have} here are needed to {goal}"
    return {"met": have >= needed, "cases": have, "needed": needed, "line": line}


def freshness(run: RunSummary) -> dict[str, Any] | None:
    """Ages of cases at the time of the run, in days; None where neither is known."""
    made = _time(run.created_at)
    if made is None:
        return None
    ages = sorted(age for age in (_age(case, made) for case in counted(run.cases)) if age is not None)
    if not ages:
        return None
    old = sum(age > OLD_DAYS for age in ages)
    return {"cases": len(ages), "median_days": _median(ages), "older": old / len(ages), "older_than_days": OLD_DAYS}


def _age(case: CaseResult, made: datetime) -> float | None:
    captured = _time(case.captured_at)
    return None if captured is None else (made - captured).total_seconds() / 86_400


def _time(text: str | None) -> datetime | None:
    """A time with a zone; anything else is not known."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
