"""Rules that every backend shares: cursors, shortened ids, which sessions a query means, what a change makes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.core.codec import decode, dump, encode
from playhead.core.values import (
    FROM_SOURCE,
    JSON,
    SOURCE_METADATA,
    AgentVersion,
    Node,
    NodeKind,
    NodeStatus,
    Origin,
    OutcomeKind,
    Session,
    SessionStatus,
    Verdict,
)
from playhead.errors import AmbiguousIdError, ConflictError, NotFoundError, UsageError
from playhead.store.ports import PutResult, SessionQuery

if TYPE_CHECKING:
    from playhead.core.session_filter import Filter

SHORTEST = 4
"""Characters that a shortened id needs."""

UNCOUNTED = (Origin.REPLAY, Origin.PROBE)
"""Origins that ``last`` passes over."""

_LAST = re.compile(r"last(?:~([0-9]{1,9}))?")


class Place(NamedTuple):
    """Where a page ended: items are ordered by time, then id."""

    at: int
    id: str


def cursor_of(place: Place) -> str:
    return f"{place.at}.{place.id}"


def place_of(cursor: str) -> Place:
    at, dot, id = cursor.partition(".")
    if not dot or not at.lstrip("-").isdecimal():
        raise UsageError(f"not a cursor of this listing: {cursor!r}", hint="pass on next_cursor as it was given")
    return Place(int(at), id)


def resolve(
    text: str,
    what: str,
    *,
    nth_newest: Callable[[int], str | None],
    fitting: Callable[[str], Sequence[str]],
) -> str:
    """The full id that ``text`` means.

    Args:
        what: the noun for messages.
        nth_newest: the id of the n-th newest, 0 the newest.
        fitting: ids that are ``text``, begin with it or end with it; a few are enough, an equal one first.
    """
    text = text.strip()
    last = _LAST.fullmatch(text)
    if last is not None:
        found = nth_newest(int(last[1] or 0))
        if found is None:
            raise NotFoundError(f"there is no {what} {text!r}", hint=f"list them: playhead {what} list")
        return found
    fits = fitting(text)
    if text in fits:
        return text
    if len(text) < SHORTEST:
        raise NotFoundError(f"no {what} {text!r}", hint=f"a shortened id needs at least {SHORTEST} characters")
    if not fits:
        raise NotFoundError(f"no {what} has an id that is, begins or ends with {text!r}")
    if len(fits) > 1:
        raise AmbiguousIdError(
            f"{text!r} fits several {what}s: {', '.join(sorted(fits)[:4])}{' ...' if len(fits) > 4 else ''}",
            hint="give more characters; the last ones differ most",
            ids=sorted(fits),
        )
    return fits[0]


def fits(session: Session, query: SessionQuery) -> bool:
    """Whether a session is one that the query asks for."""
    return all(
        (
            query.agents is None or session.agent in query.agents,
            query.agent_version is None or session.agent_version == query.agent_version,
            query.origins is None or session.origin in query.origins,
            query.statuses is None or session.status in query.statuses,
            query.tags is None or set(query.tags) <= set(session.tags),
            query.conversation is None or (session.conversation and session.conversation.id == query.conversation),
            query.baseline_id is None or session.baseline_id == query.baseline_id,
            query.since is None or session.started_at >= query.since,
            query.until is None or session.started_at < query.until,
            query.ids is None or session.id in query.ids,
            has_members(session.metadata, query.metadata),
            query.where is None or _holds(query.where, session),
        )
    )


def _holds(where: "Filter", session: Session) -> bool:
    from playhead.core.session_filter import holds  # most queries are none of the language

    return holds(where, session)


def has_members(metadata: Any, wanted: Any) -> bool:
    """Whether each wanted top-level member is there with an equal value; 1, 1.0 and true are three values."""
    return all(
        name in metadata and encode(metadata[name], sort_keys=True) == encode(value, sort_keys=True)
        for name, value in wanted.items()
    )


def newest_by_key(nodes: Iterable[Node], tool: str) -> list[Node]:
    """For each key the newest completed call of ``tool`` that gave a value, in order of key."""
    newest: dict[str, Node] = {}
    for node in nodes:
        call = node.call
        if call is None or call.tool != tool or call.key is None or not gave_value(node):
            continue
        known = newest.get(call.key)
        if known is None or recency(node) > recency(known):
            newest[call.key] = node
    return [newest[key] for key in sorted(newest)]


def gave_value(node: Node) -> bool:
    return (
        node.kind is NodeKind.TOOL_CALL
        and node.status is NodeStatus.COMPLETED
        and node.outcome is not None
        and node.outcome.kind is OutcomeKind.VALUE
    )


def recency(node: Node) -> tuple[int, str]:
    return (node.started_at if node.ended_at is None else node.ended_at, node.id)


# What a change makes of a stored value


def merged(stored: Session, final: Session) -> Session:
    """The final state of a session. Tags and metadata that others gave it while it ran stay."""
    tags = final.tags + tuple(tag for tag in stored.tags if tag not in final.tags)
    return replace(final, tags=tags, metadata={**stored.metadata, **final.metadata})


class Replacing(NamedTuple):
    session: Session
    verdicts: tuple[Verdict, ...]


def replacing(
    stored: Session, stored_verdicts: Iterable[Verdict], new: Session, verdicts: Iterable[Verdict]
) -> Replacing:
    """What a put over a stored session stores: the new one with what people and evaluators added to the old one.

    Tags of both; metadata of both, the new one's where both have a member; the new verdicts, and the stored ones of
    other evaluators than the source.
    """
    tags = stored.tags + tuple(tag for tag in new.tags if tag not in stored.tags)
    added = {name: value for name, value in stored.metadata.items() if name not in SOURCE_METADATA}
    given = tuple(verdicts)
    own = {(verdict.evaluator, verdict.name) for verdict in given}
    kept = tuple(v for v in stored_verdicts if v.evaluator != FROM_SOURCE and (v.evaluator, v.name) not in own)
    return Replacing(replace(new, tags=tags, metadata={**added, **new.metadata}), given + kept)


def updated(
    session: Session,
    status: SessionStatus | None,
    add_tags: Sequence[str],
    remove_tags: Sequence[str],
    metadata: Mapping[str, JSON] | None,
) -> Session:
    tags = [tag for tag in session.tags if tag not in remove_tags]
    tags += [tag for tag in dict.fromkeys(add_tags) if tag not in tags]
    return replace(
        session,
        status=session.status if status is None else status,
        tags=tuple(tags),
        metadata={**session.metadata, **(metadata or {})},
    )


def kept(session_id: str, on_exists: str, *, equal: Callable[[], bool]) -> PutResult | None:
    """What a put over an existing session gives back when it changes nothing; None when it shall replace it.

    Raises:
        ConflictError: ``fail`` was asked for.
    """
    if on_exists not in ("replace", "skip", "fail"):
        raise UsageError(f"on_exists is 'replace', 'skip' or 'fail', not {on_exists!r}")
    if on_exists == "fail":
        raise ConflictError(f"session {session_id!r} is in the store already")
    if on_exists == "skip" or equal():
        return PutResult(session_id=session_id, result="unchanged")
    return None


def state(version: AgentVersion) -> bytes:
    """What makes two agent versions the same one."""
    spec = None if version.run_spec is None else dump(version.run_spec)
    return encode([version.agent, spec, version.fingerprint], sort_keys=True)


def no_version(agent: str, number: int | None, known: Sequence[AgentVersion]) -> NotFoundError:
    if not known:
        return NotFoundError(f"no agent {agent!r} is registered")
    numbers = ", ".join(str(version.number) for version in known)
    return NotFoundError(f"agent {agent!r} has no version {number}", hint=f"it has {numbers}")


def members_equal(metadata: str, wanted: str) -> bool:
    """`has_members` over JSON texts, for SQL."""
    return has_members(decode(metadata.encode()), decode(wanted.encode()))


def member_fits(metadata: str, wanted: str) -> bool:
    """Whether a member of metadata fits ``[name, op, value]``, for SQL."""
    from playhead.core.session_filter import Compare, compare

    name, op, value = decode(wanted.encode())
    held = decode(metadata.encode())
    return name in held and compare(Compare(name, op, value), held[name])
