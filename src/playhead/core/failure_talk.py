"""Whether a text tells the user that something failed."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from playhead.core.evaluation import as_text
from playhead.core.values import JSON

LEXICON: Final[tuple[str, ...]] = (
    "could not", "couldn't", "cannot", "can't", "unable", "not able", "failed", "failure", "error", "not found",
    "no such", "does not exist", "doesn't exist", "unavailable", "not available", "timed out", "timeout", "try again",
    "rate limit", "too many", "invalid", "not valid", "partially", "only some",
)  # fmt: skip
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "`": "'"})


def says_failure(text: str, lexicon: Sequence[str] = LEXICON) -> bool:
    """Whether the text has a word or phrase of failure."""
    folded = re.sub(r"\s+", " ", text.translate(_APOSTROPHES).casefold())
    return any(re.search(rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])", folded) for phrase in lexicon)


def names_value(text: str, values: Iterable[JSON]) -> bool:
    """Whether the text names one of the values, as a whole word."""
    folded = text.casefold()
    shown = [as_text(value).casefold() for value in values if value is not None and as_text(value).strip()]
    return any(re.search(rf"(?<![^\W_]){re.escape(one)}(?![^\W_])", folded) for one in shown)
