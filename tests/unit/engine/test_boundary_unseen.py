"""A framework's run that leaves no model call is said aloud."""

import logging

import pytest

from playhead.engine import seam
from playhead.engine.model_step import ModelRequest, ModelResult
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore


def run(agent: str, *, ask: bool, fail: bool = False, asks_models: bool = True) -> None:
    recorder = Recorder(MemoryStore())
    scope = seam.session(agent, inputs={}, recorder=recorder)
    scope.asks_models = asks_models
    try:
        with scope as active:
            assert active is not None
            if ask:
                step = active.model_call("m", request=ModelRequest(messages=[]))
                step.observe(ModelResult(message={"role": "assistant", "parts": []}))
            if fail:
                raise ValueError("refused by a guardrail")
    except ValueError:
        pass
    finally:
        recorder.close()


def test_a_run_without_a_model_call_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "playhead"):
        run("unseen-1", ask=False)
        run("unseen-1", ask=False)
    (record,) = caplog.records
    assert "'unseen-1'" in record.getMessage()
    assert "no model call" in record.getMessage()


@pytest.mark.parametrize(
    "how", [{"ask": True}, {"ask": False, "fail": True}, {"ask": False, "asks_models": False}], ids=str
)
def test_runs_that_asked_a_model_failed_or_need_none_are_not_warned_of(
    caplog: pytest.LogCaptureFixture, how: dict[str, bool]
) -> None:
    with caplog.at_level(logging.WARNING, "playhead"):
        run("unseen-2", **how)
    assert caplog.records == []


def test_a_framework_whose_model_seam_is_gone_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """The capability's hook for models does nothing, as after an upgrade that no longer calls it."""
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="framework not installed")
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.models.test import TestModel

    from playhead.adapters.pydantic_ai import Playhead

    class Deaf(Playhead):
        wrap_model_request = AbstractCapability.wrap_model_request

    recorder = Recorder(MemoryStore())
    agent = pydantic_ai.Agent(TestModel(), name="deaf", capabilities=[Deaf(recorder=recorder)])
    with caplog.at_level(logging.WARNING, "playhead"):
        agent.run_sync("go")
    recorder.close()
    assert "a run of 'deaf' ended and no model call of it was seen" in caplog.text
