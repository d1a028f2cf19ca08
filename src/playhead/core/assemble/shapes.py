"""What a piece of foreign JSON is, as type guards: foreign data is narrowed by these and nowhere by hand."""

from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; nothing for anything else."""
    return [one for one in value if is_object(one)] if is_list(value) else []


def at(value: Any, *path: str) -> Any:
    """The value at a path of member names; None where there is none."""
    for step in path:
        value = value.get(step) if is_object(value) else None
    return value
