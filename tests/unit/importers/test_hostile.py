"""No input makes an import fail: it is imported, passed over, or an error with file, place and reason."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.engine.exports import export_jsonl, find_ids
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

STRANGE = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8),
    st.sampled_from(["\ud800", "\0", "$d", "[REDACTED]", "2026-01-01", "[" * 300, '{"a": ' * 300, "Infinity"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["$d", "role", "type", ""]), st.integers(), max_size=2),
)  # fmt: skip


def attribute(key: str, value: object) -> dict:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(own: str, parent: str | None, name: str, at: int, *attributes: dict, **more: object) -> dict:
    made = {
        "traceId": "0a" * 16, "spanId": own * 8, "name": name, "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 5), "attributes": list(attributes), **more,
    }  # fmt: skip
    return made | ({"parentSpanId": parent * 8} if parent else {})


ASKED = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t", "arguments": {"n": 1}}]}]
OTLP = {
    "resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": [
        span("01", None, "agent", 1, attribute("gen_ai.operation.name", "invoke_agent")),
        span("02", "01", "chat", 2, attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "m"),
             attribute("gen_ai.input.messages", [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]),
             attribute("gen_ai.output.messages", ASKED), attribute("gen_ai.usage.input_tokens", 5)),
        span("03", "01", "tool", 9, attribute("gen_ai.operation.name", "execute_tool"),
             attribute("gen_ai.tool.name", "t"), attribute("gen_ai.tool.call.id", "c"),
             attribute("gen_ai.tool.call.arguments", {"n": 1}),
             events=[{"name": "exception", "attributes": [attribute("exception.type", "E")]}], status={"code": 2}),
    ]}]}],
    "resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"traceId": "0a" * 16, "spanId": "02" * 8, "eventName": "gen_ai.choice", "observedTimeUnixNano": "3",
         "body": {"kvlistValue": {"values": [attribute("finish_reason", "stop")]}}},
    ]}]}],
}  # fmt: skip
CALL = {"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"n": 1}'}}
CHAT = {
    "id": "x", "model": "m", "temperature": 1, "metadata": {"a": 1},
    "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "r"}, {"role": "assistant", "content": "done"},
    ],
}  # fmt: skip
TAU = {
    "task_id": 1, "trial": 0, "reward": 1.0, "traj": CHAT["messages"],
    "info": {"task": {"instruction": "i", "actions": [{"name": "t", "kwargs": {}}]}, "user_cost": 0.1},
}  # fmt: skip


def places(value: Any, path: tuple = ()) -> list[tuple]:
    found = [path]
    if isinstance(value, dict):
        for name, inner in value.items():
            found += places(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            found += places(inner, (*path, place))
    return found


def changed(value: Any, path: tuple, to: Any, how: str) -> Any:
    if not path:
        return to
    made = copy.deepcopy(value)
    at = made
    for step in path[:-1]:
        at = at[step]
    if how == "remove":
        del at[path[-1]]
    elif how == "twice" and isinstance(at, list):
        at.append(at[path[-1]])
    else:
        at[path[-1]] = to
    return made


def checked(path: Path) -> None:
    store = MemoryStore()
    report = import_paths(store, [path])
    for error in report.errors:
        assert error.code
        assert error.message
        assert error.file == str(path) or error.external_id, error
    assert report.exit_code in (0, 1, 2)
    for session_id in report.session_ids:
        store.sessions.nodes(session_id)
    json.dumps(report.to_json())
    again = import_paths(store, [path])
    assert (again.created, again.updated) == (0, 0)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_changed_member_anywhere_is_imported_or_told(tmp_path: Path, data: st.DataObject) -> None:
    value: Any = data.draw(st.sampled_from([OTLP, CHAT, TAU]))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(value)))
        value = changed(value, path, data.draw(STRANGE), data.draw(st.sampled_from(["replace", "remove", "twice"])))
    file = tmp_path / "x.json"
    file.write_text(json.dumps(value))
    checked(file)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_changed_bytes_are_imported_or_told(tmp_path: Path, data: st.DataObject) -> None:
    text = "\n".join(json.dumps(v) for v in (OTLP, CHAT, TAU, CHAT)).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    file = tmp_path / "x.jsonl"
    file.write_bytes(text[:at] + data.draw(st.binary(max_size=4)) + text[at + data.draw(st.integers(0, 9)) :])
    checked(file)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_changed_playhead_file_is_imported_or_told(tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / "source.jsonl"
    source.write_text(json.dumps(CHAT))
    store = MemoryStore()
    import_paths(store, [source])
    export_jsonl(store, find_ids(store, SessionQuery()), tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    place = data.draw(st.integers(0, len(lines) - 1))
    path = data.draw(st.sampled_from(places(lines[place])))
    lines[place] = changed(lines[place], path, data.draw(STRANGE), data.draw(st.sampled_from(["replace", "remove"])))
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    checked(file)
