"""Several segments to one: what is said twice is dropped, what is large is cut out. No text is read for that."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from playhead.errors import FormatError
from playhead.store.compression import compress, decompress
from playhead.store.segments.builder import Segment, cut_out
from playhead.store.segments.index import ABSENT, Cut, Fetch, Index, Stored, pack, unpack


def merge(segments: Iterable[Stored], fetch: Fetch) -> Segment:
    """One final segment with what a reader of all of them sees. All must be of today's format.

    Raises:
        FormatError: one of them is damaged.
    """
    merger = _Merger(fetch)
    opened = [(unpack(heads), decompress(body or b"")) for heads, body, _ in segments]
    newest: dict[str, Index] = {row[0]["id"]: index for index, _ in opened for row in index.nodes}
    try:
        for index, body in opened:
            merger.take(index, body, newest)
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"a segment is damaged: {error!r}") from error
    return merger.segment()


class _Merger:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._index = Index()
        self._own: dict[bytes, int] = {}
        self._numbers: list[int] = []  # number of a message before -> now
        self._messages: list[bytes] = []
        self._payloads: list[bytes] = []
        self._shared: dict[bytes, bytes] = {}

    def take(self, index: Index, body: bytes, newest: Mapping[str, Index]) -> None:
        texts = _texts(body, [*index.messages, *(row[1] for row in index.nodes)])
        cuts: dict[int, list[Cut]] = {}
        for cut in index.cuts:
            cuts.setdefault(cut.text, []).append(cut)
        first_message, first_list = len(self._numbers), len(self._index.lists)
        for place in range(len(index.messages)):
            self._take_message(texts[place], index, cuts.get(place, ()))
        for listed in index.lists:
            self._take_list(listed, first_message, first_list)
        last = {row[0]["id"]: number for number, row in enumerate(index.nodes)}
        for number, row in enumerate(index.nodes):
            if newest[row[0]["id"]] is index and last[row[0]["id"]] == number:
                text = texts[len(index.messages) + number]
                self._take_node(row, text, index, cuts.get(-1 - number, ()), first_list)

    def segment(self) -> Segment:
        return Segment(
            heads=pack(self._index),
            body=compress(b",".join([*self._messages, *self._payloads]), hard=True),
            nodes=len(self._index.nodes),
            messages=list(self._own),
            lists=[()] * len(self._index.lists),
            shared=self._shared,
        )

    def _take_message(self, text: bytes, index: Index, cuts: Sequence[Cut]) -> None:
        # A text with cuts is told apart by them too: what they took out is not in it.
        cut_digests = b"".join(index.shared[cut.shared] for cut in cuts)
        digest = hashlib.sha256(text + cut_digests).digest()
        number = self._own.get(digest)
        if number is None:
            number = self._own[digest] = len(self._messages)
            text = self._cut(text, number, index, cuts)
            self._messages.append(text)
            self._index.messages.append(len(text))
        self._numbers.append(number)

    def _take_list(self, listed: Sequence[int], first_message: int, first_list: int) -> None:
        base, keep, *rest = listed
        if base != ABSENT:
            base = first_list + base if base >= 0 else -2 - base
        self._index.lists.append([base, keep, *(self._numbers[first_message + n if n >= 0 else -2 - n] for n in rest)])

    def _take_node(self, row: list[Any], text: bytes, index: Index, cuts: Sequence[Cut], first_list: int) -> None:
        head, _, *places = row
        if not self._index.nodes:
            self._index.since = index.since + head["started_at"]
        head["started_at"] += index.since - self._index.since
        text = self._cut(text, -1 - len(self._payloads), index, cuts)
        self._payloads.append(text)
        if places:
            listed: int = places[0]
            tools: int = places[1]
            places = [
                ABSENT if listed == ABSENT else first_list + listed,
                ABSENT if tools == ABSENT else self._share(index.shared[tools]),
            ]
        self._index.nodes.append([head, len(text), *places])

    def _cut(self, text: bytes, place: int, index: Index, cuts: Sequence[Cut]) -> bytes:
        if not cuts:
            return cut_out(self._index, self._shared, text, place)
        self._index.cuts += [Cut(place, cut.path, self._share(index.shared[cut.shared])) for cut in cuts]
        return text

    def _share(self, digest: bytes) -> int:
        if digest not in self._shared:
            self._shared[digest] = self._fetch(digest)
            self._index.shared.append(digest)
        return self._index.shared.index(digest)


def _texts(body: bytes, lengths: Sequence[int]) -> list[bytes]:
    texts: list[bytes] = []
    start = 0
    for length in lengths:
        texts.append(body[start : start + length])
        start += length + 1
    if start != len(body) + 1 and lengths:
        raise FormatError(f"a segment has {len(body)} bytes where its index has {start - 1}")
    return texts
