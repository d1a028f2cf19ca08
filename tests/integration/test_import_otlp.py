"""OTLP recordings of real tracers: counts, joins, marks and merging, as the samples' own expectations say."""

import json
from pathlib import Path

import pytest

from playhead.core.codec import dump
from playhead.core.values import Mark, Node, NodeKind, OutcomeKind, Session, SessionStatus
from playhead.engine.documents import Document
from playhead.engine.imports import Importing, ImportOptions
from playhead.importers import import_paths
from playhead.importers.otlp import OtlpReader
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery, Store

SAMPLES = [
    "genai13_agents",
    "genai13_anthropic",
    "genai13_openai",
    "genai13_openai_nocontent",
    "openllmetry_legacy_indexed",
    "openllmetry_openai",
    "semconv_old_events",
]
BUCKETS = ("input_uncached", "input_cache_read", "input_cache_write", "output_visible", "output_reasoning")


@pytest.fixture
def genai(shared_data: Path) -> Path:
    return shared_data / "exports" / "otel_genai"


def sessions_of(store: Store) -> list[Session]:
    return list(store.sessions.find(SessionQuery(oldest_first=True)).items)


def only(store: Store) -> tuple[Session, list[Node]]:
    (session,) = sessions_of(store)
    return session, store.sessions.nodes(session.id)


def of_kind(nodes: list[Node], kind: NodeKind) -> list[Node]:
    return [n for n in nodes if n.kind is kind]


def tools(nodes: list[Node]) -> dict[str, Node]:
    return {n.call.tool: n for n in nodes if n.call is not None}


