"""The body of a request, read before it is sent, because it is part of what the request is known by."""

from collections.abc import Iterable
from typing import Any, cast

from playhead.engine.http_exchange import MOST_READ_AHEAD
from playhead.errors import UsageError


class BodyReader:
    """Collects the pieces of a body that can be read only once.

    Raises:
        UsageError: it is longer than what is kept in memory, or no bytes; the text names its type.
    """

    def __init__(self, source: object, limit: int = MOST_READ_AHEAD) -> None:
        self._source = source
        self._parts: list[bytes] = []
        self._left = limit

    def add(self, part: Any) -> None:
        if isinstance(part, str):
            part = part.encode()
        if not isinstance(part, bytes | bytearray | memoryview):
            raise _unreadable(self._source, f"it gives {type(part).__name__}, not bytes")
        data = bytes(cast("bytes", part))
        self._left -= len(data)
        if self._left < 0:
            raise _unreadable(self._source, f"it has more than {MOST_READ_AHEAD:,} bytes")
        self._parts.append(data)

    def body(self) -> bytes:
        return b"".join(self._parts)


def body_of(source: Any) -> bytes:
    """The bytes of a body as a blocking client takes them: text, bytes, a file, an iterator.

    Raises:
        UsageError: it is none of these, or an iterator with too much in it.
    """
    if source is None:
        return b""
    if hasattr(source, "read"):
        source = source.read()
    if isinstance(source, str):
        return source.encode()
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(cast("bytes", source))
    if not isinstance(source, Iterable):
        why = "an async iterator needs an async client" if hasattr(source, "__aiter__") else "it cannot be read"
        raise _unreadable(source, why)
    reader = BodyReader(cast("object", source))
    for part in cast("Iterable[Any]", source):
        reader.add(part)
    return reader.body()


def _unreadable(source: object, why: str) -> UsageError:
    return UsageError(
        f"the body of an HTTP request of type {type(source).__name__} cannot be part of a fixture: {why}",
        hint="pass bytes, text, a file, or an iterator of at most 8 MiB; or leave the host out of http=[...]",
    )
