"""The hot path of model requests: a request repeats the last one and adds a tail, so only the tail is read.

A `Transcript` keeps the messages of the last request, every mutable container reachable from them, and a shallow copy
of each container. A request continues it when the containers still equal their copies (nobody changed an earlier
message, at any depth) and its first messages equal the kept ones. Both are single list comparisons in C, in which
unchanged members are compared by identity; that is microseconds for hundreds of messages. Where equal is not the same
(1, 1.0 and True), members are compared by identity, and by type in messages that were made again. What follows is new:
it is brought into normal form and copied on the agent's thread, and encoded once by the writer, in a `Cell` that every
later request shares.

An object without ``__dict__`` that is no dict or list counts as immutable.
"""

import marshal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from itertools import chain
from operator import is_
from types import ModuleType
from typing import Any, NamedTuple, cast

from playhead.core.canonical import NoKeyError
from playhead.core.protocol.request import Digests, model_key, tools_digest
from playhead.core.values import JSON, Encoded, NoKey

ToNormal = Callable[[Any], list[JSON]]
KeyView = Callable[[JSON], JSON]
_KEPT = 4  # conversations that may take turns in one place
_ATOMS = frozenset({type(None), bool, int, float, str, bytes, complex, datetime})
_ODD = frozenset({bool, int, float, complex, Decimal, tuple})
"""Types of which a member may equal one that it is not."""
_LISTS, _DICTS, _SEQUENCES = frozenset({list}), frozenset({dict}), frozenset({list, tuple})
_OPAQUE = (type, Enum, ModuleType)


class Cell:
    """One message of a framework: the normal messages it stands for, encoded once by whoever needs it first."""

    __slots__ = ("_copy", "_keyed", "_plain", "_results", "encoded")

    def __init__(self, normal: list[JSON]) -> None:
        self._copy: bytes | None = None
        self._plain: list[JSON] | None = None
        try:
            self._copy = marshal.dumps(normal)
        except ValueError:  # foreign objects or deep nesting: whoever made the normal form gave it away
            self._plain = normal
        self.encoded: list[Encoded] | None = None
        self._keyed: list[JSON] | None = None
        self._results: dict[str, JSON] | None = None

    @property
    def plain(self) -> list[JSON]:
        """The normal messages; a copy of their own where that is cheap."""
        if self._plain is not None:
            return self._plain
        assert self._copy is not None
        return marshal.loads(self._copy)

    @property
    def results(self) -> dict[str, JSON]:
        """The tool results in it, by call id."""
        if self._results is None:
            parts = [part for message in self.plain for part in message["parts"]]
            self._results = {part["id"]: part for part in parts if part["type"] == "tool_result"}
        return self._results

    def keyed(self, key_view: KeyView | None) -> list[JSON]:
        """The normal messages as they enter keys: the same objects each time."""
        if self._keyed is None:
            plain = self.plain
            self._keyed = plain if key_view is None else [key_view(message) for message in plain]
        return self._keyed


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """The key of a model request, or why it has none."""

    key: str | None
    no_key: NoKey | None = None


def shared_beginning(one: Sequence[Cell], other: Sequence[Cell]) -> int:
    """How many cells two requests begin with in common."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(place for place in range(size) if one[place] is not other[place])


class Transcript:
    """The messages (or tool schemas) of one place's last request."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.cells: list[Cell] = []
        self._containers: list[Any] = []
        self._copies: list[Any] = []
        self._starts: list[int] = []  # first container of each message
        self._boxes: list[Iterable[Any]] = []  # live members of containers in which equal need not be the same
        self._members: list[Any] = []  # what they held
        self._odd: dict[int, _Odd] = {}  # by the place of a message that has such containers

    def read(self, messages: Sequence[Any], to_normal: ToNormal | None) -> tuple[Cell, ...]:
        """The cells of a request's messages; those of its repeated beginning are shared with earlier requests."""
        known = self._repeated(messages)
        if known < len(self.messages):
            self._forget(known)
        for message in messages[known:]:
            self._add(message, [message] if to_normal is None else to_normal(message))
        return tuple(self.cells)

    def fits(self, messages: Sequence[Any]) -> bool:
        """Whether a request seems to continue this conversation, by its first two messages."""
        count = min(2, len(self.messages), len(messages))
        return bool(count) and _equal(self.messages[:count], list(messages[:count]))

    def _repeated(self, messages: Sequence[Any]) -> int:
        count = len(self.messages)
        if self._unchanged() and _equal(self.messages, list(messages[:count])) and self._alike(messages):
            return count
        for place in range(min(count, len(messages))):
            if not self._same(place, messages[place]):
                return place
        return min(count, len(messages))

    def _unchanged(self, start: int = 0, end: int | None = None) -> bool:
        return _equal(self._containers[start:end], self._copies[start:end])

    def _alike(self, messages: Sequence[Any]) -> bool:
        """Whether members that equal the kept ones are the kept ones, or at least of their types."""
        if not all(map(is_, chain.from_iterable(self._boxes), self._members)):
            return False
        return all(
            messages[place] is self.messages[place] or _kinds(_containers(messages[place]).odd) == odd.kinds
            for place, odd in self._odd.items()
        )

    def _same(self, place: int, message: Any) -> bool:
        end = self._starts[place + 1] if place + 1 < len(self._starts) else None
        if not self._unchanged(self._starts[place], end) or not _equal(self.messages[place], message):
            return False
        odd = self._odd.get(place)
        return odd is None or _kinds(odd.boxes) == odd.kinds == _kinds(_containers(message).odd)

    def _forget(self, known: int) -> None:
        del self._containers[self._starts[known] :], self._copies[self._starts[known] :]
        del self.messages[known:], self.cells[known:], self._starts[known:]
        self._odd = {place: odd for place, odd in self._odd.items() if place < known}
        self._boxes = [box for odd in self._odd.values() for box in odd.boxes]
        self._members = [*chain.from_iterable(self._boxes)]

    def _add(self, message: Any, normal: list[JSON]) -> None:
        self._starts.append(len(self._containers))
        found = _containers(message)
        for container in found.mutable:
            self._containers.append(container)
            self._copies.append(container.copy())
        if found.odd:
            members = [*chain.from_iterable(found.odd)]
            self._odd[len(self.messages)] = _Odd(found.odd, [*map(type, members)])
            self._boxes += found.odd
            self._members += members
        self.messages.append(message)
        self.cells.append(Cell(normal))


