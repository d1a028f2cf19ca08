"""urllib3, and what stands on it: one attempt of a connection pool, below its redirects and retries.

A served response is a real one: urllib3 reads it from a file that holds the recorded head and body, so that it behaves
as any other, piece by piece and in its errors.
"""

import functools
import http.client
import io
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from playhead.adapters.http.bodies import body_of
from playhead.core.http.response import HttpAnswer
from playhead.engine.http_exchange import Exchange, begin, current, streaming
from playhead.engine.patching import Patches
from playhead.errors import ConfigError

_REFUSED_VERSION = 2
_JOINED = 64 * 2**10


def wrap(module: Any, patches: Patches) -> None:
    """Wraps both kinds of pools.

    Raises:
        ConfigError: it is urllib3 1, which makes its responses elsewhere.
    """
    if int(module.__version__.split(".")[0]) < _REFUSED_VERSION:
        raise ConfigError(
            f"HTTP fixtures need urllib3 2, {module.__version__} is installed", hint="pip install 'urllib3>=2'"
        )
    library = _Library(module, patches)
    pools = module.connectionpool
    patches.wrap(pools.HTTPConnectionPool, "_make_request", library.attempt)
    patches.wrap(pools.HTTPSConnectionPool, "_prepare_proxy", library.tunnel)


class _Library:
    def __init__(self, module: Any, patches: Patches) -> None:
        self.module = module
        self.patches = patches
        self.watched = type("PlayheadFixtureResponse", (_Watched, module.HTTPResponse), {})
        self._prepare: Any = None

    def tunnel(self, original: Any) -> Any:
        """The connection through a proxy is opened only when the request is really sent."""
        self._prepare = original

        @functools.wraps(original)
        def prepare_proxy(pool: Any, conn: Any) -> None:
            if not self.patches.active or current(_url(pool, "/")) is None:
                original(pool, conn)

        return prepare_proxy

    def attempt(self, original: Any) -> Any:
        @functools.wraps(original)
        def make_request(
            pool: Any, conn: Any, method: str, url: str, body: Any = None, headers: Any = None, **rest: Any
        ) -> Any:
            where = _url(pool, url)
            if not self.patches.active or current(where) is None:
                return original(pool, conn, method, url, body=body, headers=headers, **rest)
            data = None if body is None else body_of(body)
            asked = streaming.get()
            streamed = not rest.get("preload_content", True) if asked is None else asked
            pairs = _pairs(headers)
            exchange = begin(method, where, pairs, data or b"", client="urllib3", streamed=streamed)
            if exchange is None:
                self._connect(pool, conn)
                return original(pool, conn, method, url, body=data, headers=headers, **rest)
            if exchange.answer is not None:
                return self._served(exchange, pool, method, url, rest)
            with exchange.inside():
                self._connect(pool, conn)
                more = {**rest, "preload_content": False}
                response = original(pool, conn, method, url, body=data, headers=headers, **more)
            return self._observed(exchange, response, rest)

        return make_request

    def _connect(self, pool: Any, conn: Any) -> None:
        """What `tunnel` put off."""
        needs = self.module.util.proxy.connection_requires_http_tunnel
        if pool.proxy is not None and conn.is_closed and needs(pool.proxy, pool.proxy_config, pool.scheme):
            self._prepare(pool, conn)

    def _observed(self, exchange: Exchange, response: Any, rest: dict[str, Any]) -> Any:
        response.__class__ = self.watched
        response.watch(exchange)
        if rest.get("preload_content", True):
            response._body = response.read(decode_content=rest.get("decode_content", True))
        return response

    def _served(self, exchange: Exchange, pool: Any, method: str, url: str, rest: dict[str, Any]) -> Any:
        answer = exchange.answer
        assert answer is not None
        raw = http.client.HTTPResponse(_Socket(_File(exchange, answer)), method=method)  # pyright: ignore[reportArgumentType]
        raw.begin()
        return self.module.HTTPResponse(
            body=raw,
            headers=self.module.HTTPHeaderDict(raw.headers.items()),
            status=raw.status,
            version=raw.version,
            version_string="HTTP/1.1",
            reason=raw.reason,
            preload_content=rest.get("preload_content", True),
            decode_content=rest.get("decode_content", True),
            original_response=raw,
            pool=pool,
            connection=rest.get("response_conn"),
            retries=rest.get("retries"),
            enforce_content_length=rest.get("enforce_content_length", True),
            request_method=method,
            request_url=url,
        )


