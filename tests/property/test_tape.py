"""The tape against a naive model that searches a list."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.core.claim import Announced
from playhead.core.keys import call_key
from playhead.core.occurrence import call_ref, slot_ids, slot_of, start_ref
from playhead.core.policy import CallView, HistoryConfig, ToolPolicy
from playhead.core.tape import Tape
from playhead.core.values import Node, NodeKind, Outcome, OutcomeKind, ToolCall, path_step

TOOLS = st.sampled_from(["a", "b"])
ARGUMENTS = st.sampled_from([1, 2])


@dataclass
class Naive:
    """One recorded call: where, which, and whether it is used."""

    id: str
    path: tuple[str, ...]
    key: str
    used: bool = False


def key_of(tool: str, n: int) -> str:
    return call_key(tool, {"n": n})


def recorded(calls: list[tuple[str, int, list[tuple[str, int]]]]) -> tuple[list[Node], list[Naive]]:
    """Outer calls with calls inside, as nodes and as the naive model."""
    nodes: list[Node] = []
    naive: list[Naive] = []
    counts: dict[tuple[tuple[str, ...], str], int] = {}

    def add(tool: str, n: int, path: tuple[str, ...], parent: str | None) -> tuple[str, tuple[str, ...]]:
        key = key_of(tool, n)
        counts[path, key] = occurrence = counts.get((path, key), 0) + 1
        seq = len(nodes) + 1
        call = ToolCall(tool=tool, arguments={"n": n}, key=key, path=path, occurrence=occurrence)
        outcome = Outcome(kind=OutcomeKind.VALUE, value=seq)
        nodes.append(
            Node(
                id=f"n{seq}",
                session_id="s",
                seq=seq,
                kind=NodeKind.TOOL_CALL,
                name=tool,
                started_at=seq,
                parent_id=parent,
                outcome=outcome,
                call=call,
            )
        )
        naive.append(Naive(f"n{seq}", path, key))
        return f"n{seq}", (*path, path_step(tool, key, occurrence))

    for tool, n, inside in calls:
        parent, path = add(tool, n, (), None)
        for inner, m in inside:
            add(inner, m, path, parent)
    return nodes, naive


CALLS = st.lists(st.tuples(TOOLS, ARGUMENTS, st.lists(st.tuples(TOOLS, ARGUMENTS), max_size=3)), max_size=6)


@settings(deadline=None)
@given(calls=CALLS, asked=st.lists(st.tuples(TOOLS, ARGUMENTS), max_size=12))
def test_calls_at_the_root_take_the_first_unused_equal_call_at_the_root(
    calls: list[tuple[str, int, list[tuple[str, int]]]], asked: list[tuple[str, int]]
) -> None:
    nodes, naive = recorded(calls)
    tape = Tape.build(nodes)
    for number, (tool, n) in enumerate(asked):
        key = key_of(tool, n)
        view = CallView(ref=start_ref(number), tool=tool, arguments={"n": n}, key=key)
        expected = next((r for r in naive if r.key == key and not r.path and not r.used), None)
        if expected is not None:
            expected.used = True
        claim = tape.claim(view)
        assert (claim.recording.node_id if claim.recording else None) == (expected.id if expected else None)
        equal = [r for r in naive if r.key == key and not r.path]
        assert (claim.reason == "used_up") is (expected is None and bool(equal))
    assert [r.node_id for r in tape.leftovers()] == [r.id for r in naive if not r.used]


@settings(deadline=None)
@given(calls=CALLS)
def test_a_replay_of_the_same_calls_uses_everything_whether_served_or_run(
    calls: list[tuple[str, int, list[tuple[str, int]]]],
) -> None:
    nodes, naive = recorded(calls)
    served, run = Tape.build(nodes), Tape.build(nodes)
    number = 0
    for tool, n, inside in calls:
        outer = CallView(ref=start_ref(number), tool=tool, arguments={"n": n}, key=key_of(tool, n))
        served.claim(outer)
        assert len(served.cover(outer.ref)) == len(inside)
        step = run.claim(outer).step
        number += 1
        for inner, m in inside:
            view = CallView(
                ref=start_ref(number), tool=inner, arguments={"n": m}, key=key_of(inner, m), path=(step,)
            )  # fmt: skip
            claim = run.claim(view)
            assert claim.recording is not None
            assert claim.loose == ()
            assert claim.recording.node_id == naive[number].id
            number += 1
    assert served.exhausted()
    assert run.exhausted()


@settings(deadline=None)
@given(
    responses=st.lists(st.lists(st.tuples(st.sampled_from([None, "c", "d"]), ARGUMENTS), max_size=4), max_size=5),
    order=st.randoms(use_true_random=False),
)
def test_announced_calls_have_their_occurrence_whatever_order_they_start_in(
    responses: list[list[tuple[str | None, int]]], order: "object"
) -> None:
    flat = [n for response in responses for _, n in response]
    nodes, naive = recorded([("a", n, []) for n in flat])
    tape = Tape.build(nodes, ToolPolicy(default=HistoryConfig(repeat="error")))
    expected: dict[str, str] = {}
    place = 0
    for m, response in enumerate(responses):
        calls = [Announced(call_id=i, tool="a", arguments={"n": n}, key=key_of("a", n)) for i, n in response]
        tape.announce(f"m{m}", calls)
        for call_id, _ in zip(slot_ids([i for i, _ in response]), response, strict=True):
            expected[call_ref(f"m{m}", call_id)] = naive[place].id
            place += 1
    assert len(expected) == len(flat)
    refs = list(expected)
    order.shuffle(refs)  # type: ignore[attr-defined]
    for ref in refs:
        claim = tape.claim_of(ref)
        assert claim is not None
        assert claim.recording is not None
        assert claim.recording.node_id == expected[ref]


@settings(deadline=None)
@given(ids=st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=8))
def test_slots_of_a_response_are_distinct_and_given_ids_are_kept_once(ids: list[str | None]) -> None:
    slots = slot_ids(ids)
    assert len(set(slots)) == len(ids)
    for given_id in {i for i in ids if i and not i.startswith("@")}:
        assert given_id in slots


@settings(deadline=None)
@given(model=st.text("abc-123", min_size=1, max_size=5), call_id=st.text(max_size=5), attempt=st.integers(1, 99))
def test_a_ref_gives_back_slot_and_attempt(model: str, call_id: str, attempt: int) -> None:
    assert slot_of(call_ref(model, call_id, attempt)) == (f"{model}:{call_id}", attempt)
