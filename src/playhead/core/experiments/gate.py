"""May a change ship: the arms of an experiment's run against its recordings, by the rules of `core.gate.judge`.

A verdict of an evaluator that says yes or no is a criterion, so one whose pass rate may not drop. All criteria of all
arms are one family, so that changes without an effect fail in at most alpha of runs, however many arms there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from playhead.core.experiments.definition import BASELINE, UNCHANGED
from playhead.core.experiments.report import measure, measures
from playhead.core.experiments.runs import ExperimentRun
from playhead.core.experiments.samples import CaseSamples, Sample
from playhead.core.gate.criteria import Criteria
from playhead.core.gate.parts import Pairs, Part, percent, rate_part, spending_part, stability_part
from playhead.core.gate.remarks import CaseChange, flaky_lists, worst
from playhead.core.gate.verdict import GateReport, Look, ZeroItem, adjusted, alpha_of, decided
from playhead.core.stats import upper_bound
from playhead.core.suites.summary import CaseResult, TrialResult

_ZERO: Final = {"loop": "no-loops", "double_side_effect": "no-double-side-effect"}
"""The evaluators that find what a gate does not tolerate."""

_SPENT: Final[tuple[Literal["cost", "latency"], ...]] = ("cost", "latency")

_ABOUT_RECORDING: Final = "fidelity"
"""Compares a replay with its recording, of which it says nothing itself."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one arm showed."""

    parts: tuple[Part, ...] = ()
    zero: tuple[ZeroItem, ...] = ()
    worst: tuple[CaseChange, ...] = ()
    stability: Pairs = ()
    doubts: tuple[tuple[str, str], ...] = ()
    broken: str | None = None
    note: str | None = None


def gated_arms(run: ExperimentRun) -> tuple[str, ...]:
    """The arms that a gate judges: the changes; the unchanged one where there is no other."""
    return tuple(name for name in run.arm_names if name != UNCHANGED) or run.arm_names


def judge_experiment(
    run: ExperimentRun, cases: Sequence[CaseSamples], criteria: Criteria | None = None, *, earlier: Sequence[Look] = ()
) -> GateReport:
    """The verdict on a run's changes.

    Of the criteria count ``alpha, margin, stability_margin, zero_tolerance, extra`` (cost and latency), ``form`` of
    selection (for every verdict) and stability, ``min_runs`` (for arms with a live model), ``looks, error_limit``.
    Stability is compared with the unchanged arm, where there is one: a recording is one run, which cannot be flaky.
    """
    criteria = criteria or Criteria()
    alpha = alpha_of(criteria, len(earlier) + 1)
    found = [_arm(run, arm, cases, criteria, alpha) for arm in gated_arms(run)]
    parts, _ = adjusted([part for one in found for part in one.parts], (), alpha)
    flaky = [flaky_lists(one.stability) for one in found]
    late = f"look {len(earlier) + 1} at this run was not planned: alpha is {alpha:g}"
    notes = [one.note for one in found if one.note] + ([late] if len(earlier) >= criteria.looks else [])
    report = GateReport(
        verdict="inconclusive", reasons=(), settle=(), parts=parts, zero=tuple(z for one in found for z in one.zero),
        alpha=alpha, look=len(earlier) + 1, planned_looks=criteria.looks, earlier=tuple(earlier), baseline=run.cohort,
        candidate=run.id, suite=run.experiment, shared=len(_compared(cases)), baseline_active=len(cases),
        worst=tuple(w for one in found for w in one.worst), warnings=tuple(notes),
        newly_flaky=tuple(id for one in flaky for id in one["newly_flaky"]),
        no_longer_flaky=tuple(id for one in flaky for id in one["no_longer_flaky"]),
    )  # fmt: skip
    return decided(report, [d for one in found for d in one.doubts], [one.broken for one in found if one.broken])


def _arm(run: ExperimentRun, arm: str, cases: Sequence[CaseSamples], criteria: Criteria, alpha: float) -> _Found:
    samples = [sample for case in cases for sample in case.arms.get(arm, ())]
    broken = [sample for sample in samples if sample.status != "completed"]
    if not samples or len(broken) / len(samples) > criteria.error_limit:
        return _Found(broken=_told_broken(arm, samples, broken))
    forbidden = _zero_evaluators(criteria)
    counted = _compared(cases)
    judged = [name for name in measures(cases) if _is_criterion(name, cases, forbidden)]
    form = criteria.form_of("selection")
    parts = [
        rate_part(f"{arm}: {name}", _verdict_pairs(arm, counted, name), "selection", criteria.margin, form, alpha)
        for name in judged
    ]
    steady = _against_unchanged(arm, cases) if "stability" in criteria.criteria else ()
    if steady:
        part = stability_part(steady, criteria.stability_margin, criteria.form_of("stability"), alpha)
        parts.append(replace(part, name=f"{arm}: stability", only_fails=part.cases == 0))
    for name in _SPENT:
        if name in criteria.extra:
            part = spending_part(name, _pairs(arm, counted), criteria.extra[name].margin, alpha)
            parts.append(replace(part, name=f"{arm}: {name}"))
    zero = [_zero(arm, name, evaluator, samples, alpha) for name, evaluator in forbidden.items()]
    return _Found(
        parts=tuple(parts), zero=tuple(item for item in zero if item.of), stability=steady,
        worst=tuple(replace(one, intent=arm) for one in worst(_pairs(arm, counted))),
        doubts=_doubts(run, arm, criteria, judged=bool(judged)),
        note=None if steady else f"{arm}: nothing to compare stability with; --unchanged adds an arm that it has",
    )  # fmt: skip


