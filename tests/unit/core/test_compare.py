from playhead.core.compare import compare
from playhead.core.fidelity import fidelity
from playhead.core.values import FidelityKind, LedgerRow, Node, Provenance, SessionStatus, path_step
from playhead.testing.sessions import a_model_call, a_session, a_tool_call, system, user


def the_divergence(theirs: list[Node], ours: list[Node], **options: object):
    return compare(a_session(), theirs, a_session("s2"), ours, **options).divergence  # type: ignore[arg-type]


def calls(*names: str, session: str = "s1") -> list[Node]:
    return [a_tool_call(i, name, {"n": name}, session=session) for i, name in enumerate(names)]


def test_equal_calls_in_equal_order_do_not_diverge():
    assert the_divergence(calls("a", "b", "a"), calls("a", "b", "a", session="s2")) is None


def test_changed_argument_names_the_call_and_the_pointer():
    theirs = [a_tool_call(0, "look", {"id": 1}), a_tool_call(1, "pay", {"to": {"name": "Ada"}, "sum": 5})]
    ours = [
        a_tool_call(0, "look", {"id": 1}, session="s2"),
        a_tool_call(1, "pay", {"to": {"name": "Bo"}, "sum": 5}, session="s2"),
    ]
    found = the_divergence(theirs, ours)
    assert (found.what, found.where, found.pointers) == ("arguments", "tool call 2 pay", ("/to/name",))
    assert (found.baseline_node, found.result_node) == ("s1-n1", "s2-n1")


def test_swapped_calls_are_an_order_difference_even_when_both_were_served():
    found = the_divergence(calls("flights", "hotels"), calls("hotels", "flights", session="s2"))
    assert (found.what, found.where) == ("order", "tool call 1 hotels")


def test_a_later_equal_occurrence_does_not_hide_the_first_difference():
    found = the_divergence(calls("a", "b", "c"), calls("b", "c", session="s2"))
    assert (found.what, found.where) == ("missing", "tool call 1 b")


def test_one_call_too_many_is_extra_and_one_too_few_is_missing():
    assert the_divergence(calls("a"), calls("a", "a", session="s2")).what == "extra"
    assert the_divergence(calls("a", "b"), calls("a", session="s2")).what == "missing"


def test_another_tool_in_the_place_of_a_recorded_one():
    found = the_divergence(calls("a", "b"), calls("a", "x", session="s2"))
    assert (found.what, found.where) == ("tool", "tool call 2 x")


def test_ignored_pointers_do_not_count_as_a_difference():
    theirs = [a_tool_call(0, "since", {"t": 1, "q": "x"})]
    ours = [a_tool_call(0, "since", {"t": 2, "q": "x"}, session="s2")]
    assert the_divergence(theirs, ours, ignore={"since": ("/t",)}) is None
    assert the_divergence(theirs, ours).pointers == ("/t",)


def test_calls_below_a_served_call_are_not_due_again():
    outer = a_tool_call(0, "ask", {"q": 1})
    step = path_step("ask", outer.call.key, 1)
    inner = a_tool_call(1, "lookup", {"q": 1}, path=(step,), parent=outer.id)
    served = a_tool_call(0, "ask", {"q": 1}, session="s2", call={"provenance": Provenance(by="served")})
    live = a_tool_call(0, "ask", {"q": 1}, session="s2", call={"provenance": Provenance(by="live")})
    assert the_divergence([outer, inner], [served]) is None
    assert the_divergence([outer, inner], [live]).where.startswith("tool call 1 lookup")


def test_parallel_branches_may_interleave():
    a, b = a_tool_call(0, "ask", {"q": "a"}), a_tool_call(1, "ask", {"q": "b"})
    paths = [(path_step("ask", n.call.key, 1),) for n in (a, b)]

    def inner(seq: int, branch: int, n: int, session: str) -> Node:
        return a_tool_call(seq, "get", {"n": n, "branch": branch}, path=paths[branch], session=session)

    theirs = [a, b, inner(2, 0, 1, "s1"), inner(3, 1, 1, "s1"), inner(4, 0, 2, "s1")]
    ours = [
        *(a_tool_call(i, "ask", {"q": q}, session="s2") for i, q in enumerate("ab")),
        inner(2, 1, 1, "s2"),
        inner(3, 0, 1, "s2"),
        inner(4, 0, 2, "s2"),
    ]
    assert the_divergence(theirs, ours) is None


def test_a_changed_system_prompt_is_the_first_model_request_with_a_text_diff():
    theirs = [a_model_call(0, [system("Be kind.\nBe brief."), user("hi")], key="1:a")]
    ours = [a_model_call(0, [system("Be kind.\nBe thorough."), user("hi")], session="s2", key="1:b")]
    found = the_divergence(theirs, ours)
    assert (found.what, found.where) == ("model_request", "model call 1")
    assert {"-Be brief.", "+Be thorough."} <= set(str(found.diff).splitlines())
    assert the_divergence(theirs, ours, models=False) is None


def test_output_and_status_count_after_all_calls():
    equal = calls("a"), calls("a", session="s2")
    other = compare(a_session(), equal[0], a_session("s2", output="else"), equal[1])
    assert (other.divergence.what, other.output_equal) == ("output", False)
    failed = compare(a_session(), equal[0], a_session("s2", status=SessionStatus.FAILED), equal[1])
    assert failed.divergence.what == "status"


def test_nan_arguments_without_a_key_compare_by_value():
    theirs = [a_tool_call(0, "f", {"v": {"$float": "NaN"}})]
    assert the_divergence(theirs, [a_tool_call(0, "f", {"v": {"$float": "NaN"}}, session="s2")]) is None
    assert the_divergence(theirs, [a_tool_call(0, "f", {"v": None}, session="s2")]).what == "arguments"


def judge(
    rows: list[LedgerRow], *, compared: int = 1, theirs: list[Node] | None = None, ours: list[Node] | None = None
):
    comparison = compare(a_session(), theirs or calls("a"), a_session("s2"), ours or calls("a", session="s2"))
    return fidelity(comparison, rows, compared=compared)


def test_faithful_needs_every_answer_from_the_recording():
    served = LedgerRow(kind="tool", by="served", tool="a", occurrence=1)
    assert judge([served]).kind is FidelityKind.FAITHFUL
    assert judge([served], compared=0).kind is FidelityKind.UNPROVEN
    for by in ("static", "generated", "injected", "live"):
        assert judge([LedgerRow(kind="tool", by=by, tool="a")]).kind is FidelityKind.UNPROVEN  # type: ignore[arg-type]


def test_loose_answers_prove_nothing_and_marks_of_a_source_do_not_count_against():
    assert judge([LedgerRow(kind="tool", by="served", tool="a", marks=("loose: /ts",))]).kind is FidelityKind.UNPROVEN
    assert judge([LedgerRow(kind="tool", by="served", tool="a", marks=("text",))]).kind is FidelityKind.FAITHFUL


def test_a_live_model_and_an_outer_call_decided_inside_do_not_count_as_live():
    rows = [
        LedgerRow(kind="model", by="live"),
        LedgerRow(kind="tool", by="live", tool="ask", marks=("decided inside",)),
    ]
    assert judge(rows).kind is FidelityKind.FAITHFUL


def test_missed_unused_and_blocked_rows_diverge_and_name_the_call():
    for by in ("missed", "unused", "blocked"):
        found = judge([LedgerRow(kind="tool", by=by, tool="poll", occurrence=4, detail="why")])  # type: ignore[arg-type]
        assert found.kind is FidelityKind.DIVERGED
        assert "poll" in found.divergence.where
