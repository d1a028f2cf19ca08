"""A gate's report as plain JSON: one versioned form for programs, and the base of every page made from it."""

from dataclasses import fields, is_dataclass
from typing import Any, cast

from playhead.core.gate.judge import FORMAT, GateReport


def gate_json(report: GateReport) -> dict[str, Any]:
    """``{"format": "playhead.gate/1", "verdict", "exit_code", "reasons", "settle", "parts", "zero", ...}``."""
    return {"format": FORMAT, "exit_code": report.exit_code, **plain_json(report)}


def plain_json(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists; floats that are whole stay floats."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(cast("Any", value), "_asdict"):
        return {name: plain_json(item) for name, item in cast("Any", value)._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain_json(item) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in cast("list[Any]", value)]
    return value
