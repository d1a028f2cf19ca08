"""One model request on the wire, from the send to the last byte."""

import codecs
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from playhead.adapters.wire.envelope import KEPT_HEADERS, Served, http_failure, native, raised, served
from playhead.core.protocol import sse
from playhead.core.protocol.forms import Request, Response
from playhead.core.protocol.parts import Part, as_arguments, json_or_text
from playhead.core.protocol.providers import FORMS, Place
from playhead.core.protocol.shape import is_object
from playhead.core.values import ErrorInfo, Outcome, OutcomeKind
from playhead.engine import gating
from playhead.engine.decoding import Decoder, decoder_for
from playhead.engine.seam import (
    ActiveSession,
    ModelResult,
    ModelStep,
    Requested,
    capture,
)

_TERMINAL = re.compile(
    r'"(?:finish_reason|stop_reason|finishReason)"\s*:\s*"|\[DONE\]|"message_stop"|"response\.(?:completed|incomplete|failed)"'
)
"""What stands in a stream only once the message is whole. Inside JSON text these quotes would be escaped."""

_WHOLE_CALL = '"functionCall"'
"""A call of Gemini's, which comes whole in one event, and which a client may start before the next one."""
_ENDED = re.compile(r"\n\r?\n")
"""The end of an event."""


@contextmanager
def guarded(active: ActiveSession, doing: str) -> Generator[None]:
    """Outside a replay a mistake of ours is counted and the client goes on; in a replay it is a stop."""
    try:
        yield
    except Exception as error:
        if active.replay is not None:
            raise gating.broken(active.replay, error, doing) from error
        active.recorder.count("errors", error)


