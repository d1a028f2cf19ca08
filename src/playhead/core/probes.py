"""Whether a model can tell two tools apart: a request that either could serve is asked many times, and how the answers
split is judged. Pure: what to ask, and what the answers say.

A split is a finding about the descriptions, not about the model.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import combinations
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from playhead.core.canonical import canonical_stored
from playhead.core.lint.interface import OVERLAP, Finding, alike
from playhead.core.stats import ambiguity_verdict, minority_share
from playhead.core.suites.labels import AnyOfLabel
from playhead.core.suites.suite import Case, Message, Tools, ToolSchema, case_json, offered
from playhead.core.values import JSON

RUNS: Final = 20
"""Runs of each query: 10 cannot tell an even split from four to one."""
EXTENDED: Final = 60
"""Runs of a query that stayed undecided."""
_CONFIDENCE: Final = 0.95
_EXTENDED_CONFIDENCE: Final = 0.975

Verdict: TypeAlias = Literal["ambiguous", "clear", "undecided"]
Origin: TypeAlias = Literal["given", "case", "model"]
_WORST: Final[tuple[Verdict, ...]] = ("ambiguous", "undecided", "clear")


class ToolPair(NamedTuple):
    """Two tools that are offered together, by the names that models see. ``similarity`` as `alike` measures it."""

    left: str
    right: str
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One query for one pair, as the case that is asked: its history ends with the request."""

    id: str
    left: str
    right: str
    query: str
    origin: Origin
    case: Case


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """How often each tool of a pair was chosen.

    Attributes:
        runs: trials that were answered.
        chosen: how many of them called one tool of the pair and not the other.
        others: what the rest did: another tool's name, ``both``, or ``no call``.
        minority: choices of the less chosen tool, ``share`` of ``n``, the runs that chose either.
        first: the verdict before the query was extended.
    """

    id: str
    left: str
    right: str
    query: str
    origin: Origin
    runs: int
    chosen: dict[str, int]
    others: dict[str, int] = field(default_factory=dict[str, int])
    n: int
    minority: int
    share: float | None
    interval: tuple[float, float]
    confidence: float
    verdict: Verdict
    first: Verdict
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """What the queries of a pair say together: ambiguous when one of them is, clear when all are."""

    left: str
    right: str
    similarity: float | None
    verdict: Verdict
    queries: tuple[ProbeResult, ...]


# --- what to ask ----------------------------------------------------------------------------------------------------


def tool_sets(cases: Iterable[Case], tools: Tools) -> list[tuple[ToolSchema, ...]]:
    """The different sets of tools that cases offer, largest first; all tools of the suite where no case offers any."""
    found: dict[tuple[str, ...], tuple[ToolSchema, ...]] = {}
    for case in cases:
        if case.tools:
            found.setdefault(tuple(sorted(case.tools)), tuple(offered(case, tools).values()))
    sets = sorted(found.values(), key=len, reverse=True)
    return sets or [tuple(tools.values())]


def similar_pairs(sets: Iterable[Sequence[ToolSchema]], at_least: float = OVERLAP) -> list[ToolPair]:
    """The pairs that read alike in a set in which they are offered together; the most alike first."""
    best: dict[tuple[str, str], float] = {}
    for one in sets:
        for found in alike(one):
            if found.similarity < at_least:
                break
            left, right = sorted((found.left, found.right))
            best[left, right] = max(found.similarity, best.get((left, right), 0.0))
    pairs = [ToolPair(left, right, round(similarity, 4)) for (left, right), similarity in best.items()]
    return sorted(pairs, key=lambda pair: (-(pair.similarity or 0), pair.left, pair.right))


def named_pairs(names: Iterable[tuple[str, str]], sets: Sequence[Sequence[ToolSchema]]) -> list[ToolPair]:
    """Pairs that somebody names.

    Raises:
        ValueError: a tool that is not offered, one tool twice, or two that are never offered together.
    """
    known = [{tool.name for tool in one} for one in sets]
    every = sorted({name for one in known for name in one})
    found: list[ToolPair] = []
    for left, right in names:
        for name in (left, right):
            if not any(name in one for one in known):
                raise ValueError(f"no case offers a tool {name!r}: {', '.join(every)}")
        if left == right:
            raise ValueError(f"{left} is named twice")
        together = next((one for one, names in zip(sets, known, strict=True) if {left, right} <= names), None)
        if together is None:
            raise ValueError(f"no case offers {left} and {right} together")
        similarity = next((p.similarity for p in alike(together) if {p.left, p.right} == {left, right}), 0.0)
        found.append(ToolPair(min(left, right), max(left, right), round(similarity, 4)))
    return list(dict.fromkeys(found))


def written_probe(pair: ToolPair, query: str, cases: Sequence[Case], tools: Tools, origin: Origin = "given") -> Probe:
    """A request in words, asked as the case with the most tools that offers the pair would be: its system prompt and
    parameters, and no conversation."""
    fitting = [case for case in cases if {pair.left, pair.right} <= offered(case, tools).keys()]
    host = max(fitting, key=lambda case: len(case.tools), default=None)
    system = [message for message in host.history if message.role == "system"] if host is not None else []
    case = Case(
        id=_id(pair, query),
        history=(*system, Message(role="user", content=query)),
        tools=host.tools if host is not None else tuple(tools),
        model_params=host.model_params if host is not None else {},
    )
    return Probe(id=case.id, left=pair.left, right=pair.right, query=query, origin=origin, case=case)