def canonical(store: Store) -> list[object]:
    """Everything that is stored, as JSON."""
    return [[dump(s), [dump(n) for n in store.sessions.nodes(s.id)]] for s in sessions_of(store)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_has_its_expected_counts_and_a_second_import_changes_nothing(genai: Path, name: str) -> None:
    expected = json.loads((genai.parent / "expected.json").read_text())[f"otel_genai/{name}"]
    store = MemoryStore()
    report = import_paths(store, [genai / name])
    tally = report.tally
    assert (report.exit_code, report.failed, report.sessions) == (0, 0, expected["sessions"])
    assert {kind.value: tally.nodes[kind.value] for kind in NodeKind} == expected["nodes"]
    assert dict(tally.joined) == expected["joined"]
    assert dict(tally.marks) == expected["fidelity"]
    assert dict(tally.outcomes) == expected["tool_outcomes"]
    assert tally.duplicates == expected.get("dropped_duplicates", 0)
    assert tally.usage is not None
    assert {b: getattr(tally.usage, b) for b in BUCKETS} == {b: expected["usage"][b] for b in BUCKETS}
    conversations = {s.conversation.id for s in sessions_of(store) if s.conversation}
    assert sorted(conversations) == expected["conversations"]
    before = canonical(store)
    again = import_paths(store, [genai / name])
    assert (again.created, again.updated, again.unchanged) == (0, 0, expected["sessions"])
    assert canonical(store) == before


def test_protobuf_json_and_file_export_of_the_same_spans_are_the_same_session(genai: Path) -> None:
    folder = genai / "genai13_openai"
    names = ["0034_POST_v1_traces.pb", "0034_POST_v1_traces.otlp.json", "spans.jsonl"]
    stores = []
    for path in [folder, *(folder / n for n in names)]:
        stores.append(MemoryStore())
        import_paths(stores[-1], [path])
    session, nodes = only(stores[0])
    assert session.imported is not None
    assert session.imported.external_id == "8b582683cd4a3f7b6758712aa55783fe"
    assert [n.imported.external_id for n in nodes if n.imported] == [
        "2f7a661ac53ddcd8", "4a2f5f7163260238", "9389650c3fd31276", "425f73801c3c24fb", "41c3196c42e9de42",
        "18cd3237db62ce8f", "4a59dcdf0f97915b",
    ]  # fmt: skip
    assert all(canonical(other) == canonical(stores[0]) for other in stores[1:])
    for name in names:
        assert import_paths(stores[0], [folder / name]).unchanged == 1


def test_parallel_calls_are_joined_by_id_and_keep_their_characters(genai: Path) -> None:
    store = MemoryStore()
    import_paths(store, [genai / "genai13_openai"])
    session, nodes = only(store)
    models = [n.id for n in of_kind(nodes, NodeKind.MODEL_CALL)]
    found = tools(nodes)
    calls = {name: n.call for name, n in found.items() if n.call}
    assert {t: (c.call_id, c.index, models.index(c.model_call or "")) for t, c in calls.items()} == {
        "lookup_order": ("call_00000089", 0, 0),
        "get_weather": ("call_00000090", 1, 0),
        "refund_payment": ("call_00000092", 0, 1),
    }
    assert calls["lookup_order"].arguments == {"note": "日本語 naïve café 🚀", "order_id": "4821"}
    assert [calls[t].mark for t in calls] == [Mark.TEXT, Mark.EXACT, Mark.EXACT]
    outcomes = {t: n.outcome for t, n in found.items() if n.outcome}
    assert outcomes["lookup_order"].value.startswith('{"order_id": "4821", "status"')
    refused = "Rückerstattung abgelehnt: limit 100.00 EUR"
    error = outcomes["refund_payment"].error
    assert error is not None
    assert (outcomes["refund_payment"].kind, error.class_name, error.message) == (
        OutcomeKind.ERROR, "ValueError", refused,
    )  # fmt: skip
    assert found["refund_payment"].attributes["model_view"] == f"ValueError: {refused}"
    assert session.status is SessionStatus.COMPLETED
    assert session.system_prompt == "You are a shop assistant. Use tools."
    assert session.inputs.startswith("Where is order 4821")
    assert session.output.startswith("Order 4821 is shipped")


def test_one_call_has_one_key_whatever_recorded_it(shared_data: Path) -> None:
    store = MemoryStore()
    import_paths(store, [shared_data / "exports" / n for n in ("otel_genai", "openai_chat", "vercel_ai")])
    keys: dict[str, set[str | None]] = {}
    for session in sessions_of(store):
        for node in store.sessions.nodes(session.id):
            if node.call is not None:
                keys.setdefault(node.call.tool, set()).add(node.call.key)
                assert node.call.tool != "refund_payment" or node.call.arguments["amount_cents"] == 12900
    assert {tool: len(found) for tool, found in keys.items()} == {
        "lookup_order": 1, "get_weather": 1, "refund_payment": 1,
    }  # fmt: skip


def test_a_call_that_two_tracers_report_is_one_with_the_outer_id(genai: Path) -> None:
    store = MemoryStore()
    import_paths(store, [genai / "genai13_anthropic"])
    _, nodes = only(store)
    models = of_kind(nodes, NodeKind.MODEL_CALL)
    assert [(n.imported.external_id, n.imported.merged) for n in models if n.imported] == [
        ("d37c231a8c4f3b0f", ("826acb625be7cb8d",)),
        ("5aee6a762cc1917d", ("abc124d5eacbd6e3",)),
        ("b9a3a704c72b7fb8", ("f2907db164c2afc2",)),
    ]
    usages = [n.model.usage for n in models if n.model and n.model.usage]
    inputs = [(u.input_uncached or 0) + (u.input_cache_read or 0) + (u.input_cache_write or 0) for u in usages]
    assert inputs == [200, 240, 280]


def test_messages_that_come_later_in_logs_fill_the_same_session(genai: Path) -> None:
    folder = genai / "semconv_old_events"
    store = MemoryStore()
    first = import_paths(store, [folder / "spans.jsonl"])
    session, nodes = only(store)
    assert [n.model.capture for n in nodes if n.model] == ["none"] * 3
    assert dict(first.tally.joined) == {"position": 3}
    second = import_paths(store, [folder])
    later, merged = only(store)
    assert (second.updated, later.id, later.revision, len(merged)) == (1, session.id, 2, len(nodes))
    assert [len(n.inputs["messages"]) for n in merged if n.model] == [2, 5, 7]
    assert dict(second.tally.joined) == {"id": 3}
    assert [n.call.call_id for n in merged if n.call] == ["call_00000077", "call_00000078", "call_00000080"]
    assert later.usage is not None
    assert (later.usage.input_uncached, later.usage.input_cache_read) == (580, None)


def test_logs_before_spans_give_what_spans_before_logs_give(genai: Path) -> None:
    folder = genai / "semconv_old_events"
    logs = sorted(folder.glob("*logs.otlp.json"))
    spans_first, logs_first = MemoryStore(), MemoryStore()
    for path in (folder / "spans.jsonl", *logs[:0]):
        import_paths(spans_first, [path])
    import_paths(spans_first, logs)
    import_paths(logs_first, logs)
    import_paths(logs_first, [folder / "spans.jsonl"])
    one, nodes = only(spans_first)
    other, others = only(logs_first)
    shown = [(n.kind, n.name, n.seq, n.inputs, n.outcome, n.started_at, n.ended_at) for n in nodes]
    assert shown == [(n.kind, n.name, n.seq, n.inputs, n.outcome, n.started_at, n.ended_at) for n in others]
    assert (one.inputs, one.output, one.status, one.agent) == (other.inputs, other.output, other.status, other.agent)


def test_numbered_attributes_are_messages_in_numeric_order(genai: Path) -> None:
    store = MemoryStore()
    import_paths(store, [genai / "openllmetry_legacy_indexed"])
    _, nodes = only(store)
    models = of_kind(nodes, NodeKind.MODEL_CALL)
    assert [[m["role"] for m in n.inputs["messages"]] for n in models] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool", "tool"],
        ["system", "user", "assistant", "tool", "tool", "assistant", "tool"],
    ]
    assert [len(n.inputs["tools"]) for n in models] == [3, 3, 3]
    assert models[0].inputs["tools"][0]["parameters"]["required"] == ["order_id"]


