"""What a run of an experiment showed: arms against the recorded baselines and against the unchanged arm.

A case is a session of the cohort version. Rates are means of per-case rates, so that repeats of one case count as
what they are; comparisons are paired by case. Failures of replays stand apart from verdicts: a replay that did not come
to an end has no verdict, and is left out of every rate.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from playhead.core.experiments.definition import BASELINE, UNCHANGED
from playhead.core.experiments.runs import ExperimentRun
from playhead.core.experiments.samples import CaseSamples, Sample
from playhead.core.stats import clustered_rate, paired_rates
from playhead.core.stats.distributions import t_quantile
from playhead.core.stats.rates import standard_error
from playhead.core.values import JSON, Verdict

FORMAT = "playhead.experiment_report/1"
_SHOWN = 20  # cases that are listed by name


Passes = dict[str, tuple[int, int]]
"""By case: verdicts that passed, and verdicts that said yes or no."""


def report(run: ExperimentRun, cases: Sequence[CaseSamples], against: Sequence[CaseSamples] | None = None) -> JSON:
    """The report of a run as JSON.

    Args:
        against: the cases of another run of the same cohort version, to compare each arm with its namesake there.
    """
    named = measures(cases)
    return {
        "format": FORMAT,
        "run": {
            "id": run.id,
            "experiment": run.experiment,
            "cohort": run.cohort,
            "digest": run.digest,
            "repeats": run.repeats,
            "cases": len(run.members),
            "refused": run.refused,
            "erased": [case.session_id for case in cases if case.baseline is None],
            "stopped": run.stopped,
        },
        "baseline": _side(BASELINE, cases, named),
        "arms": [{**_side(name, cases, named), **_comparisons(name, cases, named, against)} for name in run.arm_names],
    }


def _samples(case: CaseSamples, arm: str) -> Sequence[Sample]:
    if arm == BASELINE:
        return () if case.baseline is None else (case.baseline,)
    return case.arms.get(arm, ())


def measures(cases: Sequence[CaseSamples]) -> list[str]:
    """The names of all verdicts, as `measure` gives them, in the order in which they come."""
    names = [
        measure(verdict)
        for case in cases
        for samples in [_samples(case, BASELINE), *case.arms.values()]
        for sample in samples
        for verdict in sample.verdicts
    ]
    return list(dict.fromkeys(names))


def measure(verdict: Verdict) -> str:
    """What a verdict is reported under: its evaluator, and its own name where the evaluator gives several."""
    evaluator = verdict.evaluator or verdict.name
    return evaluator if evaluator.partition("@")[0] == verdict.name else f"{evaluator}/{verdict.name}"


# one side


def _side(arm: str, cases: Sequence[CaseSamples], measures: Sequence[str]) -> dict[str, Any]:
    samples = [sample for case in cases for sample in _samples(case, arm)]
    failed = [sample for sample in samples if sample.status == "failed"]
    return {
        "arm": arm,
        "replays": dict(Counter(sample.status for sample in samples)),
        "fidelity": dict(Counter(sample.fidelity for sample in samples if sample.fidelity is not None)),
        "failures": [
            {"replay": sample.replay_id, "session": sample.session_id, "error": sample.error}
            for sample in failed[:_SHOWN]
        ],
        "cost": _total(sample.cost for sample in samples),
        "tokens": _total(sample.tokens for sample in samples),
        "latency_ms": _mean(sample.latency for sample in samples),
        "verdicts": [_rate(arm, cases, name) for name in measures],
    }


def _total(values: Iterable[float | None]) -> JSON:
    known = [value for value in values if value is not None]
    return {"sum": math.fsum(known), "known": len(known)} if known else None


def _mean(values: Iterable[float | None]) -> JSON:
    known = [value for value in values if value is not None]
    return {"mean": math.fsum(known) / len(known), "known": len(known)} if known else None


def passes(arm: str, cases: Sequence[CaseSamples], name: str) -> Passes:
    """By case, how often a verdict of an arm passed, of how many that said yes or no."""
    found: Passes = {}
    for case in cases:
        said = [
            verdict.passed
            for sample in _samples(case, arm)
            for verdict in sample.verdicts
            if measure(verdict) == name and verdict.passed is not None
        ]
        if said:
            found[case.session_id] = (sum(said), len(said))
    return found


def _rate(arm: str, cases: Sequence[CaseSamples], name: str) -> JSON:
    found = passes(arm, cases, name)
    scores = _by_case(arm, cases, lambda sample: _score(sample, name))
    told: dict[str, Any] = {"verdict": name, "cases": len(found), "rate": None, "interval": None}
    if found:
        rate = clustered_rate(list(found.values()))
        told |= {"rate": rate.rate, "interval": list(rate.interval), "trials": rate.trials}
        told["flaky"] = [id for id, (passed, runs) in found.items() if 0 < passed < runs][:_SHOWN]
    if scores:
        told["score"] = {"mean": math.fsum(scores.values()) / len(scores), "cases": len(scores)}
    return told


def _score(sample: Sample, name: str) -> float | None:
    found = [v.score for v in sample.verdicts if measure(v) == name and v.score is not None]
    numbers = [float(score) for score in found if not isinstance(score, bool)]
    return math.fsum(numbers) / len(numbers) if numbers else None


def _by_case(
    arm: str, cases: Sequence[CaseSamples], value: Callable[[Sample], float | None]
) -> dict[str, float]:  # fmt: skip
    """By case, the mean of a value over the samples of an arm that have one."""
    found: dict[str, float] = {}
    for case in cases:
        known = [v for sample in _samples(case, arm) if (v := value(sample)) is not None]
        if known:
            found[case.session_id] = math.fsum(known) / len(known)
    return found


# two sides


def _comparisons(
    arm: str, cases: Sequence[CaseSamples], measures: Sequence[str], against: Sequence[CaseSamples] | None
) -> dict[str, JSON]:
    told: dict[str, JSON] = {"against_baseline": _compared(arm, cases, BASELINE, cases, measures)}
    if arm != UNCHANGED and any(UNCHANGED in case.arms for case in cases):
        told["against_unchanged"] = _compared(arm, cases, UNCHANGED, cases, measures)
    if against is not None:
        told["against_run"] = _compared(arm, cases, arm, against, measures)
    return told


def _compared(
    arm: str, cases: Sequence[CaseSamples], other: str, others: Sequence[CaseSamples], measures: Sequence[str]
) -> JSON:
    def values(value: Callable[[Sample], float | None]) -> JSON:
        return _difference(_by_case(other, others, value), _by_case(arm, cases, value))

    return {
        "verdicts": [_verdict_change(name, passes(other, others, name), passes(arm, cases, name)) for name in measures],
        "scores": {
            name: change for name in measures if (change := values(lambda s, name=name: _score(s, name))) is not None
        },
        "cost": values(lambda sample: sample.cost),
        "tokens": values(lambda sample: sample.tokens),
        "latency_ms": values(lambda sample: sample.latency),
    }


def _verdict_change(name: str, before: Passes, after: Passes) -> JSON:
    """The paired difference of pass rates. ``interval`` is two-sided at 95 %; ``p_drop`` is one-sided and exact."""
    shared = [id for id in after if id in before]
    if not shared:
        return {"verdict": name, "cases": 0, "difference": None}
    paired = paired_rates([before[id] for id in shared], [after[id] for id in shared])
    by_case = dict(zip(shared, paired.differences, strict=True))
    won, lost = _moved(by_case, 1), _moved(by_case, -1)
    return {
        "verdict": name,
        "cases": paired.cases,
        "difference": paired.diff,
        "interval": list(paired.t_interval),
        "bounds": list(paired.bounds),
        "p_drop": paired.p_drop,
        "p_rise": paired.p_rise,
        "wins": len(won),
        "losses": len(lost),
        "ties": len(shared) - len(won) - len(lost),
        "won_cases": won[:_SHOWN],
        "lost_cases": lost[:_SHOWN],
    }


def _moved(by_case: Mapping[str, int], sign: int) -> list[str]:
    """The cases that moved to one side, the largest change first: they decided."""
    moved = [id for id, change in by_case.items() if change * sign > 0]
    return sorted(moved, key=lambda id: -abs(by_case[id]))


def _difference(before: Mapping[str, float], after: Mapping[str, float]) -> JSON:
    """The mean paired difference with Student's 95 % interval."""
    changes = [after[id] - before[id] for id in after if id in before]
    if not changes:
        return None
    mean = math.fsum(changes) / len(changes)
    if len(changes) < 2:
        return {"cases": len(changes), "difference": mean, "interval": None}
    half = t_quantile(0.975, len(changes) - 1) * standard_error(changes)
    return {"cases": len(changes), "difference": mean, "interval": [mean - half, mean + half]}