def case_probes(pair: ToolPair, cases: Iterable[Case], tools: Tools) -> list[Probe]:
    """The cases whose label accepts one call of either tool of the pair."""
    found: list[Probe] = []
    for case in cases:
        if not isinstance(case.label, AnyOfLabel) or not {pair.left, pair.right} <= offered(case, tools).keys():
            continue
        alone = {option.calls[0].tool for option in case.label.options if len(option.calls) == 1}
        if {pair.left, pair.right} <= alone:
            id = _id(pair, case.id)
            asked = case.model_copy(update={"id": id, "facts": (), "recorded": (), "label": None, "answer": None})
            query = f"case {case.id}: {_last_request(case)}"
            found.append(Probe(id=id, left=pair.left, right=pair.right, query=query, origin="case", case=asked))
    return found


def _id(pair: ToolPair, query: str) -> str:
    digest = sha256(canonical_stored([pair.left, pair.right, query])).hexdigest()
    return f"{pair.left}~{pair.right}/{digest[:8]}"


def _last_request(case: Case) -> str:
    said = next((m.content for m in reversed(case.history) if m.role == "user"), "")
    return said if isinstance(said, str) else canonical_stored(said).decode()


def accepted_pairs(cases: Iterable[Case]) -> list[tuple[str, str]]:
    """Pairs of tools of which labels accept either, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for case in cases:
        if isinstance(case.label, AnyOfLabel):
            alone = sorted({option.calls[0].tool for option in case.label.options if len(option.calls) == 1})
            counts.update(combinations(alone, 2))
    return [pair for pair, _ in counts.most_common()]


# --- what the answers say -------------------------------------------------------------------------------------------


def judged(probe: Probe, answers: Sequence[Sequence[str]]) -> ProbeResult:
    """What the answers to a query say.

    Args:
        answers: of each run in order, the tools that the first response called, bookkeeping left out. The first `RUNS`
            decide; where they stay undecided, all of them do, at the stricter confidence.
    """
    first = _split(probe, answers[:RUNS], _CONFIDENCE)
    if first.verdict != "undecided" or len(answers) <= RUNS:
        return first
    whole = _split(probe, answers, _EXTENDED_CONFIDENCE)
    return replace(whole, first=first.verdict, extended=True)


def _split(probe: Probe, answers: Sequence[Sequence[str]], confidence: float) -> ProbeResult:
    chosen: Counter[str] = Counter({probe.left: 0, probe.right: 0})
    others: Counter[str] = Counter()
    for called in answers:
        mine = {name for name in called if name in chosen}
        if len(mine) == 1:
            chosen.update(mine)
        else:
            others["both" if mine else called[0] if called else "no call"] += 1
    n, minority = chosen.total(), min(chosen.values())
    share = minority_share(minority, n, confidence)
    verdict = ambiguity_verdict(minority, n, confidence)
    low, high = share.interval
    return ProbeResult(
        id=probe.id, left=probe.left, right=probe.right, query=probe.query, origin=probe.origin, runs=len(answers),
        chosen=dict(chosen), others=dict(others), n=n, minority=minority, share=share.share if n else None,
        interval=(low, high), confidence=confidence, verdict=verdict, first=verdict,
    )  # fmt: skip


def by_pair(pairs: Sequence[ToolPair], results: Sequence[ProbeResult]) -> list[PairResult]:
    """The results of each pair that was asked about, the ambiguous pairs first."""
    found: list[PairResult] = []
    for pair in pairs:
        mine = tuple(one for one in results if (one.left, one.right) == (pair.left, pair.right))
        if mine:
            verdict = min(mine, key=lambda one: _WORST.index(one.verdict)).verdict
            found.append(PairResult(
                left=pair.left, right=pair.right, similarity=pair.similarity, verdict=verdict, queries=mine,
            ))  # fmt: skip
    return sorted(found, key=lambda one: _WORST.index(one.verdict))


def findings(results: Sequence[PairResult]) -> list[Finding]:
    """An ambiguous pair as a finding about the tools' descriptions."""
    found: list[Finding] = []
    for pair in results:
        if pair.verdict != "ambiguous":
            continue
        worst = max((q for q in pair.queries if q.verdict == "ambiguous"), key=lambda q: q.interval[0])
        split = " to ".join(str(worst.chosen[name]) for name in (pair.left, pair.right))
        details: dict[str, JSON] = {"other": pair.right, "query": worst.query, "chosen": dict(worst.chosen)}
        found.append(Finding(
            rule="ambiguous",
            tool=pair.left,
            message=f"the model cannot tell {pair.left} and {pair.right} apart: {split} for one request",
            fix="say in each description when to use it and when the other one, or make them one tool",
            details=details,
        ))  # fmt: skip
    return found


def probe_json(probe: Probe) -> dict[str, JSON]:
    """A probe as a run keeps it, to be asked again as it was."""
    return {
        "id": probe.id, "left": probe.left, "right": probe.right, "query": probe.query, "origin": probe.origin,
        "case": case_json(probe.case),
    }  # fmt: skip


def read_probe(held: Mapping[str, Any]) -> Probe:
    kept: dict[str, Any] = {**held, "case": Case.model_validate(held["case"])}
    return Probe(**kept)
