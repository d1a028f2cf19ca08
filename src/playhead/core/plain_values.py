"""Python containers as JSON containers."""

from enum import Enum
from typing import Any

from playhead.core.values import JSON


def plain_json(value: Any) -> JSON:
    """A copy with lists for tuples and values for enum members; everything else as it is."""
    if isinstance(value, dict):
        return {_plain(name): plain_json(inner) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain_json(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return _plain(value)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
