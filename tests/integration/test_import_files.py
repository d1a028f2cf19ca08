"""Whole imports: playhead's own files, damage, folders, options, exit codes."""

import gzip
import json
import os
from pathlib import Path

import pytest

from playhead.core.codec import dump
from playhead.core.values import AgentVersion, Mark, Replay, RunSpec
from playhead.engine.documents import zstd
from playhead.engine.exports import export_bundle, export_jsonl, export_openai_chat, find_ids
from playhead.errors import UsageError
from playhead.importers import import_paths, list_formats
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery, Store


class FixedClock:
    """A clock that stands still."""

    def __init__(self, at: int) -> None:
        self._at = at

    def now(self) -> int:
        return self._at

    def tick(self) -> int:
        return self._at


def talk(name: str, turns: int = 2) -> dict:
    messages: list[dict] = [{"role": "system", "content": "You help."}]
    for n in range(turns):
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps({"n": n, "of": name})},
        }
        messages += [
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": f"result {n} ünï"},
            {"role": "assistant", "content": f"answer {n}"},
        ]
    return {"id": name, "messages": messages, "model": "m"}


@pytest.fixture
def filled(tmp_path: Path) -> Store:
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps(talk(f"t{n}", n + 1)) + "\n" for n in range(3)))
    store = MemoryStore()
    assert import_paths(store, [path]).created == 3
    return store


def exported(store: Store, path: Path) -> bytes:
    export_jsonl(store, find_ids(store, SessionQuery()), path, clock=FixedClock(7))
    return path.read_bytes()


def test_export_import_export_gives_the_same_bytes(filled: Store, tmp_path: Path) -> None:
    first = exported(filled, tmp_path / "a.jsonl")
    other = MemoryStore()
    assert import_paths(other, [tmp_path / "a.jsonl"]).created == 3
    assert exported(other, tmp_path / "b.jsonl") == first
    assert import_paths(other, [tmp_path / "a.jsonl"]).unchanged == 3


def test_an_export_is_private_and_appears_only_when_it_is_whole(filled: Store, tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    exported(filled, target)
    assert target.stat().st_mode & 0o777 == 0o600
    before = target.read_bytes()
    with pytest.raises(UsageError):
        export_jsonl(filled, [*find_ids(filled, SessionQuery()), "missing"], target)
    assert target.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "talks.jsonl"]


def test_messages_that_many_requests_share_are_written_once(filled: Store, tmp_path: Path) -> None:
    assert exported(filled, tmp_path / "a.jsonl").count(b"question 0") == 3 * 3  # message, inputs, turn


def test_a_file_cut_anywhere_gives_its_finished_sessions_and_one_error(filled: Store, tmp_path: Path) -> None:
    whole = exported(filled, tmp_path / "a.jsonl")
    ends = [at + 1 for at in range(len(whole)) if whole[at : at + 1] == b"\n"]
    finished = [e for e in ends if b'"r":"end"' in whole[:e].splitlines()[-1]]
    cut_file = tmp_path / "cut.jsonl"
    for cut in [*ends[:-1], *(e - 5 for e in ends), *(e + 3 for e in ends[:-1])]:
        cut_file.write_bytes(whole[:cut])
        report = import_paths(MemoryStore(), [cut_file])
        assert (report.created, report.failed) == (sum(e <= cut for e in finished), 1), (cut, report.errors.first)
        assert report.errors.first[0].file == str(cut_file)


def test_a_digest_that_does_not_fit_fails_its_session_only(filled: Store, tmp_path: Path) -> None:
    whole = exported(filled, tmp_path / "a.jsonl")
    for old, new in ((b"answer 2", b"answer X"), (b'"nodes":9', b'"nodes":7'), (b"result 2", b"result Y")):
        assert old in whole
        bad = tmp_path / "bad.jsonl"
        bad.write_bytes(whole.replace(old, new))
        report = import_paths(MemoryStore(), [bad])
        assert (report.created, report.failed, report.exit_code) == (2, 1, 1), (old, report.errors.first)
        assert report.errors.first[0].external_id


def test_a_damaged_line_fails_its_session_only(filled: Store, tmp_path: Path) -> None:
    lines = exported(filled, tmp_path / "a.jsonl").splitlines(keepends=True)
    for place in range(1, len(lines)):
        bad = tmp_path / "bad.jsonl"
        bad.write_bytes(b"".join([*lines[:place], b'{"r": "no\xff\n', *lines[place + 1 :]]))
        report = import_paths(MemoryStore(), [bad])
        assert report.created >= 1
        assert (report.created + report.failed, report.exit_code) == (3, 1), (place, report.errors.first)


