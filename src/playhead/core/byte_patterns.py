"""Expressions over bytes, matched in time linear in the text however many there are (RE2)."""
# re2 ships no types: this module is the only one that touches it.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any, Protocol, cast

import re2


class ByteSet(Protocol):
    def Match(self, text: bytes) -> list[int] | None:  # noqa: N802 - RE2's own name
        """Places of the expressions that occur in the text; None without a hit."""
        ...


class ByteMatch(Protocol):
    def span(self) -> tuple[int, int]: ...


class ByteExpression(Protocol):
    def search(self, text: bytes, pos: int = 0) -> ByteMatch | None: ...

    def fullmatch(self, text: bytes) -> ByteMatch | None: ...


def byte_set(*patterns: bytes) -> ByteSet:
    """Expressions that are looked for together in one pass."""
    options = _options()
    together = re2.Set.SearchSet(options)
    for pattern in patterns:
        together.Add(pattern)
    together.Compile()
    return cast("ByteSet", together)


def longest_match(pattern: bytes) -> ByteExpression:
    """One expression of whose alternatives the longest counts."""
    options = _options()
    options.longest_match = True
    return cast("ByteExpression", re2.compile(pattern, options))


def searched(pattern: str, text: str) -> bool:
    """Whether an expression of a user matches somewhere in a text, as characters.

    Raises:
        ValueError: it is no expression.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options).search(text.encode("utf-8", "replace").decode()) is not None
    except re2.error as error:
        raise ValueError(f"{error}") from None


def escaped(text: str) -> str:
    return cast("str", re2.escape(text))


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.log_errors = False
    options.max_mem = 1 << 28  # a ceiling, not a reservation: hundreds of secrets in all spellings
    return options
