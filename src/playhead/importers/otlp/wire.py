"""OTLP requests, as JSON or protobuf, into spans and log records. Nothing here knows what the attributes mean."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from playhead.core.assemble.records import Note, RecordError
from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.values import JSON

_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_ATTRIBUTES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    name: str
    time: int | None
    attributes: dict[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: int | None
    end: int | None
    attributes: dict[str, JSON]
    events: tuple[Event, ...] = ()
    status: int = 0
    status_message: str = ""
    scope: str = ""
    resource: dict[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    trace_id: str  # empty for a record of no trace
    span_id: str | None
    name: str
    time: int | None
    attributes: dict[str, JSON]
    body: JSON
    scope: str = ""
    resource: dict[str, JSON] = field(default_factory=dict[str, JSON])


Item: TypeAlias = "Span | Log | Note"


def is_request(value: JSON) -> bool:
    """Whether JSON is an OTLP request of any signal."""
    return is_object(value) and any(is_list(value.get(k)) for k in _SIGNALS)


_SIGNALS = ("resourceSpans", "resourceLogs", "resourceMetrics")


# --- JSON -----------------------------------------------------------------------------------------------------------


def read_json(request: Mapping[str, JSON]) -> Iterator[Item]:
    """The spans and logs of a request. A bad one becomes a note and does not touch its neighbours."""
    yield from _read_signal(request, ("resourceSpans", "scopeSpans", "spans"), _span)
    yield from _read_signal(request, ("resourceLogs", "scopeLogs", "logRecords"), _log)


def _read_signal(
    request: Mapping[str, JSON], names: tuple[str, str, str], read: Callable[[Any, str, dict[str, JSON]], Item]
) -> Iterator[Item]:
    outer, middle, inner = names
    for i, holder in enumerate(_objects(request.get(outer))):
        resource = _attributes(_object(holder.get("resource")).get("attributes"))
        for j, scoped in enumerate(_objects(holder.get(middle))):
            scope = str(_object(scoped.get("scope")).get("name") or "")
            for k, one in enumerate(_objects(scoped.get(inner))):
                try:
                    yield read(one, scope, resource)
                except RecordError as error:
                    place = f"/{outer}/{i}/{middle}/{j}/{inner}/{k}"
                    yield Note(code=error.code, message=error.message, external_id=error.external_id, position=place)


def _object(value: JSON) -> Mapping[str, JSON]:
    return value if is_object(value) else {}


def _objects(value: JSON) -> Iterator[Mapping[str, JSON]]:
    for one in value if is_list(value) else ():
        yield one if is_object(one) else {}


def _span(raw: Mapping[str, JSON], scope: str, resource: dict[str, JSON]) -> Span:
    trace_id = _id(raw.get("traceId"), 32, "traceId")
    span_id = _id(raw.get("spanId"), 16, "spanId")
    status = _object(raw.get("status"))
    code = status.get("code", 0)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(raw["parentSpanId"], 16, "parentSpanId") if raw.get("parentSpanId") else None,
        name=str(raw.get("name") or ""),
        start=_nanoseconds(raw.get("startTimeUnixNano"), span_id),
        end=_nanoseconds(raw.get("endTimeUnixNano"), span_id),
        attributes=_attributes(raw.get("attributes"), span_id),
        events=tuple(
            Event(
                name=str(e.get("name") or ""),
                time=_nanoseconds(e.get("timeUnixNano"), span_id),
                attributes=_attributes(e.get("attributes"), span_id),
            )
            for e in _objects(raw.get("events"))
        ),
        status=_STATUS.get(code, 0) if isinstance(code, str) else code if isinstance(code, int) else 0,
        status_message=str(status.get("message") or ""),
        scope=scope,
        resource=resource,
    )


def _log(raw: Mapping[str, JSON], scope: str, resource: dict[str, JSON]) -> Log:
    attributes = _attributes(raw.get("attributes"))
    trace_id = _id(raw["traceId"], 32, "traceId") if raw.get("traceId") else ""
    return Log(
        trace_id=trace_id,
        span_id=_id(raw["spanId"], 16, "spanId") if raw.get("spanId") else None,
        name=str(raw.get("eventName") or attributes.get("event.name") or ""),
        time=_nanoseconds(raw.get("timeUnixNano"), trace_id) or _nanoseconds(raw.get("observedTimeUnixNano"), trace_id),
        attributes=attributes,
        body=_value(raw.get("body")),
        scope=scope,
        resource=resource,
    )


def _id(value: JSON, digits: int, name: str) -> str:
    if not isinstance(value, str) or len(value) != digits or not _HEX.match(value) or not value.strip("0"):
        raise RecordError("missing_id", f"{name} {value!r:.60} is not {digits} hexadecimal digits, not all zero")
    return value.lower()


def _nanoseconds(value: JSON, about: str) -> int | None:
    if value in (None, "", 0, "0"):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value) if len(value) < 24 else -1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise RecordError("bad_time", f"{value!r:.60} is not nanoseconds since 1970", about)
    return value or None


def _attributes(pairs: JSON, about: str = "") -> dict[str, JSON]:
    if is_list(pairs) and len(pairs) > _ATTRIBUTES:
        raise RecordError("too_large", f"{len(pairs):,} attributes, the limit is {_ATTRIBUTES:,}", about)
    return {str(p["key"]): _value(p.get("value")) for p in _objects(pairs) if "key" in p}


def _value(raw: JSON) -> JSON:
    if not is_object(raw) or not raw:
        return None
    for name, read in _VALUES.items():
        if name in raw:
            return read(raw[name])
    return None


def _int(value: JSON) -> JSON:
    try:
        return int(value) if isinstance(value, str) and len(value) < 24 else value
    except ValueError:
        return value


def _double(value: JSON) -> JSON:
    """Infinities and NaN, which JSON has only as text, stay text; other text is a number."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return number if abs(number) < float("inf") else value
    return value