def test_a_file_of_a_newer_version_is_refused_whole(filled: Store, tmp_path: Path) -> None:
    whole = exported(filled, tmp_path / "a.jsonl")
    path = tmp_path / "new.jsonl"
    path.write_bytes(whole.replace(b'"version":1', b'"version":99', 1))
    report = import_paths(MemoryStore(), [path])
    assert (report.created, report.failed) == (0, 1)
    assert "newer" in report.errors.first[0].message


def test_a_bundle_brings_the_agent_version_and_the_replay_along(filled: Store, tmp_path: Path) -> None:
    from dataclasses import replace

    from playhead.core.values import LedgerRow

    version = filled.agents.register(
        AgentVersion(
            id="01900000-0000-7000-8000-000000000001",
            agent="a",
            number=1,
            created_at=1,
            run_spec=RunSpec(entry_point="m:f"),
        )
    )
    ids = find_ids(filled, SessionQuery())
    row = LedgerRow(kind="tool", by="served", tool="look")
    replay = Replay(id="01900000-0000-7000-8000-000000000002", baseline_session_id=ids[1], created_at=1, ledger=(row,))
    filled.replays.create(replay)
    session = replace(filled.sessions.get(ids[0]), agent_version=version.id, replay_id=replay.id)
    filled.sessions.put(session, filled.sessions.nodes(ids[0]))
    export_bundle(filled, ids[0], tmp_path / "one.playhead")
    assert zstd.decompress((tmp_path / "one.playhead").read_bytes()).startswith(b'{"r":"header"')
    other = MemoryStore()
    assert import_paths(other, [tmp_path / "one.playhead"]).created == 1
    assert other.sessions.get(ids[0]).agent_version == version.id
    assert other.agents.get(version.id).run_spec == RunSpec(entry_point="m:f")
    assert other.replays.get(replay.id).ledger == (row,)


def test_an_export_passes_every_value_through_redaction(filled: Store, tmp_path: Path) -> None:
    def hide(value: object) -> object:
        return json.loads(json.dumps(value).replace("question 0", "[hidden]"))

    ids = find_ids(filled, SessionQuery())
    export_jsonl(filled, ids, tmp_path / "a.jsonl", redact=hide)
    export_openai_chat(filled, ids, tmp_path / "c.jsonl", redact=hide)
    assert b"question 0" not in (tmp_path / "a.jsonl").read_bytes() + (tmp_path / "c.jsonl").read_bytes()
    assert import_paths(MemoryStore(), [tmp_path / "a.jsonl"]).created == 3


def test_chat_transcripts_go_out_and_come_back_with_the_same_calls(filled: Store, tmp_path: Path) -> None:
    done = export_openai_chat(filled, find_ids(filled, SessionQuery()), tmp_path / "c.jsonl")
    assert (done.sessions, done.left_out) == (3, [])
    other = MemoryStore()
    assert import_paths(other, [tmp_path / "c.jsonl"]).created == 3

    def keys(store: Store) -> list[list[str | None]]:
        sessions = store.sessions.find(SessionQuery()).items
        return sorted([n.call.key for n in store.sessions.nodes(s.id) if n.call] for s in sessions)

    assert keys(other) == keys(filled)


ODD_ARGUMENTS = ['{"q": ', "[" * 3000 + "]" * 3000, '{"$ne": 1}', '{"$date": "x"}', '{"n": 9007199254740993}']


def test_odd_arguments_go_out_in_a_transcript_as_the_model_wrote_them(tmp_path: Path) -> None:
    calls = [
        {"id": str(n), "type": "function", "function": {"name": "f", "arguments": text}}
        for n, text in enumerate(ODD_ARGUMENTS)
    ]
    results = [{"role": "tool", "tool_call_id": str(n), "content": "r"} for n in range(len(calls))]
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    talk.append({"role": "assistant", "content": "done"})
    path, store = tmp_path / "a.json", MemoryStore()
    path.write_text(json.dumps({"messages": talk}))
    import_paths(store, [path])
    export_openai_chat(store, find_ids(store, SessionQuery()), tmp_path / "b.jsonl")
    written = json.loads((tmp_path / "b.jsonl").read_text())["messages"][1]["tool_calls"]
    texts = [call["function"]["arguments"] for call in written]
    assert texts[:2] == ODD_ARGUMENTS[:2]
    assert [json.loads(text) for text in texts[2:]] == [json.loads(text) for text in ODD_ARGUMENTS[2:]]


