"""The newest recorded answers of a tool: read from an index, then only the sessions that hold them."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from playhead.core.values import JSON, Node
from playhead.errors import NotFoundError
from playhead.store import lookup, queries, sqlite_rows
from playhead.store.queries import column_text


class _Candidate(NamedTuple):
    ended_at: int
    session_id: str


def newest_calls(c: sqlite3.Connection, tool: str, agent: str | None, session_ids: Sequence[str] | None) -> list[Node]:
    """See `SessionPort.newest_calls`."""
    if session_ids is not None:
        return _among(c, tool, agent, session_ids)
    rows = c.execute(
        queries.NEWEST_CALLS, {"agent": None if agent is None else column_text(agent), "tool": column_text(tool)}
    )
    candidates: dict[bytes, list[_Candidate]] = {}
    for key, session_id, ended_at in rows:
        candidates.setdefault(key, []).append(_Candidate(ended_at, session_id))
    for listed in candidates.values():
        listed.sort()
    return _settled(c, tool, candidates)


def _settled(c: sqlite3.Connection, tool: str, candidates: dict[bytes, list[_Candidate]]) -> list[Node]:
    """Take for each key the newest candidate that is still true.

    The index says when a key was last answered in a session. A node that was stored again with another outcome may
    have made that untrue; then the next candidate counts.
    """
    newest: dict[bytes, Node] = {}
    while candidates:
        asked: dict[str, set[bytes]] = {}
        for key, listed in candidates.items():
            top = listed[-1].ended_at
            while listed and listed[-1].ended_at == top:
                asked.setdefault(listed.pop().session_id, set()).add(key)
        for session_id, keys in asked.items():
            for node in _calls(c, session_id, tool, keys):
                key = sqlite_rows.pack_key((node.call and node.call.key) or "")
                if key not in newest or lookup.recency(node) > lookup.recency(newest[key]):
                    newest[key] = node
        candidates = {
            key: listed
            for key, listed in candidates.items()
            if listed and (key not in newest or lookup.recency(newest[key])[0] <= listed[-1].ended_at)
        }
    return lookup.newest_by_key(newest.values(), tool)


def _among(c: sqlite3.Connection, tool: str, agent: str | None, session_ids: Iterable[str]) -> list[Node]:
    found: list[Node] = []
    for session_id in dict.fromkeys(session_ids):
        try:
            state = sqlite_rows.state(c, session_id)
        except NotFoundError:
            continue
        if agent is None or state.agent == column_text(agent):
            found += _calls(c, session_id, tool, None)
    return lookup.newest_by_key(found, tool)


def _calls(c: sqlite3.Connection, session_id: str, tool: str, keys: set[bytes] | None) -> list[Node]:
    """Calls of a tool in a session; no other payload is read."""

    def wanted(head: Mapping[str, JSON]) -> bool:
        call = head.get("call")
        if call is None or call["tool"] != tool or "key" not in call:
            return False
        return keys is None or sqlite_rows.pack_key(call["key"]) in keys

    return [node for node in sqlite_rows.nodes(c, session_id, wanted=wanted) if lookup.gave_value(node)]