def _url(pool: Any, url: str) -> str:
    if not url.startswith("/"):
        return url  # through a proxy without tunnel, whole URLs are asked for
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    return f"{pool.scheme}://{host}:{pool.port}{url}"


def _pairs(headers: Any) -> list[tuple[str, str]]:
    items: list[tuple[Any, Any]] = list(headers.items()) if headers else []
    return [(_text(name), _text(value)) for name, value in items]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


class _Watched:
    """A real response with the exchange looking on. Becomes the class of one that urllib3 made."""

    _exchange: Exchange
    _piece: list[bytes]

    def watch(self, exchange: Exchange) -> None:
        response: Any = self
        self._exchange = exchange
        self._piece = []
        self._size = 0
        self._reading = 0
        exchange.began(response.status, list(response.headers.items()))

    def _raw_read(self, amt: int | None = None, **kwargs: Any) -> bytes:
        """Bodies of known length, or up to the end of the connection: pieces have the size that is asked for."""
        response: Any = super()
        with self._attempt():
            data = response._raw_read(amt, **kwargs)
        if data:
            self._size += len(data)
            self._exchange.chunk(data, join=self._size != len(data) and self._size <= _JOINED)
            self._size = 0 if self._size > _JOINED else self._size
        if self._at_end(data, amt):
            self._exchange.ended()
        return data

    def _at_end(self, data: bytes | None, amt: int | None) -> bool:
        response: Any = self
        return amt is None or response.isclosed() or response.length_remaining == 0 or (amt != 0 and not data)

    def _update_chunk_length(self) -> None:
        response: Any = super()
        with self._attempt():
            response._update_chunk_length()
        response = self
        if response.chunk_left == 0:
            self._exchange.ended()

    def _handle_chunk(self, amt: int | None) -> bytes:
        """Chunked bodies: a chunk of the server is one piece, in however many parts it is read."""
        response: Any = super()
        with self._attempt():
            data = response._handle_chunk(amt)
        self._piece.append(data)
        response = self
        if response.chunk_left is None:
            self._flush()
        return data

    @contextmanager
    def _attempt(self) -> Generator[None]:
        """Around a read: at the end of a body it gives the connection back before it gives the data."""
        self._reading += 1
        try:
            yield
        except Exception as error:
            self._flush()
            self._exchange.broke(error)
            raise
        finally:
            self._reading -= 1

    def _flush(self) -> None:
        if self._piece:
            self._exchange.chunk(b"".join(self._piece))
            self._piece.clear()

    def release_conn(self) -> None:
        response: Any = super()
        self._leave()
        response.release_conn()

    def close(self) -> None:
        response: Any = super()
        self._leave()
        response.close()

    def _leave(self) -> None:
        """The end, or as far as the consumer came."""
        if not self._reading:
            self._flush()
            self._exchange.left()


class _Socket:
    def __init__(self, file: "_File") -> None:
        self._file = file

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._file)


class _File(io.RawIOBase):
    """A recorded response as the bytes of a connection."""

    def __init__(self, exchange: Exchange, answer: HttpAnswer) -> None:
        super().__init__()
        self._pieces = _pieces(exchange, answer)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _pieces(exchange: Exchange, answer: HttpAnswer) -> Iterator[bytes]:
    yield _head(answer)
    if answer.chunks is None:
        yield answer.body or b""
        return
    for pause, chunk in zip(exchange.pauses(), answer.chunks, strict=True):
        if pause:
            time.sleep(pause)
        yield b"%x\r\n%b\r\n" % (len(chunk.data), chunk.data)
    if answer.broken is not None:
        if "Timeout" in answer.broken.class_name:
            raise TimeoutError(answer.broken.message)
        return  # the connection ends in the middle
    if not answer.complete:
        exchange.more()
    yield b"0\r\n\r\n"


def _head(answer: HttpAnswer) -> bytes:
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = ""
    headers = list(answer.headers)
    if answer.chunks is not None:
        headers.append(("transfer-encoding", "chunked"))
    elif answer.body is not None:
        headers.append(("content-length", str(len(answer.body))))
    lines = [f"HTTP/1.1 {answer.status} {reason}", *[f"{name}: {_line(value)}" for name, value in headers], "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ")
