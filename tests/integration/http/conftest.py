"""A loopback server with awkward answers, the clients in one shape, and fixtures in memory."""

import asyncio
import gzip
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, NoReturn

import brotli
import pytest
from backports import zstd

from playhead.adapters.http import intercepting
from playhead.core.http.request import HttpRules, without
from playhead.core.keys import call_key
from playhead.core.redaction.redact import Redactor
from playhead.engine import http_exchange
from playhead.errors import MissError, RefusedError, ReplayStop

BODY = json.dumps({"city": "Zürich", "n": [1, 2.5, None]}, ensure_ascii=False).encode()
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": lambda data: brotli.compress(data),
    "zstd": lambda data: zstd.compress(data),
}


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Counts what reaches it. ``gate`` holds a stream back after its first event."""

    seen: list[Seen] = field(default_factory=list[Seen])
    gate: threading.Event = field(default_factory=threading.Event)
    pair: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    numbers: Iterator[int] = field(default_factory=itertools.count)
    url: str = ""

    def count(self, path: str) -> int:
        return Counter(each.path.partition("?")[0] for each in self.seen)[path]


class _Handler(BaseHTTPRequestHandler):
    owner: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        self.owner.seen.append(Seen(self.command, self.path, dict(self.headers.items()), body))
        getattr(self, f"_{path.strip('/').partition('/')[0]}")(path.rpartition("/")[2], body)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Set-Cookie", "session=from-the-server")
        self.send_header("Date-Of-Answer", "today")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def _json(self, last: str, body: bytes) -> None:
        self._send(200, BODY, ETag='"1"')

    def _echo(self, last: str, body: bytes) -> None:
        self._send(200, json.dumps({"method": self.command, "path": self.path, "size": len(body)}).encode())

    def _count(self, last: str, body: bytes) -> None:
        self._send(200, b"%d" % self.owner.count(self.path.partition("?")[0]))

    def _slow(self, last: str, body: bytes) -> None:
        """Two requests at a time, each with another answer."""
        self.owner.pair.wait(60)
        self._send(200, b"%d" % next(self.owner.numbers))

    def _binary(self, last: str, body: bytes) -> None:
        self._send(200, bytes(range(256)) * 300, "image/png")

    def _encoded(self, last: str, body: bytes) -> None:
        self._send(200, COMPRESSORS[last](BODY), Content_Encoding=last)

    def _status(self, last: str, body: bytes) -> None:
        self._send(int(last), b"", Retry_After="7")

    def _redirect(self, last: str, body: bytes) -> None:
        self._send(302, b"elsewhere", "text/plain", Location="/json")

    def _flaky(self, last: str, body: bytes) -> None:
        status = 200 if self.owner.count(self.path) > 2 else 503
        self._send(status, b'{"status":%d}' % status, Retry_After="0")

    def _token(self, last: str, body: bytes) -> None:
        self._send(200, b'{"access_token": "unlisted-token-77", "kind": "bearer"}')

    def _leaky(self, last: str, body: bytes) -> None:
        """Gives back what it was asked with, in places of its own."""
        secret = last.encode()
        self._send(
            200, b'{ "note": "for %b", "access_token": "%b-of-the-body", "pin_secret": 4711 }' % (secret, secret),
            Location=f"https://u:{last}@h.example/?sig={last}", X_Session_Token=f"{last}-of-the-header",
        )  # fmt: skip

    def _split(self, last: str, body: bytes) -> None:
        """A stream that cuts the secret in two, and ends in the middle of a chunk."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (f"data: a {last[:7]}", f"{last[7:]} b\n\n", f"data: {last}\n\n"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part.encode()))
            self.wfile.flush()
        self.close_connection = True  # broken

    def _bytes(self, last: str, body: bytes) -> None:
        self._send(200, b"\xff\xfe" + last.encode(), "application/octet-stream")

    def _wide(self, last: str, body: bytes) -> None:
        """Text whose bytes may read as UTF-8."""
        self._send(200, f"it is {last}".encode("utf-16-le"), "text/plain; charset=utf-16")

    def _stream(self, last: str, body: bytes) -> None:
        """Four events; the second waits for the gate. ``break``: the connection ends after three."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(4):
            if number == 1:
                self.owner.gate.wait(60)
            if number == 3 and last == "break":
                self.close_connection = True
                return
            event = b"data: %d\n\n" % number
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.wfile.flush()
            except OSError:  # the client left
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def server() -> Iterator[Server]:
    owner = Server()
    made = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": owner}))
    made.daemon_threads = True
    owner.url = f"http://127.0.0.1:{made.server_address[1]}"
    owner.gate.set()
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield owner
    owner.gate.set()
    made.shutdown()
    made.server_close()


# clients


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Client(NamedTuple):
    """One client in the shape of all: ``ask`` reads the whole body, ``pieces`` gives it as it comes.

    ``errors`` are the client's own for a body that breaks off.
    """

    name: str
    ask: Callable[..., Got]
    pieces: Callable[..., Any]
    errors: tuple[type[Exception], ...]


def _got(status: int, headers: Any, body: bytes) -> Got:
    return Got(status, {name.lower(): value for name, value in headers.items()}, body)


def _httpx(module: Any) -> Client:
    """Without verification, because loading certificates takes longer than a test; with the patience of the others,
    because their own five seconds are short on a machine with other work."""
    options: dict[str, Any] = {"verify": False, "timeout": 60}

    def ask(method: str, url: str, **kwargs: Any) -> Got:
        with module.Client(**options, follow_redirects=kwargs.pop("redirects", True)) as client:
            answer = client.request(method, url, **kwargs)
            return _got(answer.status_code, answer.headers, answer.content)

    def pieces(url: str, each: Callable[[bytes], bool]) -> None:
        with module.Client(**options) as client, client.stream("GET", url) as answer:
            for data in answer.iter_bytes():
                if not each(data):
                    break

    return Client(module.__name__, ask, pieces, (module.TransportError,))


def _httpx_async(module: Any) -> Client:
    options: dict[str, Any] = {"verify": False, "timeout": 60}

    def ask(method: str, url: str, **kwargs: Any) -> Got:
        async def run() -> Got:
            async with module.AsyncClient(**options, follow_redirects=kwargs.pop("redirects", True)) as client:
                answer = await client.request(method, url, **kwargs)
                return _got(answer.status_code, answer.headers, answer.content)

        return asyncio.run(run())

    def pieces(url: str, each: Callable[[bytes], bool]) -> None:
        async def run() -> None:
            async with module.AsyncClient(**options) as client, client.stream("GET", url) as answer:
                async for data in answer.aiter_bytes():
                    if not each(data):
                        break

        asyncio.run(run())

    return Client(f"{module.__name__}-async", ask, pieces, (module.TransportError,))


def _requests() -> Client:
    import requests

    def ask(method: str, url: str, **kwargs: Any) -> Got:
        data = kwargs.pop("content", None)
        with requests.Session() as session:
            redirects = kwargs.pop("redirects", True)
            answer = session.request(method, url, allow_redirects=redirects, data=kwargs.pop("data", data), **kwargs)
            return _got(answer.status_code, answer.headers, answer.content)

    def pieces(url: str, each: Callable[[bytes], bool]) -> None:
        with requests.Session() as session, session.get(url, stream=True) as answer:
            for data in answer.iter_content(1000):
                if not each(data):
                    break

    return Client("requests", ask, pieces, (requests.exceptions.ChunkedEncodingError,))


def _urllib3() -> Client:
    import urllib3

    def ask(method: str, url: str, **kwargs: Any) -> Got:
        if "params" in kwargs:
            url += "?" + "&".join(f"{name}={value}" for name, value in kwargs.pop("params").items())
        if "data" in kwargs:
            kwargs |= {"fields": kwargs.pop("data"), "encode_multipart": False}
        if "files" in kwargs:
            kwargs["fields"] = {name: value[:2] for name, value in kwargs.pop("files").items()}
        if "content" in kwargs:
            kwargs["body"] = kwargs.pop("content")
        with urllib3.PoolManager() as pool:
            answer = pool.request(method, url, redirect=kwargs.pop("redirects", True), **kwargs)
            return _got(answer.status, answer.headers, answer.data)

    def pieces(url: str, each: Callable[[bytes], bool]) -> None:
        with urllib3.PoolManager() as pool:
            answer = pool.request("GET", url, preload_content=False)
            for data in answer.stream(1000):
                if not each(data):
                    break
            answer.close()

    return Client("urllib3", ask, pieces, (urllib3.exceptions.ProtocolError,))


def _aiohttp() -> Client:
    import aiohttp

    def ask(method: str, url: str, **kwargs: Any) -> Got:
        if "content" in kwargs:
            kwargs["data"] = kwargs.pop("content")
        if "files" in kwargs:
            kwargs["data"] = aiohttp.FormData()
            for name, (filename, content, kind) in kwargs.pop("files").items():
                kwargs["data"].add_field(name, content, filename=filename, content_type=kind)

        async def run() -> Got:
            async with (
                aiohttp.ClientSession() as session,
                session.request(method, url, allow_redirects=kwargs.pop("redirects", True), **kwargs) as answer,
            ):
                return _got(answer.status, answer.headers, await answer.read())

        return asyncio.run(run())

    def pieces(url: str, each: Callable[[bytes], bool]) -> None:
        async def run() -> None:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                async for data, _ in answer.content.iter_chunks():
                    if data and not each(data):
                        break

        asyncio.run(run())

    return Client("aiohttp", ask, pieces, (aiohttp.ClientPayloadError,))


def _made(name: str) -> Client:
    import httpx
    import httpx2

    makers: dict[str, Callable[[], Client]] = {
        "httpx": lambda: _httpx(httpx),
        "httpx-async": lambda: _httpx_async(httpx),
        "httpx2": lambda: _httpx(httpx2),
        "httpx2-async": lambda: _httpx_async(httpx2),
        "requests": _requests,
        "urllib3": _urllib3,
        "aiohttp": _aiohttp,
    }
    return makers[name]()


@pytest.fixture(params=["httpx", "httpx-async", "httpx2", "httpx2-async", "requests", "urllib3", "aiohttp"])
def client(request: pytest.FixtureRequest) -> Client:
    return _made(request.param)


@pytest.fixture(params=["httpx", "requests", "aiohttp"])
def some_client(request: pytest.FixtureRequest) -> Client:
    """One client of each kind of interception."""
    return _made(request.param)


# fixtures in memory


class Memory:
    """Fixtures as the exchange sees them, without files: each key's outcomes in order."""

    def __init__(self) -> None:
        self.recording = True
        self.rules = HttpRules()
        self.timing = 0.0
        self.redactor = Redactor({})
        self.stored: dict[str, list[Any]] = {}
        self.tools: list[str] = []
        self.skipped: list[str] = []
        self.used: Counter[str] = Counter()

    def is_configured(self, name: str) -> bool:
        return name in self.redactor.configured_names

    def http_call(self, tool: str, arguments: Any, effect: str) -> "MemoryCall":
        return MemoryCall(self, tool, call_key(tool, without(arguments, self.rules.ignore), namespace="http"))

    def refuse(self, tool: str, reason: str) -> NoReturn:
        raise ReplayStop(RefusedError(f"{tool}: {reason}"))

    def let_through(self, host: str) -> None:
        """No guard is there."""

    @property
    def values(self) -> list[Any]:
        return [value for values in self.stored.values() for value in values]


