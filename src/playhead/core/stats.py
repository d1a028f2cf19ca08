"""Statistics in closed form, over plain numbers."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Agreement(NamedTuple):
    """How far two raters agree: on ``n`` items, in ``raw`` of them, ``kappa`` beyond chance (None: undefined)."""

    n: int
    raw: float
    kappa: float | None


def kappa(table: Sequence[Sequence[int]]) -> Agreement:
    """Cohen's kappa of a square table of counts, one rater's categories as rows, the other's as columns."""
    n = sum(map(sum, table))
    if not n:
        return Agreement(0, 0.0, None)
    raw = sum(row[i] for i, row in enumerate(table)) / n
    rows = [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    chance = sum(r * c for r, c in zip(rows, columns, strict=True)) / (n * n)
    return Agreement(n, raw, None if chance == 1 else (raw - chance) / (1 - chance))


def agreement(pairs: Sequence[tuple[Hashable, Hashable]]) -> Agreement:
    """`kappa` of pairs of labels."""
    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    place = {label: i for i, label in enumerate(labels)}
    table = [[0] * len(labels) for _ in labels]
    for left, right in pairs:
        table[place[left]][place[right]] += 1
    return kappa(table)
