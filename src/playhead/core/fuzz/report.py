"""What a fuzz run came to, as one JSON value that every form of the report is made of."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from playhead.core.codec import dump, load
from playhead.core.fuzz.cases import FuzzCase, FuzzSet
from playhead.core.fuzz.direct import DIRECT_CLASSES, Told, class_of
from playhead.core.fuzz.feedback import GROUPS, group_of
from playhead.core.fuzz.findings import Finding, false_discovery_rate
from playhead.core.fuzz.interface import UNCHANGED
from playhead.core.lint.errors import Failure, judge_all
from playhead.core.protocol.shape import obj
from playhead.core.stats import clustered_rate, paired_rates, rate_interval
from playhead.core.suites.suite import ToolSchema
from playhead.core.suites.trials import ERROR_LIMIT, SuiteRun, Trial
from playhead.core.values import JSON

FORMAT: Final = "playhead.fuzz_report/1"
_SHOWN_TEXT: Final = 500


def fuzz_report(
    made: FuzzSet, *, set_digest: str, run: SuiteRun | None = None, trials: Sequence[Trial] = (),
    direct: SuiteRun | None = None, told: Mapping[str, Told] | None = None, accepted: int = 0, without_case: int = 0,
    tools: Mapping[str, ToolSchema] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The report.

    Args:
        run: through a model, with its ``trials``; those beyond its runs confirmed findings and count in no rate.
        direct: of direct calls, with what each case was ``told``.
        accepted: cases that the tools take, so that nothing is rejected.
        without_case: cases of tools that no case of the suite offers.
        tools: by name; the error texts of direct calls are judged against them.
    """
    known = {case.id: case for case in made.cases}
    counted = [(known[t.case], t) for t in trials if t.case in known and run is not None and t.n < run.runs]
    findings = _findings(run) + _findings(direct)
    errors = sum(trial.status == "error" for _, trial in counted)
    return {
        "format": FORMAT,
        "set": set_digest,
        "seed": made.seed,
        "per_tool": made.per_tool,
        "families": list(made.families),
        "cases": len(made.cases),
        "by_family": dict(Counter("query" if case.query is not None else case.family for case in made.cases)),
        "skipped": made.skipped,
        "run": None if run is None else _run(run),
        "direct_run": None if direct is None else _run(direct),
        "trials": len(counted),
        "errors": errors,
        "first_error": next((trial.error for _, trial in counted if trial.status == "error"), None),
        "too_many_errors": bool(counted) and errors / len(counted) > ERROR_LIMIT,
        "accepted": accepted,
        "without_case": without_case,
        "fed_back": _fed_back(counted),
        "interface": _interface(counted),
        "queries": _queries(counted),
        "direct": None if direct is None else _direct(made, told or {}, direct, tools or {}),
        "findings": [_shown(one) for one in findings],
        "false_discovery_rate": false_discovery_rate(findings),
        "false_discovery_rates": {
            source: false_discovery_rate([one for one in findings if one.source == source])
            for source in ("direct", "model")
        },
    }


def _run(run: SuiteRun) -> dict[str, JSON]:
    return {
        "id": run.id, "suite": run.suite, "model": run.model, "status": run.status, "stopped_by": run.stopped_by,
        "runs": run.runs, "seed": run.seed, "scripted": run.scripted,
    }  # fmt: skip


def _findings(run: SuiteRun | None) -> list[Finding]:
    held: Any = () if run is None else run.config.get("findings") or ()
    return [load(Finding, one, trusted=True) for one in held]


def _shown(one: Finding) -> dict[str, JSON]:
    """A finding without arguments that nobody could read."""
    found = dump(one)
    found.pop("base", None)
    if len(repr(one.arguments)) > 4 * _SHOWN_TEXT:
        found["arguments"] = f"{repr(one.arguments)[:_SHOWN_TEXT]}…"
    return {"confirmed": False, "text": "", "template": "", **found}


