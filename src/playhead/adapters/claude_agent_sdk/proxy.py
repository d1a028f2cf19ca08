"""A proxy on loopback between the program and the Messages API; it lives as long as one run.

It listens under a path that nobody can guess. Credentials pass through it and are kept nowhere. It holds no rule: what
is asked and answered is for `wire`.
"""

import contextvars
import importlib
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playhead.adapters.claude_agent_sdk.exchange import Answer, Exchange
from playhead.adapters.claude_agent_sdk.wire import Wire
from playhead.engine.egress import model_traffic

AGENT_HEADER = "x-claude-code-agent-id"
_NOT_SENT_ON = frozenset({"host", "content-length", "accept-encoding", "connection", "transfer-encoding", "keep-alive"})
_NOT_SENT_BACK = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection", "date", "server"})


class Proxy:
    """Serves one run. ``upstream`` is where requests go that no recording answers."""

    def __init__(self, wire: Wire, upstream: str) -> None:
        self.wire = wire
        self.upstream = upstream.rstrip("/")
        self.client: Any = _http().Client(timeout=_http().Timeout(None, connect=60.0))
        self._path = f"/{secrets.token_urlsafe(24)}"
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))

    @property
    def url(self) -> str:
        """The base URL for the program."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.client.close()

    def inner_path(self, path: str) -> str | None:
        """The path at the API; None for who does not know the proxy's own."""
        return path[len(self._path) :] if path.startswith(f"{self._path}/") else None


def _http() -> Any:
    """The HTTP client that the SDK brings: httpx2, or httpx with an older ``mcp``."""
    try:
        return importlib.import_module("httpx2")
    except ImportError:
        return importlib.import_module("httpx")


class _Server(ThreadingHTTPServer):
    """Handles each request in a copy of the context in which the server was made."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        super().__init__(address, handler)
        self._context = contextvars.copy_context()

    def process_request(self, request: Any, client_address: Any) -> None:
        context = self._context.copy()
        run = self.process_request_thread
        threading.Thread(target=context.run, args=(run, request, client_address), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the program dropped is no news."""


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.proxy.inner_path(self.path)
        if path is None:
            self._send(404, {}, b"{}")
        elif path.partition("?")[0].endswith("/v1/messages"):
            self._model(path, raw)
        else:
            self._beside("POST", path, raw)

    def do_GET(self) -> None:
        path = self.proxy.inner_path(self.path)
        if path is None:
            self._send(404, {}, b"{}")
        else:
            self._beside(self.command, path, b"")

    do_HEAD = do_GET  # noqa: N815

    # --- model requests ---

    def _model(self, path: str, raw: bytes) -> None:
        asked = self.proxy.wire.begin(raw, self.headers.get(AGENT_HEADER))
        if asked.answer is not None:
            self._give(asked.answer)
        else:
            self._forward(path, asked.raw, asked.exchange)

    def _give(self, answer: Answer) -> None:
        if answer.events is None:
            self._send(answer.status, answer.headers, answer.body)
            return
        self._head(answer.status, {"content-type": "text/event-stream", **answer.headers})
        for chunk in answer.events:
            self._chunk(chunk)
        self._chunk(b"")

    def _forward(self, path: str, raw: bytes, exchange: Exchange) -> None:
        with exchange:
            request = self.proxy.client.stream(
                "POST", f"{self.proxy.upstream}{path}", content=raw, headers=self._onwards()
            )
            try:
                with request as response:
                    exchange.began(response.status_code, response.headers)
                    self._head(response.status_code, _backwards(response.headers))
                    for piece in response.iter_raw():
                        exchange.chunk(piece)
                        self._chunk(piece)
                    exchange.ended()
                    self._chunk(b"")
            except OSError:  # the program went away
                exchange.left()
                self.close_connection = True
            except Exception as error:  # noqa: BLE001 - of the client library, whose classes are not imported here
                self._unreachable(exchange, error)

    def _unreachable(self, exchange: Exchange, error: Exception) -> None:
        exchange.broke(error)
        self.close_connection = True
        if not exchange.has_begun:
            told = b'{"type":"error","error":{"type":"api_error","message":"the model endpoint cannot be reached"}}'
            self._send(502, {"content-type": "application/json"}, told)

    # --- other requests ---

    def _beside(self, method: str, path: str, raw: bytes) -> None:
        answer = self.proxy.wire.beside(method, path)
        if answer is not None:
            self._send(answer.status, answer.headers, answer.body)
            return
        with self.proxy.wire.span(method, path, raw) as step, model_traffic():
            try:
                response = self.proxy.client.request(
                    method, f"{self.proxy.upstream}{path}", content=raw or None, headers=self._onwards()
                )
            except Exception as error:  # noqa: BLE001 - as above
                step.fail(error)
                self._send(502, {}, b"{}")
                return
        step.returned({"status": response.status_code})
        self._send(response.status_code, _backwards(response.headers), response.content)

    # --- bytes ---

    def _onwards(self) -> dict[str, str]:
        kept = {k: v for k, v in self.headers.items() if k.lower() not in _NOT_SENT_ON}
        return {**kept, "accept-encoding": "identity"}

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _backwards(headers: Any) -> dict[str, str]:
    pairs: Iterator[tuple[str, str]] = headers.items()
    return {k: v for k, v in pairs if k.lower() not in _NOT_SENT_BACK}
