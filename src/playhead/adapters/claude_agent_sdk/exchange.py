"""One model request from the send to the last byte, or its recorded answer."""

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from playhead.adapters.claude_agent_sdk.run import Run
from playhead.core.canonical import from_stored
from playhead.core.protocol import anthropic_messages as form
from playhead.core.protocol import sse
from playhead.core.protocol.forms import Event, Response
from playhead.core.protocol.parts import as_arguments, json_or_text, stored
from playhead.core.protocol.shape import is_object, obj
from playhead.core.values import JSON, ErrorInfo, Native, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.errors import ReplayStop

CODEC = "claude.message"
VERSION = 1
_KEPT_HEADERS = ("request-id", "retry-after", "x-should-retry", "content-type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the proxy gives without asking anybody: a body, or the events of a stream."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b"{}"
    events: list[bytes] | None = None


class Exchange:
    """One model request from the send to the last byte. A context manager around the sending."""

    def __init__(self, run: Run, step: Any, nested: bool) -> None:
        self._run = run
        self._step = step
        self._nested = nested
        self._status = 0
        self._headers: dict[str, str] = {}
        self._rest = b""
        self._events: list[Event] = []
        self._first_chunk_at: int | None = None
        self._announced: set[Any] = set()
        self._stack = ExitStack()

    @property
    def has_begun(self) -> bool:
        return self._status != 0

    def __enter__(self) -> Self:
        if self._step is not None:
            self._stack.enter_context(self._step.inside())
            self._run.asking.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:  # fmt: skip
        self._run.asking.discard(self)
        self._stack.close()

    def abandon(self) -> None:
        """The consumer went away while nothing had come: nobody knows what the model would have said."""
        if not self._events:
            self._step.cancel(GeneratorExit())

    # --- what the API says ---

    def began(self, status: int, headers: Any) -> None:
        self._status = status
        self._headers = {n: str(headers[n]) for n in _KEPT_HEADERS if n in headers}
        if self._step is not None:
            self._step.note(http_status=status)
            if "request-id" in self._headers:
                self._step.note(request_id=self._headers["request-id"])

    def chunk(self, data: bytes) -> None:
        """A piece of the body; tool calls are announced before the program gets to see them."""
        if self._step is None:
            return
        try:
            self._chunk(data)
        except ReplayStop:  # the hooks of the calls will meet it too
            self._run.halt()
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self._trouble(error, "reading a response")

    def _chunk(self, data: bytes) -> None:
        if self._first_chunk_at is None:
            self._first_chunk_at = self._run.active.recorder.clock.now()
        self._rest += data
        if not self._streams():
            return
        whole, mark, rest = self._rest.replace(b"\r\n", b"\n").rpartition(b"\n\n")
        if not mark:
            return
        self._rest = rest
        fresh = sse.read(whole + mark)
        self._events += fresh
        if any(is_object(e.data) and e.data.get("type") == "content_block_stop" for e in fresh):
            self._announce(form.read_response(form.read_stream(self._events)), self._stopped_blocks())

    def _streams(self) -> bool:
        return self._status < 400 and "event-stream" in self._headers.get("content-type", "")

    def _stopped_blocks(self) -> set[int]:
        return {
            e.data["index"] for e in self._events if is_object(e.data) and e.data.get("type") == "content_block_stop"
        }

    def _announce(self, answer: Response, only: set[int] | None = None) -> None:
        """Announces calls whose block is complete, each once."""
        blocks = [p for p in answer.calls if p["id"] not in self._announced]
        if only is not None:
            complete = {str(b.get("id")) for i, b in self._blocks().items() if i in only}
            blocks = [p for p in blocks if p["id"] in complete]
        self._announced |= {p["id"] for p in blocks}
        asked = [seam.Requested(p["id"], p["name"], as_arguments(p)) for p in blocks]
        self._run.calls.announce(self._step, self._step_frame(), asked)

    def _step_frame(self) -> Any:
        return getattr(self._step, "parent", None) or self._run.root

    def _blocks(self) -> dict[int, dict[str, Any]]:
        return {
            e.data["index"]: obj(e.data.get("content_block"))
            for e in self._events
            if is_object(e.data) and e.data.get("type") == "content_block_start"
        }

    def ended(self, *, partial: bool = False) -> None:
        """The body is complete."""
        if self._step is None:
            return
        try:
            self._finish(partial)
        except Exception as error:  # noqa: BLE001 - as above
            self._trouble(error, "recording a response")

    def left(self) -> None:
        """The program went away before the end."""
        self.ended(partial=True)

    def broke(self, error: BaseException) -> None:
        if self._step is not None and self._run.left:
            self._step.cancel(error)
        elif self._step is not None:
            self._step.fail(error)

    def _trouble(self, error: Exception, doing: str) -> None:
        try:
            self._run.trouble(error, doing)
        except ReplayStop:
            self._run.halt()

    def _finish(self, partial: bool) -> None:
        if self._status >= 400:
            self._failed(json_or_text(self._rest.decode("utf-8", "replace")))
            return
        streamed = self._streams()
        told = form.read_stream(self._events) if streamed else json_or_text(self._rest.decode("utf-8", "replace"))
        body = obj(told)
        answer = form.read_response(body)
        if answer.error is not None:
            error = obj(answer.error)
            info = ErrorInfo(class_name=str(error.get("type") or "APIError"), message=str(error.get("message") or ""))
            self._step.observe(Outcome(kind=OutcomeKind.ERROR, error=info, value=answer.message))
            return
        if not partial:
            self._announce(answer)
        if answer.usage is not None:
            self._run.usages.append((answer.usage, self._nested))
        self._step.observe(
            seam.ModelResult(
                message=answer.message, native=_native(body), usage=answer.usage, served=answer.model,
                response_id=answer.response_id, streamed=streamed, partial=partial,
                first_chunk_at=self._first_chunk_at if streamed else None,
            )
        )  # fmt: skip

    def _failed(self, told: Any) -> None:
        error = obj(obj(told).get("error"))
        info = ErrorInfo(
            class_name="APIStatusError", message=str(error.get("message") or told), status=self._status,
            code=error.get("type"),
        )  # fmt: skip
        headers = {k: v for k, v in self._headers.items() if k != "request-id"}
        data: dict[str, JSON] = {"status": self._status, "headers": headers, "body": stored(told)}
        native = Native(codec=CODEC, version=VERSION, data=data)
        self._step.observe(Outcome(kind=OutcomeKind.ERROR, error=info, native=native))

    # --- what the recording says ---

    def served(self, outcome: Outcome, asked: Any) -> Answer:
        """The recorded response in the form in which the program asked."""
        native = outcome.native
        data = obj(native.data) if native is not None and (native.codec, native.version) == (CODEC, VERSION) else {}
        if outcome.kind is not OutcomeKind.VALUE:
            self._step.observe(outcome)
            return _failure(outcome, data)
        body = obj(from_stored(data.get("message"))) or form.write_response(
            Response(message=outcome.value, model=asked.model)
        )
        answer = form.read_response(body)
        self._announce(answer)
        self._step.observe(
            seam.ModelResult(
                message=answer.message, native=_native(body), usage=answer.usage, served=answer.model,
                response_id=answer.response_id, streamed=asked.stream,
            )
        )  # fmt: skip
        if not asked.stream:
            return Answer(body=json.dumps(body).encode())
        return Answer(headers={}, events=[sse.write(event) for event in form.write_stream(body)])


def _native(body: dict[str, Any]) -> Native:
    return Native(codec=CODEC, version=VERSION, data={"message": stored(body)})


def _failure(outcome: Outcome, data: dict[str, Any]) -> Answer:
    error = outcome.error
    status = data.get("status") or (error.status if error is not None else None) or 500
    told = from_stored(data.get("body")) or {
        "type": "error",
        "error": {"type": "api_error", "message": error.message if error is not None else "recorded failure"},
    }
    headers = {str(k): str(v) for k, v in obj(data.get("headers")).items()}
    return Answer(
        status=int(status), headers=headers or {"content-type": "application/json"}, body=json.dumps(told).encode()
    )
