"""One HTTP request of a client, and what answers it while HTTP fixtures are in force.

The adapters of the clients hold an `Exchange`: they tell it what is asked, hand on what it serves, or report the head,
the pieces and the end of the real response. They hold no keys, no files and no policy.
"""

import logging
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import NoReturn, Protocol

from playhead.core.http.request import HttpRequest, HttpRules, arguments_of, effect_of, header, tool_of
from playhead.core.http.response import Broken, Chunk, HttpAnswer, has_no_body, kept, read, store
from playhead.core.http.secrets import without_secrets
from playhead.core.http.url import parse_url
from playhead.core.redaction.redact import Redactor
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.engine.decoding import Decoder, decoder_for
from playhead.engine.egress import is_own_traffic

log = logging.getLogger("playhead")

MOST_READ_AHEAD = 8 * 2**20
"""Bytes up to which the iterator of a request's body is read and sent from memory."""

_OTLP_PATH = re.compile(r"/v1/(?:traces|metrics|logs|profiles)$")
_STREAM_TYPES = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json")

streaming: ContextVar[bool | None] = ContextVar("playhead_http_streaming", default=None)
"""Whether the caller of the client asked for a response to read piece by piece; None where the client does not say."""


class HttpCall(Protocol):
    """One request at the fixtures: what answers it, and where its outcome goes."""

    def served(self) -> JSON | None:
        """The recorded response, in stored form; None when the request is to be sent.

        Raises:
            ReplayStop: nothing answers it, and it must not be sent.
        """
        ...

    def live(self) -> AbstractContextManager[object]:
        """Around the sending."""
        ...

    def observe(self, value: JSON) -> None:
        """The response that came, in stored form and without secrets."""
        ...

    def skip(self, reason: str, *, lost: bool = False) -> None:
        """Nothing is recorded: no response came, or (``lost``) there is one that has no stored form."""
        ...

    def more(self) -> NoReturn:
        """More of the response is asked for than was recorded: a stop."""
        ...


class HttpFixtures(Protocol):
    """The fixtures in force, as far as HTTP is concerned."""

    @property
    def rules(self) -> HttpRules: ...

    @property
    def timing(self) -> float:
        """Factor of the recorded pauses between pieces; 0 is no pause."""
        ...

    @property
    def redactor(self) -> Redactor: ...

    def is_configured(self, name: str) -> bool:
        """Whether keys are free of the secret of this name."""
        ...

    def http_call(self, tool: str, arguments: JSON, effect: str) -> HttpCall: ...

    def refuse(self, tool: str, reason: str) -> NoReturn:
        """A stop: what is asked can be neither recorded nor served."""
        ...

    def let_through(self, host: str) -> None:
        """Connections to this host are none of the fixtures' business."""
        ...


_current: list[Callable[[], HttpFixtures | None]] = []


def look_here(find: Callable[[], HttpFixtures | None]) -> None:
    """Tells where the fixtures are found that a request made in the calling context belongs to."""
    _current[:] = [find]


def begin(
    method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes, *, client: str, streamed: bool | None = None
) -> "Exchange | None":
    """The exchange of a request that is about to leave; None when no fixtures concern it.

    Raises:
        ReplayStop: nothing answers the request, and it must not be sent.
    """
    fixtures = current(url)
    if fixtures is None:
        return None
    pairs = tuple(headers)
    if _is_telemetry(url, pairs):
        fixtures.let_through(parse_url(url).host)
        return None
    request = HttpRequest(method=method.upper(), url=url, headers=pairs, body=_decoded(body, pairs))
    if (header(pairs, "upgrade") or "").lower() == "websocket":
        fixtures.refuse(tool_of(request), "a websocket has no response that could be recorded or served")
    arguments = arguments_of(request, fixtures.rules, fixtures.redactor, is_configured=fixtures.is_configured)
    call = fixtures.http_call(tool_of(request), arguments, effect_of(method))
    return Exchange(fixtures, call, request, client=client, streamed=bool(streamed))


def current(url: str) -> HttpFixtures | None:
    """The fixtures that concern requests to a URL made in this context."""
    if not _current or is_own_traffic():
        return None
    fixtures = _current[0]()
    return fixtures if fixtures is not None and fixtures.rules.concern(url) else None


def _is_telemetry(url: str, headers: Sequence[tuple[str, str]]) -> bool:
    """Whether this is an upload of an OpenTelemetry exporter, which is no part of what a program does."""
    if not _OTLP_PATH.search(parse_url(url).path):
        return False
    agent = (header(headers, "user-agent") or "").lower()
    return "x-protobuf" in (header(headers, "content-type") or "") or "otlp" in agent or "opentelemetry" in agent


