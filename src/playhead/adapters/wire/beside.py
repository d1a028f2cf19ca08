"""Requests to model endpoints that are no model calls (embeddings, token counting): kept as spans."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from playhead.core.protocol.parts import json_or_text
from playhead.engine.egress import is_own_traffic, model_traffic
from playhead.engine.frames import FRAME
from playhead.engine.seam import ModelStep, SpanStep, current

_PATHS = re.compile(
    r"/(?:embeddings|moderations|count_tokens|input_tokens|rerank|images/\w+|audio/\w+)$"
    r"|:(?:countTokens|embedContent|batchEmbedContents)$"
)


class Beside:
    """One such request. ``answered`` is told of the response."""

    def __init__(self, step: SpanStep) -> None:
        self._step = step

    @contextmanager
    def under_way(self) -> Generator[None]:
        """Around the sending: a model endpoint is reached, so the guard of a replay lets it pass where models may."""
        try:
            with self._step.inside(), model_traffic():
                yield
        except BaseException as error:
            self._step.fail(error)
            raise

    def answered(self, response: Any) -> Any:
        """Ends the span with status and body, as far as the client has read it, and gives the response back."""
        content: bytes | None = getattr(response, "_content", None)
        told = "json" in str(response.headers.get("content-type") or "") and content is not None
        body = {"body": json_or_text(content.decode("utf-8", "replace"))} if told and content is not None else {}
        self._step.returned({"status": response.status_code, **body})
        return response


def begin_beside(path: str, content: bytes | None) -> Beside | None:
    """Opens a span for a POST beside model calls; None for any other, and where nothing is recorded."""
    if not _PATHS.search(path) or is_own_traffic() or isinstance(FRAME.get(), ModelStep):
        return None
    active = current()
    if active is None:
        return None
    inputs = json_or_text(content.decode("utf-8", "replace")) if content is not None else None
    return Beside(active.span(f"POST {path}", inputs))
