"""The life of labels: every change is a line of a log, and what holds for a case is what its lines add up to.

Sources can stack on one case: what a model proposed, what a confirmed session did (weak), what a corrected retry did
(mined), what a person decided (reviewed). Two sources that agree outrank one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from playhead.core.stats import agreement, label_audit
from playhead.core.suites.labels import agree, label_digest, read_label
from playhead.core.suites.suite import Case, Intent
from playhead.core.values import JSON

State: TypeAlias = Literal["proposed", "weak", "mined", "reviewed", "rejected"]
TRUST: Final[tuple[State, ...]] = ("reviewed", "mined", "weak", "proposed")
SAMPLE: Final = 60
"""Agreements that are audited: so many without an error bound the rest at 5 %."""
RESIDUAL: Final = 0.10
"""The share of wrong labels that a group of unreviewed labels may hold, at most, to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelEntry:
    """One change of a case's label. ``source`` tells two models that proposed apart; ``label`` None takes it away.

    ``reviewed`` and ``rejected`` entries decide for the case; the others only say what their source holds.
    """

    case: str
    state: State
    label: JSON = None
    source: str = ""
    who: str = ""
    at: str | None = None
    reason: str | None = None
    confirmed_by: str | None = None
    chain: str | None = None

    @property
    def key(self) -> str:
        """What names the source."""
        return f"{self.state}:{self.source}" if self.source else self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What the log adds up to for one case.

    Attributes:
        state: of the label that counts; None without one.
        label: the label that counts.
        sources: what each source holds, by its name, people apart.
        disputed: two sources differ.
        decided: the entry of a person that decided.
    """

    case: str
    state: State | None = None
    label: Any = None
    sources: Mapping[str, Any] = field(default_factory=dict[str, Any])
    disputed: bool = False
    decided: LabelEntry | None = None

    @property
    def group(self) -> str:
        """Labels from the same kinds of sources are audited together."""
        return "+".join(sorted({name.partition(":")[0] for name in self.sources}))

    @property
    def wrong(self) -> bool | None:
        """Whether a person found the sources' label wrong; None while nobody looked, or where they disagreed."""
        if self.decided is None or self.disputed or not self.sources:
            return None
        if self.label is None:
            return True
        return not all(agree(self.label, label) for label in self.sources.values())


def by_case(entries: Iterable[LabelEntry]) -> dict[str, list[LabelEntry]]:
    found: dict[str, list[LabelEntry]] = {}
    for entry in entries:
        found.setdefault(entry.case, []).append(entry)
    return found


def settled(case: Case, entries: Sequence[LabelEntry]) -> Settled:
    """What holds for a case. One that carries a label and has no entry was labelled by whoever wrote it: reviewed.

    Args:
        entries: the log; those of other cases are passed over.
    """
    return settle(case, [entry for entry in entries if entry.case == case.id])


def settle(case: Case, own: Sequence[LabelEntry]) -> Settled:
    """As `settled`, with the entries of this case alone."""
    if not own:
        return Settled(case=case.id, state=None if case.label is None else "reviewed", label=case.label)
    sources: dict[str, Any] = {}
    decided: LabelEntry | None = None
    for entry in own:
        if entry.state in ("reviewed", "rejected"):
            decided = entry
        elif entry.label is None:
            sources.pop(entry.key, None)
        else:
            sources[entry.key] = read_label(entry.label)
    disputed = _disputed(list(sources.values()))
    if decided is not None:
        label = read_label(decided.label) if decided.state == "reviewed" and decided.label is not None else None
        return Settled(
            case=case.id, state=decided.state, label=label, sources=sources, disputed=disputed, decided=decided
        )
    if not sources:
        return Settled(case=case.id)
    name = _strongest(sources)
    return Settled(case=case.id, state=_state(name), label=sources[name], sources=sources, disputed=disputed)


def _state(name: str) -> Any:
    return name.partition(":")[0]


def _disputed(labels: Sequence[Any]) -> bool:
    return any(not agree(one, other) for place, one in enumerate(labels) for other in labels[place + 1 :])


def _strongest(sources: Mapping[str, Any]) -> str:
    """The source whose label counts: one that another agrees with goes before, then the more trusted kind."""

    def rank(name: str) -> tuple[int, int]:
        others = [label for other, label in sources.items() if other != name]
        alone = not any(agree(sources[name], label) for label in others)
        return (int(alone), TRUST.index(_state(name)))

    return min(sources, key=rank)


# --- review ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A case that a person should look at, and why."""

    case: str
    why: Literal["disagreement", "sample", "finding"]


