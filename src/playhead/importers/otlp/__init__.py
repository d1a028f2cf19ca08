"""OTLP files with the GenAI conventions: requests as JSON (one, or one a line) or protobuf, spans and logs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead.core.assemble.records import Note, Record, RecordError, Trace
from playhead.core.values import JSON, Verdict
from playhead.engine.documents import Document
from playhead.engine.imports import FOREIGN, PlainReader, Plan, Planned, told
from playhead.importers.otlp import events, genai, kinds, wire

NAME = "otlp"
BUFFER = 256 * 1024 * 1024
"""Bytes of requests whose traces wait for more; beyond it the traces not heard of for longest are given out."""

_SERVICE = {
    "service": "service.name",
    "service_version": "service.version",
    "environment": "deployment.environment.name",
}


def claims(document: Document) -> bool:
    """Whether a document is an OTLP request of traces or logs."""
    if document.data is None:
        return wire.is_request(document.value)
    try:
        return wire.parse_protobuf(document.data) is not None
    except ImportError:
        return False


@dataclass(slots=True)
class _Held:
    """What has come of one trace."""

    spans: list[Record] = field(default_factory=list[Record])
    logs: list[wire.Log] = field(default_factory=list[wire.Log])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    metadata: dict[str, JSON] = field(default_factory=dict[str, JSON])
    unread: set[str] = field(default_factory=set[str])
    size: int = 0


class OtlpReader(PlainReader):
    """Keeps traces until the end of the import, so that spans and logs of many files join."""

    def __init__(self, *, buffer: int = BUFFER) -> None:
        self._held: dict[str, _Held] = {}
        self._buffer = buffer
        self._size = 0

    def add(self, document: Document) -> Iterator[Planned]:
        items = self._items(document)
        share = document.size // max(len(items), 1)
        for item in items:
            if isinstance(item, Note):
                yield item
            else:
                try:
                    self._keep(item, share)
                except FOREIGN as error:
                    yield Note(code="undecodable", message=told(error), external_id=item.trace_id)
        while self._size > self._buffer and self._held:
            yield self._plan(next(iter(self._held)))

    def close(self) -> Iterator[Planned]:
        for trace_id in list(self._held):
            yield self._plan(trace_id)

    def _items(self, document: Document) -> list[wire.Item]:
        if document.data is None:
            return list(wire.read_json(document.value))
        request = wire.parse_protobuf(document.data)
        if request is None:
            raise RecordError("undecodable", "not an OTLP request")
        return list(wire.read_protobuf(request))

    def _keep(self, item: wire.Span | wire.Log, size: int) -> None:
        if not item.trace_id:  # a log record of no trace says nothing about a session
            return
        held = self._held.pop(item.trace_id, None) or _Held()
        self._held[item.trace_id] = held  # to the end: just heard of
        held.size += size
        self._size += size
        for name, attribute in _SERVICE.items():
            if item.resource.get(attribute):
                held.metadata[name] = item.resource[attribute]
        if isinstance(item, wire.Span):
            held.unread.update(u for u in [kinds.unread_tracer(item.attributes)] if u)
            held.spans.append(genai.read_span(item))
        elif events.is_content(item):
            held.logs.append(item)
        elif item.name == events.EVALUATION and (verdict := events.read_verdict(item)) is not None:
            held.verdicts.append(verdict)

    def _plan(self, trace_id: str) -> Planned:
        held = self._held.pop(trace_id)
        self._size -= held.size
        records = held.spans + events.read_logs(held.logs)
        if not records:
            return Note(code="no_records", message="only log records that no span explains", external_id=trace_id)
        trace = Trace(format=NAME, external_id=trace_id, metadata=held.metadata, verdicts=tuple(held.verdicts))
        warnings = tuple(
            Note(
                code="content_not_read",
                message=f"written by {tracer}: what it says in attributes of its own is not read",
                external_id=trace_id,
            )
            for tracer in sorted(held.unread)
        )
        return Plan(runs=((trace, records),), warnings=warnings)
