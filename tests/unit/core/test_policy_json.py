"""Policies and overrides as users write them, and what they are told about mistakes."""

from typing import Any

import pytest

from playhead.core.policy import (
    ErrorCase,
    HistoryConfig,
    HistoryModel,
    LiveModel,
    PassthroughConfig,
    ReplayOverride,
    StaticCase,
    ToolPolicy,
)
from playhead.core.policy_json import parse_model_policy, parse_override, parse_policy
from playhead.errors import PolicyError

DOCUMENTED = """
{"default": {"type": "history", "scope": "baseline", "on_miss": "fail"},
 "tools": {"get_current_time": {"type": "passthrough"},
           "refund_payment": {"type": "static", "on_miss": "error_result",
              "cases": [{"match": {"order_id": "4821"}, "match_mode": "exact", "result": "refund issued: $129.00"}]}}}
"""


def test_the_documented_policy_is_read() -> None:
    policy = parse_policy(DOCUMENTED)
    assert policy == parse_policy(DOCUMENTED.encode())
    assert isinstance(policy.config_for("get_current_time"), PassthroughConfig)
    assert policy.config_for("anything") == HistoryConfig(scope="baseline", on_miss="fail")
    assert parse_policy(policy) is policy
    assert parse_policy({}) == ToolPolicy()


def test_a_null_result_is_a_result() -> None:
    policy = parse_policy({"default": {"type": "static", "cases": [{"result": None}]}})
    assert parse_policy(policy.model_dump(mode="json")) == policy


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"defalt": {}}, ["/defalt", "did you mean 'default'?", "default, tools"]),
        ({"default": {"type": "histroy"}}, ["/default/type", '"histroy"', "did you mean 'history'?", "passthrough"]),
        ({"default": {"scope": "agent"}}, ["/default", 'needs "type"', "history"]),
        ({"default": "history"}, ["/default", '"history"']),
        (
            {"tools": {"a/b": {"type": "history", "scope": "agnt"}}},
            ["/tools/a~1b/scope", '"agnt"', "did you mean 'agent'?", "'cohort_version'"],
        ),
        (
            {"tools": {"x": {"type": "static", "cases": [{"reslt": 1, "result": 1}]}}},
            ["/tools/x/cases/0/reslt", "did you mean 'result'?"],
        ),
        (
            {"tools": {"x": {"type": "static", "cases": [{"error": {"message": "m", "statu": 1}}]}}},
            ["/tools/x/cases/0/error/statu", "did you mean 'status'?", "class"],
        ),
        ({"tools": {"x": {"type": "static", "cases": [{}]}}}, ["/tools/x/cases/0", 'either "result"']),
        (
            {"tools": {"x": {"type": "static", "cases": [{"result": 1, "error": {"message": "m"}}]}}},
            ["/tools/x/cases/0", 'either "result"'],
        ),
        (
            {"tools": {"x": {"type": "static", "cases": [{"error": {}}]}}},
            ["/tools/x/cases/0/error/message: is missing"],
        ),
        ({"default": {"type": "history", "ignore": ["ts"]}}, ["/default/ignore/0", "write '/ts'"]),
        ({"default": {"type": "inject", "kind": "rate_limits"}}, ["/default/kind", "did you mean 'rate_limit'?"]),
        ({"default": {"type": "inject", "kind": "empty", "nth": 0}}, ["/default/nth", "greater than or equal to 1"]),
        (
            {"default": {"type": "inject", "kind": "empty", "nth": 1, "probability": 0.5}},
            ["/default", 'either "nth" or "probability"'],
        ),
        (
            {"default": {"type": "inject", "kind": "empty", "then": {"type": "history", "on_mis": "fail"}}},
            ["/default/then/on_mis", "did you mean 'on_miss'?"],
        ),
        (
            {"default": {"type": "inject", "kind": "empty", "corrected": {"knd": "value"}}},
            ["/default/corrected"],
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_choices(given: Any, words: list[str]) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(given)
    assert caught.value.exit_code == 2
    for word in words:
        assert word in caught.value.message


def test_every_problem_is_listed() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy({"defalt": 1, "tools": {"x": {"type": "llm", "modl": "m"}}})
    problems = caught.value.details["problems"]
    assert len(problems) == 2
    assert problems[0] == caught.value.message
    assert problems[1] in str(caught.value.hint)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "null", '"history"'])
def test_what_is_no_object_is_no_policy(text: str) -> None:
    with pytest.raises(PolicyError, match="tool policy"):
        parse_policy(text)


def test_model_policies() -> None:
    assert parse_model_policy("live") == LiveModel()
    assert parse_model_policy(" history ") == HistoryModel()
    assert parse_model_policy('{"type": "history", "on_miss": "live"}') == HistoryModel(on_miss="live")
    assert parse_model_policy(HistoryModel()) == HistoryModel()
    for given, words in (
        ({"type": "hist"}, "did you mean 'history'?; allowed: live, history"),
        ({"type": "history", "on_miss": "error_result"}, "allowed: 'fail', 'live'"),
        ({"type": "live", "on_miss": "fail"}, "allowed: type"),
    ):
        with pytest.raises(PolicyError) as caught:
            parse_model_policy(given)
        assert words in caught.value.message


def test_overrides() -> None:
    override = parse_override('{"model_params": {"temperature": null}}')
    assert override.model_dump(exclude_none=True) == {"model_params": {"temperature": None}}
    assert parse_override(override) is override
    assert parse_override({"model": {"old": "new"}}).model == {"old": "new"}
    for given, words in (
        ({}, "at least one of model, system_prompt, prompt, model_params"),
        ({"modle": "x"}, "did you mean 'model'?"),
        ({"prompt": 3}, "/prompt"),
    ):
        with pytest.raises(PolicyError) as caught:
            parse_override(given)
        assert words in caught.value.message


def test_python_says_what_json_says() -> None:
    case = StaticCase(error=ErrorCase(message="m", error_class="ValueError"))
    assert case.model_dump(by_alias=True, exclude_defaults=True) == {"error": {"message": "m", "class": "ValueError"}}
    with pytest.raises(ValueError, match="either"):
        StaticCase(match={})
    with pytest.raises(ValueError, match="at least one"):
        ReplayOverride()
