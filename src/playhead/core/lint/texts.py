"""Where the texts of a tool and its schema say different things: what was meant is then a guess.

Each rule reads one text beside what the schema declares. None fires on a schema that says as much as its text does.
"""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import Any, Final, NamedTuple

from playhead.core.suites.suite import ToolSchema

_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_FORMS: Final = ("enum", "const", "format", "pattern")
_NUMBER: Final = re.compile(
    r"^(?:the |an? )?(?:integer|float|floating)\b|\b(?:an|as an|as) (?:integer|float)\b|\bnumber of (?!the\b|an?\b)\w+",
    re.IGNORECASE,
)
_LIST: Final = re.compile(r"^(?:the |an? )?(?:list|array) of\b(?!.*\b(?:comma|separated|joined)\b)", re.IGNORECASE)
_FLAG: Final = re.compile(
    r"^(?:whether\b|if true\b|true if\b|(?:an? )?(?:boolean|flag)\b)|\bset to true\b", re.IGNORECASE
)
_QUANTITIES: Final = {
    "amount", "quantity", "count", "total", "price", "cost", "budget", "balance", "rate", "percentage", "percent",
    "limit", "latitude", "longitude", "radius", "distance", "height", "weight", "length", "depth", "mass", "volume",
    "speed", "velocity", "acceleration", "temperature", "pressure", "years", "days", "hours", "nights", "voltage",
}  # fmt: skip
_CHOICES: Final = {"type", "kind", "mode", "status", "class", "unit", "units", "priority", "gender"}
_SHOWS_VALUES: Final = re.compile(
    r"['\"`(:]|\b(?:e\.?g|i\.?e|such as|for example|like|default(?:s|ed)?|one of|either)\b|\w/\w", re.IGNORECASE
)
_MAY_LACK: Final = re.compile(
    r"optional|default|\b(?:none|null|omit\w*|omission|absent|leave)\b|\bmay be\b|\bonly (?:if|when|for)\b|"
    r"\bwhen not\b|"
    r"\bif (?:not |un)?(?:given|provided|specified|set|supplied|known|any|you|the|true|false|empty)",
    re.IGNORECASE,
)
_COMMON: Final = {
    "a", "all", "an", "and", "at", "be", "by", "for", "from", "get", "in", "is", "it", "of", "on", "or", "set", "that",
    "the", "this", "to", "tool", "with",
}  # fmt: skip


class Gap(NamedTuple):
    """What a text says and the schema does not, or neither does."""

    rule: str
    message: str
    fix: str


def gaps(name: str, schema: Mapping[str, Any], types: Set[str], *, required: bool) -> list[Gap]:
    """What is missing of one parameter.

    Args:
        types: the JSON types that the schema declares, null left out.
        required: whether a call has to have it.
    """
    about = str(schema.get("description") or "").strip()
    found: list[Gap] = []
    if types == {"string"} and not any(form in schema for form in _FORMS):
        other = _other_type(name, about)
        if other is not None:
            found.append(Gap("type_in_prose", f"reads as {other}, and is declared as text", f"declare it as {other}"))
        if _last_word(name) in _CHOICES and about and not _SHOWS_VALUES.search(about):
            found.append(Gap("values_unsaid", "which values are there?", "add an enum, or an example of each value"))
    if not required and not _says_optional(schema, about):
        found.append(Gap(
            "optional_unsaid", "it may be left out, and nothing says what happens then",
            "require it, give it a default, or say what is done without it",
        ))  # fmt: skip
    return found


def _other_type(name: str, about: str) -> str | None:
    if _LIST.search(about):
        return "a list"
    if _FLAG.search(about):
        return "true or false"
    return "a number" if _NUMBER.search(about) or _last_word(name) in _QUANTITIES else None


def _last_word(name: str) -> str:
    found = _WORD.findall(name)
    return found[-1].lower() if found else ""


def _says_optional(schema: Mapping[str, Any], about: str) -> bool:
    declared = schema.get("type")
    nullable = schema.get("nullable") is True or (isinstance(declared, list) and "null" in declared)
    return "default" in schema or nullable or bool(_MAY_LACK.search(f"{schema.get('title', '')} {about}"))


def swapped_texts(tools: Sequence[ToolSchema]) -> list[tuple[str, str]]:
    """Pairs of tools whose descriptions speak of the other tool: of the words that only one of their names has, the
    other's description holds two or more and the own one none, or three times as many."""
    names = {tool.name: _words(tool.name) for tool in tools}
    texts = {tool.name: _words(tool.description) for tool in tools}
    found: list[tuple[str, str]] = []
    for left, right in combinations(names, 2):
        mine, other = names[left] - names[right], names[right] - names[left]
        own = len(mine & texts[left]) + len(other & texts[right])
        cross = len(mine & texts[right]) + len(other & texts[left])
        if cross >= 2 and (own == 0 or cross >= max(3, 3 * own)):
            found.append((left, right))
    return found


def _words(text: str) -> set[str]:
    found = {word.lower() for word in _WORD.findall(text)}
    return {word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] != "s" else word for word in found} - _COMMON
