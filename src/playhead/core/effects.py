"""What tools do to the world, as declared, and effects that a session had twice.

An effect is *live* from the call that had it until a declared opposite takes it away. A call with the effect key of a
live effect is a double. A call whose outcome nobody saw counts as having had its effect until a read could have told.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from playhead.core.evaluation import failed
from playhead.core.injection import at_pointer, found_at
from playhead.core.json_text import NoKeyError
from playhead.core.keys import call_key
from playhead.core.match import equal
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON, Effect, Node, NodeStatus, OutcomeKind

Standing: TypeAlias = Literal["standing", "compensated", "touched", "undeclared"]

COUNTED: Final = frozenset({"standing"})
"""The kinds of doubles that a zero-tolerance rule fails on; the others are reported."""


class UndoneBy(BaseModel):
    """A call that takes an effect away. ``where``: pointer of an argument to its value, or to ``{"$result": pointer}``,
    what the effect's own result holds there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    where: dict[str, Any] = Field(default_factory=dict[str, Any])


class ToolEffect(BaseModel):
    """The declared effect of a tool. ``effect_key``: the arguments (pointers) that make two calls one effect."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    kind: Effect = Field(default=Effect.UNKNOWN, alias="class")
    idempotent: bool = False
    financial: bool = False
    approval: bool = False
    give_up: bool = False
    bookkeeping: bool = False
    wait: bool = False
    idempotency_key: str | None = None
    effect_key: tuple[str, ...] | None = None
    undone_by: tuple[UndoneBy, ...] = ()

    @property
    def declared(self) -> bool:
        """Whether it says more than its class."""
        return self.effect_key is not None or bool(self.undone_by)


Effects: TypeAlias = Mapping[str, ToolEffect]


def effect_of(node: Node, effects: Effects) -> ToolEffect:
    """What is declared for the tool of a call, else the class that was recorded with it."""
    assert node.call is not None
    return effects.get(node.call.tool) or ToolEffect.model_validate({"class": node.call.effect})


def retry_safe(effect: ToolEffect, arguments: JSON) -> bool:
    """Whether repeating a call has no second effect."""
    if effect.kind is Effect.READ or effect.idempotent:
        return True
    return effect.idempotency_key is not None and found_at(arguments, effect.idempotency_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Double:
    """Two calls with one effect. ``kind`` says what became of it."""

    first: Node
    second: Node
    kind: Standing


@dataclass(slots=True)
class _Had:
    """One effect."""

    node: Node
    key: str
    effect: ToolEffect
    live: bool = True
    unseen: bool = False


@dataclass(slots=True)
class _Pair:
    first: _Had
    second: _Had
    undone: bool = False


def doubles(calls: Sequence[Node], effects: Effects | None = None, *, repeat_ok: int = 1) -> list[Double]:
    """Effects that these calls had again while they were live.

    Args:
        calls: tool calls in start order.
        effects: what is declared, by tool.
        repeat_ok: so many equal effects are asked for.
    """
    had: list[_Had] = []
    pairs: list[_Pair] = []
    for node in calls:
        assert node.call is not None
        effect = effect_of(node, effects or {})
        unseen = outcome_unknown(node)
        if (failed(node) and not unseen) or (node.outcome is None and not unseen):
            continue
        if effect.kind is Effect.READ:
            _verified(had, effect)
            continue
        _undo(node, had, pairs)
        key = _key(node, effect)
        if effect.bookkeeping or key is None:
            continue
        now = _Had(node, key, effect, unseen=unseen)
        live = [one for one in had if one.live and one.key == key]
        if not (effect.idempotent or any(_one_effect(one, now) for one in live)):
            if len(live) >= repeat_ok:
                pairs.append(_Pair(live[-1], now))
            had.append(now)
    return [Double(first=p.first.node, second=p.second.node, kind=_standing(p, calls, effects or {})) for p in pairs]


def outcome_unknown(node: Node) -> bool:
    """Whether nobody saw what the call did: it was cut off, timed out, or answered with something unreadable."""
    outcome = node.outcome
    if outcome is None:
        return node.status in (NodeStatus.CANCELLED, NodeStatus.OPEN)
    if outcome.kind is OutcomeKind.INTERRUPT:
        return True
    provenance = node.call.provenance if node.call is not None else None
    if provenance is not None and provenance.by == "injected":
        return any(word in (provenance.detail or "") for word in ("timeout", "malformed"))
    error = outcome.error
    return error is not None and (
        error.status in (408, 504) or bool(re.search("time_?d? ?out", error.class_name, re.I))
    )


def _verified(had: list[_Had], effect: ToolEffect) -> None:
    """A read may have told what became of calls that nobody saw the end of."""
    if not (effect.bookkeeping or effect.wait):
        had[:] = [one for one in had if not one.unseen]


def _undo(node: Node, had: Sequence[_Had], pairs: Sequence[_Pair]) -> None:
    assert node.call is not None
    for one in had:
        if one.live and any(_undoes(by, node, one) for by in one.effect.undone_by):
            one.live = False
            for pair in pairs:
                _relink(pair, one, had)


def _undoes(by: UndoneBy, node: Node, one: _Had) -> bool:
    assert node.call is not None
    return by.tool == node.call.tool and all(
        found_at(node.call.arguments, pointer)
        and equal(at_pointer(node.call.arguments, pointer), _wanted(value, one.node))
        for pointer, value in by.where.items()
    )


def _wanted(value: Any, node: Node) -> Any:
    if is_object(value) and set(value) == {"$result"}:
        return at_pointer(result_of(node), str(value["$result"]))
    return value


def _relink(pair: _Pair, gone: _Had, had: Sequence[_Had]) -> None:
    """What remains of a double whose one half was undone: it stands where another live effect takes its place."""
    if pair.undone:
        return
    if pair.second is gone:
        pair.undone = True
    elif pair.first is gone:
        place = had.index(pair.second)
        earlier = [one for one in had[:place] if one.live and one.key == gone.key]
        if earlier:
            pair.first = earlier[-1]
        else:
            pair.undone = True


def result_of(node: Node) -> JSON:
    """The value that a call gave; JSON text as the value that it is."""
    value = node.outcome.value if node.outcome is not None else None
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _key(node: Node, effect: ToolEffect) -> str | None:
    assert node.call is not None
    arguments = node.call.arguments
    if effect.effect_key is None and effect.idempotency_key is None and node.call.key is not None:
        return node.call.key
    if effect.effect_key is not None:
        arguments = {p: at_pointer(arguments, p) for p in effect.effect_key if found_at(arguments, p)}
    elif effect.idempotency_key is not None:
        name = effect.idempotency_key.removeprefix("/")
        arguments = {k: v for k, v in obj(arguments).items() if k != name}
    try:
        return call_key(node.call.tool, arguments)
    except NoKeyError:
        return None


def _one_effect(one: _Had, now: _Had) -> bool:
    """Whether both calls carry the same idempotency key."""
    pointer = now.effect.idempotency_key
    if pointer is None:
        return False
    assert one.node.call is not None
    assert now.node.call is not None
    before, after = one.node.call.arguments, now.node.call.arguments
    return found_at(after, pointer) and equal(at_pointer(before, pointer), at_pointer(after, pointer))


def _standing(pair: _Pair, calls: Sequence[Node], effects: Effects) -> Standing:
    if pair.undone:
        return "compensated"
    effect = pair.second.effect
    if effect.kind is Effect.UNKNOWN:
        return "undeclared"
    return "touched" if not effect.declared and _touched(pair, calls, effects) else "standing"


def _touched(pair: _Pair, calls: Sequence[Node], effects: Effects) -> bool:
    """Whether a write between the two named an id from the first one's result."""
    ids = set(_ids(result_of(pair.first.node)))
    between = [n for n in calls if pair.first.node.seq < n.seq < pair.second.node.seq]
    return any(
        bool(ids & set(_scalars(n.call.arguments)))
        for n in between
        if n.call is not None and not failed(n) and effect_of(n, effects).kind is not Effect.READ
    )


def _ids(value: JSON, name: str = "id") -> list[str]:
    if is_object(value):
        return [found for key, inner in value.items() for found in _ids(inner, key)]
    if is_list(value):
        return [found for inner in value for found in _ids(inner, name)]
    named = re.search(r"(?:^|_|-)(?:id|ids|number|no|ref|reference|code|key)$|I[dD]s?$", name) is not None
    if isinstance(value, str | int) and not isinstance(value, bool) and named and len(str(value)) > 1:
        return [str(value)]
    return []


def _scalars(value: JSON) -> list[str]:
    if is_object(value):
        return [found for inner in value.values() for found in _scalars(inner)]
    if is_list(value):
        return [found for inner in value for found in _scalars(inner)]
    return [str(value)] if isinstance(value, str | int) else []
