"""Cohorts as a client sees them: made from queries, lists and changes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from playhead.core.cohorts import Cohort, changed, parse_ref, sampled, stratified
from playhead.core.names import checked_name
from playhead.core.session_filter import fields, parse, text_of
from playhead.core.values import JSON, NodeKind, Origin, Session, SessionStatus
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.errors import NotFoundError, UsageError
from playhead.store.ports import SessionQuery, Store

__all__ = ["CohortClient", "CohortSummary", "Sampling", "asked"]

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Fewer sessions than a query found.

    Attributes:
        size: how many.
        seed: another seed, other members; the same seed, the same.
        by: draw from each value of this in proportion: ``agent``, ``origin``, ``tag``, or a metadata member.
    """

    size: int
    seed: str = "0"
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortSummary:
    """What a cohort version holds now. ``first`` and ``last`` are when its sessions started."""

    cohort: Cohort
    found: int
    erased: tuple[str, ...]
    agents: dict[str, int]
    statuses: dict[str, int]
    intents: dict[str, int]
    tools: dict[str, int]
    first: int | None
    last: int | None
    not_replayable: dict[str, str]


class CohortClient:
    """Creates, changes and shows cohorts."""

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock

    def create(
        self,
        name: str,
        *,
        query: SessionQuery | None = None,
        sessions: Sequence[str] = (),
        sampling: Sampling | None = None,
    ) -> Cohort:
        """The next version of a cohort: of the sessions that a query finds, or of those that are named.

        The same members as the newest version make no new one. Members are in the order in which they were recorded
        (a query), or in that of the list.

        Raises:
            UsageError: neither or both were given, or nothing was found.
        """
        if "@" in name:
            raise UsageError(f"{name!r} names a version", hint="versions are numbered by themselves: give the name")
        try:
            checked_name(name)
        except ValueError as error:
            raise UsageError(f"{name!r} names no cohort: {error}") from None
        if (query is None) == (not sessions):
            raise UsageError("a cohort is made from a query or from a list of sessions", hint="give one of the two")
        if query is not None:
            found = list(self._matching(query))
            source: dict[str, JSON] = {"query": _told(query)}
        else:
            ids = list(dict.fromkeys(self._store.sessions.resolve(text) for text in sessions))
            found = [self._store.sessions.get(id) for id in ids]
            source = {"sessions": [*ids]}
        if sampling is not None:
            found = _sample(found, sampling)
            source["sample"] = {"size": sampling.size, "seed": sampling.seed, "by": sampling.by}
        if not found:
            raise UsageError("no session fits, and a cohort needs members", hint="playhead session list shows what is")
        return self._put(name, tuple(session.id for session in found), source)

    def change(self, ref: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Cohort:
        """A new version from an earlier one: some sessions more, some less.

        Raises:
            UsageError: one to remove is no member, or nothing would be left.
        """
        base = self.find(ref)
        added = [self._store.sessions.resolve(text) for text in add]
        removed = [self._member(base, text) for text in remove]
        members = changed(base.members, added, removed)
        if not members:
            raise UsageError(f"nothing would be left of cohort {base.ref}")
        return self._put(base.name, members, {"from": base.ref, "add": [*added], "remove": [*removed]})

    def find(self, ref: str) -> Cohort:
        """A version by ``name@version``, the newest by ``name``."""
        return self._store.cohorts.find(*parse_ref(ref))

    def list(self) -> "list[Cohort]":
        """The newest version of each cohort."""
        return [self._store.cohorts.find(name) for name in self._store.cohorts.names()]

    def versions(self, name: str) -> "list[Cohort]":
        """Oldest first."""
        return self._store.cohorts.versions(name)

    def summary(self, cohort: Cohort) -> CohortSummary:
        """What is in a cohort version, read from its sessions as they are now."""
        present: list[Session] = []
        erased: list[str] = []
        tools: Counter[str] = Counter()
        for id in cohort.members:
            try:
                present.append(self._store.sessions.get(id))
            except NotFoundError:
                erased.append(id)
                continue
            nodes = self._store.sessions.nodes(id, payloads=False)
            tools.update(n.call.tool for n in nodes if n.kind is NodeKind.TOOL_CALL and n.call is not None)
        times = [session.started_at for session in present]
        return CohortSummary(
            cohort=cohort,
            found=len(present),
            erased=tuple(erased),
            agents=dict(Counter(session.agent for session in present).most_common()),
            statuses=dict(Counter(session.status.value for session in present)),
            intents=dict(Counter(_intent(s) for s in present if _intent(s) != "").most_common()),
            tools=dict(tools.most_common()),
            first=min(times, default=None),
            last=max(times, default=None),
            not_replayable={session.id: why for session in present if (why := _obstacle(session)) is not None},
        )

    def _matching(self, query: SessionQuery) -> Iterator[Session]:
        """What a query finds, oldest first. Replays and probes only where the query asks for them."""
        chosen = query.where is not None and not {"origin", "baseline", "id"}.isdisjoint(fields(query.where))
        if query.origins is None and query.ids is None and query.baseline_id is None and not chosen:
            query = replace(query, origins=(Origin.LIVE, Origin.IMPORT))
        query, cursor = replace(query, oldest_first=True), None
        while True:
            page = self._store.sessions.find(query, limit=_PAGE, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def _member(self, base: Cohort, text: str) -> str:
        """The member that a text means; also one whose session is gone."""
        fits = [id for id in base.members if text in (id, id[: len(text)], id[-len(text) :])]
        return fits[0] if len(fits) == 1 else self._store.sessions.resolve(text)

    def _put(self, name: str, members: tuple[str, ...], source: dict[str, JSON]) -> Cohort:
        made = Cohort(name=name, version=0, created_at=self._clock.now(), members=members, source=source)
        return self._store.cohorts.create(made)


def _sample(found: list[Session], sampling: Sampling) -> list[Session]:
    if sampling.size < 1:
        raise UsageError("a sample has at least one session")
    if sampling.by is None:
        return sampled(found, sampling.size, seed=sampling.seed, id_of=_id)
    by = sampling.by
    return stratified(found, sampling.size, seed=sampling.seed, id_of=_id, stratum=lambda s: _value(s, by))


def _id(session: Session) -> str:
    return session.id


def _value(session: Session, by: str) -> str:
    if by == "tag":
        return ",".join(sorted(session.tags))
    return session.agent if by == "agent" else session.origin if by == "origin" else str(session.metadata.get(by))


def _intent(session: Session) -> str:
    found = session.metadata.get("intent")
    return found if isinstance(found, str) else ""


def _obstacle(session: Session) -> str | None:
    """Why a session cannot be replayed, as far as it shows by itself."""
    if session.not_replayable:
        return ", ".join(session.not_replayable)
    bad: dict[SessionStatus, Literal["still open", "abandoned"]] = {
        SessionStatus.OPEN: "still open",
        SessionStatus.ABANDONED: "abandoned",
    }
    return bad.get(session.status)


def _told(query: SessionQuery) -> dict[str, JSON]:
    """A query as it is kept with the cohort: what was asked for, nothing else."""
    told: dict[str, JSON] = {}
    for name in SessionQuery.__dataclass_fields__:
        value: Any = getattr(query, name)
        if value is None or name == "oldest_first" or value == {}:
            continue
        if name == "where":
            told[name] = text_of(value)
            continue
        told[name] = [*map(str, cast("tuple[object, ...]", value))] if isinstance(value, tuple) else value
    return told


def asked(told: dict[str, JSON]) -> SessionQuery:
    """The query that a cohort was made from, to be asked again."""
    values: dict[str, Any] = {
        name: tuple(cast("list[Any]", v)) if isinstance(v, list) else v for name, v in told.items()
    }
    if "where" in values:
        values["where"] = parse(values["where"], now=0, kept=True)  # it holds no time that counts from now
    for name, kind in (("origins", Origin), ("statuses", SessionStatus)):
        if name in values:
            values[name] = tuple(kind(each) for each in values[name])
    return SessionQuery(**values)
