"""The seam in the clients of one library (`httpx` or `httpx2`): ``Client.send`` and ``AsyncClient.send``."""

import functools
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from playhead.adapters.wire.beginning import Begun, begin
from playhead.adapters.wire.beside import Beside, begin_beside
from playhead.adapters.wire.envelope import Served
from playhead.adapters.wire.exchange import Exchange
from playhead.engine.failures import rebuild
from playhead.engine.patching import require

_MARK = "__playhead__"


class Library:
    """One client library, and the stream classes that its responses insist on."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.active = True
        self._made: list[tuple[Any, Any]] = []
        self.tee = type("PlayheadStream", (_Tee, module.SyncByteStream), {})
        self.async_tee = type("PlayheadAsyncStream", (_AsyncTee, module.AsyncByteStream), {})

    # wrapping

    def wrap(self) -> None:
        """Wraps both clients; nothing for one that is wrapped already.

        Raises:
            RecordingError: this version of the library sends in another way.
        """
        name = self.module.__name__
        classes = {cls: getattr(self.module, cls, None) for cls in ("Client", "AsyncClient")}
        require(name, "adapter-wire.md", {f"{cls}.send": hasattr(found, "send") for cls, found in classes.items()})
        for cls, wrapper in ((self.module.Client, self._wrapped), (self.module.AsyncClient, self._wrapped_async)):
            before: Library | None = cls.send.__dict__.get(_MARK)
            if before is None or not before.active:
                made = wrapper(cls.send)
                setattr(made, _MARK, self)
                self._made.append((cls, made))
                cls.send = made

    def unwrap(self) -> None:
        """Undoes `wrap`. Where somebody else wrapped on top, our wrapper stays in the middle and does nothing more."""
        self.active = False
        for cls, made in self._made:
            if cls.send is made:
                cls.send = made.__wrapped__

    def _wrapped(self, original: Any) -> Any:
        @functools.wraps(original)
        def send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            begun = self._begin(request)
            if begun is None:
                return original(client, request, *args, **kwargs)
            if isinstance(begun, Beside):
                with begun.under_way():
                    return begun.answered(original(client, request, *args, **kwargs))
            exchange = begun.exchange
            answer = exchange.answer()
            if answer is not None:
                return self._served(exchange, request, answer, streamed=bool(kwargs.get("stream")), tee=self.tee)
            try:
                with exchange.step.inside():
                    response = original(client, self._to_send(request, begun), *args, **kwargs)
            except BaseException as error:
                exchange.broke(error)
                raise
            return self._watched(exchange, response, self.tee)

        return send

    def _wrapped_async(self, original: Any) -> Any:
        @functools.wraps(original)
        async def send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            begun = self._begin(request)
            if begun is None:
                return await original(client, request, *args, **kwargs)
            if isinstance(begun, Beside):
                with begun.under_way():
                    return begun.answered(await original(client, request, *args, **kwargs))
            exchange = begun.exchange
            answer = exchange.answer()
            if answer is not None:
                return self._served(exchange, request, answer, streamed=bool(kwargs.get("stream")), tee=self.async_tee)
            try:
                with exchange.step.inside():
                    response = await original(client, self._to_send(request, begun), *args, **kwargs)
            except BaseException as error:
                exchange.broke(error)
                raise
            return self._watched(exchange, response, self.async_tee)

        return send

    # requests and responses

    def _begin(self, request: Any) -> Begun | Beside | None:
        if not self.active or request.method != "POST":
            return None
        path, content = request.url.path, getattr(request, "_content", None)
        return begin(path, content, self.module.__name__) or begin_beside(path, content)

    def _to_send(self, request: Any, begun: Begun) -> Any:
        """The request itself, or a changed copy of it without the old length."""
        if begun.body is None:
            return request
        headers = request.headers.copy()
        for name in ("content-length", "transfer-encoding"):
            if name in headers:
                del headers[name]
        raw = begun.path.encode() + (b"?" + request.url.query if request.url.query else b"")
        url = request.url.copy_with(raw_path=raw) if begun.path != request.url.path else request.url
        return self.module.Request(
            request.method, url, headers=headers, content=begun.body, extensions=dict(request.extensions)
        )

    def _watched(self, exchange: Exchange, response: Any, tee: Any) -> Any:
        exchange.began(response.status_code, response.headers)
        if response.is_stream_consumed or response.is_closed:
            exchange.body(response.content)
        else:
            response.stream = tee(response.stream, exchange)
        return response

    def _served(self, exchange: Exchange, request: Any, answer: Served, *, streamed: bool, tee: Any) -> Any:
        """A response made from a recording; no connection is opened for it."""
        exchange.began(answer.status, answer.headers)
        extensions = {"http_version": b"HTTP/1.1"}
        headers = list(answer.headers.items())
        if streamed and exchange.asked.stream and answer.status < 400:
            stream = tee(_recorded(answer, asynchronous=tee is self.async_tee), exchange)
            response = self.module.Response(
                answer.status, headers=headers, stream=stream, request=request, extensions=extensions
            )
        else:
            content = b"".join(answer.chunks)
            exchange.body(content)
            response = self.module.Response(
                answer.status, headers=headers, content=content, request=request, extensions=extensions
            )
        response.elapsed = timedelta(0)
        return response


class _Tee:
    """The body of a response, piece by piece as it comes, with the exchange looking on."""

    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    @property
    def elapsed(self) -> timedelta | None:
        """Time of the wrapped body, which responses ask their stream for."""
        return getattr(self._inner, "elapsed", None)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._inner:
                self._exchange.chunk(data)
                yield data
        except Exception as error:
            self._exchange.broke(error)
            raise
        self._exchange.ended()

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._exchange.left()

    def __del__(self) -> None:
        """The application may drop a response that it did not read."""
        with suppress(BaseException):
            self._exchange.left()


class _AsyncTee:
    """`_Tee`, for asyncio. A cancelled read ends the call as cancelled."""

    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    @property
    def elapsed(self) -> timedelta | None:
        """Time of the wrapped body, which responses ask their stream for."""
        return getattr(self._inner, "elapsed", None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._inner)
        try:
            async for data in pieces:
                self._exchange.chunk(data)
                yield data
        except GeneratorExit:
            raise
        except BaseException as error:
            self._exchange.broke(error)
            raise
        finally:
            # closed in the task that read it: otherwise the event loop does it later, in another
            if hasattr(pieces, "aclose"):
                await pieces.aclose()
        self._exchange.ended()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._exchange.left()

    def __del__(self) -> None:
        """The application may drop a response that it did not read."""
        with suppress(BaseException):
            self._exchange.left()


def _recorded(answer: Served, *, asynchronous: bool) -> Any:
    return _AsyncChunks(answer) if asynchronous else _Chunks(answer)


class _Chunks:
    """Recorded chunks; a stream that broke when it was recorded breaks again."""

    elapsed = timedelta(0)

    def __init__(self, answer: Served) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.chunks
        if self._answer.broken is not None:
            raise rebuild(self._answer.broken)

    def close(self) -> None:
        """Nothing is open."""


class _AsyncChunks:
    """`_Chunks`, for asyncio."""

    elapsed = timedelta(0)

    def __init__(self, answer: Served) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in self._answer.chunks:
            yield data
        if self._answer.broken is not None:
            raise rebuild(self._answer.broken)

    async def aclose(self) -> None:
        """Nothing is open."""