_VALUES: dict[str, Callable[[Any], JSON]] = {
    "stringValue": lambda v: v,
    "boolValue": lambda v: v,
    "intValue": _int,
    "doubleValue": _double,
    "arrayValue": lambda v: [_value(x) for x in _object(v).get("values") or ()],
    "kvlistValue": lambda v: {str(p.get("key")): _value(p.get("value")) for p in _objects(_object(v).get("values"))},
    "bytesValue": lambda v: v,
}


# --- protobuf -------------------------------------------------------------------------------------------------------


def parse_protobuf(data: bytes) -> Any:
    """The trace or log request that ``data`` is, None when it is none.

    Raises:
        ImportError: the ``collector`` extra is not installed.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    for kind, names in (
        (ExportTraceServiceRequest, ("resource_spans", "scope_spans", "spans")),
        (ExportLogsServiceRequest, ("resource_logs", "scope_logs", "log_records")),
    ):
        request = kind()
        try:
            request.ParseFromString(data)
        except DecodeError:
            continue
        if any(len(one.trace_id) == 16 for _, _, one in _walk(request, names)):
            return request
    return None


def read_protobuf(request: Any) -> Iterator[Item]:
    """The spans or logs of a parsed request."""
    is_spans = hasattr(request, "resource_spans")
    names = ("resource_spans", "scope_spans", "spans") if is_spans else ("resource_logs", "scope_logs", "log_records")
    for index, (resource, scope, one) in enumerate(_walk(request, names)):
        try:
            yield _pb_span(one, scope, resource) if is_spans else _pb_log(one, scope, resource)
        except RecordError as error:
            yield Note(
                code=error.code, message=error.message, external_id=error.external_id, position=f"record {index}"
            )


def _walk(request: Any, names: tuple[str, str, str]) -> Iterator[tuple[dict[str, JSON], str, Any]]:
    outer, middle, inner = names
    for holder in getattr(request, outer):
        resource = _pb_attributes(holder.resource.attributes)
        for scoped in getattr(holder, middle):
            for one in getattr(scoped, inner):
                yield resource, scoped.scope.name, one


def _pb_span(raw: Any, scope: str, resource: dict[str, JSON]) -> Span:
    span_id = _id(raw.span_id.hex(), 16, "span_id")
    return Span(
        trace_id=_id(raw.trace_id.hex(), 32, "trace_id"),
        span_id=span_id,
        parent_id=_id(raw.parent_span_id.hex(), 16, "parent_span_id") if raw.parent_span_id else None,
        name=raw.name,
        start=_nanoseconds(raw.start_time_unix_nano, span_id),
        end=_nanoseconds(raw.end_time_unix_nano, span_id),
        attributes=_pb_attributes(raw.attributes, span_id),
        events=tuple(
            Event(
                name=e.name,
                time=_nanoseconds(e.time_unix_nano, span_id),
                attributes=_pb_attributes(e.attributes, span_id),
            )
            for e in raw.events
        ),
        status=raw.status.code,
        status_message=raw.status.message,
        scope=scope,
        resource=resource,
    )


def _pb_log(raw: Any, scope: str, resource: dict[str, JSON]) -> Log:
    attributes = _pb_attributes(raw.attributes)
    trace_id = _id(raw.trace_id.hex(), 32, "trace_id") if raw.trace_id else ""
    return Log(
        trace_id=trace_id,
        span_id=_id(raw.span_id.hex(), 16, "span_id") if raw.span_id else None,
        name=raw.event_name or str(attributes.get("event.name") or ""),
        time=_nanoseconds(raw.time_unix_nano, trace_id) or _nanoseconds(raw.observed_time_unix_nano, trace_id),
        attributes=attributes,
        body=_pb_value(raw.body),
        scope=scope,
        resource=resource,
    )


def _pb_attributes(pairs: Any, about: str = "") -> dict[str, JSON]:
    if len(pairs) > _ATTRIBUTES:
        raise RecordError("too_large", f"{len(pairs):,} attributes, the limit is {_ATTRIBUTES:,}", about)
    return {p.key: _pb_value(p.value) for p in pairs}


def _pb_value(value: Any) -> JSON:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    held = getattr(value, kind)
    if kind == "array_value":
        return [_pb_value(v) for v in held.values]
    if kind == "kvlist_value":
        return {p.key: _pb_value(p.value) for p in held.values}
    if kind == "bytes_value":
        return base64.b64encode(held).decode()
    if kind == "double_value" and not abs(held) < float("inf"):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(held), "NaN")
    return held


__all__ = ["Event", "Item", "Log", "Span", "is_request", "parse_protobuf", "read_json", "read_protobuf"]
