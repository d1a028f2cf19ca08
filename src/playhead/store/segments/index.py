"""The index of a segment: what its ``heads`` blob says once it is decompressed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.core.codec import FORMAT, decode, encode
from playhead.core.values import JSON
from playhead.errors import FormatError
from playhead.store.compression import compress, decompress

ABSENT = -1
"""The place of a message list or of tool schemas that a node does not have."""

Path = list[str | int]
Fetch = Callable[[bytes], bytes]
"""Text of a shared value by its sha256."""


class Stored(NamedTuple):
    """A segment as it comes out of the store; ``body`` is None when it was not asked for."""

    heads: bytes
    body: bytes | None
    format: int = FORMAT


class Cut(NamedTuple):
    """A value that was cut out: of which text (a message by its place, a payload by -1 - place), where, which one."""

    text: int
    path: Path
    shared: int


@dataclass(slots=True)
class Index:
    """``nodes`` are rows of head, length of payload and, for some, places of message list and tool schemas."""

    since: int = 0
    nodes: list[list[Any]] = field(default_factory=list[list[Any]])
    messages: list[int] = field(default_factory=list[int])  # lengths
    lists: list[list[int]] = field(default_factory=list[list[int]])
    shared: list[bytes] = field(default_factory=list[bytes])
    cuts: list[Cut] = field(default_factory=list[Cut])


def pack(index: Index) -> bytes:
    out: dict[str, JSON] = {"since": index.since, "nodes": index.nodes}
    if index.messages:
        out["messages"] = index.messages
    if index.lists:
        out["lists"] = index.lists
    if index.shared:
        out["shared"] = [digest.hex() for digest in index.shared]
    if index.cuts:
        out["cuts"] = index.cuts
    return compress(encode(out))  # mostly digests and ids: a harder search finds no more


def unpack(heads: bytes) -> Index:
    """Inverse of `pack`.

    Raises:
        FormatError: damaged.
    """
    try:
        out = decode(decompress(heads))
        return Index(
            since=out["since"],
            nodes=out["nodes"],
            messages=out.get("messages", []),
            lists=out.get("lists", []),
            shared=[bytes.fromhex(digest) for digest in out.get("shared", ())],
            cuts=[Cut(*cut) for cut in out.get("cuts", ())],
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"the index of a segment is damaged: {error!r}") from error


def place_value(root: list[JSON], path: Sequence[str | int], value: JSON) -> None:
    """Put ``value`` at ``path`` of the only item of ``root``."""
    box: Any = root
    step: str | int = 0
    for following in path:
        box, step = box[step], following
    box[step] = value