def _rate(cases: Mapping[str, list[bool]]) -> dict[str, Any]:
    """A rate over cases and their runs, with its interval."""
    passes, trials = sum(map(sum, cases.values())), sum(map(len, cases.values()))
    if not trials:
        return {"n": 0, "of": 0, "rate": None, "interval": None}
    if trials == len(cases) or len(cases) < 2:
        interval = rate_interval(passes, trials)
    else:
        interval = clustered_rate([(sum(found), len(found)) for found in cases.values()]).interval
    return {"n": passes, "of": trials, "rate": passes / trials, "interval": list(interval)}


# --- fed back -------------------------------------------------------------------------------------------------------


def _fed_back(counted: Iterable[tuple[FuzzCase, Trial]]) -> dict[str, Any]:
    rows = [
        (case, trial, outcome)
        for case, trial in counted
        if case.perturbed is None and case.query is None and (outcome := trial_outcome(case, trial)) is not None
    ]
    groups: dict[tuple[str, str], list[tuple[FuzzCase, Trial, str]]] = {}
    families: dict[str, list[tuple[FuzzCase, Trial, str]]] = {}
    for row in rows:
        groups.setdefault((row[0].family, row[0].tool), []).append(row)
        families.setdefault(row[0].family, []).append(row)
    return {
        "trials": len(rows),
        "families": [{"family": name, **_group(found)} for name, found in sorted(families.items())],
        "groups": [
            {"family": family, "tool": tool, **_group(found)} for (family, tool), found in sorted(groups.items())
        ],
        "rejected_by": dict(Counter(str(_extra(trial).get("by")) for _, trial, _ in rows if _extra(trial).get("by"))),
        "next_actions": dict(
            Counter(str(_extra(t).get("next_action")) for _, t, _ in rows if _extra(t).get("next_action"))
        ),
        "flags": dict(Counter(str(flag) for _, t, _ in rows for flag in obj(t.extra).get("flags") or ())),
    }


def _extra(trial: Trial) -> dict[str, Any]:
    return obj(obj(trial.extra).get("fuzz"))


def trial_outcome(fuzz: FuzzCase, trial: Trial) -> str | None:
    """The class of a trial, None where it says nothing: an infrastructure error, a changed tool set."""
    if trial.status == "error" or fuzz.perturbed is not None:
        return None
    if trial.failure is not None:
        return "overflow" if fuzz.family == "oversized" else "refused"
    found = _extra(trial).get("outcome")
    return None if found is None else str(found)


