"""Several models on the same cases: which differ, which case only one passes, and which is the cheapest good enough."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from playhead.core.gate.parts import pass_rate, rate_part, recovery_part
from playhead.core.stats import ClusteredRate, CochranQ, cochran_q
from playhead.core.suites.case_runs import Measure, counted, tally
from playhead.core.suites.summary import CaseResult, RecoveryResult, RunSummary

FORMAT: Final = "playhead.models_compared/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A model's run over the shared cases. Costs and times are per trial; None where none is known."""

    run: str
    model: str
    selection: ClusteredRate | None
    arguments: ClusteredRate | None
    outcome: ClusteredRate | None
    whole: ClusteredRate | None
    cost_usd: float | None
    latency_ms: float | None
    only_it: tuple[str, ...]
    good_enough: bool | None = None
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsCompared:
    """``q`` compares all models on cases passed in most of their runs; its pairs are exact, with Holm's adjustment."""

    cases: int
    rows: tuple[ModelRow, ...]
    q: CochranQ
    reference: str | None = None
    cheapest: str | None = None


def compare_models(
    runs: Sequence[RunSummary], *, reference: str | None = None, margin: float = 0.05, floor: float = 0.8,
    alpha: float = 0.05, recovery: Mapping[str, Sequence[RecoveryResult]] | None = None,
) -> ModelsCompared:  # fmt: skip
    """Compares runs over the cases that all of them share.

    Args:
        runs: one per model, at least two.
        reference: run id or model that the others must not be worse than; None: no cheapest is looked for.
        margin: loss that has to be excluded, of selection and of arguments.
        floor: of the recovery rate, where a run has injected failures.
        alpha: of each one-sided bound.
        recovery: by model, what came of injected failures; where it is given, a model without any is not good enough.

    Raises:
        ValueError: fewer than two runs, no shared case, or no run that the reference names.
    """
    sides = [{case.id: case for case in counted(run.cases)} for run in runs]
    if len(runs) < 2:
        raise ValueError("a comparison needs at least two runs")
    shared = [name for name in sides[0] if all(name in side and tally(side[name], "whole")[1] for side in sides)]
    if not shared:
        raise ValueError("the runs share no case with a valid run in each")
    columns = [[side[name] for name in shared] for side in sides]
    passed = [[_mostly(case) for case in column] for column in columns]
    matrix = [list(row) for row in zip(*passed, strict=True)]
    only = [
        tuple(n for n, row in zip(shared, matrix, strict=True) if row[i] and sum(row) == 1) for i in range(len(runs))
    ]
    known = None if reference is None else _place(runs, reference)
    rows: list[ModelRow] = []
    for i, run in enumerate(runs):
        shown = run.recovery if recovery is None else recovery.get(run.model, ())
        good, why = (None, ())
        if known is not None:
            good, why = _good_enough(
                shown, columns[i], columns[known], margin, floor, alpha, asked=recovery is not None
            )
        rows.append(_row(run, columns[i], only[i], good, why))
    candidates = [row for row in rows if row.good_enough and row.cost_usd is not None]
    cheapest = min(candidates, key=lambda row: (row.cost_usd or 0.0, row.run), default=None)
    return ModelsCompared(
        cases=len(shared), rows=tuple(rows), q=cochran_q(matrix), reference=None if known is None else runs[known].run,
        cheapest=cheapest.run if cheapest else None,
    )  # fmt: skip


def _mostly(case: CaseResult) -> int:
    passes, valid = tally(case, "whole")
    return int(2 * passes > valid)


def _place(runs: Sequence[RunSummary], reference: str) -> int:
    found = [i for i, run in enumerate(runs) if reference in (run.run, run.model)]
    if len(found) != 1:
        raise ValueError(
            f"{len(found)} of the runs are {reference!r}; there are: {', '.join(run.model for run in runs)}"
        )
    return found[0]


def _good_enough(
    recovered: Sequence[RecoveryResult],
    mine: Sequence[CaseResult],
    reference: Sequence[CaseResult],
    margin: float,
    floor: float,
    alpha: float,
    *,
    asked: bool,
) -> tuple[bool, tuple[str, ...]]:
    """Not worse than the reference by the margin, on selection and arguments, and recovery at its floor."""
    is_reference = mine is reference or list(mine) == list(reference)
    pairs = [] if is_reference else list(zip(reference, mine, strict=True))
    why: list[str] = []
    measures: tuple[Measure, ...] = ("selection", "arguments")
    for name in measures:
        part = rate_part(name, pairs, name, margin, "statistical", alpha)
        if part.cases and (part.low is None or part.low <= -margin):
            why.append(f"{name}: a loss of {100 * margin:g} points is not excluded")
    if asked and not recovered:
        why.append("recovery: no run with injected failures is of this model")
    elif recovered and recovery_part("recovery", recovered, floor, "statistical", alpha).verdict != "pass":
        why.append(f"recovery: {100 * floor:g} % is not shown")
    return not why, tuple(why) or (("the reference",) if is_reference else ())


def _row(
    run: RunSummary, cases: Sequence[CaseResult], only: tuple[str, ...], good: bool | None, why: tuple[str, ...]
) -> ModelRow:
    trials = [trial for case in cases for trial in case.trials if trial.status == "scored"]
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    waits = [trial.latency_ms for trial in trials if trial.latency_ms is not None]
    return ModelRow(
        run=run.run, model=run.model, selection=pass_rate(cases, "selection"),
        arguments=pass_rate(cases, "arguments"), outcome=pass_rate(cases, "outcome"),
        whole=pass_rate(cases, "whole"), cost_usd=math.fsum(costs) / len(costs) if costs else None,
        latency_ms=math.fsum(waits) / len(waits) if waits else None, only_it=only, good_enough=good, why=why,
    )  # fmt: skip