class Exchange:
    """One request, and what comes back. Called by whoever holds the client's own objects; knows none of them."""

    def __init__(self, active: ActiveSession, step: ModelStep, place: Place, asked: Request, module: str) -> None:
        self.active = active
        self.step = step
        self.place = place
        self.asked = asked
        self._module = module
        self._status = 0
        self._headers: dict[str, str] = {}
        self._decoder: Decoder | None = None
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._chunks: list[str] = []
        self._tail = ""
        self._first_chunk_at: int | None = None
        self._announced = 0
        self._calling = False  # a whole call is coming, its event has not ended
        self._whole = False  # the message was seen to its end
        self._over = False

    # before

    def answer(self) -> Served | None:
        """The recorded response, None when the request has to be sent.

        Raises:
            ReplayStop: the replay ends here.
            Exception: the recorded failure, where no response stands for it.
        """
        outcome = self.step.decide()
        if outcome is None:
            return None
        with guarded(self.active, "serving a recorded response"):
            found = served(outcome, self.place.form, self.asked.model, stream=self.asked.stream)
            if found is not None:
                return found
            self._over = True
            self.step.observe(outcome)
        raise raised(outcome, self._module)

    # after

    def began(self, status: int, headers: Any) -> None:
        """The head of the response is here."""
        with guarded(self.active, "reading the head of a response"):
            self._status = status
            self._headers = {name: str(headers[name]) for name in KEPT_HEADERS if name in headers}
            self._decoder = decoder_for(str(headers.get("content-encoding") or ""))
            self.step.note(http_status=status)
            if request_id := self._headers.get("x-request-id", self._headers.get("request-id")):
                self.step.note(request_id=request_id)

    def chunk(self, data: bytes) -> None:
        """A piece of the body as it came over the wire. Announces as soon as the message is whole."""
        with guarded(self.active, "reading a stream"):
            if self._over or not data or self._decoder is None:
                return
            if self._first_chunk_at is None:
                self._first_chunk_at = self.active.recorder.clock.now()
            text = self._text.decode(self._decoder(data))
            if not text:
                return
            self._chunks.append(text)
            seen = self._tail + text
            self._tail = seen[-40:]
            if self._status >= 400:
                return
            if _TERMINAL.search(seen):
                self._whole = True
                self._announce(self._read())
                return
            self._calling = self._calling or _WHOLE_CALL in seen
            if self._calling and _ENDED.search(seen):
                self._calling = False
                self._announce(self._read())

    def ended(self) -> None:
        """The body is complete."""
        self._finish(whole=True)

    def left(self) -> None:
        """The consumer closed the response, or dropped it; the message may be whole all the same."""
        self._finish(whole=self._whole)

    def broke(self, error: BaseException) -> None:
        """Sending or reading failed."""
        with guarded(self.active, "recording a failed request"):
            if self._over:
                return
            self._over = True
            if not self._chunks or not isinstance(error, Exception):
                self.step.fail(error)
                return
            self._fail(capture(error), broken=True)

    def body(self, content: bytes) -> None:
        """The whole decoded body of a response that was not streamed to the consumer."""
        with guarded(self.active, "reading a response"):
            if self._status >= 400 or not self.asked.stream:
                self._observe_body(content)
            else:
                self._chunks = [content.decode("utf-8", "replace")]
                self._finish(whole=True)

    def _finish(self, *, whole: bool) -> None:
        with guarded(self.active, "recording a response"):
            if self._over:
                return
            if self._decoder is not None and (self._status >= 400 or not self._streamed()):
                self._observe_body("".join(self._chunks).encode("utf-8", "surrogatepass"), partial=not whole)
                return
            self._over = True
            if self._decoder is None:
                self._unreadable()
                return
            answer = self._read()
            if answer.error is not None:
                self._fail(_provider_failure(answer))
                return
            self._observe(answer, chunks=self._chunks, partial=not whole)

    def _streamed(self) -> bool:
        """Whether the body is a stream of events: asked for, or said by the response."""
        return self.asked.stream or "event-stream" in self._headers.get("content-type", "")

    def _observe_body(self, content: bytes, *, partial: bool = False) -> None:
        if self._over:
            return
        self._over = True
        if self._status >= 400:
            info, told = http_failure(self._status, content, self._headers, self._module)
            envelope = native(self.place.form, self._status, self._headers, body=told)
            self.step.observe(Outcome(kind=OutcomeKind.ERROR, error=info, native=envelope))
            return
        told = json_or_text(content.decode("utf-8", "replace"))
        answer = FORMS[self.place.form].read_response(told if is_object(told) else {})
        self._announce(answer)
        self._observe(answer, body=told, partial=partial)

    def _unreadable(self) -> None:
        """Nobody here knows what the client got; a replay must not take it for an empty answer."""
        self.step.note(unreadable="the content-encoding of the response cannot be undone here")
        self.step.cancel()

    def _read(self) -> Response:
        events = sse.read("".join(self._chunks).encode("utf-8", "surrogatepass"))
        form = FORMS[self.place.form]
        return form.read_response(form.read_stream(events))

    def _announce(self, answer: Response) -> None:
        calls = answer.calls[self._announced :]
        if calls and answer.error is None:
            self.step.announce([_requested(call, self._announced + n) for n, call in enumerate(calls)])
            self._announced += len(calls)

    def _observe(self, answer: Response, *, body: Any = None, chunks: list[str] | None = None, partial: bool) -> None:
        if not partial:
            self._announce(answer)
        self.step.observe(
            ModelResult(
                message=answer.message,
                native=native(self.place.form, self._status, self._headers, body=body, chunks=chunks),
                usage=answer.usage,
                served=answer.model,
                response_id=answer.response_id,
                streamed=chunks is not None,
                partial=partial,
                first_chunk_at=self._first_chunk_at if chunks is not None else None,
            )
        )
        self._tell_provider_calls(answer)

    def _tell_provider_calls(self, answer: Response) -> None:
        parts = [p for p in answer.message["parts"] if "executor" in p]
        results = {p["id"]: p for p in parts if p["type"] == "tool_result"}
        for part in parts:
            if part["type"] == "tool_call":
                outcome = _provider_outcome(results.get(part["id"]))
                self.active.provider_call(
                    self.step, part["name"], call_id=part["id"], arguments=as_arguments(part), outcome=outcome
                )

    def _fail(self, info: ErrorInfo, *, broken: bool = False) -> None:
        """A stream that the provider or the network broke: what had arrived is kept beside the failure."""
        envelope = native(self.place.form, self._status, self._headers, chunks=self._chunks, broken=broken)
        value = self._read().message
        self.step.observe(Outcome(kind=OutcomeKind.ERROR, error=info, value=value, native=envelope))


def _requested(call: Part, index: int) -> Requested:
    """A call to announce. An id made up by the reading is left to the seam to make up."""
    given = None if call["id"] == f"call:{index}" else call["id"]
    return Requested(call_id=given, tool=call["name"], arguments=as_arguments(call))


def _provider_outcome(result: Part | None) -> Outcome | None:
    if result is None:
        return None
    kind = OutcomeKind.RESULT_ERROR if result.get("is_error") else OutcomeKind.VALUE
    return Outcome(kind=kind, value=result["content"])


def _provider_failure(answer: Response) -> ErrorInfo:
    told = answer.error
    message = told.get("message") if is_object(told) else told
    kind = told.get("type") if is_object(told) else None
    return ErrorInfo(class_name=str(kind or "APIError"), message=str(message or "the provider broke the stream off"))
