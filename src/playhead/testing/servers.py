"""Scripted model servers on loopback, for tests of anything that talks to a model over HTTP.

One server speaks OpenAI chat completions and responses, Anthropic messages (with ``count_tokens``) and Gemini, chosen
by path. What it answers is a plan::

    def plan(step, body):
        if step == 0:
            return Reply(calls=[Call("get_weather", {"city": "Oslo"})])
        return Reply("It rains.")

    with ModelServer(plan) as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="none")
        ...
        assert server.requests[0].body["model"] == "small"

Requests are logged before they are answered. GET and HEAD give 404.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from playhead.testing.server_replies import Call, Encoding, Reply, chunks_of, encoded

__all__ = ["Call", "Encoding", "LoggedRequest", "ModelServer", "Plan", "Reply"]

Plan: TypeAlias = Callable[[int, dict[str, Any]], Reply]
"""``plan(step, body)``: the reply to the ``step``-th model request (0-based, all requests of one server counted)."""

Form: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """A request as it arrived. ``raw`` is its exact body; ``step`` is None when it was no model request."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    step: int | None = None

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass(slots=True)
class ModelServer:
    """A scripted server; a context manager. ``plan`` may also be the replies in order, of which the last repeats."""

    plan: Plan | Sequence[Reply]
    requests: list[LoggedRequest] = field(default_factory=list[LoggedRequest])
    _server: ThreadingHTTPServer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _steps: int = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Listens on a free port of 127.0.0.1."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        """No more requests; can be called twice."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        """The root: what Anthropic and Gemini clients take as their base URL."""
        if self._server is None:
            raise RuntimeError("the server is not running: use it as a context manager, or call start()")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        return self.url + "/v1"

    @property
    def model_requests(self) -> list[LoggedRequest]:
        """Those that the plan answered, in order."""
        return sorted((r for r in self.requests if r.step is not None), key=lambda r: r.step or 0)

    def log(self, method: str, path: str, headers: Mapping[str, str], raw: bytes, *, model: bool) -> int | None:
        """Used by the handler: keeps a request and gives it its step."""
        with self._lock:
            step = self._steps if model else None
            self._steps += 1 if model else 0
            self.requests.append(LoggedRequest(method=method, path=path, headers=headers, raw=raw, step=step))
            return step

    def reply(self, step: int, body: dict[str, Any]) -> Reply:
        """Used by the handler: what the plan says."""
        if callable(self.plan):
            return self.plan(step, body)
        return self.plan[min(step, len(self.plan) - 1)]


def form_of(path: str) -> Form | None:
    """The provider form that a path belongs to."""
    path = path.partition("?")[0].rstrip("/")
    if path.endswith("/chat/completions"):
        return "openai_chat"
    if path.endswith("/responses"):
        return "openai_responses"
    if path.endswith("/messages"):
        return "anthropic_messages"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr: the log is `ModelServer.requests`."""

    def do_GET(self) -> None:
        self.owner.log(self.command, self.path, dict(self.headers.items()), b"", model=False)
        self._send(404, b"" if self.command == "HEAD" else b'{"error":{"message":"not found"}}')

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        form = form_of(self.path)
        step = self.owner.log("POST", self.path, dict(self.headers.items()), raw, model=form is not None)
        if form is None or step is None:
            self._send(200, _beside_the_plan(self.path))
            return
        body = json.loads(raw)
        reply = self.owner.reply(step, body)
        streamed = bool(body.get("stream")) or ":streamGenerateContent" in self.path
        if reply.status != 200 or not streamed:
            whole = b"".join(chunks_of(form, reply, step, streamed=False))
            self._send(reply.status, encoded(whole, reply.encoding), reply)
        else:
            self._stream(reply, chunks_of(form, reply, step, streamed=True))

    def _send(self, status: int, body: bytes, reply: Reply | None = None) -> None:
        self.send_response(status)
        self._headers("application/json", reply)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            if reply is not None and reply.cut_after is not None:
                self._cut(body[: reply.cut_after])
            else:
                self.wfile.write(body)
        except OSError:  # the client left meanwhile, which is what some tests do
            self.close_connection = True

    def _headers(self, content_type: str, reply: Reply | None) -> None:
        self.send_header("content-type", content_type)
        for name, value in reply.headers.items() if reply is not None else ():
            self.send_header(name, value)
        if reply is not None and reply.encoding is not None:
            self.send_header("content-encoding", reply.encoding)

    def _stream(self, reply: Reply, chunks: Iterator[bytes]) -> None:
        self.send_response(200)
        self._headers("text/event-stream", reply)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, chunk in enumerate(chunks):
            if reply.cut_after is not None and number >= reply.cut_after:
                self._cut(b"")
                return
            if reply.hold is not None and number == reply.hold_after:
                reply.hold.wait(30)
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            except OSError:  # the client left early, which is what some tests do
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")

    def _cut(self, part: bytes) -> None:
        """Breaks the connection in the middle of the body."""
        self.wfile.write(part)
        self.wfile.flush()
        self.close_connection = True


def _beside_the_plan(path: str) -> bytes:
    """Side requests of clients that need some answer: token counting, embeddings."""
    if path.endswith("/count_tokens"):
        return b'{"input_tokens":12}'
    if path.endswith("/embeddings"):
        item: dict[str, Any] = {"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}
        body = {"object": "list", "model": "embed", "data": [item], "usage": {"prompt_tokens": 2, "total_tokens": 2}}
        return json.dumps(body).encode()
    return b"{}"
