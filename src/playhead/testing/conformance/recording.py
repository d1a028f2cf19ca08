"""What a store does with sessions while they are recorded."""

import threading
from dataclasses import replace

import pytest

from playhead.core.values import (
    JSON,
    Cost,
    Encoded,
    ErrorInfo,
    Imported,
    Native,
    NodeStatus,
    Outcome,
    OutcomeKind,
    SessionStatus,
    Usage,
    Verdict,
)
from playhead.errors import NotFoundError, UsageError
from playhead.store.ports import SessionQuery, Store
from playhead.testing.conformance.builders import START, a_session, message, model_call, schemas, session_id, tool_call


class Recording:
    def test_a_session_that_began_can_be_read(self, store: Store) -> None:
        session = a_session(inputs={"prompt": "hi"}, tags=("x",), metadata={"k": [1, None]}, owner="h:1:2")
        store.sessions.begin(session)
        assert store.sessions.get(session.id) == session
        assert store.sessions.nodes(session.id) == []

    def test_beginning_twice_changes_nothing(self, store: Store) -> None:
        store.sessions.begin(a_session(inputs="first"))
        store.sessions.begin(a_session(inputs="second"))
        assert store.sessions.get(session_id(1)).inputs == "first"

    def test_nodes_come_back_in_start_order_whatever_the_order_of_writing(self, store: Store) -> None:
        store.sessions.begin(a_session())
        nodes = [tool_call(session_id(1), seq) for seq in range(6)]
        store.sessions.append(session_id(1), [nodes[3], nodes[1]])
        store.sessions.append(session_id(1), [nodes[0], nodes[5], nodes[2], nodes[4]])
        assert store.sessions.nodes(session_id(1)) == nodes
        store.sessions.finish(a_session(status=SessionStatus.COMPLETED))
        assert store.sessions.nodes(session_id(1)) == nodes

    def test_a_node_with_a_known_id_replaces_it(self, store: Store) -> None:
        store.sessions.begin(a_session())
        node = tool_call(session_id(1), 0, status=NodeStatus.OPEN, outcome=None, ended_at=None)
        done = replace(node, status=NodeStatus.COMPLETED, ended_at=START + 9, outcome=Outcome(kind=OutcomeKind.VALUE))
        store.sessions.append(session_id(1), [node, tool_call(session_id(1), 1)])
        store.sessions.append(session_id(1), [done])
        assert store.sessions.nodes(session_id(1))[0] == done
        store.sessions.finish(a_session())
        assert store.sessions.nodes(session_id(1)) == [done, tool_call(session_id(1), 1)]
        assert store.sessions.nodes(session_id(1), payloads=False)[0].status is NodeStatus.COMPLETED

    def test_within_one_append_the_last_node_of_an_id_counts(self, store: Store) -> None:
        store.sessions.begin(a_session())
        store.sessions.append(session_id(1), [tool_call(session_id(1), 0, value=value) for value in ("one", "two")])
        store.sessions.finish(a_session())
        assert [node.outcome and node.outcome.value for node in store.sessions.nodes(session_id(1))] == ["two"]

    def test_an_append_to_a_session_that_does_not_exist_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            store.sessions.append(session_id(9), [tool_call(session_id(9), 0)])
        with pytest.raises(NotFoundError):
            store.sessions.append(session_id(9), [])

    def test_a_node_of_another_session_is_refused(self, store: Store) -> None:
        store.sessions.begin(a_session())
        with pytest.raises(UsageError):
            store.sessions.append(session_id(1), [tool_call(session_id(2), 0)])

    def test_finishing_stores_the_final_state_and_keeps_what_others_added(self, store: Store) -> None:
        store.sessions.begin(a_session(tags=("own",)))
        store.sessions.update(session_id(1), add_tags=["flagged"], metadata={"by": "me"})
        final = a_session(status=SessionStatus.COMPLETED, output=[1], tags=("own", "late"), metadata={"run": 1})
        store.sessions.finish(final)
        found = store.sessions.get(session_id(1))
        assert found == replace(final, tags=("own", "late", "flagged"), metadata={"by": "me", "run": 1})

    def test_nodes_may_arrive_after_the_end(self, store: Store) -> None:
        store.sessions.begin(a_session())
        nodes = [model_call(session_id(1), seq, [message("user", "hi")] * (seq + 1)) for seq in range(4)]
        store.sessions.append(session_id(1), nodes[:2])
        store.sessions.finish(a_session(status=SessionStatus.COMPLETED))
        store.sessions.append(session_id(1), nodes[2:3])
        store.sessions.append(session_id(1), nodes[3:])
        assert store.sessions.nodes(session_id(1)) == nodes
        store.sessions.finish(a_session(status=SessionStatus.COMPLETED))
        assert store.sessions.nodes(session_id(1)) == nodes

    def test_finishing_a_session_that_never_began_stores_it(self, store: Store) -> None:
        store.sessions.finish(a_session(status=SessionStatus.FAILED))
        assert store.sessions.get(session_id(1)).status is SessionStatus.FAILED


