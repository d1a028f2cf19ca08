"""Narrowing of foreign JSON, whose types nobody promised."""

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def named(value: dict[str, Any], name: str) -> str | None:
    """The member when it is text, such as the name of a kind; foreign data may hold anything there."""
    held = value.get(name)
    return held if isinstance(held, str) else None


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list; none when it is no list."""
    return [v for v in value if is_object(v)] if is_list(value) else []


def obj(value: object) -> dict[str, Any]:
    """The object itself, or an empty one."""
    return value if is_object(value) else {}
