"""What an assembly did, in numbers: one session's share of an import's report."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from playhead.core.totals import add_cost, add_usage, less_cost, less_usage
from playhead.core.values import Cost, Node, NodeKind, Usage

_COUNTERS = ("nodes", "joined", "marks", "outcomes", "capture")
_NUMBERS = ("duplicates", "inferred", "rebuilt", "unanswered", "error_hints")


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts that add up over sessions."""

    nodes: Counter[str] = field(default_factory=lambda: Counter())
    joined: Counter[str] = field(default_factory=lambda: Counter())
    marks: Counter[str] = field(default_factory=lambda: Counter())
    outcomes: Counter[str] = field(default_factory=lambda: Counter())
    capture: Counter[str] = field(default_factory=lambda: Counter())
    duplicates: int = 0
    inferred: int = 0
    rebuilt: int = 0
    unanswered: int = 0
    error_hints: int = 0
    usage: Usage | None = None
    cost: Cost | None = None

    def add(self, other: "Tally") -> None:
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.usage = add_usage((self.usage, other.usage))
        self.cost = add_cost((self.cost, other.cost))

    def subtract(self, other: "Tally") -> None:
        """Takes the counts of one session out again; usage and cost too, where both know them."""
        for name in _COUNTERS:
            getattr(self, name).subtract(getattr(other, name))
            setattr(self, name, +getattr(self, name))
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) - getattr(other, name))
        self.usage = less_usage(self.usage, other.usage)
        self.cost = less_cost(self.cost, other.cost)


def tally_of(nodes: Iterable[Node], tally: Tally | None = None) -> Tally:
    """Adds what the nodes themselves show."""
    found = tally or Tally()
    usages: list[Usage | None] = []
    costs: list[Cost | None] = []
    for node in nodes:
        found.nodes[node.kind.value] += 1
        if node.call is not None:
            found.joined[node.call.joined or "native"] += 1
            found.marks[node.call.mark.value] += 1
            if node.outcome is not None:
                found.outcomes[node.outcome.kind.value] += 1
                found.error_hints += node.outcome.error_hint
        elif node.kind is NodeKind.MODEL_CALL and node.model is not None:
            found.capture[node.model.capture] += 1
            usages.append(node.model.usage)
            costs.append(node.model.cost)
    found.usage = add_usage((found.usage, *usages))
    found.cost = add_cost((found.cost, *costs))
    return found
