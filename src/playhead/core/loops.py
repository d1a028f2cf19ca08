"""Agents that go in circles: one call that fails again and again, or a round of calls that comes again and again."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from playhead.core.canonical import NoKeyError
from playhead.core.evaluation import failed
from playhead.core.jcs import canonical_stored
from playhead.core.values import Node

FAILURES = 3
ROUND = 4
TIMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """``calls`` is every call of it; ``why`` says what went round."""

    calls: tuple[Node, ...]
    why: str


def token(node: Node) -> str:
    """What makes two calls the same one."""
    assert node.call is not None
    if node.call.key is not None:
        return node.call.key
    try:
        return f"{node.call.tool} {canonical_stored(node.call.arguments).decode()}"
    except NoKeyError:
        return node.id


def loops(
    calls: Sequence[Node], *, failures: int = FAILURES, round: int = ROUND, times: int = TIMES,
    skip: Callable[[Node], bool] = lambda node: False,
) -> list[Loop]:  # fmt: skip
    """Loops among the tool calls of a session, in start order.

    Args:
        failures: a call that failed so often is one.
        round: of at most so many different calls; ``times`` it has to come in a row.
        skip: calls that do not count (bookkeeping).
    """
    counted = [node for node in calls if not skip(node)]
    return [*_failing(counted, failures), *_rounds(counted, round, times)]


def repeated_failures(calls: Sequence[Node], *, at_least: int) -> dict[str, list[Node]]:
    """Failed calls by what makes them the same, of those that failed ``at_least`` so often."""
    groups: dict[str, list[Node]] = {}
    for node in calls:
        if failed(node):
            groups.setdefault(token(node), []).append(node)
    return {key: nodes for key, nodes in groups.items() if len(nodes) >= at_least}


def longest_failing_run(calls: Sequence[Node]) -> int:
    """How many calls in a row failed, at most."""
    longest = now = 0
    for node in calls:
        now = now + 1 if failed(node) else 0
        longest = max(longest, now)
    return longest


def _failing(calls: Sequence[Node], failures: int) -> list[Loop]:
    return [
        Loop(calls=tuple(nodes), why=f"{nodes[0].name} failed {len(nodes)} times with the same arguments")
        for nodes in repeated_failures(calls, at_least=failures).values()
    ]


def _rounds(calls: Sequence[Node], most: int, times: int) -> list[Loop]:
    tokens = [token(node) for node in calls]
    found: list[Loop] = []
    start = 0
    while start < len(tokens):
        size, count = _round_at(tokens, start, most, times)
        if count:
            part = calls[start : start + size * count]
            names = ", ".join(Counter(node.name for node in part[:size]))
            found.append(Loop(calls=tuple(part), why=f"the same {size} call(s) came {count} times in a row: {names}"))
            start += size * count
        else:
            start += 1
    return found


def _round_at(tokens: Sequence[str], start: int, most: int, times: int) -> tuple[int, int]:
    for size in range(1, most + 1):
        first, count = tokens[start : start + size], 1
        while first == tokens[start + size * count : start + size * (count + 1)]:
            count += 1
        if count >= times:
            return size, count
    return 0, 0
