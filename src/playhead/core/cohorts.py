"""Named populations of sessions. A version is frozen: an ordered list of session ids and how it came about.

Samples are taken by digests, so that a seed (or nothing but the name) always gives the same members.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from playhead.core.values import JSON
from playhead.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """One version of a cohort.

    Attributes:
        members: session ids in the order in which they are replayed.
        source: how the members were chosen: the query, the list, or the version and its change.
    """

    name: str
    version: int
    created_at: int
    members: tuple[str, ...]
    source: dict[str, JSON] = field(default_factory=dict[str, JSON])

    @property
    def ref(self) -> str:
        """``name@version``."""
        return f"{self.name}@{self.version}"


def parse_ref(text: str) -> tuple[str, int | None]:
    """The parts of ``name`` or ``name@version``.

    Raises:
        UsageError: the version is no number, or there is no name.
    """
    name, at, number = text.rpartition("@")
    if not at:
        name, number = text, ""
    if not name or (at and not (number.isdecimal() and int(number))):
        raise UsageError(f"{text!r} names no cohort", hint="NAME, or NAME@VERSION with a number from 1 on")
    return name, int(number) if number else None


def changed(members: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> tuple[str, ...]:
    """Members after a change: those that stay keep their place, new ones follow in the order given.

    Raises:
        UsageError: something to remove is no member.
    """
    strange = [id for id in remove if id not in set(members)]
    if strange:
        raise UsageError(f"session {strange[0]!r} is no member, so it cannot be removed")
    gone = set(remove)
    return tuple(dict.fromkeys(id for id in (*members, *add) if id not in gone))


def sampled(items: Sequence[T], size: int, *, seed: str, id_of: Callable[[T], str]) -> list[T]:
    """``size`` of the items, chosen by the digest of seed and id, in their order."""
    chosen = set(sorted(map(id_of, items), key=lambda id: _rank(seed, id))[:size])
    return [item for item in items if id_of(item) in chosen]


def stratified(
    items: Sequence[T], size: int, *, seed: str, id_of: Callable[[T], str], stratum: Callable[[T], str]
) -> list[T]:
    """``size`` of the items, from each stratum in proportion to its share (largest remainders), at least one of each
    while there is room."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(stratum(item), []).append(item)
    size = min(size, len(items))
    exact = {name: size * len(group) / len(items) for name, group in groups.items()} if items else {}
    least = 1 if size >= len(groups) else 0
    quota = {name: max(int(share), least) for name, share in exact.items()}
    while (
        sum(quota.values()) > size
    ):  # the ones that were raised are paid for by the strata that are most above their share
        quota[
            max((name for name in quota if quota[name] > least), key=lambda name: (quota[name] - exact[name], name))
        ] -= 1
    largest = sorted(groups, key=lambda name: (quota[name] - exact[name], name))
    for name in largest[: size - sum(quota.values())]:
        quota[name] += 1
    kept = {
        id_of(item) for name, group in groups.items() for item in sampled(group, quota[name], seed=seed, id_of=id_of)
    }
    return [item for item in items if id_of(item) in kept]


def next_version(known: Sequence[Cohort], made: Cohort) -> Cohort:
    """What is stored for a new version: the newest known one when the members are the same."""
    if known and known[-1].members == made.members:
        return known[-1]
    return Cohort(
        name=made.name,
        version=known[-1].version + 1 if known else 1,
        created_at=made.created_at,
        members=made.members,
        source=made.source,
    )


def digest(members: Iterable[str]) -> str:
    """Tells two memberships apart, order included."""
    return hashlib.sha256("\n".join(members).encode()).hexdigest()


def _rank(seed: str, id: str) -> bytes:
    return hashlib.sha256(f"playhead.sample/1\n{seed}\n{id}".encode()).digest()
