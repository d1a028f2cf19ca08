"""Which call of one session stands against which of another.

Calls are aligned by the path of their enclosing tool calls, in start order: the n-th call of the baseline against the
n-th of the result. Where the baseline did things at once their order says nothing:

- Runs of agents and spans that overlapped their siblings, or model calls beside them, are lanes. Each is set against
  one of the same name, with equal inputs where there is one, and their calls are aligned inside it.
- Calls that overlapped, directly or through others, are set against equal calls of the result in the same places. A
  tool call began with the model call that asked for it; those of one response keep its order. From model calls that
  overlapped on this goes up to where both sessions asked the same: a request shows by itself what came before it.
"""

import bisect
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from playhead.core.canonical import NoKeyError, canonical_stored, render
from playhead.core.keys import strip
from playhead.core.match import differences
from playhead.core.values import JSON, Node, NodeKind, NodeStatus, path_step

Path = tuple[str, ...]
Ignore = Mapping[str, Sequence[str]]

_CONTAINERS = frozenset({NodeKind.AGENT_CALL, NodeKind.SPAN})


class Place(NamedTuple):
    """Where calls are aligned with each other: inside these tool calls, and in this lane (a node of the baseline, or of
    the result where it has no partner)."""

    path: Path
    lane: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One baseline call beside one result call; either is None when the other stands alone."""

    baseline: Node | None
    result: Node | None
    place: Place
    number: int  # 1-based among the calls of this kind in this place
    lane_name: str | None = None


def align(baseline: Sequence[Node], result: Sequence[Node], *, ignore: Ignore) -> list[Pair]:
    """Pairs of calls in the order in which the result (where it has none, the baseline) started them.

    Args:
        ignore: pointers per tool that do not count when tool calls are compared.
    """
    lanes = _Lanes(baseline, result)
    theirs, ours = _grouped(baseline, lanes.theirs), _grouped(result, lanes.ours)
    entered = _entered_paths(result)
    asked = {n.id: n.started_at for n in baseline if n.kind is NodeKind.MODEL_CALL}
    pairs: list[Pair] = []
    for group in list(dict.fromkeys([*ours, *theirs])):
        place = group[0]
        left, right = theirs.get(group, []), ours.get(group, [])
        if not right and place.path and place.path not in entered:
            continue  # below a call that was answered without running it
        right = _unordered(left, right, asked, ignore)
        pairs += [
            Pair(
                baseline=left[i] if i < len(left) else None,
                result=right[i] if i < len(right) else None,
                place=place,
                number=i + 1,
                lane_name=lanes.names.get(place.lane or ""),
            )
            for i in range(max(len(left), len(right)))
        ]
    return sorted(pairs, key=_in_result_order(pairs, {n.id: n.seq for n in result}))


def same_call(theirs: Node, ours: Node, ignore: Ignore) -> bool:
    """Whether two tool calls are the same call: tool, and canonical arguments without ignored fields."""
    a, b = theirs.call, ours.call
    assert a is not None
    assert b is not None
    if a.tool != b.tool:
        return False
    if a.key is not None and a.key == b.key:
        return True
    pointers = ignore.get(a.tool, ())
    if a.key is not None and b.key is not None and not pointers:
        return False
    return not differences(strip(a.arguments, pointers), strip(b.arguments, pointers))


def same_request(theirs: Node, ours: Node) -> bool:
    """Whether two model calls asked the same, as far as their keys and what answered the second can tell."""
    assert theirs.model is not None
    assert ours.model is not None
    if theirs.model.key is not None and theirs.model.key == ours.model.key:
        return True
    provenance = ours.model.provenance
    return provenance is not None and provenance.by == "served" and provenance.node_id == theirs.id


def _in_result_order(pairs: Sequence[Pair], order: Mapping[str, int]) -> Callable[[Pair], tuple[float, int, int]]:
    # A baseline call without a partner stands before the next one that has one: what the result did in between, such
    # as the call that stopped it, was first.
    anchors: list[tuple[int, int]] = sorted(
        (p.baseline.seq, order[p.result.id]) for p in pairs if p.baseline is not None and p.result is not None
    )
    seqs = [a for a, _ in anchors]

    def rank(pair: Pair) -> tuple[float, int, int]:
        if pair.result is not None:
            return (order[pair.result.id], 1, pair.number)
        assert pair.baseline is not None
        following = bisect.bisect_left(seqs, pair.baseline.seq)
        return (anchors[following][1] if following < len(anchors) else math.inf, 0, pair.baseline.seq)

    return rank


def _grouped(nodes: Sequence[Node], lanes: Mapping[str, str]) -> dict[tuple[Place, NodeKind], list[Node]]:
    groups: dict[tuple[Place, NodeKind], list[Node]] = {}
    places = _node_places(nodes, lanes)
    for node in sorted(nodes, key=lambda n: n.seq):
        if node.status is NodeStatus.NEVER_RAN:
            continue
        if node.kind is NodeKind.TOOL_CALL and node.call:
            groups.setdefault((Place(node.call.path, places[node.id].lane), node.kind), []).append(node)
        elif node.kind is NodeKind.MODEL_CALL:
            groups.setdefault((places[node.id], node.kind), []).append(node)
    return groups


def _node_places(nodes: Sequence[Node], lanes: Mapping[str, str]) -> dict[str, Place]:
    """For every node, the tool calls around it, outermost first, and its lane."""
    by_id = {n.id: n for n in nodes}
    places: dict[str, Place] = {}
    for node in nodes:
        chain: list[Node] = []
        at: Node | None = node
        while at is not None and at.id not in places and len(chain) <= len(by_id):
            chain.append(at)
            at = by_id.get(at.parent_id) if at.parent_id else None
        for item in reversed(chain):
            parent = by_id.get(item.parent_id) if item.parent_id else None
            places[item.id] = Place((), None) if parent is None else _inside(parent, places, lanes)
    return places


def _inside(parent: Node, places: Mapping[str, Place], lanes: Mapping[str, str]) -> Place:
    around = places.get(parent.id, Place((), None))
    path = around.path
    if parent.call is not None:
        path = (*parent.call.path, path_step(parent.call.tool, parent.call.key, parent.call.occurrence))
    return Place(path, lanes.get(parent.id, around.lane))


def _entered_paths(result: Sequence[Node]) -> set[Path]:
    """Paths whose innermost call ran for real in the result, so that its inner calls were due again."""
    entered: set[Path] = {()}
    for node in result:
        call = node.call
        if call is not None and (call.provenance is None or call.provenance.by == "live"):
            entered.add((*call.path, path_step(call.tool, call.key, call.occurrence)))
    return entered


# --- what ran at once -----------------------------------------------------------------------------------------------


class _Lanes:
    """The lane of each container, in the baseline and in the result, by its id."""

    def __init__(self, baseline: Sequence[Node], result: Sequence[Node]) -> None:
        self.theirs: dict[str, str] = {}
        self.ours: dict[str, str] = {}
        self.names: dict[str, str] = {}
        left, right = _siblings(baseline), _siblings(result)
        beside = _beside_calls(baseline)
        if not beside and all(len(cluster) == 1 for nodes in left.values() for cluster in _clusters(nodes)):
            return
        todo: list[tuple[str | None, str | None]] = [(None, None)]  # containers that stand against each other
        while todo:
            one, other = todo.pop()
            theirs, ours = left.get(one, []), right.get(other, [])
            at_once = {node.id for cluster in _clusters(theirs) if len(cluster) > 1 for node in cluster} | beside
            for a, b in _partners(theirs, ours):
                todo.append((a.id, b.id))
                if a.id in at_once:
                    self.theirs[a.id] = self.ours[b.id] = a.id
                    self.names[a.id] = a.name
            for node in theirs:
                if node.id in at_once and node.id not in self.theirs:
                    self.theirs[node.id] = node.id
                    self.names[node.id] = node.name


def _siblings(nodes: Sequence[Node]) -> dict[str | None, list[Node]]:
    """The containers right below each container, tool calls and model calls passed over, in start order."""
    by_id = {n.id: n for n in nodes}
    found: dict[str | None, list[Node]] = {}
    for node in sorted(nodes, key=lambda n: n.seq):
        if node.kind not in _CONTAINERS:
            continue
        at = by_id.get(node.parent_id) if node.parent_id else None
        for _ in range(len(by_id)):
            if at is None or at.kind in _CONTAINERS:
                break
            at = by_id.get(at.parent_id) if at.parent_id else None
        found.setdefault(at.id if at is not None else None, []).append(node)
    return found


def _beside_calls(nodes: Sequence[Node]) -> set[str]:
    """Containers that overlapped model calls of what is around them. Of runs that began at once the first has no
    container of its own: it is the session's.
    """
    if not any(node.kind in _CONTAINERS for node in nodes):
        return set()
    by_id = {n.id: n for n in nodes}
    around = {node.id: _ancestors(node, by_id) for node in nodes}
    loose = [n for n in nodes if n.kind is NodeKind.MODEL_CALL]
    return {
        container.id
        for container in nodes
        if container.kind in _CONTAINERS
        for call in loose
        if call.started_at < (container.ended_at or container.started_at)
        and (call.ended_at or call.started_at) > container.started_at
        and container.id not in around[call.id]
        and call.id not in around[container.id]
        and around[container.id].issuperset(a for a in around[call.id] if by_id[a].kind in _CONTAINERS)
    }


def _ancestors(node: Node, by_id: Mapping[str, Node]) -> set[str]:
    found: set[str] = set()
    while node.parent_id is not None and node.parent_id in by_id and node.parent_id not in found:
        found.add(node.parent_id)
        node = by_id[node.parent_id]
    return found


def _partners(theirs: Sequence[Node], ours: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    """Each container with one of the same name: with equal inputs first, then what is left in start order."""
    equal: dict[Any, deque[Node]] = {}
    for node in ours:
        equal.setdefault((node.kind, node.name, value_text(node.inputs)), deque()).append(node)
    taken: set[str] = set()
    alone: list[Node] = []
    for node in theirs:
        found = equal.get((node.kind, node.name, value_text(node.inputs)))
        if found:
            partner = found.popleft()
            taken.add(partner.id)
            yield node, partner
        else:
            alone.append(node)
    left: dict[Any, deque[Node]] = {}
    for node in ours:
        if node.id not in taken:
            left.setdefault((node.kind, node.name), deque()).append(node)
    for node in alone:
        if others := left.get((node.kind, node.name)):
            yield node, others.popleft()


def value_text(value: JSON) -> bytes:
    """Equal values have equal texts, also those that have no key."""
    try:
        return canonical_stored(value)
    except NoKeyError:  # NaN and the like have a text, though no canonical one
        return render(value)


def _clusters(nodes: Sequence[Node], asked: Mapping[str, int] | None = None) -> Iterator[list[Node]]:
    """Nodes in start order, those together that overlapped, directly or through others.

    Args:
        asked: when model calls started, by id: a call began with the one that asked for it.
    """
    cluster: list[Node] = []
    end = 0
    for node in nodes:
        start = node.started_at
        if asked and node.call is not None and node.call.model_call is not None:
            start = min(start, asked.get(node.call.model_call, start))
        if cluster and start >= end:
            yield cluster
            cluster = []
        cluster.append(node)
        end = max(end, node.ended_at or node.started_at)  # one without an end is taken for one that ended at once
    if cluster:
        yield cluster


def _unordered(left: Sequence[Node], right: Sequence[Node], asked: Mapping[str, int], ignore: Ignore) -> list[Node]:
    """The result's calls in the baseline's order, as far as what ran at once allows it."""
    ordered = list(right)
    tokens = {node.id: _token(node, ignore) for node in left}
    theirs = [tokens[node.id] for node in left]
    ours = [_token(node, ignore, tokens) for node in right]
    balance = Counter[Any]()  # of a block: what the baseline has had more often, and what the result
    start, place, block = 0, 0, False
    for cluster in _clusters(left, asked):
        if not block:
            start, block = place, _at_once(cluster)
        place += len(cluster)
        if not block:
            continue
        if place > len(right):
            break
        for n in range(place - len(cluster), place):
            balance[theirs[n]] += 1
            balance[ours[n]] -= 1
        same = not any(balance.values())
        if same:
            of = slice(start, place)
            ordered[of] = _matched(left[of], right[of], theirs[of], ours[of])
        if same or cluster[0].model is None:
            block = False
            balance.clear()
    return ordered


def _at_once(cluster: Sequence[Node]) -> bool:
    """Whether nothing but time ordered these calls. Those of one response have its order."""
    responses = {node.call.model_call if node.call is not None else None for node in cluster}
    return len(cluster) > 1 and (len(responses) > 1 or None in responses)


def _matched(left: Sequence[Node], right: Sequence[Node], theirs: Sequence[Any], ours: Sequence[Any]) -> Sequence[Node]:
    """The result's calls in the order of equal ones of the baseline; as they are where a response's order differs."""
    waiting: dict[Any, deque[Node]] = {}
    for node, token in zip(right, ours, strict=True):
        waiting.setdefault(token, deque()).append(node)
    matched = [waiting[token].popleft() for token in theirs]
    last: dict[str, int] = {}
    for node, partner in zip(left, matched, strict=True):
        response = node.call.model_call if node.call is not None else None
        if response is not None:
            if partner.seq < last.get(response, -1):
                return right
            last[response] = partner.seq
    return matched


def _token(node: Node, ignore: Ignore, baseline: Mapping[str, Any] | None = None) -> Any:
    """Equal for calls that are the same (`same_call`, `same_request`)."""
    if node.model is not None:
        provenance = node.model.provenance
        if baseline is not None and provenance is not None and provenance.by == "served":
            return baseline.get(provenance.node_id or "", node.model.key)
        return node.model.key or node.id
    return call_token(node, ignore)


def call_token(node: Node, ignore: Ignore) -> tuple[str, str | bytes]:
    """Equal for tool calls that are the same (`same_call`)."""
    assert node.call is not None
    pointers = ignore.get(node.call.tool, ())
    if node.call.key is not None and not pointers:
        return node.call.tool, node.call.key
    return node.call.tool, value_text(strip(node.call.arguments, pointers))
