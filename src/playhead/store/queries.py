"""The SQL of the SQLite store. Values are always parameters."""

from playhead.core.codec import encode
from playhead.core.values import JSON
from playhead.store import lookup
from playhead.store.ports import SessionQuery
from playhead.store.sql_text import Condition, column_text

SESSION = "SELECT format, doc FROM sessions WHERE id = ?"
SESSION_STATE = "SELECT pk, epoch, agent, origin, digest FROM sessions WHERE id = ?"
ADD_SESSION = """
    INSERT INTO sessions (id, agent, agent_version, project, origin, status, started_at, conversation, baseline_id,
        external_format, external_instance, external_id, revision, metadata, format, doc)
    VALUES (:id, :agent, :agent_version, :project, :origin, :status, :started_at, :conversation, :baseline_id,
        :external_format, :external_instance, :external_id, :revision, :metadata, :format, :doc)
    ON CONFLICT (id) DO NOTHING
"""
SET_SESSION = """
    UPDATE sessions SET agent = :agent, agent_version = :agent_version, project = :project, origin = :origin,
        status = :status, started_at = :started_at, conversation = :conversation, baseline_id = :baseline_id,
        external_format = :external_format, external_instance = :external_instance, external_id = :external_id,
        revision = :revision, metadata = :metadata, format = :format, doc = :doc, digest = NULL
    WHERE pk = :pk
"""
BY_EXTERNAL = """
    SELECT format, doc FROM sessions WHERE external_format = ? AND external_instance = ? AND external_id = ?
    ORDER BY started_at DESC, id DESC LIMIT 1
"""
FITTING_SESSIONS = """
    SELECT id FROM sessions WHERE (id = :text OR substr(id, 1, :size) = :text OR substr(id, -:size) = :text)
        AND (:agent IS NULL OR agent = :agent)
    ORDER BY id = :text DESC LIMIT 20
"""
NTH_SESSION = """
    SELECT id FROM sessions WHERE origin NOT IN ('replay', 'probe') AND (:agent IS NULL OR agent = :agent)
    ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET :n
"""

END_OF_STREAM = """
    SELECT n, first_message + messages, first_list + lists FROM segments WHERE session = ? ORDER BY n DESC LIMIT 1
"""
ADD_SEGMENT = """
    INSERT INTO segments (session, n, final, nodes, first_message, messages, first_list, lists, format, heads, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SEGMENTS = "SELECT heads, body, format FROM segments WHERE session = ? ORDER BY n"
HEADS = "SELECT heads, NULL, format FROM segments WHERE session = ? ORDER BY n"
SEGMENT_MARKS = "SELECT n, final, format FROM segments WHERE session = ? ORDER BY n"

SHARED = "SELECT data FROM shared WHERE digest = ?"
ADD_SHARED = "INSERT INTO shared (digest, size, data) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING"
HAS_SHARED = "SELECT 1 FROM shared WHERE digest = ?"
REFER_SHARED = """
    INSERT INTO session_shared (session, shared) SELECT ?, pk FROM shared WHERE digest = ?
    ON CONFLICT DO NOTHING
"""
REFERRED = "SELECT shared FROM session_shared WHERE session = ?"
DROP_UNREFERRED = """
    DELETE FROM shared WHERE pk = ? AND NOT EXISTS (SELECT 1 FROM session_shared WHERE shared = shared.pk)
"""

NAME = "SELECT pk FROM names WHERE name = ?"
ADD_NAME = "INSERT INTO names (name) VALUES (?)"
ADD_CALL = """
    INSERT INTO calls (agent, tool, key, session, ended_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (agent, tool, key, session) DO UPDATE SET ended_at = max(ended_at, excluded.ended_at)
"""
DROP_CALLS = "DELETE FROM calls WHERE agent = (SELECT pk FROM names WHERE name = ?) AND session = ?"
NEWEST_CALLS = """
    SELECT calls.key, sessions.id, max(calls.ended_at) FROM calls JOIN sessions ON sessions.pk = calls.session
    WHERE calls.agent IN (SELECT pk FROM names WHERE :agent IS NULL OR name = :agent)
        AND calls.tool = (SELECT pk FROM names WHERE name = :tool)
    GROUP BY calls.key, sessions.pk
"""

VERDICTS = "SELECT format, doc FROM verdicts WHERE session = ? ORDER BY pk"
DROP_VERDICTS = "DELETE FROM verdicts WHERE session = ? AND evaluator = ?"
ADD_VERDICT = """
    INSERT INTO verdicts (session, evaluator, name, format, doc) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, evaluator, name) DO UPDATE SET format = excluded.format, doc = excluded.doc
"""

HOLDING_COHORTS = "SELECT cohort, version FROM cohort_sessions WHERE session = ? ORDER BY cohort, version"


_ANY_OF = "{} IN (SELECT value FROM json_each(?))"


def condition(query: SessionQuery, after: lookup.Place | None = None) -> Condition:
    """Which sessions a query means; of those the ones behind ``after`` in its order."""
    parts = [
        *_lists(query),
        *(
            (f"{column} = ?", column_text(value))
            for column, value in (
                ("agent_version", query.agent_version),
                ("conversation", query.conversation),
                ("baseline_id", query.baseline_id),
            )
            if value is not None
        ),
    ]
    if query.since is not None:
        parts.append(("started_at >= ?", query.since))
    if query.until is not None:
        parts.append(("started_at < ?", query.until))
    parts += [("pk IN (SELECT session FROM session_tags WHERE tag = ?)", column_text(tag)) for tag in query.tags or ()]
    if query.metadata:
        parts.append(("members_equal(metadata, ?)", encode(dict(query.metadata)).decode()))
    text = " AND ".join(part for part, _ in parts) or "1"
    values = [value for _, value in parts]
    if query.where is not None:
        from playhead.store.filter_sql import clause  # most queries are none of the language

        asked = clause(query.where)
        text, values = f"{text} AND {asked.text}", values + asked.values
    if after is not None:
        text += f" AND (started_at, id) {'>' if query.oldest_first else '<'} (?, ?)"
        values += after
    return Condition(text, values)


def _lists(query: SessionQuery) -> list[tuple[str, JSON]]:
    lists = (("agent", query.agents), ("origin", query.origins), ("status", query.statuses), ("id", query.ids))
    parts: list[tuple[str, JSON]] = []
    for column, wanted in lists:
        if wanted is not None and len(wanted) == 1:  # an equality lets the index give the order too
            parts.append((f"{column} = ?", column_text(wanted[0])))
        elif wanted is not None:
            parts.append((_ANY_OF.format(column), encode([column_text(value) for value in wanted]).decode()))
    return parts


def page(where: Condition, *, oldest_first: bool, limit: int) -> Condition:
    order = "ASC" if oldest_first else "DESC"
    text = (
        f"SELECT started_at, id, format, doc FROM sessions WHERE {where.text} "
        f"ORDER BY started_at {order}, id {order} LIMIT ?"
    )
    return Condition(text, [*where.values, limit])