class MemoryCall:
    def __init__(self, fixtures: Memory, tool: str, key: str) -> None:
        self.fixtures = fixtures
        self.tool = tool
        self.key = key

    def served(self) -> Any:
        self.fixtures.tools.append(self.tool)
        if self.fixtures.recording:
            return None
        found = self.fixtures.stored.get(self.key, [])
        place = self.fixtures.used[self.key]
        if place >= len(found):
            raise ReplayStop(MissError(f"no recording answers {self.tool}"))
        self.fixtures.used[self.key] += 1
        return found[place]

    @contextmanager
    def live(self) -> Iterator[None]:
        assert self.fixtures.recording
        yield

    def observe(self, value: Any) -> None:
        json.dumps(value)
        self.fixtures.stored.setdefault(self.key, []).append(value)

    def skip(self, reason: str, *, lost: bool = False) -> None:
        self.fixtures.skipped.append(reason)

    def more(self) -> NoReturn:
        raise ReplayStop(MissError("more is asked for than was recorded"))


@pytest.fixture
def fixtures() -> Iterator[Memory]:
    """In force for the test, recording at first."""
    memory = Memory()
    before = http_exchange._current[:]
    http_exchange.look_here(lambda: memory)
    with intercepting():
        yield memory
    http_exchange._current[:] = before
