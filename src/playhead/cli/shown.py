"""How values of the store are shown: as JSON with every member, as short text."""

import dataclasses
import datetime
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, cast

from playhead.cli.output import Table, shortened, to_json
from playhead.core.codec import dump
from playhead.core.fidelity import explained
from playhead.core.values import JSON, Cost, Divergence, ErrorInfo, Node, Outcome, OutcomeKind, Replay, Usage, Verdict
from playhead.errors import UsageError

SHORT = 600
"""Characters of a value that text output shows unless the whole is asked for."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def members(value: Any, *, without: Iterable[str] = ()) -> dict[str, JSON]:
    """The stored form of a value with members at their default written out, so that a script finds each one."""
    stored = dump(value)
    left_out = set(without)
    names = [f.name for f in dataclasses.fields(value) if f.name not in left_out]
    found = {name: stored[name] if name in stored else _default(getattr(value, name)) for name in names}
    if isinstance(value, Replay):
        found["verdicts"] = [members(verdict) for verdict in value.verdicts]
    return found


def _default(value: Any) -> JSON:
    if isinstance(value, Enum):
        return value.value
    return list(cast("tuple[JSON, ...]", value)) if isinstance(value, tuple) else value


def when(ns: int | None) -> str | None:
    """Local time to the second."""
    if ns is None:
        return None
    moment = datetime.datetime.fromtimestamp(ns // 1_000_000_000, datetime.UTC)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def lasted(start: int, end: int | None) -> str | None:
    """Time between two instants, in a unit that suits it."""
    if end is None:
        return None
    ms = (end - start) / 1_000_000
    if ms < 1000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    seconds = ms / 1000
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def tokens(usage: Usage | None) -> str | None:
    """Input and output tokens, with the part that came from a cache."""
    if usage is None:
        return None
    read = usage.input_cache_read
    given = _total(usage.input_uncached, read, usage.input_cache_write)
    made = _total(usage.output_visible, usage.output_reasoning)
    if given is None and made is None:
        return None
    cached = f" ({read} cached)" if read else ""
    return f"{'?' if given is None else given} in{cached}, {'?' if made is None else made} out"


def _total(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def money(cost: Cost | None) -> str | None:
    return None if cost is None else f"{cost.amount} {cost.currency} ({cost.source})"


def failure(error: ErrorInfo | None) -> str | None:
    return None if error is None else f"{error.class_name}: {error.message}"


def value(held: JSON, *, full: bool = False) -> str | None:
    """A stored value as text: strings as they are, the rest as JSON; a cut is marked with what is missing."""
    if held is None:
        return None
    text = held if isinstance(held, str) else to_json(held)
    if full or len(text) <= SHORT:
        return text
    return f"{text[:SHORT]} … ({len(text) - SHORT} more characters; --full shows all)"


def brief(held: JSON, width: int = 60) -> str:
    """One line of a value; what stands for a JSON text is cut at ``width``."""
    return shortened(held if isinstance(held, str) else to_json(held), width)


def mark_counts(nodes: Iterable[Node]) -> dict[str, int]:
    """How sure the recorded tool results are: tool calls by mark, most frequent first."""
    return dict(Counter(node.call.mark.value for node in nodes if node.call is not None).most_common())


def outcome(held: Outcome, width: int) -> str:
    """One line of what a call gave."""
    if held.truncated is not None:
        return f"truncated ({held.truncated.bytes} bytes)"
    if held.error is not None:
        return brief(failure(held.error), width)
    text = brief(held.value, width)
    return text if held.kind is OutcomeKind.VALUE else f"{held.kind.value} {text}"


def policy(stored: JSON) -> str | None:
    """A tool or model policy in few words: ``history(baseline, fail)``, then the tools that have their own."""
    if not stored:
        return None
    if "type" in stored:
        return _config(stored)
    tools: dict[str, JSON] = stored.get("tools") or {}
    own = [f"{tool}: {_config(config)}" for tool, config in tools.items()]
    return "\n".join([_config(stored.get("default") or {"type": "history"}), *own])


def _config(config: dict[str, JSON]) -> str:
    told: list[str] = [str(config[name]) for name in ("kind", "scope", "model", "on_miss") if config.get(name)]
    if config.get("cases"):
        told.insert(0, f"{len(config['cases'])} cases")
    if config.get("ignore"):
        told.append(f"ignoring {' '.join(config['ignore'])}")
    if config.get("then"):
        told.append(f"else {_config(config['then'])}")
    return f"{config.get('type')}({', '.join(told)})" if told else str(config.get("type"))


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """What evaluators said, one row each."""
    rows = [
        {
            "verdict": verdict.name,
            "passed": "error" if verdict.error is not None else _PASSED[verdict.passed],
            "score": verdict.score,
            "label": verdict.label,
            "explanation": None if verdict.explanation is None else brief(verdict.explanation, 100),
            "evaluator": verdict.evaluator,
        }
        for verdict in verdicts
    ]
    return Table(("verdict", "passed", "score", "label", "explanation", "evaluator"), rows)


def divergence(held: Divergence) -> list[str]:
    """Lines that tell a first difference: what and where, then how the two sides read, indented."""
    return explained(held, lambda value: brief(value, 200))


_PASSED = {True: "yes", False: "no", None: "-"}


def instant(text: str | None, *, now: int) -> int | None:
    """Nanoseconds for ``2h``, ``3d``, a date, or a date and time (local unless it has an offset).

    Raises:
        UsageError: none of these.
    """
    if text is None:
        return None
    ago = re.fullmatch(r"(\d+)([smhdw])", text)
    if ago:
        return now - int(ago[1]) * _SECONDS[ago[2]] * 1_000_000_000
    try:
        moment = datetime.datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise UsageError(f"{text!r} is not a time", hint="write 2h, 3d, 2026-05-01 or 2026-05-01T12:30") from None
    return int(moment.timestamp()) * 1_000_000_000
