"""Chat transcripts and tau-bench results."""

import json
from pathlib import Path

from playhead.core.protocol.openai_chat import read_request
from playhead.core.protocol.request import request_key
from playhead.core.values import Mark, NodeKind
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery, Store


def all_sessions(store: Store) -> list:
    return list(store.sessions.find(SessionQuery(), limit=1000).items)


def chat(*messages: dict, **more: object) -> dict:
    return {"messages": list(messages), **more}


def asks(call_id: str, tool: str, **arguments: object) -> dict:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str, text: str) -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def says(text: str) -> dict:
    return {"role": "assistant", "content": text}


def imported(tmp_path: Path, *transcripts: object, **options: object) -> tuple[Store, list]:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(t) + "\n" for t in transcripts))
    store = MemoryStore()
    report = import_paths(store, [path], **options)  # type: ignore[arg-type]
    assert report.exit_code == 0, report.errors.first
    return store, [store.sessions.get(i) for i in report.session_ids]


def test_a_transcript_rebuilds_its_calls_from_the_messages(shared_data: Path) -> None:
    store = MemoryStore()
    report = import_paths(store, [shared_data / "exports/openai_chat/transcript.json"])
    (session,) = all_sessions(store)
    nodes = store.sessions.nodes(session.id)
    assert [n.kind.value[0] for n in nodes] == ["m", "t", "t", "m", "t", "m"]
    assert (report.tally.rebuilt, report.tally.usage, dict(report.tally.joined)) == (3, None, {"id": 3})
    outcomes = {n.call.tool: n.outcome for n in nodes if n.call and n.call.mark is Mark.TEXT}
    assert {t: o.error_hint for t, o in outcomes.items() if o} == {
        "lookup_order": False, "get_weather": False, "refund_payment": True,
    }  # fmt: skip
    assert (session.started_at, session.turns[0].output, len(session.turns)) == (0, session.output, 1)


def test_repeated_call_ids_are_told_apart_by_place(shared_data: Path) -> None:
    path = shared_data / "tau-bench/gpt-4o-airline.json"
    store = MemoryStore()
    report = import_paths(store, [path], tools=shared_data / "tau-bench/tools-airline.json")
    tally = report.tally
    assert (report.sessions, tally.nodes["model_call"], tally.nodes["tool_call"]) == (120, 1698, 810)
    assert (tally.unanswered, tally.error_hints) == (0, 67)
    runs = {(r["task_id"], r["trial"]): r for r in json.loads(path.read_text())}
    rewards = []
    for session in all_sessions(store):
        key = (session.metadata["task_id"], session.metadata["trial"])
        called = [n for n in store.sessions.nodes(session.id) if n.call]
        told = [m for m in runs[key]["traj"] if m["role"] == "tool"]
        assert [n.call.tool for n in called if n.call] == [m["name"] for m in told]
        assert [n.outcome.value for n in called if n.outcome] == [m["content"] for m in told]
        (verdict,) = store.sessions.verdicts(session.id)
        rewards.append(verdict.score)
        if key == (0, 0):
            twice = [n for n in called if n.call and n.call.call_id == "call_oIHazX6yQrB8hUwl4cRilFKj"]
            assert [(n.call.tool, n.call.arguments) for n in twice if n.call] == [
                ("get_user_details", {"user_id": "mia_li_3668"}),
                ("calculate", {"expression": "152 + 103"}),
            ]
            assert twice[1].outcome is not None
            assert twice[1].outcome.value == "255.0"
    assert (len(rewards), sum(rewards)) == (120, 36.0)
    again = import_paths(store, [path], tools=shared_data / "tau-bench/tools-airline.json")
    assert again.unchanged == 120


def test_the_request_of_each_answer_is_everything_before_it(tmp_path: Path) -> None:
    store, (session,) = imported(
        tmp_path, chat(user("a"), asks("c", "t", x=1), result("c", "r"), says("done"), model="m")
    )
    models = [n for n in store.sessions.nodes(session.id) if n.model]
    assert [len(n.inputs["messages"]) for n in models] == [1, 3]
    assert [(n.model.capture, n.model.missing) for n in models if n.model] == [
        ("partial", ("tools", "tool_choice", "params"))
    ] * 2


