"""How often the gate errs, by simulation on small suites of which two hundred pairs cost a second.

With an alpha of 0.2 a gate that errs twice as often as it says stands far outside these limits, so they catch a broken
test, bound or adjustment; `python -m benchmarks.gate` measures the default gate on whole suites.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from playhead.core.gate.judge import Criteria, judge
from playhead.core.stats import wilson
from playhead.core.suites.summary import RunSummary
from playhead.testing.runs import a_case, a_run, draws, recovered, simulated_run

ALPHA = 0.2
PAIRS = 200
MOST = ALPHA + 2.5 * math.sqrt(ALPHA * (1 - ALPHA) / PAIRS)
LEAST = 0.35 * ALPHA
"""Exact tests of few values stay below their alpha; far below it they would see nothing."""


def share(found: Callable[[int], bool]) -> float:
    return sum(map(found, range(PAIRS))) / PAIRS


def coins(index: int, side: str) -> RunSummary:
    return simulated_run([0.5] * 30, seed=f"coins {side} {index}", intents=3, run=side)


def blocked(criteria: Criteria) -> Callable[[int], bool]:
    return lambda index: judge(coins(index, "new"), coins(index, "old"), criteria).verdict == "fail"


def test_t23_an_identical_release_is_blocked_in_alpha_of_comparisons() -> None:
    criteria = Criteria(criteria=("selection",), alpha=2 * ALPHA, looks=2, zero_tolerance=())  # each look its part
    assert LEAST <= share(blocked(criteria)) <= MOST


def test_t23_an_identical_release_is_blocked_in_alpha_of_comparisons_all_criteria_together() -> None:
    """Five p-values, of which one by one every second pair would have one below alpha."""
    criteria = Criteria(
        criteria=("selection", "intents", "stability"), alpha=ALPHA, intent_margin=0.001, zero_tolerance=()
    )
    assert share(blocked(criteria)) <= ALPHA - 0.05


def test_t24_a_true_drop_of_the_margin_is_excluded_in_alpha_of_comparisons() -> None:
    criteria = Criteria(criteria=("selection",), alpha=ALPHA, margin=0.1, zero_tolerance=())

    def excluded(index: int) -> bool:
        old = simulated_run([0.8] * 40, seed=f"old {index}", run="old")
        selection = judge(simulated_run([0.7] * 40, seed=f"new {index}"), old, criteria).parts[0]
        assert selection.low is not None
        return selection.low > -0.1

    assert LEAST <= share(excluded) <= MOST


def test_t24_a_recovery_rate_at_its_floor_passes_and_fails_in_alpha_of_comparisons_each() -> None:
    criteria = Criteria(criteria=("recovery",), alpha=ALPHA, recovery_floor=0.8, zero_tolerance=())
    one = [a_case("one", [True] * 3)]

    def verdict(index: int) -> str:
        good = sum(u < 0.8 for u in draws(f"recovery {index}", 120))
        return judge(a_run(one, recovery=recovered(good, 120)), a_run(one, "old"), criteria).verdict

    found = [verdict(index) for index in range(PAIRS)]
    for wrong in ("pass", "fail"):
        assert LEAST <= found.count(wrong) / PAIRS <= MOST


def test_t24_a_flaky_share_that_grew_by_its_margin_is_excluded_in_alpha_of_comparisons() -> None:
    """No case is flaky before, and each is with a chance of 0.15 now: the margin."""
    criteria = Criteria(criteria=("stability",), alpha=ALPHA, stability_margin=0.15, zero_tolerance=())
    old = a_run([a_case(f"c{n}", [True] * 3) for n in range(80)], "old")

    def excluded(index: int) -> bool:
        flaky = [u < 0.15 for u in draws(f"flaky {index}", 80)]
        new = a_run([a_case(f"c{n}", [True, not f, True]) for n, f in enumerate(flaky)])
        stability = judge(new, old, criteria).parts[0]
        assert stability.high is not None
        return stability.high < 0.15

    assert LEAST <= share(excluded) <= MOST


def ever_blocked(criteria: Criteria, index: int) -> bool:
    """Whether an identical release is blocked at any of five looks at a suite that grows."""
    old = simulated_run([0.5] * 100, seed=f"growing old {index}", run="old")
    new = simulated_run([0.5] * 100, seed=f"growing new {index}")
    looks = ((replace(new, cases=new.cases[:n]), replace(old, cases=old.cases[:n])) for n in (20, 40, 60, 80, 100))
    return any(judge(candidate, baseline, criteria).verdict == "fail" for candidate, baseline in looks)


def test_sequential_criteria_may_be_looked_at_as_often_as_one_likes() -> None:
    plain = Criteria(criteria=("selection",), alpha=ALPHA, zero_tolerance=())
    sequential = plain.all_in("sequential")
    paths = range(60)
    assert sum(ever_blocked(sequential, n) for n in paths) / 60 <= ALPHA
    assert sum(ever_blocked(plain, n) for n in paths) / 60 > 1.5 * ALPHA  # what looking again and again does otherwise


def test_these_limits_tell_a_gate_from_one_that_errs_twice_as_often() -> None:
    assert wilson(2 * ALPHA, PAIRS, 3).low > MOST
