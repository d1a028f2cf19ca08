"""Plots as inline SVG: what changed per case, how stable each case is, how failures were met.

Colours are attributes, not styles, so a strict content policy lets them through; every mark has a title that says in
words what it shows.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from playhead.core.suites.summary import RECOVERY_CLASSES
from playhead.core.visible import one_line

_GOOD: Final = "#2a7f4f"
_BAD: Final = "#b3362b"
_NONE: Final = "#c9ced6"
_WIDTH: Final = 720
_MOST: Final = 400
_RECOVERED: Final = frozenset({"corrected_retry", "alternative_tool", "give_up_tool", "clear_message"})


def text(value: object) -> str:
    """Recorded text inside HTML or an attribute."""
    return escape(one_line(value), quote=True)


def _svg(width: int, height: int, label: str, body: list[str]) -> str:
    head = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{text(label)}">'
    )
    return f"{head}{''.join(body)}</svg>"


def _mark(x: float, y: float, width: float, height: float, fill: str, title: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{fill}"><title>{text(title)}</title></rect>'


def differences_plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """A bar per case that differs, the largest drop at the left."""
    shown = rows if len(rows) <= _MOST else [*rows[: _MOST // 2], *rows[-_MOST // 2 :]]
    step, middle, scale = _WIDTH / max(len(shown), 24), 80, 70
    body = [f'<line x1="0" y1="{middle}" x2="{_WIDTH}" y2="{middle}" stroke="{_NONE}"/>']
    for index, row in enumerate(shown):
        height = abs(row["change"]) * scale
        top = middle - height if row["change"] > 0 else middle
        told = f"{row['id']}: {row['before'][0]}/{row['before'][1]} -> {row['after'][0]}/{row['after'][1]}"
        fill = _GOOD if row["change"] > 0 else _BAD
        body.append(_mark(index * step, top, max(step - 1, 0.8), max(height, 1), fill, told))
    return _svg(_WIDTH, 160, "change of the pass rate per case", body)


def stability_plot(cases: Sequence[Mapping[str, Any]], most: int = 60) -> str:
    """A row per flaky or failing case, a square per run."""
    shown = cases[:most]
    body: list[str] = []
    for index, case in enumerate(shown):
        y = index * 16
        body.append(f'<text x="0" y="{y + 11}" font-size="11" fill="currentColor">{text(case["id"])[:60]}</text>')
        for place, passed in enumerate(case["runs"][:20]):
            told = f"{case['id']}, run {place + 1}: {'passed' if passed else 'failed'}"
            body.append(_mark(420 + place * 14, y + 2, 12, 12, _GOOD if passed else _BAD, told))
    return _svg(_WIDTH, max(16, 16 * len(shown)), "passes of each run of unstable cases", body)


def recovery_plot(matrix: Mapping[str, Mapping[str, int]]) -> str:
    """Kinds of failure by what the agent did; darker is more."""
    left, cell, row = 130, 72, 26
    body: list[str] = []
    for column, name in enumerate(RECOVERY_CLASSES):
        for part, words in enumerate(name.split("_", 1)):
            x, y = left + column * cell + cell / 2, 12 + part * 12
            body.append(f'<text x="{x}" y="{y}" font-size="10" text-anchor="middle" fill="currentColor">{words}</text>')
    for index, (kind, found) in enumerate(matrix.items()):
        y = 34 + index * row
        total = sum(found.values()) or 1
        body.append(f'<text x="0" y="{y + 16}" font-size="11" fill="currentColor">{text(kind)[:24]}</text>')
        for column, name in enumerate(RECOVERY_CLASSES):
            count = found.get(name, 0)
            fill = (_GOOD if name in _RECOVERED else _BAD) if count else _NONE
            shade = f' fill-opacity="{0.25 + 0.75 * count / total:.2f}"' if count else ' fill-opacity="0.25"'
            mark = _mark(left + column * cell, y, cell - 2, row - 2, fill, f"{kind}, {name}: {count} of {total}")
            body.append(mark.replace("><title>", f"{shade}><title>", 1))
            x = left + column * cell + cell / 2
            body.append(f'<text x="{x}" y="{y + 16}" font-size="11" text-anchor="middle">{count or ""}</text>')
    return _svg(left + cell * len(RECOVERY_CLASSES), 40 + row * len(matrix), "recovery by kind and class", body)
