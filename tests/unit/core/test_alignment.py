"""Calls that ran at once are aligned by what they are; all others by their order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.alignment import align
from playhead.core.compare import compare
from playhead.core.values import Node, NodeKind
from playhead.testing.sessions import a_model_call, a_session, a_tool_call, user

Times = tuple[int, int]


def asked(seq: int, question: str, times: Times, **more: Any) -> Node:
    return at(a_model_call(seq, [user(question)], key=f"key of {question}", **more), times)


def at(node: Node, times: Times) -> Node:
    return replace(node, started_at=times[0], ended_at=times[1])


def divergence(theirs: Sequence[Node], ours: Sequence[Node]) -> str | None:
    found = compare(a_session(), theirs, a_session("s2"), ours).divergence
    return None if found is None else f"{found.what} {found.where}"


def in_order(questions: str, session: str = "s2") -> list[Node]:
    return [asked(n, q, (10 * n, 10 * n + 5), session=session) for n, q in enumerate(questions)]


def test_model_calls_that_overlapped_may_come_in_any_order():
    theirs = [asked(0, "a", (0, 9)), asked(1, "b", (1, 5)), asked(2, "c", (2, 7)), asked(3, "d", (20, 25))]
    assert divergence(theirs, in_order("cabd")) is None
    assert divergence(theirs, in_order("cabx")) == "model_request model call 4"
    assert divergence(theirs, in_order("cbb")) is not None


def test_what_follows_at_once_on_flows_may_come_in_any_order_as_well():
    """Two conversations side by side: the second question of one was asked when the other had ended its second."""
    theirs = [asked(0, "a1", (0, 1)), asked(1, "b1", (0, 3)), asked(2, "a2", (1, 2)), asked(3, "b2", (3, 4))]
    ours = [asked(n, q, (10 * n, 10 * n + 5), session="s2") for n, q in enumerate(["b1", "b2", "a1", "a2"])]
    assert divergence(theirs, ours) is None


def test_calls_after_each_other_keep_their_order():
    assert divergence(in_order("ab", "s1"), in_order("ba")) == "model_request model call 1"


def test_a_tool_that_was_called_after_others_had_ended_is_not_called_before_them():
    def tools(session: str, *calls: tuple[str, Times]) -> list[Node]:
        return [at(a_tool_call(n, name, {}, session=session), times) for n, (name, times) in enumerate(calls)]

    checks = ("check_a", (0, 10)), ("check_b", (2, 8))
    theirs = tools("s1", *checks, ("pay", (20, 30)))
    assert divergence(theirs, tools("s2", ("check_b", (0, 1)), ("check_a", (2, 3)), ("pay", (4, 5)))) is None
    assert divergence(theirs, tools("s2", ("pay", (0, 1)), *checks)) == "order tool call 1 pay"
    assert divergence(theirs, tools("s2", checks[0], ("pay", (11, 12)), checks[1])) == "order tool call 2 pay"


def test_calls_of_one_response_keep_its_order():
    def response(names: str, session: str) -> list[Node]:
        model = asked(0, "q", (0, 10), session=session)
        call = {"model_call": model.id}
        tools = [at(a_tool_call(n, name, {}, session=session, call=call), (11, 20)) for n, name in enumerate(names, 1)]
        return [model, *tools]

    later = at(a_tool_call(3, "c", {}, call={"model_call": "another"}), (30, 40))
    assert divergence(response("ab", "s1"), response("ba", "s2")) == "order tool call 1 b"
    swapped = [*response("ac", "s2"), at(a_tool_call(3, "b", {}, session="s2"), (30, 40))]
    assert divergence([*response("ab", "s1"), later], swapped) is not None


def test_tool_calls_of_flows_side_by_side_may_come_in_any_order():
    def flows(session: str, *order: str) -> list[Node]:
        models = [asked(n, f"q{n}", (0, 10 + n), session=session) for n in range(2)]
        of = {"a": models[0].id, "b": models[1].id}
        tools = [
            at(a_tool_call(2 + n, name, {}, session=session, call={"model_call": of[name]}), (20 + 5 * n, 22 + 5 * n))
            for n, name in enumerate(order)
        ]
        return [*models, *tools]

    assert divergence(flows("s1", "b", "a"), flows("s2", "a", "b")) is None


def container(seq: int, session: str, inputs: Any, times: Times, kind: NodeKind = NodeKind.AGENT_CALL) -> Node:
    model = asked(seq, "", times, session=session)
    return replace(model, kind=kind, name="helper", inputs=inputs, model=None)


def helpers(session: str, order: Sequence[str], *, at_once: bool, kind: NodeKind = NodeKind.AGENT_CALL) -> list[Node]:
    """Runs named by their input, each with the calls that are given as letters after it, in the given order."""
    names = list(dict.fromkeys(item[0] for item in order))
    length = 1000 if at_once else 1
    made = {
        name: container(n, session, {"prompt": name}, (2 * n, 2 * n + length), kind) for n, name in enumerate(names)
    }
    calls = [
        asked(len(names) + n, item, (100 + 10 * n, 105 + 10 * n), session=session, parent=made[item[0]].id)
        for n, item in enumerate(order)
    ]
    return [*made.values(), *calls]


@pytest.mark.parametrize("kind", [NodeKind.AGENT_CALL, NodeKind.SPAN])
def test_agents_side_by_side_are_aligned_one_by_one(kind: NodeKind):
    theirs = helpers("s1", ["a1", "b1", "a2", "b2"], at_once=True, kind=kind)
    assert divergence(theirs, helpers("s2", ["b1", "b2", "a1", "a2"], at_once=True, kind=kind)) is None
    changed = helpers("s2", ["b1", "b2", "a1", "ax"], at_once=True, kind=kind)
    assert divergence(theirs, changed) == "model_request model call 2 of helper"
    assert divergence(theirs, helpers("s2", ["b1", "b2", "a2", "a1"], at_once=True, kind=kind)) is not None
    assert divergence(theirs, helpers("s2", ["a1", "a2"], at_once=True, kind=kind)) is not None


def test_agents_one_after_the_other_keep_their_order():
    theirs = helpers("s1", ["a1", "b1"], at_once=False)
    assert divergence(theirs, helpers("s2", ["b1", "a1"], at_once=False)) == "model_request model call 1"


_times = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(st.tuples(st.sampled_from("abc"), _times), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_every_call_stands_in_one_pair_and_only_equal_ones_make_no_difference(
    recorded: list[tuple[str, Times]], replayed: list[str]
):
    recorded.sort(key=lambda item: item[1][0])
    theirs = [asked(n, q, times) for n, (q, times) in enumerate(recorded)]
    ours = in_order("".join(replayed))
    pairs = align(theirs, ours, ignore={})
    assert sorted(p.baseline.seq for p in pairs if p.baseline) == list(range(len(theirs)))
    assert [p.result.seq for p in pairs if p.result] == list(range(len(ours)))
    same = divergence(theirs, ours) is None
    assert not same or sorted(q for q, _ in recorded) == sorted(replayed)
    assert same or [q for q, _ in recorded] != replayed


def test_a_run_beside_the_sessions_own_is_a_lane_and_one_after_it_is_not():
    """Of agents that began at once the first is the session's own run, without an agent call."""

    def two_agents(session: str, *calls: tuple[str, bool, Times], run: Times) -> list[Node]:
        agent = replace(at(a_model_call(9, [user("x")], session=session), run), kind=NodeKind.AGENT_CALL, model=None)
        inside = replace(agent, id=f"{session}-agent", seq=0, name="helper")
        nodes = [
            asked(n + 1, q, times, session=session, parent=inside.id if helper else None)
            for n, (q, helper, times) in enumerate(calls)
        ]
        return [inside, *nodes]

    theirs = two_agents("s1", ("a1", False, (0, 1)), ("b1", True, (0, 2)), ("b2", True, (5, 6)), ("a2", False, (8, 9)),
                        run=(0, 10))  # fmt: skip
    ours = two_agents("s2", ("a1", False, (0, 1)), ("b1", True, (0, 1)), ("a2", False, (2, 3)), ("b2", True, (2, 3)),
                      run=(0, 4))  # fmt: skip
    assert divergence(theirs, ours) is None
    swapped = two_agents("s2", ("a1", False, (0, 1)), ("b2", True, (0, 1)), ("a2", False, (2, 3)), ("b1", True, (2, 3)),
                         run=(0, 4))  # fmt: skip
    assert divergence(theirs, swapped) == "model_request model call 1 of helper"

    after = two_agents("s1", ("a1", False, (0, 1)), ("b1", True, (2, 3)), ("a2", False, (5, 6)), run=(2, 4))
    before = two_agents("s2", ("b1", True, (0, 1)), ("a1", False, (2, 3)), ("a2", False, (5, 6)), run=(0, 2))
    assert divergence(after, before) == "model_request model call 1"