class Payloads:
    def test_histories_that_grow_branch_and_shrink_come_back_whole(self, store: Store) -> None:
        store.sessions.begin(a_session())
        main = [message("user", f"question {n}") for n in range(8)]
        other = [message("system", "another agent"), *main[:2]]
        lists = [main[:1], main[:3], other, main[:5], other[:1], [*main[:2], main[7]], main, [], main[1:3], main[:5]]
        nodes = [model_call(session_id(1), seq, messages) for seq, messages in enumerate(lists)]
        for start in range(0, len(nodes), 3):
            store.sessions.append(session_id(1), nodes[start : start + 3])
        assert store.sessions.nodes(session_id(1)) == nodes
        store.sessions.finish(a_session())
        assert store.sessions.nodes(session_id(1)) == nodes

    def test_encoded_values_come_back_as_plain_json(self, store: Store) -> None:
        store.sessions.begin(a_session())
        text = b'{"role":"user","parts":[{"type":"text","text":"hi"}]}'
        encoded = Encoded(text, b"m" * 32)
        tools = Encoded(b'[{"name":"t","description":"' + b"long " * 200 + b'"}]', b"t" * 32)
        nodes = [model_call(session_id(1), seq, [encoded] * (seq + 1), tools=tools) for seq in range(2)]
        value = {"in": [Encoded(b'{"deep":[1.5,null]}', b"v" * 32)]}
        nodes.append(tool_call(session_id(1), 2, value=value, inputs=Encoded(b"[1]", b"i" * 32)))
        store.sessions.append(session_id(1), nodes)
        for _ in range(2):
            first, second, third = store.sessions.nodes(session_id(1))
            assert first.inputs["messages"] == [message("user", "hi")]
            assert second.inputs["messages"] == [message("user", "hi")] * 2
            assert first.inputs["tools"][0]["name"] == "t"
            assert third.outcome is not None
            assert third.outcome.value == {"in": [{"deep": [1.5, None]}]}
            assert third.inputs == [1]
            store.sessions.finish(a_session())

    def test_every_member_of_a_node_comes_back(self, store: Store) -> None:
        store.sessions.begin(a_session())
        error = ErrorInfo(
            class_name="E", args=[1], cause=ErrorInfo(class_name="C"), members=(ErrorInfo(class_name="M"),)
        )
        node = tool_call(
            session_id(1),
            0,
            attributes={"a": {"b": None}},
            parent_id="p",
            inputs=[1],
            outcome=Outcome(
                kind=OutcomeKind.ERROR, value="v", error=error, native=Native(codec="c", version=2, data={"d": 1})
            ),
            imported=Imported(format="f", external_id="x", raw={"line": 1}),
        )
        store.sessions.append(session_id(1), [node])
        assert store.sessions.nodes(session_id(1)) == [node]

    def test_without_payloads_nodes_show_their_heads_only(self, store: Store) -> None:
        store.sessions.begin(a_session())
        call = tool_call(session_id(1), 0, key="1:k", attributes={"a": 1}, inputs="in")
        model = model_call(session_id(1), 1, [message("user", "hi")], tools=schemas())
        store.sessions.append(session_id(1), [call, model])
        for _ in range(2):
            shown, asked = store.sessions.nodes(session_id(1), payloads=False)
            assert (shown.inputs, shown.attributes, asked.inputs) == (None, {}, None)
            assert shown.call is not None
            assert (shown.call.arguments, shown.call.key, shown.call.call_id) == (None, "1:k", "call_0")
            assert shown.outcome == Outcome(kind=OutcomeKind.VALUE)
            assert asked.model is not None
            assert asked.model.usage == Usage(input_uncached=3)
            assert asked.model.cost == Cost(amount="0.01")
            store.sessions.finish(a_session())

    def test_nodes_can_be_read_in_parts(self, store: Store) -> None:
        store.sessions.begin(a_session())
        nodes = [tool_call(session_id(1), seq) for seq in range(10)]
        store.sessions.append(session_id(1), nodes)
        assert store.sessions.nodes(session_id(1), after_seq=3, limit=2) == nodes[4:6]
        assert store.sessions.nodes(session_id(1), limit=3, payloads=False)[-1].seq == 2
        assert store.sessions.nodes(session_id(1), after_seq=9) == []

    @pytest.mark.parametrize(
        "value",
        ["\ud800 lone", 2**80, -(2**70), 1e300, [0.1, -0.0], {"": {"\ud800": 1}}, None, False, "", [], {}, "\x00"],
        ids=repr,
    )
    def test_exotic_values_come_back_exactly(self, store: Store, value: JSON) -> None:
        store.sessions.begin(a_session(inputs=value, metadata={"v": value}))
        store.sessions.append(session_id(1), [tool_call(session_id(1), 0, value=value, attributes={"a": value})])
        store.sessions.finish(a_session(inputs=value))
        (node,) = store.sessions.nodes(session_id(1))
        assert node.outcome is not None
        assert repr(node.outcome.value) == repr(value)
        assert repr(node.attributes) == repr({"a": value})
        assert repr(store.sessions.get(session_id(1)).inputs) == repr(value)

    def test_what_is_stored_cannot_be_changed_from_outside(self, store: Store) -> None:
        value = {"n": [1]}
        store.sessions.begin(a_session(inputs=value))
        store.sessions.append(session_id(1), [tool_call(session_id(1), 0, value=value)])
        value["n"].append(2)
        assert store.sessions.get(session_id(1)).inputs == {"n": [1]}
        (node,) = store.sessions.nodes(session_id(1))
        assert node.outcome is not None
        assert node.outcome.value == {"n": [1]}
        node.outcome.value["n"].append(3)
        (again,) = store.sessions.nodes(session_id(1))
        assert again.outcome is not None
        assert again.outcome.value == {"n": [1]}

    def test_recorded_text_that_looks_like_a_reference_stays_text(self, store: Store) -> None:
        store.sessions.begin(a_session())
        odd = {"messages": 0, "tools": 0, "lists": [[-1, 0, 0]], "$ref": 1, "shared": ["00"]}
        nodes = [
            tool_call(session_id(1), 0, value=odd, inputs=odd),
            model_call(session_id(1), 1, [odd, {"messages": [odd]}], tools=[odd]),
            model_call(session_id(1), 2, [], inputs=odd),
        ]
        nodes[2] = replace(nodes[2], inputs=odd)
        store.sessions.append(session_id(1), nodes)
        assert store.sessions.nodes(session_id(1)) == nodes
        store.sessions.finish(a_session())
        assert store.sessions.nodes(session_id(1)) == nodes