def test_imported_marks_survive_the_round_trip(filled: Store, tmp_path: Path) -> None:
    exported(filled, tmp_path / "a.jsonl")
    other = MemoryStore()
    import_paths(other, [tmp_path / "a.jsonl"])
    for session in other.sessions.find(SessionQuery()).items:
        assert {n.call.mark for n in other.sessions.nodes(session.id) if n.call} == {Mark.TEXT}
        assert session.origin == "import"


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, lambda d: gzip.compress(zstd.compress(d))])
def test_compressed_files_are_unpacked_by_their_content(tmp_path: Path, pack) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(pack(json.dumps(talk("a")).encode()))
    assert import_paths(MemoryStore(), [path]).created == 1


def test_a_damaged_compressed_file_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(json.dumps(talk("a")).encode())[:-12])
    report = import_paths(MemoryStore(), [path])
    assert (report.created, report.failed, report.exit_code) == (0, 1, 1)


def test_a_bad_byte_fails_its_line_and_a_cut_line_its_file(tmp_path: Path) -> None:
    good = [json.dumps(talk(f"t{n}")).encode() for n in range(3)]
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join([good[0], good[1].replace(b"You", b"Y\xffu"), good[2]]))
    report = import_paths(MemoryStore(), [path])
    (error,) = report.errors.first
    assert (report.created, error.code, error.file, error.position) == (2, "undecodable", str(path), "2")
    path.write_bytes(good[0][:100])
    report = import_paths(MemoryStore(), [path])
    assert (report.created, report.failed) == (0, 1)


def test_a_damaged_first_line_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("{broken\n" + json.dumps(talk("a")) + "\n" + json.dumps(talk("b")) + "\n")
    report = import_paths(MemoryStore(), [path])
    assert (report.created, report.failed, report.errors.first[0].position) == (2, 1, "1")


def test_one_bad_session_in_an_array_does_not_stop_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        json.dumps([talk("a"), {**talk("b"), "messages": [{"role": "user", "strange": 1}]}, talk("c")], indent=1)
    )
    report = import_paths(MemoryStore(), [path])
    (error,) = report.errors.first
    assert (report.created, error.external_id, error.position) == (2, "b", "/1/messages/0")
    assert report.to_json()["errors"][0]["pointer"] == "/1/messages/0"


def test_an_array_that_is_cut_off_gives_what_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([talk("a"), talk("b")], indent=1)[:-40])
    report = import_paths(MemoryStore(), [path])
    assert (report.created, report.failed) == (1, 1)


def test_a_cycle_of_parents_fails_its_trace_only(tmp_path: Path) -> None:
    def span(trace: str, own: str, parent: str | None) -> dict:
        made = {"traceId": trace * 16, "spanId": own * 8, "name": "s", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
        return made | ({"parentSpanId": parent * 8} if parent else {})

    spans = [span("0a", "01", "02"), span("0a", "02", "01"), span("0b", "03", None)]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    report = import_paths(MemoryStore(), [path])
    assert (report.created, [e.code for e in report.errors]) == (1, ["cycle"])


def test_a_bad_span_does_not_refuse_its_neighbours(tmp_path: Path) -> None:
    good = {"traceId": "0A" * 16, "spanId": "01" * 8, "name": "s", "startTimeUnixNano": 1, "endTimeUnixNano": "2"}
    bad = [
        {**good, "traceId": "0a" * 15}, {**good, "spanId": "00" * 8}, "not a span",
        {**good, "spanId": "02" * 8, "endTimeUnixNano": -4}, {**good, "spanId": 5},
    ]  # fmt: skip
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*bad, good]}]}]}))
    report = import_paths(MemoryStore(), [path])
    assert (report.created, report.failed) == (1, 5)
    assert report.errors.counts == {"missing_id": 4, "bad_time": 1}
    assert report.errors.first[0].position == "/resourceSpans/0/scopeSpans/0/spans/0"


