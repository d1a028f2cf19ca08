"""A piece of SQL with its parameters, and text as SQLite takes it."""

from typing import NamedTuple

from playhead.core.values import JSON


def column_text(text: str) -> str:
    """Text that SQLite takes as text: lone surrogates, which are not characters, are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


class Condition(NamedTuple):
    """A WHERE clause and its parameters."""

    text: str
    values: list[JSON]