class LargeAndShared:
    def test_large_values_survive_and_go_with_their_last_session(self, store: Store) -> None:
        large = {"rows": [{"n": n, "text": "row " * 4} for n in range(3000)], "text": "word " * 10_000}
        told = {"role": "tool", "parts": [{"type": "tool_result", "id": "c", "name": "t", "content": large}]}
        for number in (1, 2, 3):
            store.sessions.begin(a_session(number))
            nodes = [
                tool_call(session_id(number), 0, value=large),
                model_call(session_id(number), 1, [message("user", "hi"), told], tools=schemas()),
            ]
            store.sessions.append(session_id(number), nodes)
            store.sessions.finish(a_session(number))
            assert store.sessions.nodes(session_id(number)) == nodes
        for number in (1, 2):
            store.sessions.delete(session_id(number))
            first, second = store.sessions.nodes(session_id(3))
            assert first.outcome is not None
            assert first.outcome.value == large
            assert second.inputs["tools"] == schemas()
            assert list(store.check()) == []
        store.sessions.delete(session_id(3))
        assert list(store.check()) == []

    def test_deleting_an_open_session_leaves_nothing_behind(self, store: Store) -> None:
        store.sessions.begin(a_session(tags=("t",)))
        nodes = [tool_call(session_id(1), 0, key="1:k"), model_call(session_id(1), 1, [message("user", "hi")])]
        store.sessions.append(session_id(1), nodes)
        store.sessions.add_verdicts(session_id(1), [Verdict(name="v")])
        store.sessions.delete(session_id(1))
        with pytest.raises(NotFoundError):
            store.sessions.get(session_id(1))
        with pytest.raises(NotFoundError):
            store.sessions.nodes(session_id(1))
        with pytest.raises(NotFoundError):
            store.sessions.delete(session_id(1))
        assert store.sessions.newest_calls("lookup") == []
        assert store.sessions.find(SessionQuery(tags=("t",))).items == ()
        assert list(store.check()) == []

    def test_a_session_can_be_recorded_anew_after_it_was_deleted(self, store: Store) -> None:
        nodes = [model_call(session_id(1), seq, [message("user", str(n)) for n in range(seq + 1)]) for seq in range(4)]
        store.sessions.begin(a_session())
        store.sessions.append(session_id(1), nodes[:3])
        store.sessions.delete(session_id(1))
        store.sessions.begin(a_session())
        store.sessions.append(session_id(1), nodes[3:])
        assert store.sessions.nodes(session_id(1)) == nodes[3:]


class Threads:
    def test_threads_share_one_store(self, store: Store) -> None:
        errors: list[BaseException] = []

        def record(number: int) -> None:
            try:
                store.sessions.begin(a_session(number))
                for seq in range(10):
                    node = model_call(session_id(number), seq, [message("user", str(n)) for n in range(seq)])
                    store.sessions.append(session_id(number), [node])
                    assert len(store.sessions.nodes(session_id(number), payloads=False)) == seq + 1
                store.sessions.finish(a_session(number, status=SessionStatus.COMPLETED))
            except BaseException as error:  # noqa: BLE001 - carried to the test's thread
                errors.append(error)

        threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        for number in range(4):
            nodes = store.sessions.nodes(session_id(number))
            assert [len(node.inputs["messages"]) for node in nodes] == list(range(10))

    def test_closing_twice_is_fine(self, store: Store) -> None:
        store.close()
        store.close()
