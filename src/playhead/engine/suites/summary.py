"""Stored runs as the gate and the reports read them, scored with today's labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from playhead.core.access_log import since_refresh
from playhead.core.argument_schema import ArgumentError
from playhead.core.codec import load
from playhead.core.proposals import proposed_contents
from playhead.core.protocol.shape import obj
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import answer_of
from playhead.core.suites.label_log import (
    TRUST,
    Audit,
    Settled,
    active,
    agreements,
    audits,
    by_case,
    review_queue,
    settle,
)
from playhead.core.suites.labels import check_label, label_digest
from playhead.core.suites.scoring import Attempt, Score, score
from playhead.core.suites.suite import Case, case_digest, schemas
from playhead.core.suites.summary import (
    CaseResult,
    IntentInfo,
    LabelQuality,
    RecoveryResult,
    RunSummary,
    SchemaMismatch,
    TrialResult,
    ValueMismatch,
)
from playhead.core.suites.trials import SuiteRun, Trial
from playhead.core.values import JSON, Usage
from playhead.engine.suites.location import iso
from playhead.store.ports import Store


def run_summary(store: Store, run: str, *, contents: Contents | None = None, trust: Iterable[str] = ()) -> RunSummary:
    """A run as it stands with today's labels.

    Args:
        run: id, part of one, ``last`` or ``last~N``.
        contents: the suite; the one of the store when left out.
        trust: states of labels that count though nobody reviewed them.

    Raises:
        NotFoundError: no such run, or its suite is not in the store.
    """
    found = store.suites.run(store.suites.resolve_run(run))
    held = contents or store.suites.get(found.suite)
    if "interface" in found.config:
        held = proposed_contents(held, obj(found.config["interface"]))
    trials: dict[str, list[Trial]] = {}
    for trial in store.suites.trials(found.id):
        trials.setdefault(trial.case, []).append(trial)
    return summary_of(found, held, trials, trust=trust)


def summary_of(
    run: SuiteRun, contents: Contents, trials: Mapping[str, Sequence[Trial]], *, trust: Iterable[str] = ()
) -> RunSummary:
    """A run and its trials as one value."""
    own = by_case(contents.labels)
    settled = {case.id: settle(case, own.get(case.id, ())) for case in contents.cases}
    groups = {audit.group: audit for audit in audits(settled.values())}
    trusted = [state for state in trust if state in TRUST]
    known = {case.id: case for case in contents.cases}
    tried = [known[id] for id in run.cases if id in known]
    made = {"inject", "fuzz", "probes"} & run.config.keys()  # cases that a run makes are none of the suite's
    gone = 0 if made else len(run.cases) - len(tried)
    texts: dict[str, bytes] = {}
    cases = [_case(case, settled[case.id], contents, trials.get(case.id, ()), groups, trusted, texts) for case in tried]
    notes = (*run.notes, *([f"{gone} cases of the run are no longer in the suite"] if gone else []))
    return RunSummary(
        run=run.id, suite=run.suite, suite_digest=run.suite_digest, model=run.model, cases=tuple(cases),
        recovery=_recovery(trials),
        params=_params(run), driver=run.driver, slice=run.slice, runs=run.runs, seed=run.seed, strict=run.strict,
        scripted=run.scripted, system_prompt_digest=_text(run.identity.get("system_prompt_digest")),
        tools_digest=_text(run.identity.get("tools_digest")), agent_version=_text(run.identity.get("agent_version")),
        created_at=iso(run.created_at), intents=_intents(contents), labels=label_quality(contents, settled, groups),
        target={"margin": contents.suite.target.margin, "power": contents.suite.target.power},
        held_back_accesses=since_refresh(contents.accesses),
        notes=notes if run.stopped_by is None else (*notes, f"stopped by {run.stopped_by}"),
    )  # fmt: skip


def _recovery(trials: Mapping[str, Sequence[Trial]]) -> tuple[RecoveryResult, ...]:
    """What injected failures came to, in trials that had one."""
    found = [obj(trial.extra).get("recovery") for case in trials.values() for trial in case]
    return tuple(load(RecoveryResult, one, trusted=True) for one in found if one is not None)


def _text(value: JSON) -> str | None:
    return None if value is None else str(value)


def _params(run: SuiteRun) -> dict[str, JSON]:
    digest = run.identity.get("params_digest")
    return {} if digest is None else {"digest": digest}


def _intents(contents: Contents) -> tuple[IntentInfo, ...]:
    return tuple(
        IntentInfo(name=name, traffic=i.traffic, high_traffic=i.high_traffic, required=i.required, margin=i.margin)
        for name, i in contents.suite.intents.items()
    )


def _case(
    case: Case, one: Settled, contents: Contents, trials: Sequence[Trial], groups: Mapping[str, Audit],
    trust: Sequence[str], texts: dict[str, bytes],
) -> CaseResult:  # fmt: skip
    labelled = case.model_copy(update={"label": one.label})
    declared = schemas(case, contents.tools)
    findings = check_label(one.label, declared, case.facts) if one.label is not None else []
    return CaseResult(
        id=case.id,
        intent=case.intent,
        slice=case.slice,
        status=case.status,
        label_state=one.state or "unlabelled",
        label_kind=one.label.kind if one.label is not None else None,
        label_digest=label_digest(one.label) if one.label is not None else None,
        active=active(one, groups, trust),
        tags=case.tags,
        digest=case_digest(labelled, contents.tools, texts),
        session=case.source.session,
        captured_at=case.source.captured_at,
        findings=tuple(map(str, findings)),
        forced_choice=case.tool_choice not in ("auto", "none", None),
        trials=tuple(trial_result(t, labelled, contents) for t in sorted(trials, key=lambda t: t.n)),
    )


def attempt_of(trial: Trial) -> Attempt:
    """What a stored trial said, for scoring."""
    turns = [answer_of(step.message) for step in trial.steps if step.purpose != "outcome"]
    return Attempt(answers=tuple(turns), final=trial.final)


def trial_result(trial: Trial, case: Case, contents: Contents) -> TrialResult:
    """A trial scored with the label of ``case``."""
    base = TrialResult(
        run=trial.n,
        status=trial.status,
        error=trial.error,
        strict=trial.strict,
        cost_usd=_cost(trial),
        latency_ms=_latency(trial),
        input_tokens=_tokens(trial, "input_uncached", "input_cache_read", "input_cache_write"),
        output_tokens=_tokens(trial, "output_visible", "output_reasoning"),
        response=[step.message for step in trial.steps],
        flags=tuple(obj(trial.extra).get("flags", ())),
    )
    if trial.status == "error":
        return base
    found = score(case, schemas(case, contents.tools), attempt_of(trial), contents.suite.effects)
    return _scored(base, found, failed=trial.failure is not None)


def _scored(base: TrialResult, found: Score, *, failed: bool) -> TrialResult:
    if failed and found.selection is not False:
        found = replace(found, selection=None if found.why is None else False, why=found.why and "empty_response")
    return replace(
        base,
        selection=found.selection,
        reason=found.why,
        schema=found.schema,
        values=found.values,
        arguments=found.arguments,
        outcome=found.outcome,
        schema_errors=tuple(_mismatch(call.tool, error) for call in found.calls for error in call.errors),
        value_errors=tuple(
            ValueMismatch(
                reason=v.mismatch.reason, tool=v.tool, pointer=v.mismatch.pointer, expected=v.mismatch.expected,
                seen=v.mismatch.seen,
            )
            for v in found.value_errors
        ),
        missing_facts=found.missing_facts,
        flags=(*base.flags, "refused") if failed else base.flags,
    )  # fmt: skip


def _mismatch(tool: str, error: ArgumentError) -> SchemaMismatch:
    return SchemaMismatch(bin=error.bin, tool=tool, pointer=error.pointer, coercible=error.coercible)


def _cost(trial: Trial) -> float | None:
    known = [Decimal(step.cost) for step in trial.steps if step.cost is not None]
    return float(sum(known)) if known else None


def _latency(trial: Trial) -> float | None:
    known = [step.latency_ms for step in trial.steps if step.latency_ms is not None]
    return round(sum(known), 3) if known else None


def _tokens(trial: Trial, *names: str) -> int | None:
    known = [step.usage for step in trial.steps if step.usage is not None]
    return sum(_bucket(usage, name) for usage in known for name in names) if known else None


def _bucket(usage: Usage, name: str) -> int:
    found: Any = getattr(usage, name)
    return found or 0


def label_quality(contents: Contents, settled: Mapping[str, Settled], groups: Mapping[str, Audit]) -> LabelQuality:
    """How far the labels of a suite can be trusted."""
    findings = [id for id, found in contents.findings().items() if found]
    queue = review_queue(
        contents.suite.name, contents.cases, settled, findings=findings, intents=contents.suite.intents
    )
    pairs = [
        {"sources": list(p.sources), "n": p.n, "raw": p.raw, "kappa": p.kappa, "calls": p.calls}
        for p in agreements(settled.values())
    ]
    total = sum(audit.labels for audit in groups.values())
    left = sum(audit.upper * audit.labels for audit in groups.values())
    wrong = sum(audit.errors_left for audit in groups.values())
    return LabelQuality(
        residual_upper=left / total if total else None,
        residual_rate=wrong / total if total else None,
        audited=sum(audit.audited for audit in groups.values()),
        audit_errors=sum(audit.wrong for audit in groups.values()),
        queue=len(queue),
        agreements=tuple(pairs),
    )


def stored_scores(store: Store, summary: RunSummary, *, now: int) -> list[dict[str, JSON]]:
    """Stores the scores of a summary with its trials; gives those that are no longer what was stored before."""
    found = {(case.id, trial.run): trial for case in summary.cases for trial in case.trials}
    changed: list[dict[str, JSON]] = []
    for trial in store.suites.trials(summary.run):
        result = found.get((trial.case, trial.n))
        if result is None or result.status == "error":
            continue
        scores = {name: getattr(result, name) for name in ("selection", "arguments", "outcome", "reason")}
        before: Any = trial.scores
        if before is None or {k: v for k, v in before.items() if k != "at"} != scores:
            if before is not None:
                changed.append({"case": trial.case, "run": trial.n, "before": before, "now": scores})
            store.suites.add_trial(replace(trial, scores={**scores, "at": now}))
    return changed
