"""Overrides of model requests and of session inputs."""

from typing import Any

import pytest

from playhead.core.override import (
    check_override,
    effective,
    override_inputs,
    override_model,
    override_request,
    unapplied,
)
from playhead.core.policy import ReplayOverride
from playhead.errors import PolicyError

REQUEST = {
    "messages": [
        {"role": "system", "parts": [{"type": "text", "text": "be kind"}]},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"role": "system", "parts": [{"type": "text", "text": "and short"}]},
    ],
    "tools": [],
    "params": {"temperature": 0.7, "max_tokens": 100},
}


def texts(request: Any) -> list[tuple[str, str]]:
    return [(m["role"], m["parts"][0]["text"]) for m in request["messages"]]


def test_without_an_override_nothing_changes() -> None:
    made = override_request(None, "gpt", REQUEST)
    assert (made.model, made.request, made.changed) == ("gpt", REQUEST, ())


def test_one_model_for_every_call() -> None:
    made = override_request(ReplayOverride(model="new"), "old", REQUEST)
    assert (made.model, made.changed) == ("new", ("model",))
    assert override_request(ReplayOverride(model="new"), "new", REQUEST).changed == ()
    assert override_model(ReplayOverride(model="new"), None) == "new"


@pytest.mark.parametrize(
    ("requested", "served", "model"),
    [
        ("openai:gpt-4o", None, "a"),
        ("openai/gpt-4o", None, "b"),
        ("gpt-4o", None, "b"),
        ("claude", None, "claude"),
        (None, "gpt-4o", "b"),
        (None, None, None),
        ("claude", "gpt-4o", "claude"),
    ],
)
def test_a_map_is_asked_with_the_provider_prefix_then_without(
    requested: str | None, served: str | None, model: str | None
) -> None:
    override = ReplayOverride(model={"openai:gpt-4o": "a", "gpt-4o": "b"})
    assert override_model(override, requested, served=served) == model


def test_the_system_prompt_replaces_all_system_text_of_the_root_agent() -> None:
    override = ReplayOverride(system_prompt="be rude")
    made = override_request(override, "m", REQUEST)
    assert texts(made.request) == [("system", "be rude"), ("user", "hi")]
    assert made.changed == ("system_prompt",)
    assert texts(REQUEST)[0] == ("system", "be kind")
    assert override_request(override, "m", REQUEST, root=False).request == REQUEST
    assert override_request(override, "m", made.request).changed == ()


def test_parameters_are_merged_and_null_removes_one() -> None:
    override = ReplayOverride(model_params={"temperature": None, "top_p": 1, "seed": None})
    made = override_request(override, "m", REQUEST)
    assert made.request["params"] == {"max_tokens": 100, "top_p": 1}
    assert made.changed == ("model_params",)
    same = ReplayOverride(model_params={"max_tokens": 100.0})
    assert override_request(same, "m", REQUEST).changed == ()
    assert override_request(override, "m", {"messages": []}).request["params"] == {"top_p": 1}


# --- inputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("old", "new"),
        (None, "new"),
        ({"prompt": "old", "x": 1}, {"prompt": "new", "x": 1}),
        ({"user_prompt": "old", "message_history": [1]}, {"user_prompt": "new", "message_history": [1]}),
        ({"user_prompt": [{"type": "text", "text": "old"}, {"type": "media"}]}, {"user_prompt": ["new"]}),
        ({"task": "old", "limit": 3}, {"task": "new", "limit": 3}),
        (
            {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
            {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "new"}]},
        ),
        (
            [{"role": "user", "parts": [{"type": "text", "text": "a"}]}, {"role": "assistant", "parts": []}],
            [{"role": "user", "parts": [{"type": "text", "text": "new"}]}, {"role": "assistant", "parts": []}],
        ),
        ({"messages": [{"role": "user", "content": "a"}], "name": "x"},) * 1
        + ({"messages": [{"role": "user", "content": "new"}], "name": "x"},),
        ({"turns": ["old"]}, {"turns": ["new"]}),
        ({"turns": [{"input": "old", "output": "y"}]}, {"turns": [{"input": "new", "output": "y"}]}),
    ],
)
def test_the_prompt_is_found_where_inputs_keep_it(inputs: Any, expected: Any) -> None:
    made = override_inputs(ReplayOverride(prompt="new"), inputs)
    assert made.inputs == expected
    assert made.changed
    assert made.effective in ("new", {"0": "new"})


def test_a_turn_is_replaced_by_its_number() -> None:
    inputs = {"turns": ["a", "b", "c"], "x": 1}
    made = override_inputs(ReplayOverride(prompt={"1": "new"}), inputs)
    assert made.inputs == {"turns": ["a", "new", "c"], "x": 1}
    assert made.effective == {"1": "new"}
    assert inputs["turns"] == ["a", "b", "c"]
    assert override_inputs(ReplayOverride(prompt={"0": "new"}), "old").inputs == "new"


def test_a_prompt_that_is_the_recorded_one_changes_nothing() -> None:
    made = override_inputs(ReplayOverride(prompt="same"), {"prompt": "same"})
    assert not made.changed
    assert made.effective == "same"


def test_another_override_leaves_the_inputs_alone() -> None:
    for override in (None, ReplayOverride(model="x")):
        made = override_inputs(override, {"prompt": "p"})
        assert (made.inputs, made.effective, made.changed) == ({"prompt": "p"}, None, False)


@pytest.mark.parametrize(
    ("prompt", "inputs"),
    [
        ("new", {"a": "x", "b": "y"}),
        ("new", 7),
        ("new", {"messages": [{"role": "assistant", "content": "x"}]}),
        ("new", {"turns": ["a", "b"]}),
        ({"1": "new"}, "old"),
        ({}, "old"),
        ({"2": "new"}, {"turns": ["a", "b"]}),
    ],
)
def test_a_prompt_that_has_no_place_is_refused(prompt: Any, inputs: Any) -> None:
    with pytest.raises(PolicyError, match="/override/prompt"):
        override_inputs(ReplayOverride(prompt=prompt), inputs)


@pytest.mark.parametrize(
    ("prompt", "turns", "words"),
    [
        ("x", 0, None),
        ("x", 1, None),
        ("x", 3, "has 3 turns"),
        ({"0": "x"}, 0, None),
        ({"2": "x"}, 3, None),
        ({"3": "x"}, 3, "turns 0 to 2"),
        ({"1": "x"}, 1, "only turn 0"),
        ({"01": "x"}, 3, "'01' is no turn"),
        ({"first": "x"}, 3, "'first' is no turn"),
        ({}, 3, "names no turn"),
        (None, 3, None),
    ],
)
def test_a_plain_prompt_is_refused_for_several_turns(prompt: Any, turns: int, words: str | None) -> None:
    reasons = check_override(ReplayOverride(prompt=prompt, model="m"), turns=turns)
    assert len(reasons) == (0 if words is None else 1)
    assert words is None or words in reasons[0]


def test_a_long_effective_prompt_is_cut_with_a_mark() -> None:
    assert effective("short") == "short"
    assert effective("x" * 30, limit=10) == {"text": "x" * 10, "truncated": True, "characters": 30}


def test_fields_that_changed_nothing_are_named() -> None:
    override = ReplayOverride(model="m", model_params={"a": None})
    assert unapplied(override, {"model": 2}) == ["model_params"]
    assert unapplied(override, {"model": 1, "model_params": 1}) == []
    assert unapplied(None, {}) == []