def test_content_that_was_not_captured_is_named_with_the_setting(genai: Path) -> None:
    store = MemoryStore()
    report = import_paths(store, [genai / "genai13_openai_nocontent"])
    session, nodes = only(store)
    assert "inputs_not_captured" in session.not_replayable
    assert [n.model.no_key.reason for n in nodes if n.model and n.model.no_key] == ["not_captured"] * 3
    calls = [n.call for n in nodes if n.call]
    assert [(c.joined, c.index) for c in calls] == [("position", 0), ("position", 1), ("position", 0)]
    (warning,) = report.warnings.first
    assert warning.code == "content_not_captured"
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in warning.message


def test_a_failing_model_call_in_a_trace_of_its_own_is_a_failed_session(genai: Path) -> None:
    store = MemoryStore()
    import_paths(store, [genai / "openllmetry_openai"])
    (failed,) = [s for s in sessions_of(store) if s.status is SessionStatus.FAILED]
    (node,) = store.sessions.nodes(failed.id)
    assert failed.imported is not None
    assert failed.imported.external_id == "74f786fa208829560dc32b1fb724431c"
    assert node.outcome is not None
    assert node.outcome.error is not None
    assert (node.outcome.error.class_name, node.outcome.error.message) == (
        "openai.APIConnectionError", "Connection error.",
    )  # fmt: skip
    assert (failed.conversation, failed.usage, failed.output) == (None, None, None)


def test_a_redacted_error_is_the_text_that_the_model_saw(genai: Path) -> None:
    store = MemoryStore()
    import_paths(store, [genai / "genai13_agents"])
    _, nodes = only(store)
    found = tools(nodes)
    lookup, refund = found["lookup_order"], found["refund_payment"]
    assert lookup.outcome is not None
    assert lookup.call is not None
    assert (lookup.call.mark, lookup.outcome.value["status"]) == (Mark.EXACT, "shipped")
    assert refund.outcome is not None
    assert refund.call is not None
    assert (refund.outcome.kind, refund.call.mark) == (OutcomeKind.RESULT_ERROR, Mark.TEXT)
    assert refund.outcome.value == "An error occurred while running the tool. Please try again."
    assert refund.attributes["error_details"] == "redacted"


def test_traces_of_one_conversation_become_the_turns_of_one_session(genai: Path) -> None:
    store = MemoryStore()
    report = import_paths(store, [genai], group_by="conversation")
    sessions = sessions_of(store)
    assert (report.sessions, sorted(len(s.turns) for s in sessions)) == (3, [0, 0, 6])
    (talk,) = [s for s in sessions if s.turns]
    assert len(talk.inputs["turns"]) == 6
    assert import_paths(store, [genai], group_by="conversation").unchanged == 3


def test_traces_given_out_early_for_memory_end_as_the_same_sessions(genai: Path) -> None:
    path = genai / "genai13_openai/spans.jsonl"
    whole, bounded = MemoryStore(), MemoryStore()
    import_paths(whole, [path])
    importing, reader = Importing(bounded, ImportOptions()), OtlpReader(buffer=1)
    for request in (json.loads(line)["resourceSpans"][0] for line in path.read_text().splitlines()):
        for scope in request["scopeSpans"]:
            for span in scope["spans"]:
                value = {"resourceSpans": [{**request, "scopeSpans": [{**scope, "spans": [span]}]}]}
                part = Document(file="x", value=value, size=100)
                importing.apply("otlp", reader.add(part), part)
    importing.apply("otlp", reader.close())
    (one, nodes), (other, others) = only(whole), only(bounded)
    shape = [(n.kind, n.name, n.inputs, n.outcome) for n in nodes]
    assert [(n.kind, n.name, n.inputs, n.outcome) for n in others] == shape
    assert (one.inputs, one.output, one.usage) == (other.inputs, other.output, other.usage)
    report = importing.report
    assert (report.created, report.sessions, report.tally.nodes["tool_call"]) == (1, 1, 3)


def test_children_before_parents_one_request_each_in_any_order(shared_data: Path) -> None:
    files = sorted((shared_data / "exports/vercel_ai/ai7_new").glob("*traces.json"))
    stores = []
    for order in (files, files[::-1], files + files):
        store = MemoryStore()
        for file in order:
            import_paths(store, [file])
        stores.append(store)
    whole = MemoryStore()
    import_paths(whole, files)
    _, nodes = only(whole)
    assert tools(nodes)["get_weather"].outcome is not None
    assert tools(nodes)["get_weather"].outcome.value == "Zürich: 7 °C, leichter Regen"  # type: ignore[union-attr]
    shape = [(n.kind, n.name, n.outcome, n.inputs) for n in nodes]
    for store in stores:
        assert [(n.kind, n.name, n.outcome, n.inputs) for n in only(store)[1]] == shape
