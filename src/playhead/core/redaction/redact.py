"""Takes secrets out of what is written and out of keys.

Three sets of values. *Configured* ones are known by name before a run, in every run: only they are taken out of keys,
since a replay has no credentials to know others by. *Seen* ones turned up during the run. *Taken* ones were removed
from an outcome: a replay will pass their tag on, so later keys of the recording hold the tag as well.

Nothing here reads the environment: names and values are arguments. A redactor may be used from several threads.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, cast

from playhead.core.json_text import render
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.redaction.match import ANYWHERE, SHORTEST, SecretSet, Span, merged
from playhead.core.redaction.names import SchemaView
from playhead.core.redaction.shapes import credentials_in, may_hold_credentials
from playhead.core.redaction.walk import Walk
from playhead.core.values import JSON

__all__ = ["Redacted", "Redactor", "StreamRedactor"]

_TAG = re.compile(rb"\[REDACTED:([^\[\]]{1,200})\]")
_TAG_ONLY = re.compile(r"(?i)(?:\s|(?:bearer|basic|token|digest|apikey)\b|\[REDACTED:[^\[\]]{1,200}\])*")
_SCHEME = re.compile(r"(?i)\s*(bearer|basic|token|digest|apikey)\s+(\S.*)", re.DOTALL)
_NO_NAME = re.compile(r"[\[\]\x00-\x1f\x7f\ud800-\udfff]")

_MOST_FOUND: Final = 1000
"""Values found by name or shape that one run remembers; further ones are taken out where they stand only."""

_NEVER_SECRET = frozenset(
    {"string", "number", "integer", "boolean", "object", "array", "null", "none", "true", "false", "undefined"}
    | {"required", "optional", "hidden", "unknown", "default", "enabled", "disabled", "redacted", "username"}
    | {"basic", "bearer", "token", "secret", "cookie", "apikey", "api_key", "passwd", "password", "passphrase"}
    | {"credential", "credentials", "authorization", "access_token", "refresh_token", "client_secret"}
)
"""Words under credential-like names that say nothing secret: searching them would spoil schemas and prose."""


class Redacted(NamedTuple):
    """A value without secrets; it is the given object itself when there were none.

    ``pointers`` are the places (JSON pointers into ``value``) at which something was replaced. ``refused`` are those
    of bytes that are not text and held a secret: the whole value was replaced, and must not pass for a recording.
    """

    value: JSON
    pointers: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Redactor:
    """The secrets of one run, and what to put in their place."""

    def __init__(self, configured: Mapping[str, str] | None = None) -> None:
        self._configured = SecretSet()
        self._warnings: list[str] = []
        for name, value in sorted((configured or {}).items()):
            self._configure(name, value)
        self._start()

    def _configure(self, name: str, value: str) -> None:
        first = self._configured.tag(value)
        if len(value) < SHORTEST:
            self._warnings.append(f"{name} is shorter than {SHORTEST} characters and is not redacted")
        elif first is not None:
            self._warnings.append(f"{first[10:-1]} and {name} have the same value")
        self._configured.add(value, _tag(name))

    def _start(self) -> None:
        self._seen = SecretSet()
        self._taken = SecretSet()
        self._tags: dict[str, str] = {}  # every value replaced in this run, also those too short to search
        self._numbers: dict[str, Any] = {}

    def for_run(self) -> "Redactor":
        """A redactor with the same configured secrets that has seen nothing yet."""
        fresh = Redactor.__new__(Redactor)
        fresh._configured = self._configured
        fresh._warnings = list(self._warnings)
        fresh._start()
        return fresh

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    @property
    def configured_names(self) -> frozenset[str]:
        """Names of the secrets that keys are free of, as far as they have a value."""
        return frozenset(tag[10:-1] for tag in self._configured.tags())

    def configure(self, name: str, value: str) -> None:
        """Adds a value that keys are free of from now on."""
        if self._configured.tag(value) is None:
            self._configure(name, value)

    def learn(self, name: str, value: str) -> None:
        """Adds a value that this run has seen (a slot, a variable); it goes wherever it turns up from now on."""
        if len(value) < SHORTEST:
            self._warnings.append(f"{name} is shorter than {SHORTEST} characters and is not redacted")
            return
        self._seen.add(value, self.tag_for(name, value))

    def redact(self, stored: JSON, *, schema: JSON = None, outcome: bool = False) -> Redacted:
        """Takes every known or recognisable secret out of a stored form.

        Args:
            stored: Plain JSON in stored form.
            schema: Its JSON Schema, where there is one; ``x-playhead-secret`` in it decides for single fields.
            outcome: What is taken out is also replaced in the keys of later calls (`key_view`).
        """
        if schema is None and not self._may_change(stored):
            return Redacted(stored)
        walk = Walk(_Everything(self, outcome))
        value = walk.whole(stored, None if schema is None else SchemaView(schema))
        return Redacted(value, walk.pointers(), walk.refused())

    def redact_items(self, items: Sequence[JSON]) -> Redacted:
        """As `redact` of an outcome, for the items of a stream: also what is cut in two by the border of items.

        Texts at the same place of each item (the whole item, or ``/delta/text``) are read as one.
        """
        whole = self.redact(list(items), outcome=True)
        values: list[JSON] = list(cast("list[JSON]", whole.value))
        for place in dict.fromkeys(place for item in values for place in _texts(item)):
            found = [(number, _at(item, place)) for number, item in enumerate(values)]
            texts = [(number, text) for number, text in found if isinstance(text, str)]
            stream = StreamRedactor(self, outcome=True)
            for _, text in texts:
                stream.feed(text)
            for (number, before), after in zip(texts, stream.finish(), strict=True):
                if after != before:
                    values[number] = _with(values[number], place, cast("str", after))
        return whole._replace(value=values)

    def _may_change(self, stored: JSON) -> bool:
        text = _encoded(stored) if isinstance(stored, str) else render(stored)
        return (
            may_hold_credentials(text)
            or self._configured.may_match(text)
            or self._seen.may_match(text)
            or b'"$bytes"' in text  # base64 hides shapes
            or b"e+" in text  # a number whose canonical text is longer than the rendered one
        )

    def redact_text(self, text: str) -> str:
        return _Everything(self, False).text(text)

    def key_view(self, stored: JSON) -> JSON:
        """The value as keys see it: configured secrets and those taken out of earlier outcomes replaced."""
        if not len(self._configured) and not len(self._taken):
            return stored
        text = _encoded(stored) if isinstance(stored, str) else render(stored)
        # A number may have a longer canonical text than the rendered one.
        if not self.may_change_key(text) and b"e+" not in text:
            return stored
        return Walk(_Known((self._configured, self._taken))).whole(stored, None)

    def may_change_key(self, text: bytes) -> bool:
        """Whether `key_view` can find anything in a value with this JSON text; False is certain."""
        return self._configured.may_match(text) or self._taken.may_match(text)

    def known_in(self, data: bytes | str) -> tuple[str, ...]:
        """The names of known secrets that text still holds, for a last look before it is written."""
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        spans = _outside_tags(raw, self.known_spans, self.is_tag)
        return tuple(sorted({span.tag[10:-1] for span in spans}))

    def given_away_by(self, text: str) -> str | None:
        """The name of a secret that a name (of a file, a test) gives away; a plain word may be a password somewhere,
        and is none in a name."""
        raw = _encoded(text)
        known = [span.tag[10:-1] for span in self.known_spans(raw) if not span.value.isalpha()]
        shapes = [name for _, _, name in credentials_in(raw)] if may_hold_credentials(raw) else []
        return next(iter([*known, *shapes]), None)

    def tag_for(self, name: str, value: str) -> str:
        """The tag of a value, for the whole run: ``[REDACTED:NAME]``, numbered for further values of one name."""
        known = self._configured.tag(value) or self._tags.get(value)
        if known is not None:
            return known
        clean = _NO_NAME.sub("_", name)[:64] or "secret"
        number = next(self._numbers.setdefault(clean, count(1)))
        if number == 1 and _tag(clean) in self._configured.tags():
            number = next(self._numbers[clean])
        return self._tags.setdefault(value, _tag(clean if number == 1 else f"{clean}.{number}"))

    def found(self, name: str, value: str) -> str:
        """Notes a value that its name or its shape gave away; returns its tag."""
        tag = self.tag_for(name, value)
        if len(self._seen) < _MOST_FOUND and value.strip().lower() not in _NEVER_SECRET:
            self._seen.add(value, tag)
        return tag

    def take(self, value: str, tag: str) -> None:
        """Notes that `tag` stands for `value` in an outcome."""
        if value not in self._configured and value.strip().lower() not in _NEVER_SECRET:
            self._taken.add(value, tag)

    def known_spans(self, data: bytes) -> list[Span]:
        return [*self._configured.spans(data), *self._seen.spans(data)]

    def is_tag(self, name: bytes) -> bool:
        """Whether `name` may stand in a tag: text that only looks like one must not hide a secret."""
        tag = _tag(name.decode("utf-8", "replace"))
        return tag in self._configured.tags() or tag in self._seen.tags() or not self.known_spans(name)


class _Known:
    """Replaces the values of some sets and nothing else: what keys see."""

    names_matter = False

    def __init__(self, sets: Sequence[SecretSet]) -> None:
        self._sets = sets

    def data(self, raw: bytes) -> bytes:
        return _replaced(raw, _outside_tags(raw, self._spans, _any_name))

    def under_name(self, text: str, name: str) -> str:
        return text

    def _spans(self, data: bytes) -> list[Span]:
        return [span for each in self._sets for span in each.spans(data)]


class _Everything:
    """Replaces known secrets, and what names and shapes give away."""

    names_matter = True

    def __init__(self, redactor: Redactor, outcome: bool) -> None:
        self._redactor = redactor
        self._outcome = outcome

    def data(self, raw: bytes) -> bytes:
        return _replaced(raw, self.spans(raw))

    def spans(self, raw: bytes) -> list[Span]:
        spans = _outside_tags(raw, self._spans, self._redactor.is_tag)
        if self._outcome:
            for span in spans:
                self._redactor.take(span.value, span.tag)
                self._redactor.take(_decoded(raw[span.start : span.end]), span.tag)
        return spans

    def text(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        replaced = self.data(raw)
        return text if replaced is raw else _decoded(replaced)

    def under_name(self, text: str, name: str) -> str:
        if not text or text.isspace() or _TAG_ONLY.fullmatch(text):
            return text
        raw = _encoded(text)
        known = _decoded(_replaced(raw, _outside_tags(raw, self._redactor.known_spans, self._redactor.is_tag)))
        if _TAG_ONLY.fullmatch(known):
            return known
        tag = self._redactor.found(name, text)
        scheme = _SCHEME.fullmatch(text)
        if scheme is not None:
            self._redactor.found(scheme[1].lower(), scheme[2])
        if self._outcome:
            self._redactor.take(text, tag)
        return tag

    def _spans(self, data: bytes) -> list[Span]:
        known = self._redactor.known_spans(data)
        if not may_hold_credentials(data):
            return known
        for start, end, name in credentials_in(data):
            if not any(span.start <= start and end <= span.end for span in known):
                value = _decoded(data[start:end])
                known.append(Span(start, end, value, self._redactor.found(name, value)))
        return known


class StreamRedactor:
    """Redacts the chunks of one stream together, so that a secret cut in two by a chunk border is found."""

    def __init__(self, redactor: Redactor, *, outcome: bool = False) -> None:
        self._replacer = _Everything(redactor, outcome)
        self._chunks: list[str | bytes] = []

    def feed(self, chunk: str | bytes) -> None:
        self._chunks.append(chunk)

    def finish(self) -> list[str | bytes]:
        """All chunks, as many as were fed; a tag stands in the chunk in which its secret started."""
        parts = [_encoded(chunk) if isinstance(chunk, str) else chunk for chunk in self._chunks]
        spans = self._replacer.spans(b"".join(parts))
        result: list[str | bytes] = []
        start = 0
        for chunk, part in zip(self._chunks, parts, strict=True):
            cut = _cut(part, start, spans) if spans else part
            result.append(_decoded(cut) if isinstance(chunk, str) else cut)
            start += len(part)
        return result


def _texts(item: JSON, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of the texts in an item."""
    if isinstance(item, str):
        yield steps
    elif is_object(item):
        for name, value in item.items():
            yield from _texts(value, (*steps, name))
    elif is_list(item):
        for number, value in enumerate(item):
            yield from _texts(value, (*steps, number))


