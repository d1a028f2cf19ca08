"""Files into documents: compressed or not, one JSON value, a JSON array, JSON lines, or bytes. In bounded memory.

What a file is, is told by its content. A damaged line or element is an `Unreadable` with its place, and reading goes
on behind it where the damage allows.
"""

import gzip
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from playhead.core.assemble.shapes import is_list
from playhead.core.canonical import parse_json
from playhead.core.values import JSON
from playhead.errors import UsageError

if sys.version_info >= (3, 14):
    from compression import zstd  # pragma: no cover
else:
    from backports import zstd

RECORD_LIMIT = 64 * 1024 * 1024
_CHUNK = 1 << 16
_LAYERS = 3  # compressed files inside compressed files
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One value of a file. ``position`` is a line number, a JSON pointer, or empty when it is the whole file.

    ``data`` holds bytes that are no JSON, and ``text`` the bytes of a JSON line.
    """

    file: str
    position: str = ""
    value: JSON = None
    data: bytes | None = None
    text: bytes | None = None
    size: int = 0


class Unreadable(NamedTuple):
    """A place that cannot be read: ``code`` is ``undecodable`` or ``too_large``."""

    file: str
    position: str
    code: str
    message: str


class EndOfFile(NamedTuple):
    file: str


Piece: TypeAlias = "Document | Unreadable | EndOfFile"


def files_of(paths: Iterable[str | Path]) -> Iterator[tuple[str, bool]]:
    """The files to read, and whether they were named (not found in a folder). Folders are read in name order.

    Raises:
        UsageError: there is no such file.
    """
    for path in paths:
        if str(path) == "-":
            yield "-", True
            continue
        found = Path(path)
        if found.is_dir():
            for inner in sorted(p for p in found.rglob("*") if p.is_file()):
                yield str(inner), False
        elif found.exists():
            yield str(found), True
        else:
            raise UsageError(f"there is no file {str(path)!r}", hint="name a file, a folder, or - for standard input")


def read_file(name: str, *, is_whole: Callable[[JSON], bool], limit: int = RECORD_LIMIT) -> Iterator[Piece]:
    """The documents of a file, then its end.

    Args:
        is_whole: told the first element of a JSON array, says whether the array is one record (a message list).
        limit: bytes of one record.
    """
    try:
        if name == "-":
            yield from _read(sys.stdin.buffer, name, is_whole, limit)
        else:
            with Path(name).open("rb", buffering=_CHUNK) as file:
                yield from _read(file, name, is_whole, limit)
    except (EOFError, gzip.BadGzipFile, zstd.ZstdError) as error:
        yield Unreadable(name, "", "undecodable", f"the compressed data is damaged: {error}")
    yield EndOfFile(name)


def _read(raw: IO[bytes], name: str, is_whole: Callable[[JSON], bool], limit: int) -> Iterator[Piece]:
    stream = _unpacked(raw)
    if stream.peek(3)[:3] == b"\xef\xbb\xbf":
        stream.read(3)
    if _is_text(stream.peek(1)):
        yield from _Text(stream, name, is_whole, limit).read()
        return
    data = stream.read(limit + 1)
    if len(data) > limit:
        yield Unreadable(name, "", "too_large", f"larger than {limit:,} bytes")
    else:
        yield Document(file=name, data=data, size=len(data))


def _is_text(head: bytes) -> bool:
    """Whether a file begins as JSON. Protobuf may begin with what looks like a line end, but has control bytes."""
    shown = head.lstrip(_BLANK)
    return not shown or (shown[:1] in (b"{", b"[") and not _CONTROL.search(head[:512]))


def _unpacked(raw: IO[bytes]) -> io.BufferedReader:
    stream: Any = raw
    for _ in range(_LAYERS):
        magic = stream.peek(4)[:4]
        if magic[:2] == b"\x1f\x8b":
            stream = io.BufferedReader(gzip.GzipFile(fileobj=stream), _CHUNK)
        elif magic == b"\x28\xb5\x2f\xfd":
            stream = io.BufferedReader(zstd.ZstdFile(stream), _CHUNK)
        else:
            break
    return stream


class _DamagedError(Exception):
    pass


def _parse(text: bytes) -> JSON:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise _DamagedError(str(error)[:200] or "not JSON") from None


class _Text:
    """The JSON of one file."""

    def __init__(self, stream: io.BufferedReader, name: str, is_whole: Callable[[JSON], bool], limit: int) -> None:
        self._stream, self._name, self._is_whole, self._limit = stream, name, is_whole, limit
        self._line = 0

    def read(self) -> Iterator[Piece]:
        if self._first_byte() is None:
            return
        line = self._readline()
        try:
            if line is None:
                raise _DamagedError(f"longer than {self._limit:,} bytes")
            value = _parse(line)
        except _DamagedError as error:
            yield from self._not_a_line(line, str(error))
            return
        number = str(self._line)
        if self._first_byte() is None:
            yield from self._alone(value, line)
        else:
            yield self._document(value, line, number)
            yield from self._lines()

    def _first_byte(self) -> bytes | None:
        """The next byte that is not blank, not consumed; blanks before it are."""
        while head := self._stream.peek(1):
            shown = head.lstrip(_BLANK)
            self._line += self._stream.read(len(head) - len(shown)).count(b"\n")
            if shown:
                return shown[:1]
        return None

    def _readline(self) -> bytes | None:
        """The next line; None when it is over the limit, and then only its beginning has been read."""
        line = self._stream.readline(self._limit + 1)
        self._line += 1
        self._head = line
        return None if len(line) > self._limit else line

    def _lines(self) -> Iterator[Piece]:
        while (line := self._readline()) != b"":
            if line is None:
                while (rest := self._stream.readline(_CHUNK)) and not rest.endswith(b"\n"):
                    pass
                yield Unreadable(self._name, str(self._line), "too_large", f"longer than {self._limit:,} bytes")
            elif line.strip(_BLANK):
                yield self._parsed(line)

    def _parsed(self, line: bytes) -> Piece:
        try:
            return self._document(_parse(line), line, str(self._line))
        except _DamagedError as error:
            return Unreadable(self._name, str(self._line), "undecodable", str(error))

    def _document(self, value: JSON, text: bytes, position: str) -> Document:
        return Document(file=self._name, position=position, value=value, text=text, size=len(text))

    def _alone(self, value: JSON, text: bytes) -> Iterator[Piece]:
        if is_list(value) and value and not self._is_whole(value[0]):
            share = len(text) // len(value)
            for index, element in enumerate(value):
                yield Document(file=self._name, position=f"/{index}", value=element, size=share)
        else:
            yield self._document(value, text, "")

    def _not_a_line(self, line: bytes | None, problem: str) -> Iterator[Piece]:
        """The first line is no JSON value: an array or object over several lines, or a damaged line."""
        if self._head[:1] == b"[":
            yield from self._array(self._head)
            return
        if line is not None and self._first_byte() in (b"{", b"["):
            yield Unreadable(self._name, "1", "undecodable", problem)
            yield from self._lines()
            return
        whole = self._head + self._stream.read(max(self._limit + 1 - len(self._head), 0))
        if len(whole) > self._limit:
            yield Unreadable(self._name, "", "too_large", f"larger than {self._limit:,} bytes")
            return
        try:
            yield self._document(_parse(whole), whole, "")
        except _DamagedError as error:
            yield Unreadable(self._name, "", "undecodable", str(error))

    def _array(self, head: bytes) -> Iterator[Piece]:
        scanner = ArrayScanner(self._limit)
        chunk, whole, seen = head, False, list[JSON]()
        while chunk and not scanner.closed:
            for place, element in scanner.feed(chunk):
                piece = self._element(place, element)
                if place == 0 and isinstance(piece, Document):
                    whole = self._is_whole(piece.value)
                if not whole:
                    yield piece
                elif isinstance(piece, Document):
                    seen.append(piece.value)
                else:
                    yield piece
                    return
            chunk = self._stream.read(max(_CHUNK, scanner.waiting))
        if not scanner.closed or self._first_byte() is not None or scanner.rest:
            message = "text after the array" if scanner.closed else "the array is cut off or not JSON"
            yield Unreadable(self._name, f"/{scanner.count}", "undecodable", message)
        elif whole:
            yield Document(file=self._name, value=seen, size=scanner.size)

    def _element(self, place: int, element: bytes | None) -> Piece:
        position = f"/{place}"
        if element is None:
            return Unreadable(self._name, position, "too_large", f"larger than {self._limit:,} bytes")
        try:
            return Document(file=self._name, position=position, value=_parse(element), size=len(element))
        except _DamagedError as error:
            return Unreadable(self._name, position, "undecodable", str(error))


class ArrayScanner:
    """Cuts the elements out of a JSON array that comes in pieces; it parses nothing.

    ``waiting`` is the size of the unfinished element, ``closed`` tells that the array ended, ``rest`` what followed.
    """

    def __init__(self, limit: int) -> None:
        self.count = self.size = 0
        self.closed = False
        self.rest = b""
        self._limit = limit
        self._buffer = b""
        self._at = 0  # up to here the buffer is scanned
        self._depth = 0
        self._dropped = False  # the current element is over the limit

    @property
    def waiting(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes | None]]:
        """(index, text) of the elements that ``data`` completes; the text is None when it is over the limit."""
        self.size += len(data)
        self._buffer += data
        start = 0
        for match in _TOKEN.finditer(self._buffer, self._at):
            token = match.group()
            if token == b'"':  # a text that goes on in the next piece
                self._at = match.start()
                break
            self._at = match.end()
            ends = self._ends(token)
            if not ends:
                continue
            if self._depth or self.closed:
                yield from self._element(self._buffer[start : match.start()])
            start = match.end()
            if self.closed:
                self.rest = self._buffer[start:].strip(_BLANK)
                break
        else:
            self._at = len(self._buffer)
        self._keep(start)

    def _ends(self, token: bytes) -> bool:
        """Whether the token stands between elements: the array's own brackets and commas."""
        if token in b"[{":
            self._depth += 1
            return self._depth == 1
        if token in b"]}":
            self._depth -= 1
            self.closed = self._depth <= 0
            return self.closed
        return token == b"," and self._depth == 1

    def _element(self, text: bytes) -> Iterator[tuple[int, bytes | None]]:
        shown = text.strip(_BLANK)
        if self._dropped or len(shown) > self._limit:
            self._dropped = False
            yield self.count, None
        elif shown:
            yield self.count, shown
        else:
            return
        self.count += 1

    def _keep(self, start: int) -> None:
        self._buffer, self._at = self._buffer[start:], max(self._at - start, 0)
        if len(self._buffer) > self._limit and self._at:
            self._dropped, self._buffer, self._at = True, self._buffer[self._at :], 0