def _decoded(body: bytes, headers: Sequence[tuple[str, str]]) -> bytes:
    """A compressed request body as what it says: compressors write the time into their output."""
    encoding = header(headers, "content-encoding")
    decode = decoder_for(encoding) if body and encoding else None
    if decode is None:
        return body
    try:
        return decode(body)
    except Exception:  # noqa: BLE001 - each decoder has its own class; then it is not what its header says
        return body


class Exchange:
    """One request. Either ``answer`` is there, to be handed on; or the request is sent `inside`, and reported.

    Reporting never raises: what cannot be recorded is noted, the response stands.
    """

    def __init__(
        self, fixtures: HttpFixtures, call: HttpCall, request: HttpRequest, *, client: str, streamed: bool
    ) -> None:
        self._fixtures = fixtures
        self._call = call
        self._request = request
        self._client = client
        self._streamed = streamed
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._decode: Decoder | None = None
        self._pieces: list[tuple[float, list[bytes]]] = []
        self._head_at = 0
        self._done = False
        found = call.served()
        self.answer: HttpAnswer | None = None if found is None else read(found)

    # served

    def pauses(self) -> list[float]:
        """Seconds to wait before each recorded chunk."""
        chunks = (self.answer.chunks if self.answer is not None else None) or ()
        starts = [0.0, *(chunk.t for chunk in chunks)]
        factor = self._fixtures.timing
        return [max(after - before, 0.0) * factor for before, after in pairwise(starts)]

    def more(self) -> NoReturn:
        """The consumer asks for more than the recording has."""
        self._call.more()

    # live

    @contextmanager
    def inside(self) -> Generator[None]:
        """Around the sending, up to the head of the response. A failure in here is no outcome."""
        try:
            with self._call.live():
                yield
        except BaseException as error:
            self._skip(f"{type(error).__name__}: no response came", lost=False)
            raise

    def began(self, status: int, headers: Iterable[tuple[str, str]], *, decoded: bool = False) -> None:
        """The head of the response came. ``decoded``: pieces are reported without their content encoding."""
        self._head_at = SYSTEM_CLOCK.tick()
        pairs = list(headers)
        self._status = status
        self._headers = kept(pairs, self._fixtures.rules.keep_headers)
        self._streamed = self._streamed or (header(pairs, "content-type") or "").lower().startswith(_STREAM_TYPES)
        encoding = header(pairs, "content-encoding") or ""
        if encoding and not decoded:
            self._decode = decoder_for(encoding)
            if self._decode is None:
                self._skip(f"its content encoding {encoding!r} cannot be undone here")
        if has_no_body(self._request.method, status):
            self.ended()

    def piecewise(self) -> None:
        """The body is read piece by piece, so it matters where a piece ends."""
        self._streamed = True

    def chunk(self, data: bytes, *, join: bool = False) -> None:
        """A piece of the body. ``join``: it is part of the last one (a client that reads by size, not as it comes)."""
        if self._done or not data:
            return
        try:
            plain = self._decode(data) if self._decode is not None else data
        except Exception as error:  # noqa: BLE001 - each decoder has its own class
            self._skip(f"its content encoding could not be undone ({type(error).__name__})")
            return
        if not plain:
            return
        if join and self._pieces:
            self._pieces[-1][1].append(plain)
        else:
            self._pieces.append(((SYSTEM_CLOCK.tick() - self._head_at) / 1e9, [plain]))

    def ended(self) -> None:
        """The body came to its end."""
        self._finish()

    def left(self) -> None:
        """The consumer stopped before the end; nothing when it had come already."""
        self._finish(complete=False)

    def broke(self, error: BaseException) -> None:
        """Reading the body failed: with the client's own error, or because the consumer was cancelled."""
        if isinstance(error, Exception):
            self._finish(broken=Broken(type(error).__name__, str(error)))
        else:
            self.left()

    def _finish(self, *, complete: bool = True, broken: Broken | None = None) -> None:
        if self._done:
            return
        self._done = True
        try:
            self._observe(complete, broken)
        except Exception as error:
            log.exception("a response could not be recorded")
            self._call.skip(f"it could not be stored ({type(error).__name__})", lost=True)

    def _observe(self, complete: bool, broken: Broken | None) -> None:
        without_body = has_no_body(self._request.method, self._status)
        as_stream = not without_body and (self._streamed or not complete or broken is not None)
        chunks = tuple(Chunk(t, b"".join(parts)) for t, parts in self._pieces)
        cleaned = without_secrets(
            HttpAnswer(
                status=self._status,
                headers=self._headers,
                body=None if without_body or as_stream else b"".join(chunk.data for chunk in chunks),
                chunks=chunks if as_stream else None,
                complete=complete or without_body,
                broken=broken,
            ),
            self._fixtures.redactor,
        )
        if cleaned.refused is not None:
            self._call.skip(cleaned.refused, lost=True)
        else:
            self._call.observe(store(cleaned.answer))

    def _skip(self, reason: str, *, lost: bool = True) -> None:
        if not self._done:
            self._done = True
            self._call.skip(reason, lost=lost)
