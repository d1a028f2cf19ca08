"""Whether enough trials of cases passed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.core.stats import lower_bound

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Rate:
    """All trials of one run of pytest. ``wanted`` is None where every trial has to pass."""

    trials: Sequence[Mapping[str, Any]]
    wanted: float | None
    literal: bool

    @property
    def passed(self) -> int:
        return sum(bool(trial["passed"]) for trial in self.trials)

    @property
    def lower(self) -> float:
        """What is compared with the wanted rate: the guarantee, or the plain share."""
        if self.literal:
            return self.passed / len(self.trials)
        return lower_bound(self.passed, len(self.trials), _CONFIDENCE)

    @property
    def reached(self) -> bool:
        return self.wanted is None or self.lower >= self.wanted

    def lines(self) -> list[str]:
        """The rate for people, with the cases that failed."""
        cases = len({trial["case"] for trial in self.trials})
        share = f"{self.lower:.1%}" if self.literal else f"at least {self.lower:.1%} (95 % Clopper-Pearson)"
        line = f"{self.passed} of {len(self.trials)} trials of {cases} case{'s' * (cases > 1)} passed: {share}"
        if self.wanted is not None:
            line += f"; wanted {self.wanted:.1%}: {'reached' if self.reached else 'not reached'}"
        lines = [line]
        if not self.reached and self.passed == len(self.trials):
            needed = math.ceil(math.log(1 - _CONFIDENCE) / math.log(self.wanted or 0.5) - 1e-9)
            lines.append(f"even without a failure this takes {needed} trials")
        failed = Counter(trial["case"] for trial in self.trials if not trial["passed"])
        lines += [f"case {case}: {count} failed" for case, count in sorted(failed.items())]
        return lines

    def data(self) -> dict[str, Any]:
        return {
            "trials": list(self.trials), "passed": self.passed, "of": len(self.trials), "rate": self.lower,
            "wanted": self.wanted, "literal": self.literal, "reached": self.reached,
        }  # fmt: skip


def rate_of(trials: Sequence[Mapping[str, Any]], wanted: float | None, *, literal: bool) -> Rate | None:
    """None without trials."""
    return Rate(trials=trials, wanted=wanted, literal=literal) if trials else None
