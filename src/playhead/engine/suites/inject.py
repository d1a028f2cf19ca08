"""Runs scripted failures over the cases of a suite, and says how the model recovers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from playhead.core.codec import dump
from playhead.core.effects import Effects
from playhead.core.recovery.plan import EXIT_EFFECT, REPORT_FAILURE, Variant
from playhead.core.recovery.trial import classify
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import Drive, Trace, loop
from playhead.core.suites.suite import Case
from playhead.core.suites.summary import RecoveryResult
from playhead.core.suites.trials import SuiteRun
from playhead.core.values import JSON
from playhead.engine.model_access import Access
from playhead.engine.suites.run import Limits, Progress, execute
from playhead.store.ports import Store

__all__ = ["inject", "variant_cases"]


def variant_cases(cases: Sequence[Case], variants: Sequence[Variant]) -> list[Case]:
    """A case for each variant: the original under the variant's id."""
    known = {case.id: case for case in cases}
    return [known[one.case].model_copy(update={"id": one.id}) for one in variants]


def inject(
    store: Store, contents: Contents, run: SuiteRun, cases: Sequence[Case], variants: Sequence[Variant],
    access: Access, *, add_exit: bool = False, guards: bool = False, limits: Limits | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> SuiteRun:  # fmt: skip
    """Makes the trials of a run with injected failures that are not done.

    Args:
        cases: the cases of the variants (`variant_cases`).
        add_exit: offer `report_failure` beside the tools of each case.
        guards: check results as the suite says, before the model gets them.
    """
    by_id = {one.id: one for one in variants}
    exits = (REPORT_FAILURE,) if add_exit else ()
    effects: Effects = {**contents.suite.effects, **({REPORT_FAILURE.name: EXIT_EFFECT} if add_exit else {})}

    def drive(case: Case) -> Drive:
        return loop(
            case, contents.tools, policy=by_id[case.id].policy, effects=effects, extra_tools=exits,
            guards=contents.suite.guards if guards else None,
        )  # fmt: skip

    def judge(trace: Trace, case: Case, n: int) -> JSON:
        return judged(trace, case, by_id[case.id], contents, effects, n)

    return execute(store, contents, run, cases, access, limits=limits, tell=tell, drive=drive, judge=judge)


def judged(trace: Trace, case: Case, one: Variant, contents: Contents, effects: Mapping[str, Any], n: int) -> JSON:
    """What a trial is stored with: its recovery, or that the failure never came up."""
    found = classify(trace, case, contents.tools, one.config, effects)
    if found is None:
        return {"injected": False}
    kinds = [double.kind for double in found.doubles]
    double = next((kind for kind in ("standing", "compensated", "touched", "undeclared") if kind in kinds), None)
    result = RecoveryResult(
        case=one.case,
        kind=one.config.kind,
        tool=one.tool,
        message=one.config.message,
        run=n,
        outcome=found.outcome,
        recovered=found.recovered,
        double=double,  # type: ignore[arg-type]
        next_action=found.next_action,
        steps=found.steps,
        tokens=found.tokens,
        flags=found.flags,
        slice=case.slice,
    )
    guarded = sum("guard" in node.attributes for node in trace.nodes)
    told: dict[str, JSON] = {"injected": True, "variant": one.id, "recovery": dump(result), "flags": list(found.flags)}
    return {**told, **({"guards": guarded} if guarded else {})}
