"""Segments to nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from playhead.core.codec import decode
from playhead.core.values import JSON, Node
from playhead.errors import FormatError
from playhead.store.compression import decompress
from playhead.store.content import node_of
from playhead.store.segments.index import ABSENT, Cut, Fetch, Index, Stored, place_value, unpack


class Found(NamedTuple):
    """Where a node is: its head as stored, its payload when bodies were read, its message list and tool schemas."""

    head: dict[str, JSON]
    payload: dict[str, JSON] | None
    messages: list[JSON] | None
    tools: bytes | None
    format: int


def read(
    session_id: str,
    segments: Iterable[Stored],
    fetch: Fetch,
    *,
    wanted: Callable[[Mapping[str, JSON]], bool] | None = None,
) -> list[Node]:
    """The nodes of a session in start order; a node that was stored again counts as last stored.

    Nodes share what they repeat: treat them as the immutable values they are.

    Raises:
        FormatError: a segment is damaged.
    """
    reader = _Reader(fetch, wanted)
    schemas: dict[bytes, JSON] = {}
    try:
        for segment in segments:
            reader.take(segment)
        nodes = [_node(session_id, found, fetch, schemas) for found in reader.found.values()]
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"a segment of session {session_id!r} is damaged: {error!r}") from error
    return sorted(nodes, key=lambda node: (node.seq, node.id))


class _Reader:
    def __init__(self, fetch: Fetch, wanted: Callable[[Mapping[str, JSON]], bool] | None) -> None:
        self.found: dict[str, Found] = {}
        self._fetch = fetch
        self._wanted = wanted
        self._messages: list[JSON] = []
        self._lists: list[list[JSON]] = []
        self._format = 0

    def take(self, segment: Stored) -> None:
        index = unpack(segment.heads)
        self._format = segment.format
        body = None if segment.body is None else decompress(segment.body)
        if body is None:
            for head, *_ in index.nodes:
                self.found.pop(head["id"], None)
                if self._wanted is None or self._wanted(head):
                    self._add(index, head, None)
            return
        split_at = sum(index.messages) + len(index.messages)
        first = len(self._messages)
        self._messages += self._pieces(body[: max(split_at - 1, 0)], len(index.messages), index, lambda n: n)
        self._take_lists(index, first)
        self._take_nodes(index, body[split_at:])

    def _take_lists(self, index: Index, first: int) -> None:
        first_list = len(self._lists)
        messages, lists = self._messages, self._lists
        for base, keep, *rest in index.lists:
            number = base + first_list if base >= 0 else -2 - base
            kept = lists[number][:keep] if base != ABSENT else []
            lists.append(kept + [messages[first + n if n >= 0 else -2 - n] for n in rest])

    def _take_nodes(self, index: Index, texts: bytes) -> None:
        first_list = len(self._lists) - len(index.lists)
        rows = index.nodes
        if self._wanted is None:
            payloads = self._pieces(texts, len(rows), index, lambda n: -1 - n)
        else:
            payloads = self._wanted_pieces(texts, index)
        for row, payload in zip(rows, payloads, strict=True):
            if payload is None:
                continue
            head = row[0]
            place: int = row[2] if len(row) > 2 else ABSENT
            tools: int = row[3] if len(row) > 2 else ABSENT
            messages = None if place == ABSENT else self._lists[first_list + place]
            self._add(index, head, payload, messages, None if tools == ABSENT else index.shared[tools])

    def _add(
        self,
        index: Index,
        head: dict[str, JSON],
        payload: dict[str, JSON] | None,
        messages: list[JSON] | None = None,
        tools: bytes | None = None,
    ) -> None:
        head["started_at"] += index.since
        if "ended_at" in head:
            head["ended_at"] += head["started_at"]
        self.found[head["id"]] = Found(head, payload, messages, tools, self._format)

    def _pieces(self, texts: bytes, count: int, index: Index, number: Callable[[int], int]) -> list[JSON]:
        pieces: list[JSON] = decode(b"[" + texts + b"]")
        if len(pieces) != count:
            raise FormatError(f"a segment has {len(pieces)} texts where its index has {count}")
        if index.cuts:
            cuts = _by_text(index)
            for place in range(count):
                pieces[place] = self._whole(pieces[place], cuts.get(number(place), ()), index)
        return pieces

    def _wanted_pieces(self, texts: bytes, index: Index) -> list[JSON]:
        assert self._wanted is not None
        pieces: list[JSON] = []
        cuts = _by_text(index)
        start = 0
        for place, row in enumerate(index.nodes):
            end = start + row[1]
            if self._wanted(row[0]):
                pieces.append(self._whole(decode(texts[start:end]), cuts.get(-1 - place, ()), index))
            else:
                self.found.pop(row[0]["id"], None)
                pieces.append(None)
            start = end + 1
        return pieces

    def _whole(self, piece: JSON, cuts: Sequence[Cut], index: Index) -> JSON:
        root = [piece]
        for cut in cuts:
            place_value(root, cut.path, decode(self._fetch(index.shared[cut.shared])))
        return root[0]


def _by_text(index: Index) -> dict[int, list[Cut]]:
    cuts: dict[int, list[Cut]] = {}
    for cut in index.cuts:
        cuts.setdefault(cut.text, []).append(cut)
    return cuts


def _node(session_id: str, found: Found, fetch: Fetch, schemas: dict[bytes, JSON]) -> Node:
    head, payload, messages, tools, format = found
    head["session_id"] = session_id
    if messages is not None and payload is not None:
        payload["inputs"]["messages"] = messages
    if tools is not None and payload is not None:
        if tools not in schemas:
            schemas[tools] = decode(fetch(tools))
        payload["inputs"]["tools"] = schemas[tools]
    return node_of(head, payload, format=format)
