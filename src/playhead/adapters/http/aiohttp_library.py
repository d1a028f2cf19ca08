"""aiohttp: a middleware below the user's own, which sees every request of a session, redirect hops included."""

import asyncio
import functools
import inspect
import sys
from http import HTTPStatus
from typing import Any

from playhead.adapters.http.bodies import BodyReader
from playhead.engine.http_exchange import Exchange, begin, current
from playhead.engine.patching import Patches
from playhead.errors import ConfigError


def wrap(module: Any, patches: Patches) -> None:
    """Wraps the request method of sessions.

    Raises:
        ConfigError: it is older than its middlewares.
    """
    if "middlewares" not in inspect.signature(module.ClientSession._request).parameters:
        raise ConfigError(
            f"HTTP fixtures need aiohttp 3.12, {module.__version__} is installed", hint="pip install 'aiohttp>=3.12'"
        )
    library = _Library(module, patches)
    patches.wrap(module.ClientSession, "_request", library.request)


class _Library:
    def __init__(self, module: Any, patches: Patches) -> None:
        self.module = module
        self.patches = patches
        self.reader = type("PlayheadFixtureReader", (_Reader, module.StreamReader), {})

    def request(self, original: Any) -> Any:
        @functools.wraps(original)
        async def request(session: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.patches.active:
                return await original(session, *args, **kwargs)
            own = kwargs.get("middlewares")
            decoded = kwargs.get("auto_decompress")
            last = self._middleware(session, session.auto_decompress if decoded is None else decoded)
            kwargs["middlewares"] = (*(session._middlewares if own is None else own), last)
            return await original(session, *args, **kwargs)

        return request

    def _middleware(self, session: Any, decoded: bool) -> Any:
        async def middleware(request: Any, send: Any) -> Any:
            if not self.patches.active or current(str(request.url)) is None:
                return await send(request)
            body = await self._body(request)
            exchange = begin(request.method, str(request.url), list(request.headers.items()), body, client="aiohttp")
            if exchange is None:
                return await send(request)
            if exchange.answer is not None:
                return self._served(exchange, request, session)
            with exchange.inside():
                response = await send(request)
            exchange.began(response.status, list(response.headers.items()), decoded=decoded)
            if not isinstance(response.content, type(self.module.streams.EMPTY_PAYLOAD)):
                chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
                response.content = self.reader(_Live(response.content, exchange, chunked))
            else:
                exchange.ended()
            return response

        return middleware

    async def _body(self, request: Any) -> bytes:
        payload = request.body
        if isinstance(payload, bytes):
            return payload
        if not isinstance(payload, self.module.payload.AsyncIterablePayload):
            return await payload.as_bytes()
        reader = BodyReader(payload._value)
        if payload._iter is not None:
            async for part in payload._iter:
                reader.add(part)
        payload._iter = None
        payload._cached_chunks = [reader.body()]  # what it keeps itself once it was read
        return reader.body()

    def _served(self, exchange: Exchange, request: Any, session: Any) -> Any:
        answer = exchange.answer
        assert answer is not None
        headers = list(answer.headers)
        if answer.chunks is None and answer.body is not None:
            headers.append(("content-length", str(len(answer.body))))
        response = session._response_class(request.method, request.url, **self._parts(request, session))
        multidict: Any = sys.modules["multidict"]
        response.version = self.module.HttpVersion11
        response.status = answer.status
        response.reason = _reason(answer.status)
        response._headers = multidict.CIMultiDictProxy(multidict.CIMultiDict(headers))
        response._raw_headers = tuple((name.encode(), value.encode()) for name, value in headers)
        cookies = tuple(value for name, value in headers if name == "set-cookie")
        response._raw_cookie_headers = cookies or None
        response.content = self.reader(_Recorded(exchange, self._error))
        response._closed = False
        response.content.on_eof(response._response_eof)
        return response

    def _parts(self, request: Any, session: Any) -> dict[str, Any]:
        """What this version's responses are made with."""
        known: dict[str, Any] = {
            "writer": None,
            "continue100": None,
            "timer": None,
            "request_info": request.request_info,
            "traces": [],
            "loop": session._loop,
            "session": session,
            "stream_writer": _Sent(),
            "original_url": request.url,
        }
        accepted = inspect.signature(session._response_class.__init__).parameters
        return {name: value for name, value in known.items() if name in accepted}

    def _error(self, class_name: str, message: str) -> Exception:
        """The read error that was recorded, as this library's own class where it has it."""
        known = getattr(self.module, class_name, None)
        if not (isinstance(known, type) and issubclass(known, self.module.ClientError)):
            known = self.module.SocketTimeoutError if "Timeout" in class_name else self.module.ClientPayloadError
        return known(message)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


class _Sent:
    """Stands for a request that was not sent."""

    output_size = 0


class _Idle:
    """The protocol of a reader that fetches what it needs itself."""

    connected = True

    def pause_reading(self) -> None:
        """Nothing is read ahead."""

    def resume_reading(self, *args: Any, **kwargs: Any) -> None:
        """Nothing was paused."""


class _Reader:
    """A stream reader that fetches a piece when it has none, instead of being fed by a connection."""

    def __init__(self, source: Any) -> None:
        base: Any = super()
        base.__init__(_Idle(), 2**16, loop=asyncio.get_running_loop())
        self._source = source
        self._whole = False

    async def _wait(self, func_name: str) -> None:
        reader: Any = self
        if not self._whole:
            self._source.piecewise()
        try:
            data, end = await self._source.next()
        except Exception as error:
            reader.set_exception(error)
            raise
        if self._source.chunked and not reader.total_bytes:
            reader.begin_http_chunk_receiving()
        reader.feed_data(data)
        if end and data:
            reader.end_http_chunk_receiving()
        if not data and not end:
            reader.feed_eof()

    async def read(self, n: int = -1) -> bytes:
        self._whole = self._whole or n < 0
        base: Any = super()
        return await base.read(n)

    async def wait_eof(self) -> None:
        reader: Any = self
        while not reader.is_eof():
            await self._wait("wait_eof")

    def set_exception(self, *args: Any, **kwargs: Any) -> None:
        """Called when the response is released or closed, too."""
        base: Any = super()
        base.set_exception(*args, **kwargs)
        self._source.left()


class _Live:
    """The pieces of a real body."""

    def __init__(self, inner: Any, exchange: Exchange, chunked: bool) -> None:
        self._inner = inner
        self._exchange = exchange
        self.chunked = chunked
        self._open = False

    async def next(self) -> tuple[bytes, bool]:
        """A piece, and whether a chunk of the server ends with it; no piece and no end at the end of the body."""
        try:
            data, end = await self._inner.readchunk()
        except Exception as error:
            self._exchange.broke(error)
            raise
        self._exchange.chunk(data, join=self._open)
        self._open = self.chunked and not end
        if not data and not end:
            self._exchange.ended()
        return data, end

    def piecewise(self) -> None:
        self._exchange.piecewise()

    def left(self) -> None:
        """What has arrived already is taken along: a response released unread may be there as a whole."""
        if self._inner.is_eof() and self._inner.exception() is None:
            self._exchange.chunk(self._inner.read_nowait())
            self._exchange.ended()
        self._exchange.left()


class _Recorded:
    """Recorded pieces, and what came after the last one."""

    def __init__(self, exchange: Exchange, error: Any) -> None:
        answer = exchange.answer
        assert answer is not None
        self._exchange = exchange
        self._answer = answer
        self._error = error
        self.chunked = answer.chunks is not None
        pieces = [answer.body] if answer.body else [chunk.data for chunk in answer.chunks or ()]
        self._left = list(zip(exchange.pauses() or [0.0] * len(pieces), pieces, strict=True))

    async def next(self) -> tuple[bytes, bool]:
        if not self._left:
            self._end()
            return b"", False
        pause, data = self._left.pop(0)
        if pause:
            await asyncio.sleep(pause)
        return data, self.chunked

    def _end(self) -> None:
        if self._answer.broken is not None:
            raise self._error(*self._answer.broken)
        if not self._answer.complete:
            self._exchange.more()

    def piecewise(self) -> None:
        """It is served as it was recorded."""

    def left(self) -> None:
        """Nothing is open."""
