"""Records to sessions: kinds, order, joins, merging - the rules that no sample shows."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.core.assemble.records import Captured, ModelFacts, Record, RecordError, Settings, ToolFacts, Trace
from playhead.core.assemble.restore import combined, restore
from playhead.core.assemble.session import Assembled, assemble
from playhead.core.protocol.parts import call, message, result, text
from playhead.core.values import Cost, ErrorInfo, Mark, Node, NodeKind, OutcomeKind, SessionStatus, Usage

TRACE = Trace(format="otlp", external_id="t")
AT = 1_796_064_679_000_000_000
MS = 1_000_000


def model(id: str, start: int, *asked: tuple[str, str, dict], parent: str | None = None, **more) -> Record:
    """A model call that started at millisecond ``start`` and asked for tools (id, name, arguments)."""
    response = message("assistant", [call(name, arguments, call_id) for call_id, name, arguments in asked])
    facts = ModelFacts(
        messages=more.pop("messages", [message("user", [text("hi")])]), response=more.pop("response", response),
        response_id=more.pop("response_id", None),
    )  # fmt: skip
    return Record(
        external_id=id, parent=parent, kind=NodeKind.MODEL_CALL, name="chat", started_at=AT + start * MS,
        ended_at=AT + (start + more.pop("lasts", 1)) * MS, model=facts, **more,
    )  # fmt: skip


def tool(id: str, start: int, name: str = "t", call_id: str | None = None, parent: str | None = None, **more) -> Record:
    arguments = more.pop("arguments", None)
    facts = ToolFacts(
        tool=name, call_id=call_id, arguments=None if arguments is None else Captured(value=arguments),
        result=Captured(value=more.pop("result", "done")),
    )  # fmt: skip
    return Record(
        external_id=id, parent=parent, kind=NodeKind.TOOL_CALL, name=name, started_at=AT + start * MS,
        ended_at=AT + (start + more.pop("lasts", 1)) * MS, tool=facts, **more,
    )  # fmt: skip


def step(id: str, start: int, parent: str | None = None, kind: NodeKind | None = None, **more) -> Record:
    return Record(
        external_id=id, parent=parent, kind=kind, name=more.pop("name", id), started_at=AT + start * MS,
        ended_at=AT + (start + more.pop("lasts", 100)) * MS, **more,
    )  # fmt: skip


def made(*records: Record, **options) -> Assembled:
    return assemble([(TRACE, records)], Settings(**options))


def nodes(*records: Record, **options) -> dict[str, Node]:
    return {n.imported.external_id: n for n in made(*records, **options).nodes if n.imported}


def order(*records: Record) -> list[str]:
    return list(nodes(*records))


# --- kinds ----------------------------------------------------------------------------------------------------------


def test_a_wrapper_around_several_calls_is_an_agent_and_its_usage_is_not_added() -> None:
    usage = Usage(input_uncached=14, raw={"n": 14})
    own = replace(model("w", 0, lasts=50), usage=usage)
    inner = [replace(model(i, n, parent="w"), usage=Usage(input_uncached=5)) for i, n in (("a", 1), ("b", 3))]
    found = made(own, *inner)
    wrapper = found.nodes[0]
    assert (wrapper.kind, wrapper.attributes["reported_usage"]) == (NodeKind.AGENT_CALL, {"n": 14})
    assert found.session.usage is not None
    assert found.session.usage.input_uncached == 10


def test_a_wrapper_with_a_call_and_a_tool_below_it_is_an_agent() -> None:
    found = nodes(
        model("w", 0, lasts=9), model("a", 1, ("c", "t", {}), parent="w"), tool("x", 3, call_id="c", parent="w")
    )
    assert [found[i].kind.value for i in ("w", "a", "x")] == ["agent_call", "model_call", "tool_call"]


def test_a_tool_that_a_model_call_holds_does_not_make_it_an_agent() -> None:
    found = nodes(model("a", 0, ("c", "t", {}), lasts=9), tool("x", 3, call_id="c", parent="a"))
    assert found["a"].kind is NodeKind.MODEL_CALL


def test_of_two_reports_of_one_call_the_inner_usage_wins_and_the_conflict_is_told() -> None:
    outer = replace(model("o", 0, ("c", "t", {}), lasts=5), usage=Usage(input_uncached=30, raw={"x": 30}))
    inner = Record(
        external_id="i", parent="o", kind=NodeKind.MODEL_CALL, name="http", started_at=AT + MS, ended_at=AT + 2 * MS,
        model=ModelFacts(served="m-1"), usage=Usage(input_uncached=10, raw={"x": 10}),
    )  # fmt: skip
    found = made(outer, inner)
    (node,) = [n for n in found.nodes if n.model]
    assert node.model is not None
    assert node.model.usage is not None
    assert (node.model.usage.input_uncached, node.model.served) == (10, "m-1")
    assert node.attributes["usage_conflict"] == {"outer": {"x": 30}, "inner": {"x": 10}}
    assert [n.code for n in found.notes] == ["usage_conflict"]
    assert found.tally.duplicates == 1


def test_a_response_id_alone_does_not_make_two_calls_one() -> None:
    apart = [model("a", 0, response_id="r"), model("b", 5, response_id="r")]
    beside = [model("a", 0, response_id="r", lasts=9), model("b", 5, response_id="r", lasts=9)]
    assert len(nodes(*apart)) == 2
    found = nodes(*beside)
    assert list(found) == ["a"]
    assert found["a"].imported is not None
    assert found["a"].imported.merged == ("b",)


def test_nested_reports_of_one_execution_are_one_tool_call() -> None:
    outer = tool("o", 3, "mcp__shop__refund", "c", arguments={"n": 1}, lasts=9)
    inner = tool("i", 4, "refund", arguments={"n": 1}, parent="o")
    other = tool("p", 5, "refund", arguments={"n": 2}, parent="o")
    assert set(nodes(model("m", 0, ("c", "mcp__shop__refund", {"n": 1})), outer, inner, other)) == {"m", "o", "p"}


def test_a_plain_step_that_ran_what_a_model_asked_for_is_a_tool_call() -> None:
    ran = step("s", 3, name="refund", input=Captured(value={"n": 1}), output=Captured(value={"ok": True}))
    other = step("o", 4, name="refund", input=Captured(value={"n": 2}))
    found = nodes(model("m", 0, ("c", "refund", {"n": 1})), ran, other)
    assert (found["s"].kind, found["s"].attributes["inferred"]) == (NodeKind.TOOL_CALL, True)
    assert found["s"].call is not None
    assert found["s"].call.joined == "args"
    assert found["o"].kind is NodeKind.SPAN


def test_without_an_agent_the_root_step_is_one() -> None:
    assert nodes(step("r", 0), model("m", 1, parent="r"))["r"].kind is NodeKind.AGENT_CALL
    assert nodes(step("r", 0), step("s", 1, parent="r"))["r"].kind is NodeKind.SPAN


# --- tree and order -------------------------------------------------------------------------------------------------


def test_an_unknown_parent_makes_a_root_and_parents_may_come_last() -> None:
    found = nodes(model("m", 2, parent="r"), step("r", 0, parent="elsewhere", kind=NodeKind.AGENT_CALL))
    assert (found["m"].parent_id, found["r"].parent_id) == (found["r"].id, None)


@pytest.mark.parametrize("links", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a", "d": "a"}])
def test_a_ring_of_parents_fails(links: dict[str, str]) -> None:
    with pytest.raises(RecordError) as caught:
        made(*(step(i, 0, parent=p) for i, p in links.items()))
    assert caught.value.code == "cycle"


def test_steps_deeper_than_the_limit_hang_at_the_limit() -> None:
    chain = [step("0", 0), *(step(str(n), n, parent=str(n - 1)) for n in range(1, 3000))]
    found = made(*chain, node_depth=5)
    parents = {n.id: n.parent_id for n in found.nodes}

    def depth(node: str) -> int:
        above = parents[node]
        return 0 if above is None else 1 + depth(above)

    assert max(depth(n.id) for n in found.nodes) == 4
    assert {n.code for n in found.notes} == {"too_deep"}
    assert len(found.nodes) == 3000


def test_parallel_calls_of_one_millisecond_keep_the_order_of_the_response() -> None:
    asks = model("m", 0, ("c1", "t", {"n": 1}), ("c2", "t", {"n": 2}))
    assert order(asks, tool("second", 3, call_id="c2"), tool("first", 3, call_id="c1")) == ["m", "first", "second"]
    assert order(asks, tool("second", 3, call_id="c2"), tool("first", 5, call_id="c1")) == ["m", "second", "first"]


def test_equal_calls_of_one_response_are_counted_in_its_order_whichever_started_first() -> None:
    asks = model("m", 0, ("c1", "t", {}), ("c2", "t", {}))
    found = nodes(asks, tool("late", 9, call_id="c1"), tool("early", 3, call_id="c2"))
    assert {i: n.call.occurrence for i, n in found.items() if n.call} == {"late": 1, "early": 2}


def test_a_call_inside_a_tool_carries_the_path_to_it() -> None:
    asks = model("m", 0, ("c", "outer", {}))
    found = nodes(asks, tool("o", 3, "outer", "c", lasts=9), tool("i", 4, "inner", parent="o", arguments={}))
    outer, inner = found["o"].call, found["i"].call
    assert outer is not None
    assert inner is not None
    assert (outer.path, inner.path) == ((), (f"{outer.key}#1",))


# --- joins ----------------------------------------------------------------------------------------------------------


def joined(*records: Record) -> dict[str, tuple]:
    found = nodes(*records)
    models = {n.id: i for i, n in found.items() if n.model}
    return {i: (n.call.joined, models.get(n.call.model_call or ""), n.call.index) for i, n in found.items() if n.call}


def test_a_repeated_id_belongs_to_the_latest_call_that_asked() -> None:
    asks = [model("m1", 0, ("c", "t", {"n": 1})), model("m2", 10, ("c", "u", {"n": 2}))]
    assert joined(*asks, tool("x", 5, "t", "c"), tool("y", 15, "u", "c")) == {
        "x": ("id", "m1", 0), "y": ("id", "m2", 0),
    }  # fmt: skip


def test_without_an_id_equal_arguments_join_the_earliest_open_request() -> None:
    asks = [model("m1", 0, ("a", "t", {"n": 1})), model("m2", 10, ("b", "t", {"n": 1.0}))]
    assert joined(*asks, tool("x", 12, arguments={"n": 1}), tool("y", 15, arguments={"n": 1})) == {
        "x": ("args", "m1", 0), "y": ("args", "m2", 0),
    }  # fmt: skip


def test_equal_arguments_join_the_request_of_the_same_agent_first() -> None:
    agents = [step("A", 0, kind=NodeKind.AGENT_CALL), step("B", 1, kind=NodeKind.AGENT_CALL)]
    asks = [model("a", 2, ("1", "t", {}), parent="A"), model("b", 3, ("2", "t", {}), parent="B")]
    assert joined(*agents, *asks, tool("x", 5, arguments={}, parent="B"))["x"] == ("args", "b", 0)


def test_a_call_without_arguments_joins_the_only_request_of_its_name() -> None:
    one = model("m", 0, ("a", "t", {"n": 1}), ("b", "u", {}))
    assert joined(one, tool("x", 3, "t"))["x"] == ("name", "m", 0)
    two = model("m", 0, ("a", "t", {"n": 1}), ("b", "t", {"n": 2}))
    assert joined(two, tool("x", 3, "t"))["x"] == ("unjoined", None, None)


def test_calls_after_a_model_call_without_content_join_by_place() -> None:
    blind = [Record(external_id=i, kind=NodeKind.MODEL_CALL, started_at=AT + n * MS) for i, n in (("m1", 1), ("m2", 9))]
    assert joined(*blind, tool("x", 3), tool("y", 4), tool("z", 12)) == {
        "x": ("position", "m1", 0), "y": ("position", "m1", 1), "z": ("position", "m2", 0),
    }  # fmt: skip


def test_a_call_before_every_request_stays_unjoined() -> None:
    assert joined(tool("x", 0, call_id="c"), model("m", 5, ("c", "t", {})))["x"][0] == "unjoined"


def test_a_call_that_ran_again_under_its_id_is_a_second_attempt() -> None:
    found = nodes(model("m", 0, ("c", "t", {})), tool("x", 3, call_id="c", failed=True), tool("y", 6, call_id="c"))
    assert [(n.call.attempt, n.call.occurrence) for n in found.values() if n.call] == [(1, 1), (2, 1)]


def test_what_the_model_asked_for_is_the_key_and_what_ran_is_kept_beside_it() -> None:
    found = nodes(model("m", 0, ("c", "t", {"n": 1})), tool("x", 3, call_id="c", arguments={"n": 1, "limit": 10}))["x"]
    assert found.call is not None
    assert found.call.arguments == {"n": 1}
    assert found.attributes["executed_arguments"] == {"n": 1, "limit": 10}


def test_ids_that_are_lists_join_by_their_value() -> None:
    asks = model("m", 0, (["run", "call"], "t", {}))  # type: ignore[arg-type]
    found = joined(asks, tool("x", 3, call_id=["run", "call"]))  # type: ignore[arg-type]
    assert found["x"][0] == "id"


def test_overlapping_equal_calls_that_nothing_orders_are_marked() -> None:
    calls = [tool("x", 3, arguments={}, result="a", lasts=5), tool("y", 4, arguments={}, result="b", lasts=5)]
    assert [n.call.overlapped for n in nodes(*calls).values() if n.call] == [True, True]
    same = [tool("x", 3, arguments={}, result="a", lasts=5), tool("y", 4, arguments={}, result="a", lasts=5)]
    assert [n.call.overlapped for n in nodes(*same).values() if n.call] == [False, False]


def test_a_call_that_only_messages_show_is_rebuilt_after_its_model_call() -> None:
    before = [message("user", [text("hi")])]
    said = message("assistant", [call("t", {"n": 1}, "c")])
    later = [*before, said, message("tool", [result("c", "Error: no such order", name="t")])]
    found = made(model("m1", 0, messages=before, response=said), model("m2", 9, messages=later))
    rebuilt = found.nodes[1]
    assert rebuilt.call is not None
    assert rebuilt.outcome is not None
    assert (rebuilt.call.source, rebuilt.call.joined, rebuilt.call.mark) == ("transcript", "id", Mark.TEXT)
    assert (rebuilt.outcome.kind, rebuilt.outcome.error_hint) == (OutcomeKind.VALUE, True)
    assert found.tally.rebuilt == 1


def test_an_error_flag_in_the_messages_makes_an_error_result() -> None:
    before = [message("user", [text("hi")])]
    said = message("assistant", [call("t", {}, "c")])
    later = [*before, said, message("tool", [result("c", "Error: x", name="t", is_error=True)])]
    rebuilt = made(model("m1", 0, messages=before, response=said), model("m2", 9, messages=later)).nodes[1]
    assert rebuilt.outcome is not None
    assert (rebuilt.outcome.kind, rebuilt.outcome.error_hint) == (OutcomeKind.RESULT_ERROR, False)


# --- sessions -------------------------------------------------------------------------------------------------------


def test_status_is_told_by_the_root() -> None:
    failed = step("r", 0, kind=NodeKind.AGENT_CALL, failed=True, error=ErrorInfo(class_name="E", message="no"))
    session = made(failed, model("m", 1, parent="r")).session
    assert (session.status, session.error) == (SessionStatus.FAILED, ErrorInfo(class_name="E", message="no"))
    assert made(replace(step("r", 0), ended_at=None), model("m", 1, parent="r")).session.status == "abandoned"
    assert made(model("a", 0, failed=True), model("b", 1)).session.status == "completed"
    assert made(model("a", 0), model("b", 1, failed=True)).session.status == "failed"


def test_an_end_before_the_start_is_the_start() -> None:
    node = nodes(replace(step("r", 5), ended_at=AT))["r"]
    assert node.ended_at == node.started_at


def test_payloads_deeper_than_the_limit_become_text() -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    node = nodes(tool("x", 0, arguments={}, result=deep))["x"]
    assert node.call is not None
    assert node.outcome is not None
    assert (node.call.mark, node.outcome.value) == (Mark.TEXT, "[" * 300 + "1" + "]" * 300)


def test_costs_are_added_as_decimals() -> None:
    costs = ["0.1", "0.2"]
    parts = [replace(model(c, n), cost=Cost(amount=c, source="reported")) for n, c in enumerate(costs)]
    cost = made(*parts).session.cost
    assert cost is not None
    assert cost.amount == "0.3"


def test_an_empty_trace_is_no_session() -> None:
    with pytest.raises(RecordError):
        made()


# --- merging with what is stored ------------------------------------------------------------------------------------


SESSION = [
    step("r", 0, kind=NodeKind.AGENT_CALL, agent="shop", conversation="talk"),
    replace(model("m", 1, ("c1", "t", {"n": 1}), ("c2", "u", {}), parent="r", lasts=9), usage=Usage(input_uncached=3)),
    replace(model("i", 2, parent="m", response=None, messages=None), usage=Usage(input_uncached=2), partial=False),
    tool("x", 20, "t", "c1", arguments={"n": 1}, parent="r"),
    tool("y", 21, "u", arguments={"k": 1}, parent="r", failed=True, error=ErrorInfo(class_name="V", message="no")),
    tool("z", 22, "free", parent="r", result='{"a":1}'),
    step("s", 30, parent="r", output=Captured(value=5)),
    replace(
        model("m2", 40, parent="r", messages=[
            message("user", [text("hi")]), message("assistant", [call("t", {"n": 1}, "c1"), call("u", {}, "c2")]),
            message("tool", [result("c1", "done", name="t")]), message("tool", [result("c2", "V: no", name="u")]),
        ]),
        cost=Cost(amount="0.1", source="reported"),
    ),
]  # fmt: skip


def essence(found: Assembled) -> object:
    return found.session, found.nodes


def test_a_stored_session_is_assembled_again_into_itself() -> None:
    first = made(*SESSION)
    again = assemble(restore(first.session, first.nodes), Settings(), keep_id=first.session.id)
    assert essence(again) == essence(first)


@settings(deadline=None)
@given(st.permutations(SESSION), st.integers(0, len(SESSION)))
def test_two_imports_of_the_parts_give_what_one_import_of_all_gives(records: list[Record], cut: int) -> None:
    whole = made(*records)
    if not 0 < cut < len(records):
        return
    first = made(*records[:cut])
    runs = combined(restore(first.session, first.nodes), [(TRACE, records[cut:])])
    both = assemble(runs, Settings(), keep_id=whole.session.id)
    assert [(n.kind, n.name, n.outcome, n.inputs, n.attributes) for n in both.nodes] == [
        (n.kind, n.name, n.outcome, n.inputs, n.attributes) for n in whole.nodes
    ]
    assert replace(both.session, tags=()) == replace(whole.session, tags=())


def test_a_later_record_without_an_end_does_not_reopen_a_step() -> None:
    found = nodes(step("r", 0), Record(external_id="r", name="r", started_at=AT))
    assert found["r"].ended_at is not None


def test_of_two_captures_of_a_result_the_surer_stays_in_either_order() -> None:
    sure = tool("x", 0, arguments={}, result={"a": 1})
    loose = replace(sure, tool=ToolFacts(tool="t", result=Captured(value="{'a': 1}", how="text")))
    for pair in ((sure, loose), (loose, sure)):
        node = nodes(*pair)["x"]
        assert node.call is not None
        assert node.call.mark is Mark.EXACT


def test_ids_and_names_over_the_limit_are_cut_and_stay_apart() -> None:
    long = "r" * 600
    found = made(step(long + "1", 0), step(long + "2", 1, name="n" * 2000 + "\0"), model("m", 2, parent=long + "1"))
    ids = {n.imported.external_id for n in found.nodes if n.imported}
    assert len(ids) == 3
    assert max(map(len, ids)) == 512
    assert found.nodes[2].parent_id == found.nodes[0].id
    assert len(found.nodes[1].name) == 1024