def review_queue(
    name: str,
    cases: Sequence[Case],
    found: Mapping[str, Settled],
    *,
    findings: Iterable[str] = (),
    intents: Mapping[str, Intent] | None = None,
    sample: int = SAMPLE,
) -> list[Queued]:
    """Every disagreement, every label with findings, and a random sample of the rest; by traffic of the intent.

    The sample is drawn by the suite's name, so it is the same on every machine; a case that leaves it by being
    reviewed is not replaced.

    Args:
        findings: ids of cases whose label the label check warns about.
    """
    warned = set(findings)
    undisputed = [c.id for c in cases if (s := found[c.id]).sources and not s.disputed]
    drawn = set(sorted(undisputed, key=lambda id: _lot(name, id))[:sample])
    queue: list[tuple[tuple[float, str], Queued]] = []
    for case in cases:
        one = found[case.id]
        if case.status == "retired" or one.decided is not None:
            continue
        why = (
            "disagreement" if one.disputed
            else "finding" if case.id in warned
            else "sample" if case.id in drawn
            else None
        )  # fmt: skip
        if why is not None:
            traffic = (intents or {}).get(case.intent, Intent()).traffic or 0.0
            queue.append(((-traffic, case.id), Queued(case=case.id, why=why)))
    return [queued for _, queued in sorted(queue, key=lambda pair: pair[0])]


def _lot(name: str, case: str) -> bytes:
    return sha256(f"playhead.review/1:{name}:{case}".encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What is known of the labels of one group of sources. ``upper``: bound on the share of wrong ones left."""

    group: str
    labels: int
    agreements: int
    audited: int
    wrong: int
    errors_left: float
    rate: float
    upper: float

    @property
    def trusted(self) -> bool:
        return self.upper <= RESIDUAL


def audits(found: Iterable[Settled]) -> list[Audit]:
    """The groups of labels with sources, and what auditing a sample of each says about the rest."""
    groups: dict[str, list[Settled]] = {}
    for one in found:
        if one.sources:
            groups.setdefault(one.group, []).append(one)
    return [_audit(name, members) for name, members in sorted(groups.items())]


def _audit(name: str, members: Sequence[Settled]) -> Audit:
    looked = [one.wrong for one in members if one.wrong is not None]
    agreements = sum(not one.disputed for one in members)
    said = label_audit(len(members), agreements, len(looked), sum(looked))
    return Audit(
        group=name,
        labels=len(members),
        agreements=agreements,
        audited=len(looked),
        wrong=sum(looked),
        errors_left=said.errors_left,
        rate=said.residual_rate,
        upper=said.residual_upper,
    )


def active(one: Settled, groups: Mapping[str, Audit], trust: Iterable[str] = ()) -> bool:
    """Whether the label counts: a person decided, or nothing disputes it and its group is sure enough or trusted."""
    if one.label is None or one.state in (None, "rejected"):
        return False
    if one.state == "reviewed":
        return True
    if one.disputed:
        return False
    if one.state in set(trust):
        return True
    group = groups.get(one.group)
    return group is not None and group.trusted


# --- agreement ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """How far two sources say the same of the cases that both labelled. ``calls``: of those that both want calls."""

    sources: tuple[str, str]
    n: int
    raw: float
    kappa: float | None
    calls: float | None


def agreements(found: Iterable[Settled]) -> list[PairAgreement]:
    """Agreement of every pair of sources; a person's decision is one of them."""
    pairs: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for one in found:
        held = dict(one.sources)
        if one.decided is not None and one.label is not None:
            held["reviewed"] = one.label
        names = sorted(held)
        for place, left in enumerate(names):
            for right in names[place + 1 :]:
                pairs.setdefault((left, right), []).append((held[left], held[right]))
    return [_pair(names, labels) for names, labels in sorted(pairs.items())]


def _pair(names: tuple[str, str], labels: Sequence[tuple[Any, Any]]) -> PairAgreement:
    kinds = agreement([(a.kind, b.kind) for a, b in labels])
    calls = [agree(a, b) for a, b in labels if a.kind == b.kind and a.kind in ("call", "any_of")]
    return PairAgreement(
        sources=names,
        n=len(labels),
        raw=sum(agree(a, b) for a, b in labels) / len(labels),
        kappa=kinds.kappa,
        calls=sum(calls) / len(calls) if calls else None,
    )


def same_label(left: Any, right: Any) -> bool:
    """Whether two labels are written alike."""
    return (left is None) == (right is None) and (left is None or label_digest(left) == label_digest(right))
