"""One attempt at a replay task, seen from the process that runs the agent: everything it stores is fenced."""

from dataclasses import dataclass, replace

from playhead.core.values import Origin, Replay, ReplayStatus, SessionStatus
from playhead.engine.lasting import patiently
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


def supersede_others(store: Store, replay: Replay) -> list[str]:
    """Marks every session that was recorded for a replay and is not its result; gives their ids."""
    query = SessionQuery(baseline_id=replay.baseline_session_id, origins=(Origin.REPLAY,))
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = store.sessions.find(query, limit=200, cursor=cursor)
        for session in page.items:
            others = session.replay_id == replay.id and session.id != replay.result_session_id
            if others and SUPERSEDED not in session.tags:
                found.append(session.id)
        cursor = page.next_cursor
        if cursor is None or len(page.items) == 0:
            break
    for session_id in found:
        supersede(store, session_id)
    return found
