"""The options that choose sessions, the same for every command that takes a query."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from playhead.cli import shown
from playhead.core.values import Origin, SessionStatus
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.store.ports import SessionQuery, Store

if TYPE_CHECKING:
    from playhead.core.session_filter import Filter as Wanted


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which sessions.

    Args:
        agent: Of this agent. An option that may be given several times means any of its values.
        agent_version: Of this agent version (its id).
        origin: How the session came to be.
        status: In this status.
        tag: With this tag; given several times, with all of them.
        conversation: Of this conversation.
        baseline: Replays of this session.
        since: Started at or after: 2h, 3d, 2026-05-01, 2026-05-01T12:30.
        until: Started before.
        where: Those that a query means, such as: agent = desk and (status = failed or not tag in (eval, smoke)).
    """

    agent: tuple[str, ...] = ()
    agent_version: str | None = None
    origin: tuple[Literal["live", "replay", "import", "probe"], ...] = ()
    status: tuple[Literal["open", "completed", "failed", "abandoned"], ...] = ()
    tag: tuple[str, ...] = ()
    conversation: str | None = None
    baseline: str | None = None
    since: str | None = None
    until: str | None = None
    where: Annotated[str | None, Parameter(name="--query")] = None

    @property
    def is_given(self) -> bool:
        """Whether anything was asked for."""
        return self != Filter()

    def query(self, store: Store, *, oldest_first: bool = False) -> SessionQuery:
        """The query that the options stand for.

        Raises:
            UsageError: a time that is none. NotFoundError: there is no such baseline.
        """
        now = SYSTEM_CLOCK.now()
        return SessionQuery(
            agents=self.agent or None,
            agent_version=self.agent_version,
            origins=tuple(Origin(name) for name in self.origin) or None,
            statuses=tuple(SessionStatus(name) for name in self.status) or None,
            tags=self.tag or None,
            conversation=self.conversation,
            baseline_id=None if self.baseline is None else store.sessions.resolve(self.baseline),
            since=shown.instant(self.since, now=now),
            until=shown.instant(self.until, now=now),
            where=None if self.where is None else parsed(self.where, now=now),
            oldest_first=oldest_first,
        )


def parsed(text: str, *, now: int) -> "Wanted":
    """A query of the language.

    Raises:
        UsageError: it is none; the message points at the place.
    """
    from playhead.core.session_filter import parse  # only where one is given

    return parse(text, now=now)


FilterOptions = Annotated[Filter, Parameter(name="*")]
EVERYTHING = Filter()
