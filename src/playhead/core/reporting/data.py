"""What every report says, as one versioned JSON value."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from playhead.core.gate.judge import GateReport
from playhead.core.gate.parts import recovery_rate
from playhead.core.gate.report_json import gate_json, plain_json
from playhead.core.recovery.report import checklist
from playhead.core.reporting.condition import freshness, target_line
from playhead.core.reporting.interface import interface_lines, tuned
from playhead.core.stats import clustered_rate, paired_rates, pass_k, recovery
from playhead.core.suites.case_runs import MEASURES, Measure, class_of, counted, results, tallies, tally
from playhead.core.suites.contents import Contents
from playhead.core.suites.history import History
from playhead.core.suites.summary import CaseResult, RecoveryResult, RunSummary

FORMAT: Final = "playhead.report/1"
_TOP: Final = 10


def report_json(
    run: RunSummary, *, baseline: RunSummary | None = None, gate: GateReport | None = None,
    recovery_run: RunSummary | None = None, history: History | None = None, contents: Contents | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Everything about a run, against a baseline where there is one.

    The held-back slice is given in totals only; none of its cases is named.

    Args:
        contents: the suite, for what is to be said of its tools; nothing is where it is not at hand.
    """
    cases = counted(run.cases, "tune" if run.slice != "held_back" else "all")
    named = [case for case in cases if case.slice == "tune"]
    failures = (recovery_run or run).recovery
    return {
        "format": FORMAT,
        "run": _identity(run),
        "baseline": None if baseline is None else _identity(baseline),
        "gate": None if gate is None else gate_json(gate),
        "dimensions": {name: _dimension(cases, baseline, name) for name in MEASURES},
        "pass_k": [{"k": k, **pass_k(tallies(cases, "whole"), k)._asdict()} for k in range(1, run.runs + 1)],
        "intents": _intents(cases, baseline),
        "arguments": _argument_errors(cases),
        "flaky": [_case(case) for case in named if class_of(*tally(case, "whole")) == "flaky"],
        "failing": [_case(case) for case in named if class_of(*tally(case, "whole")) == "fail"],
        "history": None if history is None else {"line": history.line, **plain_json(history)},
        "cases": [_case(case) for case in named],
        "differences": _differences(named, baseline),
        "recovery": _recovery(failures),
        "labels": None if run.labels is None else plain_json(run.labels),
        "label_findings": [{"case": case.id, "finding": text} for case in named for text in case.findings],
        "target": target_line(run),
        "freshness": freshness(run),
        "unscored": sum(case.status == "active" and not case.active for case in run.cases),
        "retired": [case.id for case in run.cases if case.status == "retired"],
        "held_back": _held_back(run),
        "checklist": checklist(failures, contents, tuned(contents)),
        "look_first": [*_failing_places(named), *interface_lines(contents), *_stuck(failures)],
        "notes": list(run.notes),
    }


def _identity(run: RunSummary) -> dict[str, Any]:
    trials = [trial for case in run.cases for trial in case.trials]
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    waits = [trial.latency_ms for trial in trials if trial.latency_ms is not None]
    return {
        "id": run.run, "suite": run.suite, "suite_digest": run.suite_digest, "model": run.model,
        "params": dict(run.params),
        "driver": run.driver, "slice": run.slice, "runs": run.runs, "seed": run.seed, "strict": run.strict,
        "strict_trials": sum(trial.strict for trial in trials), "scripted": run.scripted, "created_at": run.created_at,
        "agent_version": run.agent_version, "trials": run.trials, "errors": run.errors,
        "cost_usd": sum(costs) if costs else None, "latency_ms": sum(waits) / len(waits) if waits else None,
        "forced_choice": sum(case.forced_choice for case in run.cases),
    }  # fmt: skip


def _dimension(cases: Sequence[CaseResult], baseline: RunSummary | None, name: Measure) -> dict[str, Any] | None:
    """Rate and interval, clustered by case; None where the dimension applies to no trial."""
    found = tallies(cases, name)
    if not found:
        return None
    rate = clustered_rate(found)
    told: dict[str, Any] = {
        "rate": rate.rate, "interval": list(rate.interval), "cases": rate.cases, "trials": rate.trials,
        "passes": sum(passes for passes, _ in found), "icc": rate.icc, "n_effective": rate.n_effective,
    }  # fmt: skip
    if baseline is not None:
        told["against"] = _paired(cases, baseline, name)
    return told


def _paired(cases: Sequence[CaseResult], baseline: RunSummary, name: Measure) -> dict[str, Any] | None:
    old = {case.id: tally(case, name) for case in counted(baseline.cases)}
    both = [(old[c.id], tally(c, name)) for c in cases if c.id in old]
    known = [(b, c) for b, c in both if b[1] and c[1]]
    if not known:
        return None
    compared = paired_rates([b for b, _ in known], [c for _, c in known])
    return {
        "change": compared.diff, "bounds": list(compared.bounds), "p_drop": compared.p_drop, "p_rise": compared.p_rise,
        "cases": compared.cases, "dropped": compared.dropped, "rose": compared.rose,
    }  # fmt: skip


