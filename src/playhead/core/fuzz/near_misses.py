"""Values that a caller may well take for right ones."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from playhead.core.fuzz.places import Place
from playhead.core.lint.interface import lists_values, names_date
from playhead.core.protocol.shape import is_list
from playhead.core.values import JSON


class NearMiss(NamedTuple):
    """A value and how it came about."""

    mutation: str
    value: JSON


_SYNONYMS: Final[tuple[tuple[str, ...], ...]] = (
    ("completed", "complete", "done", "finished", "closed"), ("open", "opened", "active", "pending", "new"),
    ("cancelled", "canceled", "aborted", "void"), ("failed", "error", "unsuccessful"), ("yes", "true", "y", "ok"),
    ("no", "false", "n", "none"), ("low", "minor", "small"), ("medium", "normal", "moderate", "average"),
    ("high", "major", "urgent", "large"), ("critical", "severe", "blocker"), ("damaged", "broken", "defective"),
    ("late", "delayed", "overdue"), ("other", "misc", "unknown", "something else"), ("economy", "coach", "standard"),
    ("basic_economy", "economy basic", "basic"), ("business", "business class", "executive"),
    ("first", "first class", "premium"), ("one_way", "one way", "single", "oneway"),
    ("round_trip", "round trip", "return", "roundtrip"), ("asc", "ascending", "up"), ("desc", "descending", "down"),
    ("on", "enabled", "start"), ("off", "disabled", "stop"), ("male", "man"), ("female", "woman"),
    ("usd", "us dollar", "$"), ("eur", "euro"), ("celsius", "centigrade", "c"), ("fahrenheit", "f"),
    ("metric", "si"), ("imperial", "us"), ("driver", "front left"), ("passenger", "front right"),
    ("auto", "automatic", "default"), ("manual", "by hand"), ("read", "view", "r"), ("write", "edit", "rw"),
    ("reviewer", "viewer", "reader"), ("editor", "writer"), ("email", "mail", "e-mail"), ("phone", "telephone"),
    ("daily", "every day"), ("weekly", "every week"), ("monthly", "every month"), ("add", "create", "insert"),
    ("delete", "remove", "erase"), ("update", "modify", "change"), ("public", "everyone"), ("private", "personal"),
)  # fmt: skip
_QUOTED: Final = re.compile(r"['\"`]([^'\"`\n]{1,40})['\"`]")
_ISO: Final = re.compile(r"^(\d{4})-(\d{2})-(\d{2})")


def near_members(members: Sequence[JSON]) -> Iterator[NearMiss]:
    """Values beside those of an enum: a synonym, another case, the plural, a misspelling, a number beside."""
    texts = [member for member in members if isinstance(member, str) and member]
    for member in texts:
        yield from (NearMiss("enum_synonym", word) for word in synonyms(member))
    for member in texts:
        yield NearMiss("enum_other_case", member.upper() if member != member.upper() else member.lower())
        yield NearMiss("enum_plural", member[:-1] if member.endswith("s") else f"{member}s")
        yield NearMiss("enum_misspelt", misspelt(member))
        if re.search(r"[_ -]", member):
            yield NearMiss("enum_other_case", re.sub(r"[_ -]", "" if "-" in member else "-", member))
    for member in members:
        if isinstance(member, int | float) and not isinstance(member, bool):
            yield NearMiss("enum_number_beside", member + 1)


def synonyms(word: str) -> list[str]:
    """Other words for one."""
    folded = word.casefold()
    return [other for group in _SYNONYMS if folded in group for other in group if other != folded]


def misspelt(text: str) -> str:
    """The text with a slip of the keyboard: two letters in the middle change places, else one is doubled."""
    middle = len(text) // 2
    for at in (*range(middle, len(text) - 1), *range(middle)):
        if at + 1 < len(text) and text[at] != text[at + 1] and (text[at] + text[at + 1]).isalnum():
            return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return f"{text}{text[-1:]}" if text else "x"


def against_declared(place: Place) -> Iterator[NearMiss]:
    """Values just outside what the schema of a place declares."""
    schema = place.schema
    if is_list(schema.get("enum")):
        yield from near_members(schema["enum"])
    yield from _outside_bounds(schema)
    yield from _outside_lengths(place)
    text = place.value if isinstance(place.value, str) else ""
    if "pattern" in schema and text:
        yield NearMiss("broken_pattern", misspelt(text))
        yield NearMiss("broken_pattern", f" {text}!")
        yield NearMiss("broken_pattern", text[:-1])
    if "format" in schema and text:
        yield NearMiss("broken_format", re.sub(r"[-:@.]", " ", text))
        yield NearMiss("broken_format", f"{text}?")


def _outside_bounds(schema: dict[str, Any]) -> Iterator[NearMiss]:
    step = schema.get("multipleOf") or 1
    for key, change in (("minimum", -step), ("maximum", step), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)):
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            yield NearMiss("below_bound" if "min" in key.lower() else "above_bound", bound + change)
    if "multipleOf" in schema:
        yield NearMiss("off_step", (schema.get("minimum") or 0) + step / 2)


def _outside_lengths(place: Place) -> Iterator[NearMiss]:
    schema, value = place.schema, place.value
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and least > 0 and isinstance(value, str):
        yield NearMiss("too_short", value[: least - 1])
    if isinstance(most, int) and most < 100_000 and isinstance(value, str):
        yield NearMiss("too_long", (value or "a") + (value or "a")[-1] * (most + 1 - len(value or "a")))
    least, most = schema.get("minItems"), schema.get("maxItems")
    if isinstance(least, int) and least > 0 and is_list(value):
        yield NearMiss("too_few", value[: least - 1])
    if isinstance(most, int) and most < 10_000 and is_list(value) and value:
        yield NearMiss("too_many", value + [value[-1]] * (most + 1 - len(value)))
    if schema.get("uniqueItems") and is_list(value) and value:
        yield NearMiss("item_twice", [*value, value[0]])


def against_meaning(place: Place, others: Sequence[JSON] = ()) -> Iterator[NearMiss]:
    """Values that the schema may allow and the description, or the recording, does not.

    Args:
        others: recorded values of this place.
    """
    about = str(place.schema.get("description") or "")
    if place.kind == "string" and isinstance(place.value, str):
        if _is_date(place, about):
            yield from _dates(place.value)
        elif lists_values(about) or "[Enum]" in about:
            yield from near_members(_QUOTED.findall(about))
        if "enum" not in place.schema:
            yield from _near_texts(place.value, others)
    if place.kind in ("integer", "number"):
        yield from _odd_numbers(place)
    if place.kind == "array" and is_list(place.value):
        yield NearMiss("no_items", [])


def _near_texts(value: str, others: Sequence[JSON]) -> Iterator[NearMiss]:
    known = [other for other in others if isinstance(other, str) and other]
    for text in dict.fromkeys([value, *known]):
        if text:
            near = misspelt(text)
            yield NearMiss("near_miss_id" if any(c.isdigit() for c in text) else "near_miss", near)
    yield NearMiss("empty_text", "")


def _is_date(place: Place, about: str) -> bool:
    form = place.schema.get("format")
    if form in ("date", "date-time"):
        return True
    return form is None and (names_date(place.name) or bool(_ISO.match(str(place.value))) or "YYYY-MM-DD" in about)


def _dates(value: str) -> Iterator[NearMiss]:
    rest = value[10:] if _ISO.match(value) else ""
    year = value[:4] if _ISO.match(value) else "2030"
    yield NearMiss("date_impossible", f"{year}-02-30{rest}")
    yield NearMiss("date_impossible", f"{year}-13-01{rest}")
    yield NearMiss("date_past", f"1999-01-01{rest}")
    yield NearMiss("date_other_format", "20/05/2030")
    yield NearMiss("date_other_format", "next Tuesday")


def _odd_numbers(place: Place) -> Iterator[NearMiss]:
    yield NearMiss("large_number", 10**6)
    yield NearMiss("negative_number", -1)
    yield NearMiss("zero", 0)
    yield NearMiss("very_large_number", 10**15)
    if place.kind == "number":
        yield NearMiss("tiny_number", 1e-300)