class Conversation(Transcript):
    """A transcript whose requests have keys. Keys are made by one thread at a time, in the order of the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()  # held by whoever makes a key
        self._digests = Digests()
        self._tools: tuple[tuple[Cell, ...], bytes] | None = None
        self._offered: tuple[tuple[Cell, ...], dict[str, JSON]] = ((), {})

    def offered(self, tools: tuple[Cell, ...]) -> dict[str, JSON]:
        """Tools in normal form by name; the same object while the tools are the same."""
        kept = self._offered
        if kept[0] != tools:
            kept = self._offered = (tools, {tool.get("name"): tool for cell in tools for tool in cell.plain})
        return kept[1]

    def key(
        self, model: str | None, cells: Sequence[Cell], tools: tuple[Cell, ...], rest: JSON, *,
        missing: Sequence[str] = (), key_view: KeyView | None = None,
    ) -> ModelKey:  # fmt: skip
        """The key of a request. ``rest`` holds ``tool_choice`` and ``params``."""
        try:
            digests = self._digests.of([m for cell in cells for m in cell.keyed(key_view)])
            if self._tools is None or self._tools[0] != tools:
                self._tools = (tools, tools_digest([t for cell in tools for t in cell.keyed(key_view)]))
            rest = rest if key_view is None else key_view(rest)
            made = model_key(model, digests, self._tools[1], rest["tool_choice"], rest["params"], missing=missing)
            return ModelKey(key=made)
        except NoKeyError as error:
            return ModelKey(key=None, no_key=error.no_key)


class Conversations:
    """The conversations of one place in a session (a run, or a tool that asks a model), newest first."""

    def __init__(self) -> None:
        self._kept: list[Conversation] = []
        self._tools = Transcript()

    def of(self, messages: Sequence[Any]) -> Conversation:
        """The conversation that a request continues, a new one where none fits."""
        for place, conversation in enumerate(self._kept):
            if conversation.fits(messages):
                if place:
                    self._kept.insert(0, self._kept.pop(place))
                return conversation
        conversation = Conversation()
        self._kept = [conversation, *self._kept[: _KEPT - 1]]
        return conversation

    def tools(self, tools: Sequence[Any]) -> tuple[Cell, ...]:
        """The cells of offered tools."""
        return self._tools.read(tools, None)


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - the comparison of foreign objects
        return False


class _Odd(NamedTuple):
    """Containers with members that may equal something else: their members as they are now, and the types that were."""

    boxes: list[Iterable[Any]]
    kinds: list[type]


class _Found(NamedTuple):
    """Every dict and list that can be reached, and of those (and tuples) the members that may equal something else."""

    mutable: list[Any]
    odd: list[Iterable[Any]]


def _kinds(boxes: Iterable[Iterable[Any]]) -> list[type]:
    return [*map(type, chain.from_iterable(boxes))]


def _containers(value: Any) -> _Found:
    """What is reachable from a message, the ``__dict__`` of objects included; level by level."""
    found = _Found([], [])
    level: list[Any] = [value]
    seen: set[int] = set()
    while level:
        below: list[Any] = []
        for item in level:
            kind = cast("type[Any]", type(item))
            if kind in _SEQUENCES:
                below += [held for held in item if type(held) not in _ATOMS]
                if not _ODD.isdisjoint(map(type, item)):
                    found.odd.append(item)
                if kind in _LISTS:
                    found.mutable.append(item)
                continue
            inner: Any = item if kind in _DICTS else getattr(item, "__dict__", None)
            if inner is None or (kind not in _DICTS and (isinstance(item, _OPAQUE) or callable(item))):
                continue
            found.mutable.append(inner)
            members = inner.values()
            if not _ODD.isdisjoint(map(type, members)):
                found.odd.append(members)
            below += [held for held in members if type(held) not in _ATOMS]
        level = [held for held in below if id(held) not in seen]
        seen.update(map(id, level))
    return found
