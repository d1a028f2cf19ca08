"""From measured criteria to a verdict with reasons: Holm over all p-values, and what would settle an open one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from playhead.core.gate.criteria import Criteria
from playhead.core.gate.parts import Part, percent, points
from playhead.core.gate.remarks import CaseChange
from playhead.core.stats import holm

FORMAT: Final = "playhead.gate/1"
EXIT_CODES: Final = {"pass": 0, "fail": 1, "inconclusive": 4, "no_verdict": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroItem:
    """Something that must not happen: how often it did in ``of`` trials, and the one-sided upper bound of its rate."""

    name: str
    seen: int
    of: int
    upper: float
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """An earlier verdict on the same pair of runs."""

    at: str
    verdict: str
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """A verdict, and everything that it rests on. ``settle`` says what would turn inconclusive into an answer."""

    verdict: Literal["pass", "fail", "inconclusive", "no_verdict"]
    reasons: tuple[str, ...]
    settle: tuple[str, ...]
    parts: tuple[Part, ...]
    zero: tuple[ZeroItem, ...]
    alpha: float
    look: int
    planned_looks: int
    earlier: tuple[Look, ...]
    baseline: str
    candidate: str
    suite: str
    shared: int
    baseline_active: int
    worst: tuple[CaseChange, ...] = ()
    newly_flaky: tuple[str, ...] = ()
    no_longer_flaky: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    relabelled: tuple[str, ...] = ()
    unscored: int = 0
    held_back_accesses: int | None = None  # since the last refresh
    warnings: tuple[str, ...] = ()
    held_back: tuple[Part, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]


def alpha_of(criteria: Criteria, look: int) -> float:
    """Planned looks share alpha evenly; each further one gets half of what the one before it had. Sequential criteria
    have all of it at every look."""
    if criteria.is_sequential:
        return criteria.alpha
    return criteria.alpha / criteria.looks if look <= criteria.looks else criteria.alpha / 2 ** (look - 1)


def adjusted(parts: Sequence[Part], held: Sequence[Part], alpha: float) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Holm over every p-value; a part fails where its own stays at most alpha."""
    family = [part for part in (*parts, *held) if part.p is not None]
    adjusted = dict(zip(map(id, family), holm([p.p for p in family if p.p is not None], alpha).adjusted, strict=True))

    def settled(part: Part) -> Part:
        p = adjusted.get(id(part))
        if p is None:
            return part
        fails = part.at_once or (p <= alpha and _beyond(part))
        return replace(part, p_adjusted=p, verdict="fail" if fails else part.verdict)

    return tuple(map(settled, parts)), tuple(map(settled, held))


def _beyond(part: Part) -> bool:
    if part.beyond is None or part.change is None:
        return True
    worse = part.change if part.spends else -part.change
    return worse > part.beyond


def decided(report: GateReport, doubts: list[tuple[str, str]], broken: list[str]) -> GateReport:
    if broken:
        return replace(
            report, verdict="no_verdict", reasons=tuple(broken), settle=("run again when the model answers",)
        )
    happened = [item for item in report.zero if item.seen]
    failed = [part for part in (*report.parts, *report.held_back) if part.verdict == "fail"]
    reasons = [_zero_text(item) for item in happened] + [f"{part.name}: {_fail_text(part)}" for part in failed]
    if reasons:
        return replace(report, verdict="fail", reasons=tuple(reasons))
    open_parts = [part for part in report.parts if part.verdict != "pass" and not part.only_fails]
    if not open_parts and not doubts:
        return replace(report, verdict="pass")
    reasons = [f"{part.name}: {'; '.join(part.reasons)}" for part in open_parts] + [why for why, _ in doubts]
    settle = [text for text in map(_settling, open_parts) if text] + [how for _, how in doubts]
    return replace(report, reasons=tuple(reasons), settle=tuple(dict.fromkeys(settle)))


def _zero_text(item: ZeroItem) -> str:
    return f"{item.name}: {item.seen} of {item.of} trials, where none is tolerated; up to {100 * item.upper:.2f} %"


def _fail_text(part: Part) -> str:
    if part.p_adjusted is None or part.at_once or part.form == "literal":
        return "; ".join(part.reasons)
    if part.name.startswith("recovery"):
        return f"{percent(part.candidate)} recovered, below {percent(part.limit)} (adjusted p {part.p_adjusted:.2g})"
    if part.spends:
        return f"rose by {percent(part.change)} over {part.cases} cases (adjusted p {part.p_adjusted:.2g})"
    return f"changed by {points(part.change)} points over {part.cases} cases (adjusted p {part.p_adjusted:.2g})"


def _settling(part: Part) -> str | None:
    """A number is rounded up to two digits: the variance behind it is an estimate itself."""
    if part.needed is None:
        return None
    digits = max(0, len(str(part.needed)) - 2)
    about = -(-part.needed // 10**digits) * 10**digits
    what = "injected failures" if part.name.startswith("recovery") else "cases"
    if what == "cases" and part.needed <= part.cases:
        return f"{part.name}: more runs of these {part.cases} cases, or about twice as many cases"
    return f"{part.name}: about {about} {what} in place of {part.cases}"
