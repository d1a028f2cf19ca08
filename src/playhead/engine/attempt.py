"""One attempt at a replay task, seen from the process that runs the agent: everything it stores is fenced."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from playhead.core.lifecycle import REPLAY
from playhead.core.values import Origin, Replay, ReplayStatus, Session, SessionStatus
from playhead.engine.lasting import patiently
from playhead.engine.owner import is_gone
from playhead.errors import LeaseLostError
from playhead.store.ports import SessionQuery, Store

SUPERSEDED = "superseded"
"""Tag of a session whose attempt did not count."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The right of this process to write about a replay, while the lease lasts."""

    store: Store
    task_id: str
    token: str

    def save(self, replay: Replay) -> None:
        """Stores the replay. One that completed waits for its evaluators, which the worker runs.

        Raises:
            LeaseLostError: another attempt has taken over, so what this one did must not count.
        """
        replay = to_evaluate(replay)
        try:
            patiently(lambda: self.store.jobs.save_replay(self.task_id, self.token, replay))
        except LeaseLostError:
            if replay.result_session_id is not None:
                supersede(self.store, replay.result_session_id)
            raise


def to_evaluate(replay: Replay) -> Replay:
    """A replay whose agent has ended, before its evaluators have run."""
    if replay.status is not ReplayStatus.COMPLETED:
        return replay
    return replace(replay, status=ReplayStatus.EVALUATING, ended_at=None)


def supersede(store: Store, session_id: str) -> None:
    """Marks the session of an attempt that does not count, so that nothing evaluates it."""
    store.sessions.update(session_id, status=SessionStatus.ABANDONED, add_tags=[SUPERSEDED])


def supersede_attempts(store: Store, replay_id: str, *, before: int = 0) -> list[str]:
    """Marks sessions that were recorded for a replay and do not count; gives their ids.

    An attempt is dead when it began before the time ``before``, when its process is gone and its session open, and when
    the replay has ended with another result. One that has recorded its session and not told yet may still count.
    """
    found = [(session, session.owner is not None and is_gone(session.owner)) for session in _recorded(store, replay_id)]
    replay = store.replays.get(replay_id)  # asked last: who is gone has told
    over = REPLAY.is_final(replay.status)
    dead = [
        session.id
        for session, gone in found
        if session.started_at < before or (session.id != replay.result_session_id and (over or gone))
    ]
    for session_id in dead:
        supersede(store, session_id)
    return dead


def _recorded(store: Store, replay_id: str) -> Iterator[Session]:
    baseline = store.replays.get(replay_id).baseline_session_id
    query = SessionQuery(baseline_id=baseline, origins=(Origin.REPLAY,))
    cursor: str | None = None
    while True:
        page = store.sessions.find(query, limit=200, cursor=cursor)
        for session in page.items:
            marked = session.status is SessionStatus.ABANDONED and SUPERSEDED in session.tags
            if session.replay_id == replay_id and not marked:
                yield session
        cursor = page.next_cursor
        if cursor is None or len(page.items) == 0:
            return
