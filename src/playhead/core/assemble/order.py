"""The order of nodes: by start, parents first, parallel calls of one response in the response's order."""

from collections.abc import Iterable

from playhead.core.assemble.draft import Draft

_MILLISECOND = 1_000_000


def in_order(drafts: Iterable[Draft]) -> list[Draft]:
    """By start; a parent before its children at equal start; then arrival."""
    held = list(drafts)
    starts: dict[int, int] = {}
    level: dict[int, int] = {}
    for draft in held:
        chain = [draft]
        while chain[-1].parent is not None and id(chain[-1].parent) not in level:
            chain.append(chain[-1].parent)
        for one in reversed(chain):
            above = one.parent
            level[id(one)] = level[id(above)] + 1 if above is not None else 0
            own = one.record.started_at or one.record.seen_at
            starts[id(one)] = own if own is not None else starts[id(above)] if above is not None else 0
    return sorted(held, key=lambda d: (starts[id(d)], level[id(d)], d.arrival))


def settle_parallel(drafts: list[Draft]) -> list[Draft]:
    """Calls of one model response that started in the same millisecond take the response's order."""
    places: dict[tuple[int, int], list[int]] = {}
    for place, draft in enumerate(drafts):
        if draft.model is not None and draft.index is not None and not draft.rebuilt:
            places.setdefault((id(draft.model), draft.start // _MILLISECOND), []).append(place)
    for found in places.values():
        calls = sorted((drafts[p] for p in found), key=lambda d: d.index or 0)
        for place, call in zip(found, calls, strict=True):
            drafts[place] = call
    return drafts


def with_rebuilt(drafts: list[Draft], rebuilt: Iterable[Draft]) -> list[Draft]:
    """Rebuilt calls after their model call, in the response's order, before everything that started later."""
    by_model: dict[int, list[Draft]] = {}
    for draft in rebuilt:
        by_model.setdefault(id(draft.model), []).append(draft)
    if not by_model:
        return drafts
    placed: list[Draft] = []
    for draft in drafts:
        placed.append(draft)
        placed += sorted(by_model.get(id(draft), ()), key=lambda d: d.index or 0)
    return placed
