"""Capabilities from the command line: what was measured, and replays that an adapter cannot do."""

import pytest

from playhead.engine.capabilities import measured
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.adapter import scenarios

from .conftest import Project


def give_capabilities(project: Project, **scenarios: str) -> None:
    """Says of the newest version of the agent that scenarios failed, as its own suite would."""
    store = SqliteStore(project.folder / ".playhead" / "store.db")
    version = store.agents.find("shop")
    told = {
        **version.capabilities,
        "adapter": "shop's own",
        "scenarios": dict.fromkeys(scenarios, "unsupported"),
        "reasons": scenarios,
    }
    store.agents.set_capabilities(version.id, told)
    store.close()


@pytest.mark.parametrize(
    ("options", "scenario", "where"),
    [
        (("--tool-policy", '{"default": {"type": "history", "on_miss": "error_result"}}'), "S10", "/on_miss"),
        (("--model-policy", '{"type": "history"}'), "S15", "/model_policy"),
        (("--override", '{"system_prompt": "be kind"}'), "S14-system_prompt", "/override/system_prompt"),
        ((), "S2", "/tool_policy/default"),
    ],
    ids=["on_miss", "model", "override", "history"],
)
def test_a_replay_that_needs_what_the_adapter_does_not_pass_is_refused(
    project: Project, options: tuple[str, ...], scenario: str, where: str
) -> None:
    give_capabilities(project, **{scenario: "its errors end the run"})
    refused = project("replay", "create", "last", *options)
    assert (refused.code, refused.error["code"], project.ran()) == (2, "refused", [])
    reason = f"adapter shop's own does not pass conformance scenario {scenario}: its errors end the run"
    assert reason in refused.error["message"]
    assert where in refused.error["message"]
    assert project("replay", "list").json["items"] == []


def test_a_replay_that_needs_nothing_of_it_is_run(project: Project) -> None:
    give_capabilities(project, S19="no servers", S10="its errors end the run")
    assert project("replay", "create", "last", "--inline").code == 0


def test_agents_keep_what_was_measured_of_their_adapter(project: Project) -> None:
    kept = project("agent", "show", "shop").json["versions"][-1]["capabilities"]
    known = measured().adapters["functions"].found
    assert kept["adapter"] == "functions"
    assert kept["scenarios"] == {scenario: verdict for scenario, (verdict, _) in known.items()}


def test_doctor_shows_measured_and_installed_versions(project: Project) -> None:
    shown = project("doctor", "--capabilities")
    items = {item["adapter"]: item for item in shown.json["items"]}
    assert {"functions", "wire", "pydantic_ai", "langgraph", "openai_agents", "claude_agent_sdk"} <= set(items)
    assert items["langgraph"]["measured"]
    assert items["langgraph"]["installed"]
    found = {s["scenario"]: s for s in items["langgraph"]["scenarios"]}
    assert list(found) == [scenario.id for scenario in scenarios()]
    assert found["S18"] | {"title": None} == {
        "scenario": "S18", "title": None, "verdict": "not_applicable",
        "reason": "a handoff is a tool that gives a command",
    }  # fmt: skip
    text = project("doctor", "--capabilities", "--output", "text").out
    assert "a handoff is a tool that gives a command" in text
