"""The query language as SQL for the SQLite store: the same meaning as `core.session_filter.holds`."""

from typing import Final

from playhead.core.codec import encode
from playhead.core.session_filter import METADATA, Both, Compare, Filter, Not
from playhead.core.values import JSON
from playhead.store.sql_text import Condition, column_text

_COLUMNS: Final = {
    "agent": "agent", "agent_version": "agent_version", "origin": "origin", "status": "status",
    "conversation": "conversation", "baseline": "baseline_id", "id": "id", "started": "started_at",
}  # fmt: skip


def clause(part: Filter) -> Condition:
    """What stands in a WHERE clause; never NULL, so that NOT means not."""
    if isinstance(part, Compare):
        return _comparison(part)
    if isinstance(part, Not):
        inside = clause(part.part)
        return Condition(f"NOT ({inside.text})", inside.values)
    word = " AND " if isinstance(part, Both) else " OR "
    found = [clause(one) for one in part.parts]
    return Condition(f"({word.join(one.text for one in found)})", [value for one in found for value in one.values])


def _comparison(part: Compare) -> Condition:
    if part.field.startswith(METADATA):
        wanted = encode([part.field.removeprefix(METADATA), part.op, part.value]).decode()
        return Condition("member_fits(metadata, ?)", [wanted])
    value: JSON = column_text(part.value) if isinstance(part.value, str) else part.value
    if part.field == "tag":
        return Condition(f"EXISTS (SELECT 1 FROM session_tags WHERE session = pk AND {_test('tag', part.op)})", [value])
    column = _COLUMNS[part.field]
    return Condition(f"({column} IS NOT NULL AND {_test(column, part.op)})", [value])


def _test(column: str, op: str) -> str:
    return f"instr({column}, ?) > 0" if op == "~" else f"{column} {op} ?"
