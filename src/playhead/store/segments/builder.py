"""Nodes to segments."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from playhead.core.codec import decode, encode
from playhead.core.values import JSON, Encoded, Node
from playhead.store.compression import compress
from playhead.store.content import split
from playhead.store.segments.index import ABSENT, Cut, Index, Path, pack, place_value

LARGE = 32 * 1024
"""Values with a text of this many bytes are kept once per store."""

SCHEMAS = 512
"""Tool schemas with a text of this many bytes are kept once per store."""

_RECENT = 8
"""Message lists that a new one may continue: the newest of the agent and its sub-agents."""


class _List(NamedTuple):
    number: int  # as it is written in a segment
    messages: tuple[bytes, ...]  # digests


@dataclass(slots=True)
class Known:
    """What a writer knows to be in a session's stream. It may know less than there is: then things are kept twice.

    Numbers are those of the session.
    """

    messages: dict[bytes, int] = field(default_factory=dict[bytes, int])
    lists: list[_List] = field(default_factory=list[_List])


@dataclass(slots=True)
class Segment:
    """A segment that is ready to be stored, with what it adds to the session."""

    heads: bytes
    body: bytes
    nodes: int
    messages: list[bytes]  # digests
    lists: list[tuple[bytes, ...]]
    shared: dict[bytes, bytes]  # sha256 -> text


def learn(known: Known, segment: Segment, first_message: int, first_list: int) -> None:
    """Take up what a stored segment holds, now that its place in the session is known."""
    for number, digest in enumerate(segment.messages, first_message):
        known.messages.setdefault(digest, number)
    for number, digests in enumerate(segment.lists, first_list):
        known.lists.append(_List(number, digests))
    del known.lists[:-_RECENT]


def build(nodes: Iterable[Node], known: Known, *, final: bool = False) -> Segment:
    """A segment of ``nodes``. A final one is compressed harder, and large values are cut out of it."""
    builder = _Builder(known, final)
    for node in nodes:
        builder.add(node)
    return builder.segment()


class _Builder:
    def __init__(self, known: Known, final: bool) -> None:
        self._known = known
        self._final = final
        self._index = Index()
        self._own: dict[bytes, int] = {}
        self._digests: dict[int, bytes] = {}  # by identity of a message, which many requests share
        self._held: list[Any] = []  # keeps those messages alive, so that an identity means one message
        self._messages: list[bytes] = []
        self._recent = [_List(-2 - known_list.number, known_list.messages) for known_list in known.lists]
        self._added: list[tuple[bytes, ...]] = []
        self._payloads: list[bytes] = []
        self._shared: dict[bytes, bytes] = {}
        self._schemas: dict[Any, int] = {}

    def add(self, node: Node) -> None:
        head, payload = split(node)
        del head["session_id"]
        if node.ended_at is not None:
            head["ended_at"] = node.ended_at - node.started_at
        if not self._payloads:
            self._index.since = node.started_at
        head["started_at"] -= self._index.since
        place = tools = ABSENT
        inputs = payload.get("inputs")
        if node.model is not None and isinstance(inputs, dict):
            request = dict(cast("dict[str, JSON]", inputs))
            place = self._list(request)
            tools = self._tools(request)
            payload["inputs"] = request
        text = encode(payload) if payload else b"{}"
        text = self._cut(text, -1 - len(self._payloads)) if self._final else text
        self._payloads.append(text)
        row: list[JSON] = [head, len(text)]
        if place != ABSENT or tools != ABSENT:
            row += [place, tools]
        self._index.nodes.append(row)

    def segment(self) -> Segment:
        return Segment(
            heads=pack(self._index),
            body=compress(b",".join([*self._messages, *self._payloads]), hard=self._final),
            nodes=len(self._index.nodes),
            messages=list(self._own),
            lists=self._added,
            shared=self._shared,
        )

    def _list(self, request: dict[str, JSON]) -> int:
        """Take the messages out of a request; the place of their list in the segment."""
        messages = request.get("messages")
        if not isinstance(messages, list | tuple) or not messages:
            return ABSENT
        digests = tuple([self._message(message) for message in cast("Sequence[JSON]", messages)])
        request["messages"] = 0
        base, keep = self._continued(digests)
        own, earlier = self._own, self._known.messages
        self._index.lists.append([base, keep, *(own[d] if d in own else -2 - earlier[d] for d in digests[keep:])])
        place = len(self._index.lists) - 1
        self._recent = [*self._recent[1 - _RECENT :], _List(place, digests)]
        self._added.append(digests)
        return place

    def _continued(self, digests: tuple[bytes, ...]) -> tuple[int, int]:
        """The recent list that shares the longest beginning, and how much of it."""
        base, keep = ABSENT, 0
        for recent in reversed(self._recent):
            shared = _shared_length(recent.messages, digests)
            if shared > keep:
                base, keep = recent.number, shared
                if keep == len(digests):
                    break
        return base, keep

    def _message(self, message: JSON) -> bytes:
        digest = self._digests.get(id(message))
        if digest is not None:
            return digest
        text = message.text if isinstance(message, Encoded) else encode(message)
        digest = message.digest if isinstance(message, Encoded) else hashlib.sha256(text).digest()
        self._digests[id(message)] = digest
        self._held.append(message)
        if digest not in self._own and digest not in self._known.messages:
            self._own[digest] = len(self._messages)
            text = self._cut(text, len(self._messages)) if self._final else text
            self._messages.append(text)
            self._index.messages.append(len(text))
        return digest

    def _tools(self, request: dict[str, JSON]) -> int:
        """Take the tool schemas out of a request; the place of their text among the shared ones."""
        tools = request.get("tools")
        if not tools:
            return ABSENT
        name = tools.digest if isinstance(tools, Encoded) else id(tools)
        place = self._schemas.get(name)
        if place is None:
            text = tools.text if isinstance(tools, Encoded) else encode(tools)
            place = self._share(text) if len(text) >= SCHEMAS else ABSENT
            self._schemas[name] = place
            self._held.append(tools)
        if place != ABSENT:
            request["tools"] = 0
        return place

    def _share(self, text: bytes) -> int:
        return share(self._index, self._shared, text)

    def _cut(self, text: bytes, place: int) -> bytes:
        return cut_out(self._index, self._shared, text, place)


def share(index: Index, shared: dict[bytes, bytes], text: bytes) -> int:
    """Note a shared value; its place among those of the segment."""
    digest = hashlib.sha256(text).digest()
    if digest not in shared:
        shared[digest] = text
        index.shared.append(digest)
        return len(index.shared) - 1
    return index.shared.index(digest)


def cut_out(index: Index, shared: dict[bytes, bytes], text: bytes, place: int) -> bytes:
    """The text without its large values, which are noted in the index. ``place`` is as in `Cut`."""
    if len(text) < LARGE:
        return text
    root = [decode(text)]
    for path, held in large_values(root[0]):
        index.cuts.append(Cut(place, path, share(index, shared, encode(held))))
        place_value(root, path, 0)
    return encode(root[0])


def large_values(value: JSON) -> list[tuple[Path, JSON]]:
    """The smallest parts with a text of at least `LARGE` bytes, with their paths; never the value itself."""
    found: list[tuple[Path, JSON]] = []
    todo: list[tuple[Path, JSON]] = [([], value)]
    while todo:
        path, held = todo.pop()
        inner = [([*path, name], part) for name, part in _parts(held) if _is_large(part)]
        if inner:
            todo.extend(inner)
        elif path:
            found.append((path, held))
    return found


def _parts(value: JSON) -> Iterable[tuple[str | int, JSON]]:
    if isinstance(value, dict):
        return cast("dict[str, JSON]", value).items()
    if isinstance(value, list):
        return enumerate(cast("list[JSON]", value))
    return ()


def _is_large(value: JSON) -> bool:
    if isinstance(value, str):
        return len(value) >= LARGE
    return isinstance(value, dict | list) and len(encode(value)) >= LARGE


def _shared_length(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> int:
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(index for index in range(size) if one[index] != other[index])