def test_a_complete_request_is_captured_in_full_and_keyed_like_the_request_on_the_wire(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object"}}}
    body = {
        "model": "gpt-x", "messages": [{"role": "system", "content": "s"}, user("a")], "tools": [tool],
        "tool_choice": "auto", "temperature": 0.5,
    }  # fmt: skip
    store, (session,) = imported(tmp_path, {**body, "messages": [*body["messages"], says("b")]})
    (node,) = store.sessions.nodes(session.id)
    request = read_request(body)
    assert node.model is not None
    assert (node.model.capture, node.model.missing) == ("full", ())
    assert node.model.key == request_key(request.model, request.inputs)


def test_tools_given_at_import_are_offered_in_every_request(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
    store, (session,) = imported(tmp_path, chat(user("a"), says("b")), tools=[tool])
    (node,) = store.sessions.nodes(session.id)
    assert node.inputs["tools"][0]["name"] == "t"
    assert node.model is not None
    assert "tools" not in node.model.missing


def test_a_turn_is_a_run_of_user_messages_that_an_answer_follows(tmp_path: Path) -> None:
    store, (session,) = imported(
        tmp_path,
        chat(
            {"role": "system", "content": "be kind"},
            user("one"), user("and more"), says("first"),
            user("two"), asks("c", "t"), result("c", "ok"),
            user("never answered"),
        ),
    )  # fmt: skip
    nodes = store.sessions.nodes(session.id)
    assert [t.output for t in session.turns] == ["first", None]
    assert session.inputs == {"turns": [[{"type": "text", "text": "one"}, {"type": "text", "text": "and more"}], "two"]}
    assert session.trailing_input == "never answered"
    assert session.system_prompt == "be kind"
    assert (session.turns[1].first_node, session.turns[1].last_node) == (nodes[1].id, nodes[2].id)
    assert [n.kind for n in nodes] == [NodeKind.MODEL_CALL, NodeKind.MODEL_CALL, NodeKind.TOOL_CALL]
    assert session.output is None


def test_a_recording_that_ends_with_an_answered_call_keeps_that_call_last(tmp_path: Path) -> None:
    store, (session,) = imported(tmp_path, chat(user("a"), asks("c", "t"), result("c", "ok")))
    last = store.sessions.nodes(session.id)[-1]
    assert last.call is not None
    assert last.outcome is not None
    assert (last.call.tool, last.outcome.value) == ("t", "ok")


def test_a_call_without_an_answer_makes_no_node_but_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(chat(user("a"), asks("c", "final_result"))))
    store = MemoryStore()
    report = import_paths(store, [path])
    assert (report.tally.unanswered, report.tally.nodes["tool_call"]) == (1, 0)


def test_arguments_that_do_not_parse_are_kept_as_text(tmp_path: Path) -> None:
    bad = asks("c", "t")
    bad["tool_calls"][0]["function"]["arguments"] = '{"x": '
    store, (session,) = imported(tmp_path, chat(user("a"), bad, result("c", "Error: bad json")))
    call = store.sessions.nodes(session.id)[1]
    assert call.call is not None
    assert call.outcome is not None
    assert (call.call.arguments, call.outcome.kind.value) == ({"$invalid": '{"x": '}, "invalid_args")


def test_results_of_named_tools_are_decoded_when_asked_for(tmp_path: Path) -> None:
    store, (session,) = imported(tmp_path, chat(user("a"), asks("c", "t"), result("c", '{"n": 1}')), decode_json=["t"])
    node = store.sessions.nodes(session.id)[1]
    assert node.outcome is not None
    assert node.outcome.value == {"n": 1}


def test_a_log_that_has_grown_updates_its_session(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    store = MemoryStore()
    start = [user("a"), asks("c", "t"), result("c", "ok"), says("b")]
    path.write_text(json.dumps(start))
    (first,) = import_paths(store, [path]).session_ids
    path.write_text(json.dumps([*start, user("more"), says("d")]))
    report = import_paths(store, [path])
    assert (report.updated, report.session_ids) == (1, [first])
    assert len(store.sessions.get(first).turns) == 2
    assert import_paths(store, [path]).unchanged == 1


def test_tags_and_verdicts_that_people_added_survive_an_import(tmp_path: Path) -> None:
    from playhead.core.values import Verdict

    path = tmp_path / "a.json"
    path.write_text(json.dumps(chat(user("a"), says("b"), id="x")))
    store = MemoryStore()
    (session_id,) = import_paths(store, [path]).session_ids
    store.sessions.update(session_id, add_tags=["mine"], metadata={"note": 1})
    store.sessions.add_verdicts(session_id, [Verdict(name="good", passed=True, evaluator="me@1")])
    assert import_paths(store, [path]).unchanged == 1
    path.write_text(json.dumps(chat(user("a"), says("b"), user("c"), says("d"), id="x")))
    assert import_paths(store, [path]).updated == 1
    session = store.sessions.get(session_id)
    assert (session.tags, session.metadata["note"], len(session.turns)) == (("mine",), 1, 2)
    assert [v.name for v in store.sessions.verdicts(session_id)] == ["good"]


def test_sessions_of_two_formats_with_one_id_are_two(tmp_path: Path) -> None:
    trace = "8b582683cd4a3f7b6758712aa55783fe"
    span = {"traceId": trace, "spanId": "2f7a661ac53ddcd8", "name": "s", "startTimeUnixNano": "1796064679069478733"}
    path = tmp_path / "both.jsonl"
    lines = [chat(user("a"), says("b"), id=trace), {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert import_paths(MemoryStore(), [path]).created == 2


def test_different_conversations_of_one_task_and_trial_are_all_kept_and_come_again_unchanged(tmp_path: Path) -> None:
    def run(said: str, **more: object) -> dict:
        return {"task_id": 7, "reward": 0.0, "info": {}, "traj": [user("hi"), says(said)], **more}

    path = tmp_path / "runs.json"
    path.write_text(json.dumps([run("one"), run("two"), run("one"), run("three", trial=0), run("four", trial=1)]))
    store = MemoryStore()
    first = import_paths(store, [path])
    names = {s.name: store.sessions.get(s.id).output for s in all_sessions(store)}
    assert names == {"runs/7/0": "one", "runs/7/0/2": "two", "runs/7/0/3": "three", "runs/7/1": "four"}
    again = import_paths(store, [path])
    assert (first.created, again.created, again.unchanged) == (4, 0, 4)
