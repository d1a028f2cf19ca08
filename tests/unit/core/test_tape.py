"""The tape, and the cases of recording and replay that it decides."""

import threading
from dataclasses import replace
from random import Random

import pytest
from recorded_calls import HISTORY, Replayed, call, failed, history, raised, stopped, value_of

from playhead.core.claim import Announced
from playhead.core.decide import decide
from playhead.core.occurrence import call_ref
from playhead.core.policy import (
    CallView,
    InjectConfig,
    PassthroughConfig,
    Serve,
    StaticCase,
    StaticConfig,
    Stop,
    ToolPolicy,
)
from playhead.core.recording import Occurrence, recordings
from playhead.core.tape import Tape
from playhead.core.values import Mark, Node, NodeKind, NodeStatus, NoKey, Outcome, OutcomeKind

POLL = [call(i, "poll", {"q": "q"}, i, occurrence=i) for i in (1, 2, 3)]


def announced(call_id: str | None, tool: str, arguments: object) -> Announced:
    view = Replayed([]).view(tool, arguments)
    return Announced(call_id=call_id, tool=tool, arguments=arguments, key=view.key, no_key=view.no_key)


def test_r03_nan_is_not_null() -> None:
    replayed = Replayed([call(1, "f", {"v": None}, "A")])
    stop = stopped(replayed.ask("f", {"v": {"$float": "nan"}}))
    assert stop.reason == "no_key"
    assert "/v" in stop.message
    assert [r.node_id for r in replayed.tape.leftovers()] == ["n1"]


UNSTORED = {"key": None, "no_key": NoKey(reason="unsupported_type", at="/db", detail="Connection")}


def unstored(seq: int, value: object) -> Node:
    made = call(seq, "f", None, value)
    return replace(made, call=replace(made.call, **UNSTORED))  # type: ignore[type-var]


def test_calls_whose_arguments_were_not_stored_do_not_answer_each_other_when_a_field_is_ignored() -> None:
    replayed = Replayed([unstored(1, "A")], history(ignore=["/db"]))
    stop = stopped(replayed.ask("f", None, **UNSTORED))
    assert stop.reason == "no_key"
    assert "/db has a type without a stored form (Connection)" in stop.message
    assert 'exclude=["db"]' in stop.message
    assert "null" not in stop.message


def test_calls_without_a_key_are_misses_in_a_wide_scope_too() -> None:
    replayed = Replayed([], history(scope="agent"))
    replayed.tape.add_wide("f", [call(1, "f", {"v": {"$float": "nan"}}, "A"), unstored(2, "B")])
    assert stopped(replayed.ask("f", {"v": {"$float": "inf"}})).reason == "no_key"
    assert stopped(replayed.ask("f", None, **UNSTORED)).reason == "no_key"


def test_a_pointer_of_thousands_of_levels_is_shown_short() -> None:
    deep = NoKey(reason="too_deep", at="/x" + "/0" * 5000)
    stop = stopped(Replayed([]).ask("f", {"x": 1}, key=None, no_key=deep))
    assert len(stop.message) < 600
    assert '"ignore": ["/x"]' in stop.message


@pytest.mark.parametrize(
    ("mark", "attributes", "words"),
    [
        ("missing", {"not_stored": "(the whole value): unsupported_type (Socket)"}, "register_type"),
        ("repr", {"not_served": "Order cannot be made again: register it"}, "Order cannot be made again"),
        ("missing", {}, "capturing of tool results at the source"),
    ],
)
def test_a_result_that_was_not_stored_says_why(mark: str, attributes: dict[str, str], words: str) -> None:
    recorded = replace(call(1, "f", {}, None, mark=Mark(mark)), attributes=attributes)
    stop = stopped(Replayed([recorded]).ask("f", {}))
    assert (stop.reason, words in stop.message) == ("mark", True)


def test_r08_an_argument_that_always_changes() -> None:
    recorded = [call(1, "f", {"q": "x", "ts": "09:00", "idem": "a"}, "A")]
    asked = {"q": "x", "ts": "10:00", "idem": "b"}
    stop = stopped(Replayed(recorded).ask("f", asked))
    assert [d["at"] for d in stop.closest[0]["differs"]] == ["/idem", "/ts"]
    assert '"ignore"' in stop.message
    hit = Replayed(recorded, history(ignore=["/ts", "/idem"])).ask("f", asked)
    assert isinstance(hit, Serve)
    assert hit.provenance.loose == ("/ts", "/idem")


