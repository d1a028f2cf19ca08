"""Who writes a session: host, process and when it started; and which owners are gone."""

import os
import socket
from functools import lru_cache

from playhead.core.values import SessionStatus
from playhead.store.ports import SessionQuery, Store


@lru_cache(maxsize=4)
def _name(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{_started(pid)}"


def own_name() -> str:
    """The owner name of this process."""
    return _name(os.getpid())


def _started(pid: int) -> int | None:
    """When a process started, in hundredths of a second; None when there is none."""
    import psutil  # slow to load, and only sessions that look open need it

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return round(process.create_time() * 100)
    except psutil.Error:
        return None


def is_gone(owner: str | None) -> bool:
    """Whether the owner is certainly dead: of this host, and no such process, or a younger one under its number."""
    host, _, rest = (owner or "").rpartition(":")
    host, _, pid = host.rpartition(":")
    if host != socket.gethostname() or not pid.isdecimal() or not rest.isdecimal():
        return False
    started = _started(int(pid))
    return started is None or abs(started - int(rest)) > 200  # clocks are corrected while processes live


def mark_abandoned(store: Store, *, limit: int = 500) -> list[str]:
    """Marks open sessions whose process is gone as abandoned; gives their ids."""
    query = SessionQuery(statuses=(SessionStatus.OPEN,), oldest_first=True)
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = store.sessions.find(query, limit=limit, cursor=cursor)
        found += [session.id for session in page.items if is_gone(session.owner)]
        cursor = page.next_cursor
        if cursor is None:
            break
    for session_id in found:
        store.sessions.update(session_id, status=SessionStatus.ABANDONED)
    return found