def _group(rows: Sequence[tuple[FuzzCase, Trial, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {"trials": len(rows)}
    for name in GROUPS:
        cases: dict[str, list[bool]] = {}
        for case, _, outcome in rows:
            cases.setdefault(case.id, []).append(group_of(outcome) == name)
        found[name] = _rate(cases)
    return {**found, "classes": dict(Counter(outcome for _, _, outcome in rows))}


# --- changed tool sets ----------------------------------------------------------------------------------------------


def _interface(counted: Iterable[tuple[FuzzCase, Trial]]) -> list[dict[str, Any]]:
    """For each perturbation what selection and values lose against the unchanged tools, case by case."""
    scores: dict[str, dict[str, dict[str, list[bool]]]] = {"selection": {}, "values": {}}
    for case, trial in counted:
        if case.perturbed is None or trial.status == "error":
            continue
        for name, held in scores.items():
            value = False if trial.failure is not None else _extra(trial).get(name)
            if value is not None:
                held.setdefault(case.mutation, {}).setdefault(str(case.source), []).append(bool(value))
    names = [name for name in scores["selection"] if name != UNCHANGED]
    rows: list[dict[str, Any]] = []
    for name in sorted(names):
        paired = {kind: _paired(held.get(UNCHANGED, {}), held.get(name, {})) for kind, held in scores.items()}
        if paired["selection"] is not None:
            rows.append({"perturbation": name, **paired, "says": _says(name, paired["selection"])})
    return rows


def _paired(before: Mapping[str, list[bool]], after: Mapping[str, list[bool]]) -> dict[str, Any] | None:
    shared = [case for case in before if case in after]
    if not shared:
        return None
    baseline, changed = ([(sum(held[c]), len(held[c])) for c in shared] for held in (before, after))
    found = paired_rates(baseline, changed)
    return {
        "cases": len(shared), "unchanged": _mean(baseline), "changed": _mean(changed), "difference": found.diff,
        "interval": list(found.t_interval), "p_drop": found.p_drop,
    }  # fmt: skip


def _mean(pairs: Sequence[tuple[int, int]]) -> float:
    return sum(passes / of for passes, of in pairs) / len(pairs)


_MEANING: Final = {
    "opaque_tool_names": "tool names", "opaque_parameter_names": "parameter names",
    "opaque_descriptions": "descriptions", "swapped_descriptions": "descriptions", "dropped_enums": "enums",
    "loosened_types": "types", "shuffled_order": "the order of tools",
}  # fmt: skip


def _says(name: str, selection: Mapping[str, Any]) -> str | None:
    """What a clear drop says of the interface."""
    if selection["p_drop"] > 0.05:
        return None
    if name in _MEANING:
        return f"{_MEANING[name]} carry the meaning"
    return "more tools lower the choice: some overlap with those of the case"


# --- queries and direct calls ---------------------------------------------------------------------------------------


def _queries(counted: Iterable[tuple[FuzzCase, Trial]]) -> list[dict[str, Any]]:
    writers: dict[str, list[tuple[FuzzCase, Trial]]] = {}
    for case, trial in counted:
        if case.query is not None and trial.status != "error":
            writers.setdefault(str(case.writer), []).append((case, trial))
    rows: list[dict[str, Any]] = []
    for writer, found in sorted(writers.items()):
        hits: dict[str, list[bool]] = {}
        for case, trial in found:
            hits.setdefault(case.id, []).append(bool(_extra(trial).get("hit")))
        why = Counter(str(_extra(trial).get("outcome")) for _, trial in found)
        rows.append({"writer": writer, **_rate(hits), "outcomes": dict(why)})
    return rows


def _direct(
    made: FuzzSet, told: Mapping[str, Told], run: SuiteRun, schemas: Mapping[str, ToolSchema]
) -> dict[str, Any]:
    called = [(case, class_of(told[case.id], case.expectation)) for case in made.cases if case.id in told]
    tools: dict[str, Counter[str]] = {}
    for case, outcome in called:
        tools.setdefault(case.tool, Counter())[outcome] += 1
    counts = Counter(outcome for _, outcome in called)
    return {
        "calls": len(called),
        "classes": {name: counts[name] for name in DIRECT_CLASSES},
        "tools": [{"tool": tool, **{n: found[n] for n in DIRECT_CLASSES}} for tool, found in sorted(tools.items())],
        "missing": list(run.config.get("missing") or ()),
        "error_texts": _error_texts(made, told, schemas),
    }


def _error_texts(made: FuzzSet, told: Mapping[str, Told], schemas: Mapping[str, ToolSchema]) -> list[dict[str, JSON]]:
    """How much each text with which a tool refused a call helps whoever made it; the least helpful first."""
    failures = [
        Failure(case.tool, case.arguments, told[case.id].text)
        for case in made.cases
        if case.id in told and class_of(told[case.id], case.expectation) == "rejected" and not told[case.id].binding
    ]
    order = ("opaque", "partial", "prescriptive")
    found = sorted(judge_all(failures, schemas), key=lambda one: (order.index(one.level), -one.count, one.tool))
    return [
        {
            "tool": one.tool, "level": one.level, "count": one.count, "text": one.text[:_SHOWN_TEXT],
            "better": one.suggestion,
        }
        for one in found
    ]  # fmt: skip
