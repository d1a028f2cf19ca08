"""Runs of a suite drawn from known pass probabilities: what a gate or report does with them can be computed."""

import hashlib
from collections.abc import Sequence
from typing import Any

from playhead.core.suites.summary import CaseResult, RecoveryResult, RunSummary, TrialResult


def draws(seed: str, n: int) -> list[float]:
    """Uniform numbers in [0, 1), the same on every machine."""
    drawn = hashlib.shake_256(f"playhead.simulated/1 {seed}".encode()).digest(4 * n)
    return [int.from_bytes(drawn[i : i + 4], "big") / 2**32 for i in range(0, 4 * n, 4)]


def a_trial(run: int, passed: bool | None, **fields: Any) -> TrialResult:
    """A trial whose selection decides; its arguments fit their schema unless said otherwise."""
    defaults: dict[str, Any] = {"reason": "ok" if passed else "wrong_tool", "schema": True, "arguments": True}
    return TrialResult(run=run, selection=passed, **{**defaults, **fields})


def a_case(id: str, passes: Sequence[bool | None], *, intent: str = "any", **fields: Any) -> CaseResult:
    """A case with one trial for each of ``passes``."""
    trials = tuple(a_trial(index, passed) for index, passed in enumerate(passes))
    members: dict[str, Any] = {"trials": trials, **fields}
    return CaseResult(id=id, intent=intent, **members)


def a_run(cases: Sequence[CaseResult], run: str = "candidate", **fields: Any) -> RunSummary:
    """A run of these cases."""
    members: dict[str, Any] = {"run": run, "suite": "shop", "suite_digest": "d1", "model": "scripted"}
    members |= {"cases": tuple(cases), **fields}
    return RunSummary(**members)


def simulated_run(
    probabilities: Sequence[float],
    *,
    seed: str,
    runs: int = 3,
    intents: int = 10,
    run: str = "candidate",
    **fields: Any,
) -> RunSummary:
    """A run in which case i passes with probability i; intents take turns. Recovery is 200 of 200, one per case.

    Args:
        probabilities: of each case.
        seed: of every draw.
        runs: trials per case.
        intents: number of intents; case i has intent i mod ``intents``.
        run: id of the run.
        **fields: of the `RunSummary`.
    """
    uniform = iter(draws(seed, len(probabilities) * runs))
    shared = {passed: [a_trial(index, passed) for index in range(runs)] for passed in (True, False)}
    cases = [
        CaseResult(
            id=f"case-{i}", intent=f"intent-{i % intents}",
            trials=tuple(shared[next(uniform) < p][index] for index in range(runs)),
        )
        for i, p in enumerate(probabilities)
    ]  # fmt: skip
    members: dict[str, Any] = {"recovery": recovered(200, 200), "runs": runs, **fields}
    return a_run(cases, run, **members)


def recovered(good: int, of: int, *, kinds: Sequence[str] = ("validation_error",)) -> tuple[RecoveryResult, ...]:
    """Injected failures of which the first ``good`` were recovered, one per case, the kinds taking turns."""
    return tuple(
        RecoveryResult(
            case=f"case-{i}", kind=kinds[i % len(kinds)], tool="refund", recovered=i < good,
            outcome="corrected_retry" if i < good else "unclear_end",
        )
        for i in range(of)
    )  # fmt: skip
