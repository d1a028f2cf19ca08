"""Token counts in exclusive buckets, from any dialect; and amounts of money. Unknown stays unknown, never 0.

One row per dialect says where each figure stands and whether the input and output figures already include the cache
and reasoning ones. A reported total decides when it contradicts the row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from playhead.core.assemble.shapes import is_object
from playhead.core.totals import plain
from playhead.core.values import JSON, Usage

_PLACES = Decimal("0.000000000001")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Names of one dialect's figures, each a list of alternatives; ``a.b`` descends into objects, else is one name."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    input_inclusive: bool = True
    output_inclusive: bool = True


GENAI = Dialect(
    input=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    read=("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    write=(
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
    ),
    reasoning=(
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.usage.reasoning_tokens",
    ),
    total=("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
)


class Counted(NamedTuple):
    """``conflict`` tells that figures contradicted each other; ``dropped`` names figures that are no counts."""

    usage: Usage | None
    conflict: str | None
    dropped: tuple[str, ...]


def counted(raw: Mapping[str, JSON], dialect: Dialect) -> Counted:
    """The buckets of one call; None when the source gives no figure at all."""
    dropped: list[str] = []

    def figure(names: tuple[str, ...]) -> int | None:
        for name in names:
            value = _at(raw, name)
            if value is None:
                continue
            count = _count(value)
            if count is not None:
                return count
            dropped.append(f"{name}={value!r:.40}")
        return None

    shown = _Figures(
        figure(dialect.input), figure(dialect.read), figure(dialect.write), figure(dialect.output),
        figure(dialect.reasoning), figure(dialect.total),
    )  # fmt: skip
    if all(x is None for x in shown):
        return Counted(None, None, tuple(dropped))
    usage, conflict = _buckets(shown, dialect, {n: raw[n] for n in raw if _usage_name(n, dialect)} or dict(raw))
    return Counted(usage, conflict, tuple(dropped))


class _Figures(NamedTuple):
    input: int | None
    read: int | None
    write: int | None
    output: int | None
    reasoning: int | None
    total: int | None


def _buckets(shown: _Figures, dialect: Dialect, raw: JSON) -> tuple[Usage, str | None]:
    inclusive_in, inclusive_out, conflict = dialect.input_inclusive, dialect.output_inclusive, None
    extra_in, extra_out = (shown.read or 0) + (shown.write or 0), shown.reasoning or 0
    reasoning = shown.reasoning
    if shown.total is not None and shown.input is not None and shown.output is not None:
        expected = shown.input + shown.output
        expected += 0 if inclusive_in else extra_in
        expected += 0 if inclusive_out else extra_out
        if expected != shown.total:
            verdict = _by_total(shown, extra_in, extra_out)
            inclusive_in, inclusive_out, reasoning = verdict
            conflict = f"total {shown.total} does not fit input {shown.input} and output {shown.output}"
    uncached = None if shown.input is None else shown.input - (extra_in if inclusive_in else 0)
    visible = None if shown.output is None else shown.output - (extra_out if inclusive_out else 0)
    for name, value in (("input", uncached), ("output", visible)):
        if value is not None and value < 0:
            conflict = f"the parts of the {name} are more than the {name}"
    return Usage(
        input_uncached=None if uncached is None else max(uncached, 0),
        input_cache_read=shown.read,
        input_cache_write=shown.write,
        output_visible=None if visible is None else max(visible, 0),
        output_reasoning=reasoning,
        raw=raw,
    ), conflict


def _by_total(shown: _Figures, extra_in: int, extra_out: int) -> tuple[bool, bool, int | None]:
    """Which reading of the figures gives the total: (input inclusive, output inclusive, reasoning)."""
    both = (shown.input or 0) + (shown.output or 0)
    total = shown.total or 0
    for inclusive_in, inclusive_out in ((True, True), (False, True), (False, False), (True, False)):
        if both + (0 if inclusive_in else extra_in) + (0 if inclusive_out else extra_out) == total:
            return inclusive_in, inclusive_out, shown.reasoning
    if both < total and shown.reasoning is None:
        return True, False, total - both
    return True, True, shown.reasoning


def _at(raw: Mapping[str, JSON], name: str) -> JSON:
    value: JSON = raw
    for step in name.split("/"):
        value = value.get(step) if is_object(value) else None
    return value


def _usage_name(name: str, dialect: Dialect) -> bool:
    figures = dialect.input + dialect.output + dialect.read + dialect.write + dialect.reasoning + dialect.total
    return any(name == figure.split("/")[0] for figure in figures)


def _count(value: JSON) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value < 1 << 60 and value == int(value) else None


def amount(value: JSON) -> str | None:
    """Decimal text of a cost, rounded to 12 places; None when it is no non-negative finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        return None
    if not number.is_finite() or number < 0 or number.adjusted() > 15:
        return None
    return plain(number.quantize(_PLACES))
