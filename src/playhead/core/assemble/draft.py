"""The working form of a node while a session is assembled, and the tree that the drafts make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from playhead.core.assemble.records import Note, Record, RecordError
from playhead.core.values import JSON, Mark, NodeKind, Outcome


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """One tool call that a model asked for: its model call, place in the response, id, name, arguments.

    ``view`` is what a later request (or the end of the dialogue) shows as its answer.
    """

    model: "Draft"
    index: int
    call_id: JSON
    name: str
    arguments: JSON
    tool: "Draft | None" = None
    answered: bool = False
    view: JSON = None
    view_is_error: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Draft:
    """A node in the making. Everything that an assembly step finds out is written here."""

    record: Record
    kind: NodeKind
    arrival: int
    parent: "Draft | None" = None
    children: list["Draft"] = field(default_factory=lambda: [])
    requests: list[Request] = field(default_factory=lambda: [])  # of a model call
    request: Request | None = None  # of a tool call
    joined: str | None = None
    index: int | None = None
    model: "Draft | None" = None
    rebuilt: bool = False
    outcome: Outcome | None = None
    mark: Mark | None = None
    attributes: dict[str, JSON] = field(default_factory=lambda: {})
    trace: str | None = None
    place: int = 0  # in the final order

    @property
    def start(self) -> int:
        """What orders it: its start, else when it was first heard of, else its parent's."""
        record = self.record
        found = record.started_at or record.seen_at
        return found if found is not None else self.parent.start if self.parent else 0

    def ancestors(self) -> Iterator["Draft"]:
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def agent(self) -> "Draft | None":
        """The nearest enclosing agent_call."""
        return next((a for a in self.ancestors() if a.kind is NodeKind.AGENT_CALL), None)

    def below(self) -> Iterator["Draft"]:
        """Everything below it, parents before children."""
        todo = self.children[::-1]
        while todo:
            one = todo.pop()
            yield one
            todo.extend(one.children[::-1])

    def adopt(self, child: "Draft") -> None:
        child.parent = self
        self.children.append(child)

    def update(self, **changes: Any) -> None:
        """Replace fields of the record."""
        from dataclasses import replace

        self.record = replace(self.record, **changes)


def grow(records: Sequence[Record], depth_limit: int, notes: list[Note]) -> list[Draft]:
    """The drafts of merged records with their parents, in arrival order. An unknown parent makes a root.

    Raises:
        RecordError: ``cycle``.
    """
    drafts = [
        Draft(record=r, kind=r.kind or NodeKind.SPAN, arrival=i, attributes=dict(r.found))
        for i, r in enumerate(records)
    ]
    by_id = {d.record.external_id: d for d in drafts}
    for draft in drafts:
        merged = draft.record.merged
        for inner in merged:
            by_id.setdefault(inner, draft)
    for draft in drafts:
        parent = by_id.get(draft.record.parent) if draft.record.parent else None
        if parent is not None and parent is not draft:
            draft.parent = parent
        elif parent is draft and draft.record.parent == draft.record.external_id:
            raise RecordError("cycle", f"{draft.record.external_id!r} is its own parent", draft.record.external_id)
    _limit_depth(drafts, depth_limit, notes)
    for draft in drafts:
        if draft.parent is not None:
            draft.parent.children.append(draft)
    return drafts


def _limit_depth(drafts: list[Draft], limit: int, notes: list[Note]) -> None:
    depth: dict[int, int] = {}
    for draft in drafts:
        chain: list[Draft] = []
        at: Draft | None = draft
        seen: set[int] = set()
        while at is not None and id(at) not in depth:
            if id(at) in seen:
                raise RecordError(
                    "cycle", f"the parents of {draft.record.external_id!r} form a ring", at.record.external_id
                )
            seen.add(id(at))
            chain.append(at)
            at = at.parent
        level = depth[id(at)] if at is not None else -1
        for one in reversed(chain):
            level += 1
            if level >= limit:
                notes.append(Note(
                    code="too_deep", message=f"nested deeper than {limit}: attached at {limit}",
                    external_id=one.record.external_id,
                ))  # fmt: skip
                one.parent = one.parent.parent if one.parent else None
                level -= 1
            depth[id(one)] = level