@pytest.mark.parametrize("asked", [{"id": " A-1\n"}, {"id": "a-1"}, {"id": "A-1", "note": None}])
def test_r09_white_space_is_data(asked: dict[str, object]) -> None:
    stop = stopped(Replayed([call(1, "f", {"id": "A-1"}, "A")]).ask("f", asked))
    assert stop.reason == "other_args"
    if asked["id"] == " A-1\n":
        assert r'" A-1\n"' in stop.message


def test_r13_a_poll_is_answered_in_order() -> None:
    replayed = Replayed(POLL)
    assert [value_of(replayed.ask("poll", {"q": "q"})) for _ in range(3)] == [1, 2, 3]


def test_r14_one_call_too_many() -> None:
    for policy in (HISTORY, history(on_miss="error_result")):
        replayed = Replayed(POLL, policy)
        for _ in range(3):
            replayed.ask("poll", {"q": "q"})
        fourth = replayed.ask("poll", {"q": "q"})
        if isinstance(fourth, Stop):
            assert "all 3 recorded answers are used" in fourth.message
        else:
            assert "all 3 recorded answers are used" in failed(fourth).missed
            assert "recorded" not in failed(fourth).message


@pytest.mark.parametrize(("repeat", "expected"), [("last", [1, 2, 3, 3, 3]), ("first", [1, 2, 3, 1, 1])])
def test_r15_repeats_on_purpose(repeat: str, expected: list[int]) -> None:
    replayed = Replayed(POLL, history(repeat=repeat))
    decisions = [replayed.ask("poll", {"q": "q"}) for _ in range(5)]
    assert [value_of(d) for d in decisions] == expected
    assert ["repeat" in d.marks for d in decisions if isinstance(d, Serve)] == [False] * 3 + [True] * 2


def test_r16_the_model_asks_in_another_order() -> None:
    replayed = Replayed([call(1, "search", {"q": "flights"}, "F"), call(2, "search", {"q": "hotels"}, "H")])
    assert value_of(replayed.ask("search", {"q": "hotels"})) == "H"
    assert value_of(replayed.ask("search", {"q": "flights"})) == "F"


def test_r17_parallel_identical_calls_by_call_id() -> None:
    model = Node(id="m", session_id="baseline", seq=1, kind=NodeKind.MODEL_CALL, name="model", started_at=1)
    recorded = [
        model,
        *(
            call(i + 2, "f", {}, value, occurrence=i + 1, call_id=value, model_call="m", index=i, ended_at=99 - i)
            for i, value in enumerate(["first", "second", "third"])
        ),
    ]
    replayed = Replayed(recorded)
    replayed.tape.announce("n", [announced(c, "f", {}) for c in ("x", "y", "z")])
    given = {c: value_of(replayed.ask("f", {}, ref=call_ref("n", c))) for c in ("z", "x", "y")}
    assert given == {"x": "first", "y": "second", "z": "third"}


