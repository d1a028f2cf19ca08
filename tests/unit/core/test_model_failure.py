"""Which model requests of a replay are made to fail, and with what."""

from typing import Any

import pytest

from playhead.core.model_failure import ModelFailures
from playhead.core.policy import ModelFailure
from playhead.core.policy_json import parse_model_policy
from playhead.errors import PolicyError


def fails(config: ModelFailure, requests: str) -> str:
    """The requests, one letter each, in upper case where they failed."""
    failures = ModelFailures(config)
    return "".join(r.upper() if failures.answer(r) is not None else r for r in requests)


@pytest.mark.parametrize(
    ("config", "seen"),
    [
        ({}, "Aabab"),  # the first; its repetition is answered
        ({"nth": 2}, "aBbab"),
        ({"nth": 2, "times": 2}, "aBBbb"),
        ({"times": 9}, "AAAAA"),
        ({"probability": 0.0}, "aabab"),
        ({"probability": 1.0}, "AaBab"),
    ],
)
def test_a_request_fails_as_often_as_it_says(config: Any, seen: str) -> None:
    assert fails(ModelFailure(kind="error", **config), seen.lower()) == seen


def test_a_probability_is_drawn_by_seed() -> None:
    letters = "".join(chr(ord("a") + n) for n in range(26))
    drawn = {fails(ModelFailure(kind="error", probability=0.4, seed=seed), letters) for seed in (1, 1, 2)}
    assert len(drawn) == 2
    assert all(3 < sum(map(str.isupper, found)) < 20 for found in drawn)


@pytest.mark.parametrize(
    ("config", "status", "name", "wait"),
    [
        (ModelFailure(kind="rate_limit", retry_after=7), 429, "RateLimitError", 7),
        (ModelFailure(kind="error"), 500, "ServerError", None),
        (ModelFailure(kind="error", status=529, text="overloaded"), 529, "ServerError", None),
        (ModelFailure(kind="timeout"), None, "TimeoutError", None),
    ],
)
def test_a_failure_says_what_providers_say(config: ModelFailure, status: int, name: str, wait: float) -> None:
    outcome = ModelFailures(config).answer("a")
    assert outcome is not None
    assert outcome.error is not None
    assert (outcome.error.status, outcome.error.class_name, outcome.error.retry_after) == (status, name, wait)
    assert config.text in (None, outcome.error.message)


@pytest.mark.parametrize(
    ("inject", "told"),
    [
        ({"kind": "empty"}, "allowed: 'rate_limit', 'timeout', 'error'"),
        ({"kind": "error", "nth": 1, "probability": 0.5}, 'either "nth" or "probability"'),
        ({"kind": "timeout", "status": 500}, "a timeout has no status"),
        ({"kind": "error", "time": 2}, "did you mean 'times'"),
        ({"kind": "error", "status": 200}, "greater than or equal to 400"),
    ],
)
def test_a_mistake_in_the_policy_is_named(inject: Any, told: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_model_policy({"type": "history", "inject": inject})
    assert told in caught.value.message