def test_a_folder_is_one_import_and_names_what_it_passes_over(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text(json.dumps(talk("a")))
    (tmp_path / "in/notes.md").write_text("# notes")
    (tmp_path / "in/run.json").write_text(json.dumps({"run_type": "llm", "dotted_order": "x", "trace_id": "y"}))
    (tmp_path / "in/empty").write_text("")
    report = import_paths(MemoryStore(), [tmp_path / "in"])
    assert (report.created, report.exit_code) == (1, 0)
    said = {Path(n.file or "").name: (n.code, n.message) for n in report.skipped}
    assert said["notes.md"][0] == "unknown_format"
    assert said["run.json"][0] == "unsupported_format"
    assert "langsmith" in said["run.json"][1]


def test_a_named_file_of_no_format_is_a_usage_problem(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# notes")
    (tmp_path / "odd.json").write_text('{"a": 1}')
    for name in ("notes.md", "odd.json"):
        assert import_paths(MemoryStore(), [tmp_path / name]).exit_code == 2
    with pytest.raises(UsageError, match="no file"):
        import_paths(MemoryStore(), [tmp_path / "missing.json"])
    with pytest.raises(UsageError, match="no format"):
        import_paths(MemoryStore(), [tmp_path / "odd.json"], format="nope")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_exit_code_3(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    path.chmod(0)
    assert import_paths(MemoryStore(), [path]).exit_code == 3


def test_a_dry_run_reports_the_same_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(talk(f"t{n}")) for n in range(3)))
    store = MemoryStore()
    dry = import_paths(store, [path], dry_run=True)
    assert (dry.created, store.sessions.count(SessionQuery())) == (3, 0)
    import_paths(store, [path], limit=1)
    dry = import_paths(store, [path], dry_run=True)
    assert (dry.created, dry.unchanged) == (2, 1)
    wet = import_paths(MemoryStore(), [path]).to_json()
    empty = import_paths(MemoryStore(), [path], dry_run=True).to_json()
    assert {**wet, "dry_run": True} == empty


def test_sessions_that_exist_can_be_passed_over_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(talk("a", 1)))
    store = MemoryStore()
    import_paths(store, [path])
    path.write_text(json.dumps(talk("a", 2)))
    assert import_paths(store, [path], on_exists="skip").unchanged == 1
    refused = import_paths(store, [path], on_exists="fail")
    assert [e.code for e in refused.errors] == ["exists"]
    assert (
        len(
            store.sessions.get(
                refused.session_ids[0] if refused.session_ids else find_ids(store, SessionQuery())[0]
            ).turns
        )
        == 1
    )


def test_limits_stop_the_import_and_keep_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    bad = json.dumps({"messages": [{"role": "user", "odd": 1}]})
    path.write_text("\n".join([json.dumps(talk("a")), bad, bad, json.dumps(talk("b"))]))
    store = MemoryStore()
    report = import_paths(store, [path], max_errors=2)
    assert (report.created, report.failed, report.stopped) == (1, 2, True)
    assert import_paths(MemoryStore(), [path], limit=1).created == 1


def test_only_sessions_of_the_times_asked_for_are_imported(shared_data: Path) -> None:
    folder = shared_data / "exports/otel_genai"
    everything = import_paths(MemoryStore(), [folder])
    edge = 1796064600 * 10**9
    early = import_paths(MemoryStore(), [folder], until=edge)
    late = import_paths(MemoryStore(), [folder], since=edge)
    assert early.created + late.created == everything.created
    assert early.created > 0
    assert late.skipped.counts["outside_times"] == early.created


def test_the_agent_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(talk("a")))
    store = MemoryStore()
    (one,) = import_paths(store, [path], agent="desk").session_ids
    assert store.sessions.get(one).agent == "desk"


def test_ids_are_the_same_in_every_store(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(talk(f"t{n}")) for n in range(3)))
    stores = [MemoryStore(), MemoryStore()]
    found = [import_paths(s, [path]).session_ids for s in stores]
    assert found[0] == found[1]
    nodes = [[dump(n) for i in found[0] for n in s.sessions.nodes(i)] for s in stores]
    assert nodes[0] == nodes[1]


def test_every_format_has_a_name_and_words() -> None:
    assert {n for n, _ in list_formats()} == {"playhead", "otlp", "openai_chat", "tau_bench", "tau2", "swe_agent"}
    assert all(about for _, about in list_formats())


def test_a_record_that_comes_twice_with_other_content_is_refused_and_settles(tmp_path: Path) -> None:
    def chat(answer: str) -> str:
        messages = [{"role": "user", "content": "where is it?"}, {"role": "assistant", "content": answer}]
        return json.dumps({"id": "c1", "messages": messages})

    file = tmp_path / "chats.jsonl"
    file.write_text(f"{chat('here')}\n{chat('there')}\n")
    store = MemoryStore()
    first = import_paths(store, [file])
    again = import_paths(store, [file])
    assert [error.code for error in first.errors] == ["duplicate_record"]
    assert (first.created, again.created, again.updated) == (1, 0, 0)
    (session,) = store.sessions.find(SessionQuery()).items
    assert session.output == "here"
