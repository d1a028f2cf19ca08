"""httpx and httpx2: the transports that open connections, below redirects, authentication and retries."""

import functools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from playhead.adapters.http.bodies import BodyReader
from playhead.engine.http_exchange import Exchange, begin, current, streaming
from playhead.engine.patching import Patches


def wrap(module: Any, patches: Patches) -> None:
    """Wraps the transports, and `send` of both clients to know how a response will be read."""
    library = _Library(module, patches)
    patches.wrap(module.HTTPTransport, "handle_request", library.transport)
    patches.wrap(module.AsyncHTTPTransport, "handle_async_request", library.async_transport)
    patches.wrap(module.Client, "send", library.send)
    patches.wrap(module.AsyncClient, "send", library.async_send)


class _Library:
    def __init__(self, module: Any, patches: Patches) -> None:
        self.module = module
        self.patches = patches
        self.stream = type("PlayheadFixtureStream", (_Stream, module.SyncByteStream), {})
        self.async_stream = type("PlayheadAsyncFixtureStream", (_AsyncStream, module.AsyncByteStream), {})

    # how the response will be read

    def send(self, original: Any) -> Any:
        @functools.wraps(original)
        def send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            token = streaming.set(bool(kwargs.get("stream")))
            try:
                return original(client, request, *args, **kwargs)
            finally:
                streaming.reset(token)

        return send

    def async_send(self, original: Any) -> Any:
        @functools.wraps(original)
        async def send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            token = streaming.set(bool(kwargs.get("stream")))
            try:
                return await original(client, request, *args, **kwargs)
            finally:
                streaming.reset(token)

        return send

    # the sending

    def transport(self, original: Any) -> Any:
        @functools.wraps(original)
        def handle_request(transport: Any, request: Any) -> Any:
            if not self.patches.active or current(str(request.url)) is None:
                return original(transport, request)
            exchange = self._begin(request, self._read(request))
            if exchange is None:
                return original(transport, request)
            if exchange.answer is not None:
                return self._served(exchange, request, self.stream)
            with exchange.inside():
                response = original(transport, request)
            return self._watched(exchange, response, self.stream)

        return handle_request

    def async_transport(self, original: Any) -> Any:
        @functools.wraps(original)
        async def handle_async_request(transport: Any, request: Any) -> Any:
            if not self.patches.active or current(str(request.url)) is None:
                return await original(transport, request)
            exchange = self._begin(request, await self._read_async(request))
            if exchange is None:
                return await original(transport, request)
            if exchange.answer is not None:
                return self._served(exchange, request, self.async_stream)
            with exchange.inside():
                response = await original(transport, request)
            return self._watched(exchange, response, self.async_stream)

        return handle_async_request

    def _begin(self, request: Any, body: bytes) -> Exchange | None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
        return begin(
            request.method, str(request.url), headers, body, client=self.module.__name__, streamed=streaming.get()
        )

    # bodies of requests

    def _read(self, request: Any) -> bytes:
        known = getattr(request, "_content", None)
        if known is not None:
            return known
        reader = BodyReader(request.stream)
        for part in request.stream:
            reader.add(part)
        return self._kept(request, reader.body())

    async def _read_async(self, request: Any) -> bytes:
        known = getattr(request, "_content", None)
        if known is not None:
            return known
        reader = BodyReader(request.stream)
        async for part in request.stream:
            reader.add(part)
        return self._kept(request, reader.body())

    def _kept(self, request: Any, body: bytes) -> bytes:
        """The request is sent from memory: its own stream is used up."""
        request._content = body
        request.stream = self.module.ByteStream(body)
        return body

    # responses

    def _watched(self, exchange: Exchange, response: Any, stream: Any) -> Any:
        exchange.began(response.status_code, response.headers.multi_items())
        response.stream = stream(_Live(response.stream), exchange)
        return response

    def _served(self, exchange: Exchange, request: Any, stream: Any) -> Any:
        answer = exchange.answer
        assert answer is not None
        extensions = {"http_version": b"HTTP/1.1"}
        headers = list(answer.headers)
        if answer.chunks is None:
            content = self.module.ByteStream(answer.body or b"")
            if answer.body is not None:
                headers.append(("content-length", str(len(answer.body))))
        else:
            content = stream(_Recorded(exchange, self._error), exchange)
        return self.module.Response(
            answer.status, headers=headers, stream=content, extensions=extensions, request=request
        )

    def _error(self, class_name: str, message: str) -> Exception:
        """The read error that was recorded, as this library's own class where it has it."""
        known = getattr(self.module, class_name, None)
        if not (isinstance(known, type) and issubclass(known, self.module.TransportError)):
            known = self.module.ReadTimeout if "Timeout" in class_name else self.module.ReadError
        return known(message)


class _Live:
    """The body of a real response."""

    live = True

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.inner)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self.inner)
        try:
            async for data in pieces:
                yield data
        finally:
            # closed in the task that read it: otherwise the event loop does it later, in another
            if hasattr(pieces, "aclose"):
                await pieces.aclose()


class _Recorded:
    """Recorded chunks, and what came after the last one."""

    live = False

    def __init__(self, exchange: Exchange, error: Any) -> None:
        answer = exchange.answer
        assert answer is not None
        self._exchange = exchange
        self._answer = answer
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        for pause, chunk in zip(self._exchange.pauses(), self._answer.chunks or (), strict=True):
            if pause:
                time.sleep(pause)
            yield chunk.data
        self._end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for pause, chunk in zip(self._exchange.pauses(), self._answer.chunks or (), strict=True):
            if pause:
                await import_module("anyio").sleep(pause)  # what the client itself waits with
            yield chunk.data
        self._end()

    def _end(self) -> None:
        if self._answer.broken is not None:
            raise self._error(*self._answer.broken)
        if not self._answer.complete:
            self._exchange.more()


class _Stream:
    """A body piece by piece, with the exchange looking on where it is a real one."""

    def __init__(self, body: Any, exchange: Exchange) -> None:
        self._body = body
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        if not self._body.live:
            yield from self._body
            return
        try:
            for data in self._body:
                self._exchange.chunk(data)
                yield data
        except Exception as error:
            self._exchange.broke(error)
            raise
        self._exchange.ended()

    def close(self) -> None:
        if self._body.live:
            try:
                self._body.inner.close()
            finally:
                self._exchange.left()

    def __del__(self) -> None:
        """The application may drop a response that it did not read."""
        with suppress(BaseException):
            if self._body.live:
                self._exchange.left()


class _AsyncStream:
    """`_Stream`, for asyncio and trio."""

    def __init__(self, body: Any, exchange: Exchange) -> None:
        self._body = body
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._body)
        live = self._body.live
        try:
            async for data in pieces:
                if live:
                    self._exchange.chunk(data)
                yield data
        except GeneratorExit:
            raise
        except BaseException as error:
            if live:
                self._exchange.broke(error)
            raise
        finally:
            await pieces.aclose()
        if live:
            self._exchange.ended()

    async def aclose(self) -> None:
        if self._body.live:
            try:
                await self._body.inner.aclose()
            finally:
                self._exchange.left()

    def __del__(self) -> None:
        """The application may drop a response that it did not read."""
        with suppress(BaseException):
            if self._body.live:
                self._exchange.left()