def _intents(cases: Sequence[CaseResult], baseline: RunSummary | None) -> list[dict[str, Any]]:
    groups: dict[str, list[CaseResult]] = defaultdict(list)
    for case in cases:
        groups[case.intent].append(case)
    return [{"intent": i, "selection": _dimension(mine, baseline, "selection")} for i, mine in sorted(groups.items())]


def _argument_errors(cases: Sequence[CaseResult]) -> dict[str, Any]:
    bins: Counter[str] = Counter()
    places: Counter[tuple[str, str, str]] = Counter()
    coercible = 0
    for case in cases:
        for trial in case.trials:
            bins.update({error.bin for error in trial.schema_errors})
            bins.update({error.reason for error in trial.value_errors})
            coercible += any(error.coercible for error in trial.schema_errors)
            if case.slice == "tune":
                places.update({(e.tool, e.pointer, e.bin) for e in trial.schema_errors})
                places.update({(e.tool, e.pointer, e.reason) for e in trial.value_errors})
    rows = [
        {"tool": t, "pointer": p, "error": e, "trials": n} for (t, p, e), n in sorted(places.items(), key=_by_count)
    ]
    return {"bins": dict(sorted(bins.items())), "coercible": coercible, "places": rows}


def _by_count(item: tuple[tuple[str, ...], int]) -> tuple[int, tuple[str, ...]]:
    return -item[1], item[0]


def _case(case: CaseResult) -> dict[str, Any]:
    reasons = Counter(trial.reason for trial in case.trials if trial.selection is False and trial.reason)
    return {
        "id": case.id, "intent": case.intent, "class": class_of(*tally(case, "whole")), "runs": results(case, "whole"),
        "reasons": [reason for reason, _ in reasons.most_common()], "label_state": case.label_state,
        "errors": sum(trial.status == "error" for trial in case.trials),
    }  # fmt: skip


def _differences(cases: Sequence[CaseResult], baseline: RunSummary | None) -> list[dict[str, Any]]:
    """Per case, candidate minus baseline, the worst first; cases that do not differ are left out."""
    if baseline is None:
        return []
    old = {case.id: tally(case, "whole") for case in counted(baseline.cases)}
    rows: list[dict[str, Any]] = []
    for case in cases:
        before, after = old.get(case.id, (0, 0)), tally(case, "whole")
        if before[1] and after[1] and (change := after[0] / after[1] - before[0] / before[1]):
            rows.append({"id": case.id, "before": list(before), "after": list(after), "change": change})
    return sorted(rows, key=lambda row: (row["change"], row["id"]))


def _recovery(failures: Sequence[RecoveryResult]) -> dict[str, Any] | None:
    scored = [result for result in failures if result.status == "scored"]
    rate = recovery_rate(scored)
    if rate is None:
        return None
    groups: dict[str, dict[str, list[RecoveryResult]]] = {"kind": {}, "tool": {}, "message": {}}
    for result in scored:
        for by, held in groups.items():
            held.setdefault(str(getattr(result, by)), []).append(result)
    counts = {k: (sum(r.recovered for r in mine), len(mine)) for k, mine in groups["kind"].items()}
    matrix = {kind: dict(Counter(str(r.outcome) for r in mine)) for kind, mine in sorted(groups["kind"].items())}
    steps = [result.steps for result in scored if result.recovered and result.steps is not None]
    return {
        "rate": rate.rate, "interval": list(rate.interval), "injected": rate.trials, "cases": rate.cases,
        "kinds": plain_json(recovery(counts)), "matrix": matrix,
        "by": {name: _recovered_of(held) for name, held in groups.items()},
        "doubles": dict(Counter(r.double for r in scored if r.double)),
        "next_actions": dict(Counter(r.next_action for r in scored if r.next_action)),
        "mean_steps": sum(steps) / len(steps) if steps else None,
    }  # fmt: skip


def _recovered_of(groups: Mapping[str, Sequence[RecoveryResult]]) -> dict[str, list[int]]:
    return {name: [sum(r.recovered for r in mine), len(mine)] for name, mine in sorted(groups.items())}


def _held_back(run: RunSummary) -> dict[str, Any] | None:
    mine = counted(run.cases, "held_back")
    if not mine and run.held_back_accesses is None:
        return None
    return {"cases": len(mine), "accesses": run.held_back_accesses, "selection": _dimension(mine, None, "selection")}


def _failing_places(cases: Sequence[CaseResult]) -> list[str]:
    """Arguments that fail most, and tools that are taken for another: what to mend before any prompt is reworded."""
    found = [
        f"{row['tool']} {row['pointer'] or '(whole call)'}: {row['error']} in {row['trials']} trials"
        for row in _argument_errors(cases)["places"][:_TOP]
    ]
    wrong = Counter(c.intent for c in cases for t in c.trials if t.reason == "wrong_tool")
    return found + [f"intent {intent}: another tool was chosen in {n} trials" for intent, n in wrong.most_common(3)]


def _stuck(failures: Sequence[RecoveryResult]) -> list[str]:
    stuck = Counter(r.tool for r in failures if r.outcome in ("loop", "blind_repeat"))
    return [f"{tool}: failures led to {n} loops or blind repeats" for tool, n in stuck.most_common(3)]