def test_r17_calls_from_threads_are_never_answered_twice() -> None:
    for turn in range(20):
        recorded = [call(i, "f", {}, i, occurrence=i) for i in range(1, 41)]
        tape, lock = Tape.build(recorded, HISTORY), threading.Lock()
        views = [Replayed([]).view("f", {}, ref=f"start:{i}#1") for i in range(40)]
        Random(turn).shuffle(views)
        answers: list[int] = []

        def work(mine: list[CallView], tape: Tape = tape, lock: threading.Lock = lock, to: list[int] = answers) -> None:
            for view in mine:
                with lock:
                    tape.claim(view)
                    to.append(value_of(decide(HISTORY, view, tape)))

        threads = [threading.Thread(target=work, args=(views[n::8],)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == list(range(1, 41))


def test_r17_overlapping_calls_stop_as_ambiguous_unless_the_order_is_recorded() -> None:
    recorded = [call(i, "f", {}, i, occurrence=i, overlapped=True, ended_at=9) for i in (1, 2)]
    assert stopped(Replayed(recorded).ask("f", {})).reason == "ambiguous"
    replayed = Replayed(recorded, history(order="recorded"))
    assert [value_of(replayed.ask("f", {})) for _ in range(2)] == [1, 2]


def test_equal_calls_of_conversations_side_by_side_are_answered_each_from_its_own() -> None:
    """Recorded in the order in which two models happened to answer; now they answer the other way round."""
    nodes = [
        call(1, "look", {"q": "x"}, "A", model_call="slow"),
        call(2, "look", {"q": "x"}, "B", occurrence=2, model_call="quick"),
        call(3, "look", {"q": "x"}, "C", occurrence=3, model_call="quick"),
    ]

    def answers(*asked: str | None) -> list[object]:
        replayed = Replayed(nodes)
        claims = [
            replayed.tape.claim(replace(replayed.view("look", {"q": "x"}), ref=f"m{n}:c", asked_by=by))
            for n, by in enumerate(asked)
        ]
        return [c.recording.outcome.value if c.recording and c.recording.outcome else c.reason for c in claims]

    assert answers("quick", "slow", "quick", "slow") == ["B", "A", "C", "used_up"]
    assert answers("gone", None, "slow") == ["A", "B", "C"]  # what stands for no recorded call is answered in order


def test_r18_two_tools_swap_places_in_one_turn() -> None:
    replayed = Replayed([call(1, "a", {}, "A"), call(2, "b", {}, "B")])
    replayed.tape.announce("m", [announced("1", "b", {}), announced("2", "a", {})])
    assert value_of(replayed.ask("b", {}, ref=call_ref("m", "1"))) == "B"
    assert value_of(replayed.ask("a", {}, ref=call_ref("m", "2"))) == "A"


def test_r19_fail_then_succeed() -> None:
    replayed = Replayed(
        [call(1, "pay", {"x": 1}, outcome=raised("slow")), call(2, "pay", {"x": 1}, "ok", occurrence=2)]
    )
    first = replayed.ask("pay", {"x": 1})
    assert isinstance(first, Serve)
    assert first.outcome.error is not None
    assert first.outcome.error.class_name == "TimeoutError"
    assert value_of(replayed.ask("pay", {"x": 1})) == "ok"


def test_r37_recorded_but_not_asked_for() -> None:
    replayed = Replayed([call(i, "f", {"n": i}, i) for i in (1, 2, 3)])
    replayed.ask("f", {"n": 2})
    left = [(r.tool, r.arguments, r.occurrence) for r in replayed.tape.leftovers()]
    assert left == [("f", {"n": 1}, 1), ("f", {"n": 3}, 1)]
    assert not replayed.tape.exhausted()


def test_a_claim_is_made_once_for_a_ref() -> None:
    replayed = Replayed(POLL)
    view = replayed.view("poll", {"q": "q"})
    assert replayed.tape.claim_of(view.ref) is None
    claim = replayed.tape.claim(view)
    assert replayed.tape.claim(view) is claim
    assert replayed.tape.claim_of(view.ref) is claim
    assert len(replayed.tape.leftovers()) == 2


def test_keys_of_another_version_are_made_again_from_stored_arguments() -> None:
    old = call(1, "f", {"a": 1}, "A")
    assert old.call is not None
    aged = replace(old, call=replace(old.call, key="0:" + "0" * 64))
    assert value_of(Replayed([aged]).ask("f", {"a": 1})) == "A"


def test_asked_arguments_are_redacted_before_they_are_compared_without_ignored_fields() -> None:
    recorded = [call(1, "f", {"token": "[REDACTED:token]", "ts": 1}, "A")]
    policy = history(ignore=["/ts"])

    def redact(value: object) -> object:
        return {**value, "token": "[REDACTED:token]"} if isinstance(value, dict) and "token" in value else value

    assert value_of(Replayed(recorded, policy, redact=redact).ask("f", {"token": "real", "ts": 2})) == "A"
    stop = stopped(Replayed(recorded, policy, redact=redact).ask("f", {"token": "real", "ts": 2, "x": 1}))
    assert "real" not in stop.message
    assert "/x" in stop.message


def test_paths_are_read_from_the_tree_where_a_call_names_none() -> None:
    nodes = [call(1, "outer", {}, "o"), call(2, "inner", {}, "i", parent_id="n1")]
    inner = recordings(nodes)[1]
    assert inner.path == recordings(nodes)[0].child_path


def test_a_static_answer_covers_nothing_by_itself_and_claims() -> None:
    policy = ToolPolicy(tools={"outer": StaticConfig(cases=(StaticCase(result=1),))})
    replayed = Replayed([call(1, "outer", {}, "o"), call(2, "inner", {}, "i", parent_id="n1")], policy)
    replayed.ask("outer", {}, ref="start:1#1")
    assert [r.node_id for r in replayed.tape.leftovers()] == ["n2"]
    assert [r.node_id for r in replayed.tape.cover("start:1#1")] == ["n2"]
    assert replayed.tape.exhausted()
    assert replayed.tape.cover("nobody") == ()


def test_later_attempts_count_as_left_over_only_under_history() -> None:
    nodes = [
        call(1, "f", {}, outcome=raised("slow"), call_id="c"),
        call(2, "f", {}, "ok", call_id="c", attempt=2),
    ]
    for policy, left in ((HISTORY, ["n2"]), (ToolPolicy(default=PassthroughConfig()), [])):
        replayed = Replayed(nodes, policy)
        replayed.ask("f", {})
        assert [r.node_id for r in replayed.tape.leftovers()] == left


def test_a_rejected_call_without_a_recording_is_not_the_same() -> None:
    replayed = Replayed([call(1, "f", {}, "x", status=NodeStatus.CANCELLED)])
    assert replayed.tape.reject("nobody").recording is None
    replayed.ask("f", {"other": 1}, ref="start:1#1")
    assert replayed.tape.reject("start:1#1", Outcome(kind=OutcomeKind.INVALID_ARGS)) == (None, False)


def test_a_call_known_from_a_transcript_is_rejected_again_with_an_equal_outcome() -> None:
    text = Outcome(kind=OutcomeKind.RESULT_ERROR, value="no such tool")
    replayed = Replayed([call(1, "f", {}, outcome=text, source="transcript")])
    replayed.ask("f", {}, ref="start:1#1")
    assert replayed.tape.reject("start:1#1", text).same
    assert replayed.tape.reject("start:1#1").same
    assert not replayed.tape.reject("start:1#1", Outcome(kind=OutcomeKind.RESULT_ERROR, value="else")).same


def test_five_thousand_equal_calls_are_not_searched_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def free(self: Occurrence) -> bool:
        nonlocal looked
        looked += 1
        return self.claimed is None and not self.covered

    replayed = Replayed([call(i, "f", {}, i, occurrence=i) for i in range(1, 5001)])
    monkeypatch.setattr(Occurrence, "free", property(free))
    assert [value_of(replayed.ask("f", {})) for _ in range(5000)] == list(range(1, 5001))
    assert looked < 20_000


def test_what_is_claimed_below_a_call_is_not_covered() -> None:
    nodes = [
        call(1, "outer", {}, "o"),
        call(2, "f", {}, 1, parent_id="n1"),
        call(3, "f", {}, 2, parent_id="n1", occurrence=2),
    ]
    replayed = Replayed(nodes, ToolPolicy(tools={"outer": PassthroughConfig()}))
    replayed.ask("outer", {}, ref="start:1#1")
    claim = replayed.tape.claim_of("start:1#1")
    assert claim is not None
    replayed.ask("f", {}, path=(claim.step,))
    assert [r.node_id for r in replayed.tape.cover("start:1#1")] == ["n3"]


@pytest.mark.parametrize(
    "other",
    [
        raised("slow", status=500),
        raised("slow", class_name="OSError"),
        raised("slow", code="x"),
        Outcome(kind=OutcomeKind.ERROR),
        Outcome(kind=OutcomeKind.RESULT_ERROR),
        None,
    ],
)
def test_overlapping_answers_that_differ_in_anything_are_ambiguous(other: Outcome | None) -> None:
    def overlapping(second: Outcome | None) -> list[Node]:
        first = call(1, "f", {}, outcome=raised("slow"), overlapped=True)
        return [first, replace(call(2, "f", {}, overlapped=True, occurrence=2), outcome=second)]

    assert stopped(Replayed(overlapping(other)).ask("f", {})).reason == "ambiguous"
    assert isinstance(Replayed(overlapping(raised("slow"))).ask("f", {}), Serve)


def test_a_further_attempt_of_an_injected_call_that_is_over_has_its_recorded_attempt() -> None:
    nodes = [call(1, "f", {}, "first", call_id="c"), call(2, "f", {}, "second", call_id="c", attempt=2)]
    replayed = Replayed(nodes, ToolPolicy(default=InjectConfig(kind="timeout")))
    kinds = [type(replayed.ask("f", {}, ref=f"m:c#{n}")).__name__ for n in (1, 2)]
    assert kinds == ["Inject", "Serve"]
    assert stopped(replayed.ask("f", {}, ref="m:c#3")).reason == "attempts"


def test_a_further_attempt_of_a_call_without_a_recording_is_a_miss_too() -> None:
    replayed = Replayed([])
    assert stopped(replayed.ask("f", {}, ref="m:c#1")).reason == "never_recorded"
    assert stopped(replayed.ask("f", {}, ref="m:c#2")).reason == "never_recorded"


def test_attempts_that_name_no_call_join_the_equal_call_before_them() -> None:
    nodes = [
        call(1, "f", {"n": 1}, outcome=raised("slow")),
        call(2, "f", {"n": 2}, "other"),
        call(3, "f", {"n": 1}, "ok", attempt=2),
    ]
    replayed = Replayed(nodes)
    assert isinstance(replayed.ask("f", {"n": 1}, ref="m:c#1"), Serve)
    assert value_of(replayed.ask("f", {"n": 2})) == "other"
    assert value_of(replayed.ask("f", {"n": 1}, ref="m:c#2")) == "ok"