def _compared(cases: Sequence[CaseSamples]) -> list[CaseSamples]:
    return [case for case in cases if case.baseline is not None]


def _verdict_pairs(arm: str, cases: Sequence[CaseSamples], name: str) -> Pairs:
    """What a verdict is compared with: what it says of the recordings. Of a recording alone some say nothing, as they
    compare with it: these are compared with the unchanged arm, and without one with the recording, which equals itself.
    """
    said = [v for c in cases if c.baseline for v in c.baseline.verdicts if measure(v) == name]
    compares = bool(said) and all(verdict.passed is None and verdict.error is None for verdict in said)
    if not compares:
        return _pairs(arm, cases, name)
    if steady := _against_unchanged(arm, cases, name):
        return steady
    itself = (TrialResult(run=0, selection=True),)
    return [(CaseResult(id=c.session_id, intent="", trials=itself), _result(c, arm, name)) for c in cases]


def _against_unchanged(arm: str, cases: Sequence[CaseSamples], name: str | None = None) -> Pairs:
    if arm == UNCHANGED or not any(case.arms.get(UNCHANGED) for case in cases):
        return ()
    return [(_result(case, UNCHANGED, name), _result(case, arm, name)) for case in cases]


def _doubts(run: ExperimentRun, arm: str, criteria: Criteria, *, judged: bool) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    if not judged:
        found.append((f"{arm}: no evaluator said yes or no", "create the experiment with --evaluator"))
    if _is_live(run, arm) and run.repeats < criteria.min_runs:
        why = f"{arm}: {run.repeats} repeats with a live model, fewer than {criteria.min_runs}"
        found.append((why, f"run with --repeats {criteria.min_runs}, or offline with --model-history"))
    return tuple(found)


def _told_broken(arm: str, samples: Sequence[Sample], broken: Sequence[Sample]) -> str:
    if not samples:
        return f"{arm}: no replay was run"
    first = next((sample.error for sample in broken if sample.error), None)
    share = percent(len(broken) / len(samples))
    told = f"{arm}: {len(broken)} of {len(samples)} replays came to no end ({share}), too many to judge"
    return told if first is None else f"{told}; the first: {first}"


def _zero_evaluators(criteria: Criteria) -> dict[str, str]:
    """What is not tolerated, and whose verdict finds it; ``flag:NAME`` names an evaluator of the user's own."""
    known = {name: _ZERO.get(name, name.removeprefix("flag:")) for name in criteria.zero_tolerance}
    return {name: found for name, found in known.items() if name in _ZERO or name.startswith("flag:")}


def _evaluator(name: str) -> str:
    return name.partition("@")[0]


def _is_criterion(name: str, cases: Sequence[CaseSamples], forbidden: Mapping[str, str]) -> bool:
    """A verdict that ever says yes or no, and says it of a session: a bare score has no rate."""
    if _evaluator(name) in (*forbidden.values(), _ABOUT_RECORDING):
        return False
    sides = [sample for case in cases for found in ([case.baseline], *case.arms.values()) for sample in found]
    return any(_passed(sample, name) is not None for sample in sides if sample is not None)


def _passed(sample: Sample, name: str | None) -> bool | None:
    """What a verdict said of a sample; without a name, whether all of them passed."""
    known = [(measure(verdict), verdict.passed) for verdict in sample.verdicts if verdict.passed is not None]
    said = [ok for one, ok in known if one == name or (name is None and _evaluator(one) != _ABOUT_RECORDING)]
    return all(said) if said else None


def _result(case: CaseSamples, arm: str, name: str | None = None) -> CaseResult:
    samples = ([case.baseline] if case.baseline else []) if arm == BASELINE else case.arms.get(arm, ())
    trials = tuple(
        TrialResult(
            run=n, status="scored" if _ended(sample, arm) else "error", selection=_passed(sample, name),
            cost_usd=sample.cost, latency_ms=sample.latency,
        )
        for n, sample in enumerate(samples)
    )  # fmt: skip
    return CaseResult(id=case.session_id, intent="", trials=trials)


def _ended(sample: Sample, arm: str) -> bool:
    return arm == BASELINE or sample.status == "completed"


def _pairs(arm: str, cases: Sequence[CaseSamples], name: str | None = None) -> Pairs:
    return [(_result(case, BASELINE, name), _result(case, arm, name)) for case in cases]


def _is_live(run: ExperimentRun, arm: str) -> bool:
    policy = next((one.get("model_policy") for one in run.arms if one["name"] == arm), None)
    return policy is None or policy.get("type") == "live"


def _zero(arm: str, name: str, evaluator: str, samples: Sequence[Sample], alpha: float) -> ZeroItem:
    said = [
        (sample.session_id or "", verdict.passed)
        for sample in samples
        for verdict in sample.verdicts
        if verdict.passed is not None and evaluator in (_evaluator(verdict.evaluator or ""), verdict.name)
    ]
    hits = tuple(session for session, passed in said if not passed)
    upper = upper_bound(len(hits), len(said), 1 - alpha)
    return ZeroItem(name=f"{arm}: {name}", seen=len(hits), of=len(said), upper=upper, where=hits)
