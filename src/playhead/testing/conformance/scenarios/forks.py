"""S14, S15: overrides and recorded models."""

from typing import Any

from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import ReplayStatus
from playhead.testing.conformance.harness import Call, Lab, Spec
from playhead.testing.conformance.scenarios.registry import scenario


def agents(lab: Lab, spec: Spec) -> tuple[list[Any], Any]:
    """A list of the agents built so far, and a runner that builds them."""
    built: list[Any] = []

    def make() -> Any:
        built.append(lab.harness.build(spec))
        return built[-1]

    return built, lab.runner(make)


@scenario("S14-system_prompt")
def system_prompt(lab: Lab) -> None:
    """The system text of every request is replaced, and nothing else of it."""
    lab.needs_models()
    built, run = agents(lab, Spec(system="be brief", turns=[[Call("look", {})]], tools=[_look(lab)]))
    baseline = lab.record(run)
    result = lab.replay(baseline, run, override=ReplayOverride(system_prompt="be thorough"))
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    requests = lab.harness.requests(built[-1])
    assert len(requests) == 2
    for request in requests:
        assert b"be thorough" in request
        assert b"be brief" not in request
    assert result.session.effective_system_prompt == "be thorough"


@scenario("S14-prompt")
def prompt(lab: Lab) -> None:
    """The run starts with the new prompt; the session keeps the baseline's inputs."""
    built, run = agents(lab, Spec(system="be brief"))
    baseline = lab.record(run)
    result = lab.replay(baseline, run, override=ReplayOverride(prompt="something else"))
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert b"something else" in lab.harness.requests(built[-1])[0]
    assert result.session.inputs == baseline.session.inputs
    assert result.session.effective_prompt == "something else"


@scenario("S14-model_params")
def model_params(lab: Lab) -> None:
    """Parameters are merged over the agent's own; null removes one."""
    lab.needs_models()
    built, run = agents(lab, Spec(settings=_settings(lab, temperature=0.25, top_p=0.5)))
    baseline = lab.record(run)
    before = baseline.model_calls[0].inputs["params"]
    gone = next((name for name in ("top_p", *before) if name in before and name != "max_tokens"), "top_p")
    result = lab.replay(baseline, run, override=ReplayOverride(model_params={"max_tokens": 77, gone: None}))
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    (node,) = result.model_calls
    assert node.inputs["params"] == {**{n: v for n, v in before.items() if n != gone}, "max_tokens": 77}
    asked = lab.harness.requests(built[-1])[0]
    assert b"77" in asked
    if lab.harness.has_settings:
        assert b"0.25" in asked
        assert b"0.5" not in asked


def _settings(lab: Lab, **settings: Any) -> dict[str, Any]:
    return settings if lab.harness.has_settings else {}


@scenario("S14-model")
def model(lab: Lab) -> None:
    """A model named by a string, by a map, and by a map that names another model."""
    lab.needs_models()
    other = lab.harness.other_model
    built, run = agents(lab, Spec(turns=[[Call("look", {})]], tools=[_look(lab)]))
    baseline = lab.record(run)
    policy = {"default": {"type": "history", "on_miss": "error_result"}}
    for override in (other, {"scripted": other}):
        result = lab.replay(baseline, run, override=ReplayOverride(model=override), policy=policy)
        assert result.replay.status is ReplayStatus.COMPLETED, result.message
        assert {n.model.requested for n in result.model_calls if n.model} == {other.partition(":")[2] or other}
        assert lab.harness.requests(built[-1]) == [], "the old model was asked"
    missed = lab.replay(baseline, run, override=ReplayOverride(model={"unknown": other}))
    assert missed.replay.status is ReplayStatus.FAILED
    assert missed.replay.error is not None
    assert missed.replay.error.code == "override_not_applied"


@scenario("S14-unapplied")
def unapplied(lab: Lab) -> None:
    """An override that changed nothing by the end fails the replay."""
    lab.needs_models()
    _, run = agents(lab, Spec(system="be brief", settings=_settings(lab, temperature=0.25)))
    baseline = lab.record(run)
    asked = baseline.model_calls[0].inputs
    (name, value), *_ = asked["params"].items()
    for override in (ReplayOverride(model_params={name: value}), ReplayOverride(system_prompt=_system_text(asked))):
        result = lab.replay(baseline, run, override=override)
        assert result.replay.status is ReplayStatus.FAILED, override
        assert result.replay.error is not None
        assert result.replay.error.code == "override_not_applied"


def _system_text(asked: Any) -> str:
    """The system text as the model read it: a framework may put sentences of its own around the agent's."""
    said = [m for m in asked["messages"] if m["role"] == "system"]
    texts = [part.get("text", "") for m in said for part in m["parts"]]
    return texts[0] if len(texts) == 1 else "be brief"


@scenario("S15")
def recorded_model(lab: Lab) -> None:
    """Under a recorded model no model is asked, and the result is the same, streamed or not."""
    lab.needs_models()
    for entry in lab.harness.entries:
        built: list[Any] = []

        def make(built: list[Any] = built) -> Any:
            built.append(lab.harness.build(Spec(turns=[[Call("look", {})]], tools=[_look(lab)])))
            return built[-1]

        run = lab.runner(make, entry)
        baseline = lab.record(run)
        result = lab.replay(baseline, run, model=HistoryModel())
        lab.check_faithful(baseline, result)
        assert lab.harness.requests(built[-1]) == [], f"{entry}: the model was asked"
        lab.live.clear()


def _look(lab: Lab) -> Any:
    def look() -> str:
        lab.entered("look")
        return "seen"

    return look
