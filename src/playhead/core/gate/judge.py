"""May this release ship: two runs of the same cases, and criteria, to a verdict with reasons.

*Fail* is proof of harm: a thing of zero tolerance happened, or a p-value that stays at most alpha after Holm's
adjustment over all criteria, so that an identical release fails in at most alpha of comparisons. *Pass* is proof of no
harm: every criterion excludes a loss of its margin. Everything else is *inconclusive*, with what would settle it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from playhead.core.gate.criteria import Criteria, Form
from playhead.core.gate.parts import (
    Pairs,
    Part,
    Verdict,
    arguments_part,
    no_data,
    percent,
    points,
    rate_part,
    recovery_part,
    spending_part,
    stability_part,
)
from playhead.core.gate.remarks import CaseChange, flaky_lists, generalises, literal_warning, worst
from playhead.core.gate.verdict import EXIT_CODES, FORMAT, GateReport, Look, ZeroItem, adjusted, alpha_of, decided
from playhead.core.stats import upper_bound
from playhead.core.suites.case_runs import counted, tally
from playhead.core.suites.history import History
from playhead.core.suites.summary import CaseResult, IntentInfo, RecoveryResult, RunSummary, TrialResult


def judge(
    candidate: RunSummary, baseline: RunSummary, criteria: Criteria | None = None, *,
    recovery: RunSummary | None = None, release: bool = False, earlier: Sequence[Look] = (),
    history: History | None = None,
) -> GateReport:  # fmt: skip
    """The verdict on a candidate.

    Args:
        candidate: the run to be released.
        baseline: the run to compare with; both scored with the same labels.
        criteria: None: the defaults.
        recovery: the run with injected failures; without one, those of the candidate itself.
        release: use held-back cases too.
        earlier: verdicts on this pair before this one.
        history: of the candidate; it is told beside stability, and decides nothing.
    """
    criteria = criteria or Criteria()
    alpha = alpha_of(criteria, len(earlier) + 1)
    pairing = _paired(candidate, baseline, "all" if release else "tune")
    injected = (recovery or candidate).recovery
    parts = _parts(pairing.pairs, injected, candidate, criteria, alpha)
    held = _held_back_parts(pairing.pairs, criteria, alpha) if release else ()
    parts, held = adjusted(_with_history(parts, history), held, alpha)
    zero = _zero_items(criteria, pairing.pairs, injected, candidate, alpha)
    report = GateReport(
        verdict="inconclusive", reasons=(), settle=(), parts=parts, zero=zero, alpha=alpha, look=len(earlier) + 1,
        planned_looks=criteria.looks, earlier=tuple(earlier), baseline=baseline.run, candidate=candidate.run,
        suite=candidate.suite, shared=len(pairing.pairs), baseline_active=pairing.baseline_active,
        worst=worst(pairing.pairs), retired=pairing.retired, relabelled=pairing.relabelled, unscored=pairing.unscored,
        held_back=held, held_back_accesses=candidate.held_back_accesses, **flaky_lists(pairing.pairs),
    )  # fmt: skip
    doubts = _doubts(report, candidate, baseline, criteria)
    report = replace(report, warnings=_warnings(report, candidate, baseline, criteria, pairing.pairs, release))
    broken = [_too_many_errors(run, criteria) for run in (candidate, baseline, recovery) if run is not None]
    return decided(report, doubts, [line for line in broken if line])


@dataclass(frozen=True, slots=True)
class _Pairing:
    pairs: Pairs
    baseline_active: int
    retired: tuple[str, ...]
    relabelled: tuple[str, ...]
    unscored: int


def _paired(candidate: RunSummary, baseline: RunSummary, slice: Literal["tune", "all"]) -> _Pairing:
    new, old = {c.id: c for c in candidate.cases}, {c.id: c for c in baseline.cases}
    active = [case for case in counted(baseline.cases, slice) if new.get(case.id, case).status == "active"]
    both = [(case, new[case.id]) for case in active if case.id in new and new[case.id].active]
    changed = [pair for pair in both if None not in (d := {c.label_digest for c in pair}) and len(d) > 1]
    gone = {case.id for run in (candidate, baseline) for case in run.cases if case.status == "retired"}
    retired = sorted(gone, key=lambda name: (_rate(old.get(name)), name))
    different = {b.id for b, _ in changed}
    unscored = sum(case.status == "active" and not case.active for case in candidate.cases)
    pairs = [pair for pair in both if pair[0].id not in different]
    return _Pairing(pairs, len(active), tuple(retired), tuple(sorted(different)), unscored)


def _rate(case: CaseResult | None) -> float:
    passes, runs = tally(case, "whole") if case else (1, 1)
    return passes / runs if runs else 1.0


def _parts(
    pairs: Pairs, injected: Sequence[RecoveryResult], candidate: RunSummary, criteria: Criteria, alpha: float
) -> tuple[Part, ...]:
    parts: list[Part] = []
    on = criteria.criteria
    if "selection" in on:
        parts.append(rate_part("selection", pairs, "selection", criteria.margin, criteria.form_of("selection"), alpha))
    if "intents" in on:
        parts += _intent_parts(pairs, candidate, criteria, alpha)
    if "arguments" in on:
        parts.append(arguments_part(pairs, criteria.margin, criteria.form_of("arguments"), alpha))
    if "recovery" in on:
        parts += _recovery_parts(injected, criteria, alpha)
    if "stability" in on:
        parts.append(stability_part(pairs, criteria.stability_margin, criteria.form_of("stability"), alpha))
    for name, extra in criteria.extra.items():
        if name in ("cost", "latency"):
            parts.append(spending_part(name, pairs, extra.margin, alpha))
        else:
            parts.append(rate_part(name, pairs, name, extra.margin, _other_form(criteria), alpha))
    return tuple(parts)


def _with_history(parts: Sequence[Part], history: History | None) -> tuple[Part, ...]:
    """Three runs show a case that passes nine times of ten as flaky in a quarter of releases; the pool shows more."""
    if history is None:
        return tuple(parts)
    return tuple(
        replace(part, reasons=(*part.reasons, history.line)) if part.name == "stability" else part for part in parts
    )


def _other_form(criteria: Criteria) -> Form:
    """Of what has no form of its own."""
    return "sequential" if criteria.is_sequential else "statistical"


def high_traffic(pairs: Pairs, candidate: RunSummary, criteria: Criteria) -> list[IntentInfo]:
    """Intents with a share of traffic (of cases where no traffic is known) of at least the threshold, or flagged."""
    declared = {info.name: info for info in candidate.intents}
    counts: dict[str, int] = {}
    for _, case in pairs:
        counts[case.intent] = counts.get(case.intent, 0) + 1
    found: list[IntentInfo] = []
    for name, count in sorted(counts.items()):
        info = declared.get(name, IntentInfo(name=name))
        share = count / len(pairs) if info.traffic is None else info.traffic
        if share >= criteria.high_traffic - 1e-9 or info.high_traffic or info.required:
            found.append(info)
    return found


def _intent_parts(pairs: Pairs, candidate: RunSummary, criteria: Criteria, alpha: float) -> list[Part]:
    """High-traffic intents; those too small for their margin are tested for harm alone and shown safe as one pool."""
    form = criteria.form_of("intents")
    intents = high_traffic(pairs, candidate, criteria)
    if not intents:
        return [replace(no_data("intents", criteria.intent_margin, form), reasons=("no intent has high traffic",))]
    parts: list[Part] = []
    pool: list[tuple[CaseResult, CaseResult]] = []
    for info in intents:
        mine = [pair for pair in pairs if pair[1].intent == info.name]
        margin = criteria.intent_margin if info.margin is None else info.margin
        part = rate_part(f"intent {info.name}", mine, "selection", margin, form, alpha)
        if form == "literal":
            fell = part.change is None or part.change < -margin - 1e-12
            why = (f"{points(part.change)} points, literally at most -{100 * margin:g}",)
            parts.append(
                replace(part, verdict="fail" if fell and part.cases else part.verdict if fell else "pass", reasons=why)
            )
            continue
        pooled = not part.powered and not info.required and criteria.unpowered == "pool"
        if pooled:
            pool += mine
        why = part.reasons if part.powered else (*part.reasons, f"{len(mine)} cases are too few for its margin")
        parts.append(replace(part, beyond=margin, only_fails=pooled, reasons=why))
    if pool:
        part = rate_part("intents too small alone, as one", pool, "selection", criteria.intent_margin, form, alpha)
        parts.append(replace(part, p=None))
    return parts


def _recovery_parts(injected: Sequence[RecoveryResult], criteria: Criteria, alpha: float) -> list[Part]:
    form = criteria.form_of("recovery")
    parts = [recovery_part("recovery", injected, criteria.recovery_floor, form, alpha)]
    for kind, floor in sorted(criteria.recovery_floors.items()):
        mine = [result for result in injected if result.kind == kind]
        parts.append(recovery_part(f"recovery {kind}", mine, floor, form, alpha))
    return parts


def _held_back_parts(pairs: Pairs, criteria: Criteria, alpha: float) -> tuple[Part, ...]:
    """The held-back slice alone: it may not fail, and is too small to have to pass."""
    mine = [pair for pair in pairs if pair[1].slice == "held_back"]
    if not mine:
        return ()
    parts: list[Part] = []
    form = _other_form(criteria)
    if "selection" in criteria.criteria:
        parts.append(rate_part("selection", mine, "selection", criteria.margin, form, alpha))
    if "arguments" in criteria.criteria:
        parts.append(arguments_part(mine, criteria.margin, form, alpha))
    if "stability" in criteria.criteria:
        parts.append(stability_part(mine, criteria.stability_margin, form, alpha))
    return tuple(replace(part, name=f"held back: {part.name}", only_fails=True) for part in parts)


def _zero_items(
    criteria: Criteria, pairs: Pairs, injected: Sequence[RecoveryResult], candidate: RunSummary, alpha: float
) -> tuple[ZeroItem, ...]:
    trials = [(case.id, trial) for _, case in pairs for trial in case.trials if trial.status != "error"]
    failures = [result for result in injected if result.status == "scored"]
    items: list[ZeroItem] = []
    for name in criteria.zero_tolerance:
        hits = [case for case, trial in trials if _trial_shows(trial, name)]
        found = [result.case for result in failures if _failure_shows(result, name)]
        of = len(failures) if name in _OF_FAILURES else 0
        if name not in _OF_FAILURES or hits or candidate.driver != "turn":
            of += len(trials)
        seen = len(hits) + len(found)
        where = tuple(dict.fromkeys([*hits, *found]))
        items.append(ZeroItem(name=name, seen=seen, of=of, upper=upper_bound(seen, of, 1 - alpha), where=where))
    return tuple(items)


_OF_FAILURES: Final = frozenset({"loop", "double_side_effect", "silent_wrong_answer", "blind_repeat", "unclear_end"})
"""What a single turn cannot show: counted over injected failures and trials of whole agents."""


def _trial_shows(trial: TrialResult, name: str) -> bool:
    flag = name.removeprefix("flag:")
    return flag in trial.flags or trial.reason == name or any(e.bin == name for e in trial.schema_errors)


def _failure_shows(result: RecoveryResult, name: str) -> bool:
    if name == "double_side_effect":
        return result.double == "standing" or name in result.flags
    return result.outcome == name or name.removeprefix("flag:") in result.flags


def _too_many_errors(run: RunSummary, criteria: Criteria) -> str | None:
    if run.trials and run.errors / run.trials <= criteria.error_limit:
        return None
    if not run.trials:
        return f"run {run.run} has no trials"
    share = run.errors / run.trials
    return f"run {run.run}: {run.errors} of {run.trials} trials ended in errors ({percent(share)}), too many to judge"


def _doubts(
    report: GateReport, candidate: RunSummary, baseline: RunSummary, criteria: Criteria
) -> list[tuple[str, str]]:
    """What keeps a verdict from being a pass whatever the criteria say, and what would settle it."""
    found: list[tuple[str, str]] = []
    for side, run in (("the candidate", candidate), ("the baseline", baseline)):
        runs = _runs(run)
        if runs < criteria.min_runs:
            found.append(
                (
                    f"{side} has {runs} runs per case, fewer than {criteria.min_runs}",
                    f"run with --runs {criteria.min_runs}",
                )
            )
    if report.shared < criteria.shared * report.baseline_active:
        share = f"{report.shared} of the baseline's {report.baseline_active} active cases"
        found.append((f"only {share} are shared", "run both on the same cases"))
    bound = candidate.labels.residual_upper if candidate.labels else None
    if bound is not None and bound > criteria.label_bound:
        why = f"up to {percent(bound)} of the labels may be wrong, more than {percent(criteria.label_bound)}"
        found.append((why, "review more labels: `playhead suite review SUITE`"))
    return found


def _runs(run: RunSummary) -> int:
    """Runs per case, as most cases have them."""
    found = sorted(len(case.trials) for case in counted(run.cases) if case.trials)
    return found[len(found) // 2] if found else 0


def _warnings(
    report: GateReport, candidate: RunSummary, baseline: RunSummary, criteria: Criteria, pairs: Pairs, release: bool
) -> tuple[str, ...]:
    checks: list[Callable[[], str | None]] = [
        lambda: literal_warning(criteria, pairs),
        lambda: generalises(pairs, report.alpha) if release else None,
        lambda: (
            f"look {report.look} at this pair was not planned: alpha is {report.alpha:g}"
            if report.look > criteria.looks and not criteria.is_sequential
            else None
        ),
        lambda: f"{report.unscored} cases have no label that counts" if report.unscored else None,
        lambda: (
            "made with a scripted model: this measures the harness, not a model"
            if candidate.scripted or baseline.scripted
            else None
        ),
        lambda: (
            f"held-back cases were read {candidate.held_back_accesses} times since the last refresh"
            if (candidate.held_back_accesses or 0) >= 10
            else None
        ),
        lambda: "one of the runs is of another suite" if candidate.suite != baseline.suite else None,
    ]
    return tuple(text for text in (check() for check in checks) if text)


__all__ = [
    "EXIT_CODES",
    "FORMAT",
    "CaseChange",
    "Criteria",
    "GateReport",
    "Look",
    "Part",
    "Verdict",
    "ZeroItem",
    "alpha_of",
    "high_traffic",
    "judge",
]