def _at(item: Any, place: tuple[str | int, ...]) -> JSON:
    for step in place:
        try:
            item = item[step]
        except (KeyError, IndexError, TypeError):
            return None
    return item


def _with(item: JSON, place: tuple[str | int, ...], text: str) -> JSON:
    """A copy of an item with another text at a place that it has."""
    if not place:
        return text
    copied: Any = dict(item) if is_object(item) else list(cast("list[JSON]", item))
    copied[place[0]] = _with(copied[place[0]], place[1:], text)
    return copied


def _cut(part: bytes, start: int, spans: list[Span]) -> bytes:
    """One chunk, which begins at `start` of the stream, without the spans."""
    pieces: list[bytes] = []
    done = 0
    for span in spans:
        first, last = span.start - start, span.end - start
        if last <= 0 or first >= len(part):
            continue
        pieces.append(part[done : max(first, done)])
        if first >= 0:
            pieces.append(span.tag.encode())
        done = min(last, len(part))
    return b"".join([*pieces, part[done:]])


def _outside_tags(data: bytes, find: Callable[[bytes], list[Span]], is_tag: Callable[[bytes], bool]) -> list[Span]:
    """Merged spans of what `find` sees in the text between existing tags, which are left alone."""
    if b"[REDACTED:" not in data:
        return merged(find(data))
    spans: list[Span] = []
    start = 0
    tags = [match.span() for match in _TAG.finditer(data) if is_tag(match[1])]
    for first, last in [*tags, (len(data), len(data))]:
        for span in find(data[start:first]):
            if len(span.value) >= ANYWHERE or not tags:
                spans.append(span._replace(start=span.start + start, end=span.end + start))
        start = last
    return merged(spans)


def _replaced(data: bytes, spans: list[Span]) -> bytes:
    return _cut(data, 0, spans) if spans else data


def _any_name(_: bytes) -> bool:
    return True


def _tag(name: str) -> str:
    return f"[REDACTED:{name}]"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
