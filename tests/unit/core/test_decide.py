"""What the vectors of decide cannot hold: texts, warnings, builtin errors, a mistake in the caller."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from recorded_calls import Replayed, call, failed, history, raised, stopped, value_of

from playhead.core.decide import decide, error_info, policy_warnings
from playhead.core.policy import (
    ErrorCase,
    HistoryConfig,
    InjectConfig,
    PassthroughConfig,
    RunLive,
    Serve,
    StaticCase,
    StaticConfig,
    ToolPolicy,
)
from playhead.core.values import NodeStatus, Outcome, OutcomeKind

REFUND = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "amount": {"type": "integer"}, "reason": {"enum": ["late", "lost"]}},
    "required": ["order_id"],
    "additionalProperties": False,
}


def static(*cases: StaticCase, **more: Any) -> ToolPolicy:
    return ToolPolicy(tools={"refund": StaticConfig(cases=cases, **more)})


def test_a_miss_reads_like_this() -> None:
    recorded = [call(1, "refund", {"order_id": "4821", "amount": 5}, "ok"), call(2, "refund", {"order_id": "9"}, "ok")]
    stop = stopped(Replayed(recorded).ask("refund", {"order_id": "4821", "amount": 10}))
    assert stop.message.splitlines() == [
        "no recording answers refund with these arguments",
        '  asked    {"amount":10,"order_id":"4821"}',
        '  closest  recorded call 1, unused: {"amount":5,"order_id":"4821"}',
        "  differs  /amount  recorded 5, asked 10",
        '  closest  recorded call 2, unused: {"order_id":"9"}',
        "  differs  /amount  recorded (absent), asked 10",
        '  differs  /order_id  recorded "9", asked "4821"',
        '  setting  "ignore": ["/amount"] leaves out fields that always change; "on_miss" says what a miss does',
        "  Nothing was run.",
    ]
    assert stop.closest[0] == {
        "session_id": "baseline",
        "node_id": "n1",
        "occurrence": 1,
        "used": False,
        "differs": [{"at": "/amount", "recorded": "5", "asked": "10"}],
    }


def test_many_differences_are_counted_not_listed() -> None:
    recorded = [call(1, "f", {str(n): n for n in range(9)}, "ok")]
    stop = stopped(Replayed(recorded).ask("f", {str(n): -n - 1 for n in range(9)}))
    assert "  differs  at 4 more places" in stop.message


def test_hidden_characters_are_visible_and_a_lone_surrogate_can_be_printed() -> None:
    stop = stopped(Replayed([call(1, "f", {"v": "a b"}, "ok")]).ask("f", {"v": "a\u00a0b\ud800\u200b😀é"}))
    assert r'"a\u00a0b\ud800\u200b😀é"' in stop.message
    stop.message.encode()


def test_arguments_that_are_nested_too_deep_are_said_to_be() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    replayed = Replayed([call(1, "f", {"v": 1}, "ok")])
    view = replace(replayed.view("f", {"v": 1}), arguments={"v": value}, key="1:other")
    replayed.tape.claim(view)
    assert "nested too deep to show" in stopped(decide(replayed.policy, view, replayed.tape)).message


def test_the_agent_is_told_nothing_of_the_recording() -> None:
    replayed = Replayed([call(1, "f", {"secret_order": 1}, "ok")], history(on_miss="error_result"))
    result = failed(replayed.ask("f", {"secret_order": 2}))
    assert result.message == "f failed: no result is available for this call"
    assert "secret_order" in result.missed


def test_a_miss_under_passthrough_says_that_the_live_tool_runs() -> None:
    decision = Replayed([], history(on_miss="passthrough")).ask("f", {})
    assert isinstance(decision, RunLive)
    assert decision.missed is not None
    assert "The live tool runs" in decision.missed


def test_what_the_caller_redacts_is_in_no_text() -> None:
    def redact(value: Any) -> Any:
        return (
            {k: "[REDACTED:K]" if v == "hunter2" else v for k, v in value.items()} if isinstance(value, dict) else value
        )

    policy = static(StaticCase(match={"password": "hunter2", "x": 1}, result=1))
    for replayed in (
        Replayed([call(1, "refund", {"password": "[REDACTED:K]", "x": 1}, "ok")], redact=redact),
        Replayed([], policy, redact=redact),
    ):
        stop = stopped(replayed.ask("refund", {"password": "hunter2", "x": 2}))
        assert "hunter2" not in stop.message + str(stop.closest)
        assert "/x" in stop.message
        assert "/password" not in stop.message


def test_a_key_that_is_missing_without_a_reason_is_a_miss() -> None:
    replayed = Replayed([])
    view = replayed.view("f", {}, key=None, no_key=None)
    replayed.tape.claim(view)
    stop = stopped(decide(replayed.policy, view, replayed.tape))
    assert stop.reason == "no_key"
    assert "the arguments as a whole could not be made" in stop.message


def test_a_static_case_may_be_written_with_python_values() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    policy = static(StaticCase(match={"at": at}, result={"when": at, "n": [1, None, "x", True]}))
    stored = {"$datetime": "2026-01-02T00:00:00Z"}
    answer = {"when": stored, "n": [1, None, "x", True]}
    assert value_of(Replayed([], policy).ask("refund", {"at": stored})) == answer


@pytest.mark.parametrize(("name", "module"), [("ValueError", "builtins"), ("ApiError", None), ("int", None)])
def test_only_builtin_exceptions_are_named_as_builtin(name: str, module: str | None) -> None:
    info = error_info(ErrorCase.model_validate({"message": "m", "class": name, "status": 409}))
    assert (info.class_name, info.module, info.message, info.status, info.args) == (name, module, "m", 409, ["m"])


def test_a_static_error_without_a_class_has_one() -> None:
    assert error_info(ErrorCase(message="m")).class_name == "ToolError"


def test_a_served_error_is_not_what_a_corrected_call_gets_when_it_cannot_be_served() -> None:
    policy = ToolPolicy(default=InjectConfig(kind="timeout"))
    replayed = Replayed([call(1, "f", {}, "x", mark="repr")], policy)
    replayed.ask("f", {})
    assert failed(replayed.ask("f", {})).reason == "mark"


def test_a_scripted_corrected_outcome_may_be_an_error() -> None:
    policy = ToolPolicy(
        default=InjectConfig.model_validate(
            {"kind": "timeout", "corrected": {"kind": "error", "error": {"message": "no", "status": 409}}}
        )
    )
    replayed = Replayed([call(1, "f", {}, "x")], policy)
    replayed.ask("f", {})
    decision = replayed.ask("f", {})
    assert isinstance(decision, Serve)
    assert decision.outcome.error is not None
    assert decision.outcome.error.status == 409


def test_production_texts_are_those_recorded_for_the_kind() -> None:
    rejected = Outcome(kind=OutcomeKind.INVALID_ARGS, value={"error": "bad amount"})
    nodes = [
        call(1, "f", {"n": 1}, outcome=Outcome(kind=OutcomeKind.VALUE, value=1)),
        call(2, "f", {"n": 2}, outcome=rejected),
        call(3, "f", {"n": 3}, outcome=raised("broken", status=503)),
    ]
    nodes.insert(1, replace(call(9, "f", {"n": 9}, status=NodeStatus.CANCELLED), seq=1, outcome=None))
    for kind, text in (("validation_error", '{"error":"bad amount"}'), ("error", "broken"), ("timeout", "timed out")):
        policy = ToolPolicy(default=InjectConfig.model_validate({"kind": kind, "message": "production"}))
        decision = Replayed(nodes, policy).ask("f", {"n": 1})
        outcome = decision.outcome  # type: ignore[union-attr]
        assert (outcome.error.message if outcome.error else outcome.value) == text


# --- warnings -------------------------------------------------------------------------------------------------------


def warn(policy: ToolPolicy, schema: Any = None) -> list[str]:
    return policy_warnings(policy, ["refund", "get_order"], {"refund": schema} if schema else {})


def test_a_tool_that_the_agent_does_not_have_is_named_with_near_names() -> None:
    policy = ToolPolicy(tools={"refnd": PassthroughConfig(), "refund": HistoryConfig(), "zzz": PassthroughConfig()})
    assert warn(policy) == [
        "/tools/refnd: the agent has no tool 'refnd'; did you mean 'refund'?",
        "/tools/zzz: the agent has no tool 'zzz'",
    ]


@pytest.mark.parametrize(
    ("cases", "warned"),
    [
        ([StaticCase(result=1), StaticCase(match={"order_id": "1"}, result=2)], [1]),
        ([StaticCase(match={}, match_mode="subset", result=1), StaticCase(match={"order_id": "1"}, result=2)], [1]),
        ([StaticCase(match={"order_id": "1"}, result=1), StaticCase(match={"order_id": "1"}, result=2)], [1]),
        (
            [
                StaticCase(match={"order_id": "1"}, match_mode="subset", result=1),
                StaticCase(match={"order_id": "1", "amount": 1}, match_mode="subset", result=2),
            ],
            [1],
        ),
        (
            [
                StaticCase(match={"order_id": "1"}, result=1),
                StaticCase(match={"order_id": "1"}, match_mode="subset", result=2),
            ],
            [],
        ),
        ([StaticCase(match={"order_id": "1"}, result=1), StaticCase(result=2)], []),
        ([StaticCase(result=1, occurrence=1), StaticCase(result=2)], []),
        ([StaticCase(result=1, occurrence=1), StaticCase(result=2, occurrence=2), StaticCase(result=3)], []),
        ([StaticCase(result=1, occurrence=1), StaticCase(result=2, occurrence=1)], [1]),
        ([StaticCase(result=1, occurrence=1), StaticCase(match={"order_id": "1"}, result=2, occurrence=1)], []),
    ],
)
def test_cases_that_no_call_reaches_are_named(cases: list[StaticCase], warned: list[int]) -> None:
    found = warn(static(*cases), REFUND)
    assert [w.split(":")[0] for w in found] == [f"/tools/refund/cases/{i}" for i in warned]
    assert all("no call reaches this case" in w for w in found)


def test_a_static_config_without_cases_is_named() -> None:
    assert warn(static(), REFUND) == ["/tools/refund/cases: there are none, so every call is a miss (fail)"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (StaticCase(match={"order": "1"}, result=1), "no parameter 'order'; did you mean 'order_id'?"),
        (StaticCase(match={"amount": 1}, result=1), '"order_id" is a required property'),
        (StaticCase(match={"order_id": 1}, result=1), "/order_id 1 is not of type"),
        (StaticCase(match={"reason": "damaged"}, match_mode="subset", result=1), "/reason"),
        (StaticCase(match={"amount": 1}, match_mode="subset", result=1), None),
        (StaticCase(match={"order_id": "1"}, result=1), None),
    ],
)
def test_cases_that_contradict_the_schema_are_named(case: StaticCase, words: str | None) -> None:
    found = warn(static(case), REFUND)
    assert len(found) == (0 if words is None else 1)
    assert words is None or words in found[0]


def test_cases_inside_an_injection_are_checked_too() -> None:
    then = StaticConfig(cases=(StaticCase(result=1), StaticCase(result=2)))
    policy = ToolPolicy(tools={"refund": InjectConfig(kind="empty", then=then)})
    assert len(warn(policy)) == 1


def test_ignored_parameters_that_do_not_exist_are_named() -> None:
    policy = ToolPolicy(tools={"refund": HistoryConfig(ignore=("/amuont", "/*", "/order_id", ""))})
    assert warn(policy, REFUND) == ["/tools/refund/ignore: the tool has no parameter 'amuont'; did you mean 'amount'?"]
    assert warn(policy) == []


def test_a_partial_object_does_not_contradict_a_schema() -> None:
    schema = {"type": "object", "properties": {"o": {"type": "object", "required": ["a", "b"]}}}
    assert warn(static(StaticCase(match={"o": {"a": 1}}, match_mode="subset", result=1)), schema) == []
