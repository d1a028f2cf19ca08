"""tau2 results and SWE-agent trajectories: what is the agent's, what is not, and what repeats with other results."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from playhead.core.capture import Captured, CaptureOptions, capture
from playhead.core.evaluation import failed, tool_calls
from playhead.core.suites.drive import ModelAsk, ModelSaid, drive, loop
from playhead.core.suites.suite import Case, ToolSchema
from playhead.core.values import Node, Session
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery
from playhead.testing.scripted_models import scripted

Recorded = dict[str, tuple[Session, list[Node]]]


def imported(folder: Path, pattern: str) -> Recorded:
    store = MemoryStore()
    report = import_paths(store, sorted(folder.glob(pattern)))
    assert report.exit_code == 0
    page = store.sessions.find(SessionQuery(), limit=100)
    return {session.name or "": (session, store.sessions.nodes(session.id)) for session in page.items}


@pytest.fixture(scope="module")
def tau2(shared_data: Path) -> Recorded:
    return imported(shared_data / "tau2-activegraph", "*.json")


@pytest.fixture(scope="module")
def swe(shared_data: Path) -> Recorded:
    return imported(shared_data / "swe-agent", "*.traj")


def test_t05_calls_of_the_user_simulator_are_not_the_agents(tau2: Recorded) -> None:
    assert len(tau2) == 12
    calls = [n for _, nodes in tau2.values() for n in tool_calls(nodes)]
    assert (len(calls), sum(map(failed, calls))) == (54, 1)
    asked = Counter(n.call.model_call for n in calls if n.call is not None)
    assert sum(count > 1 for count in asked.values()) == 2
    spans = [n for _, nodes in tau2.values() for n in nodes if n.kind == "span"]
    assert [n.attributes.get("kind", n.imported and n.imported.kind) for n in spans] == ["user tool", "user tool"]
    _, users = tau2["20260531-191847-173904/update_task_with_user_tools/0"]
    assert {n.name for n in tool_calls(users)}.isdisjoint({n.name for n in spans})


def test_simulations_have_their_status_reward_and_own_usage(tau2: Recorded) -> None:
    session, nodes = tau2["20260531-042306-420109/create_task_1/0"]
    assert (session.status, session.metadata["termination_reason"]) == ("failed", "max_steps")
    models = [n for n in nodes if n.model is not None]
    assert len(models) == 1  # the greeting was scripted
    usage = models[0].model.usage
    assert (usage.input_uncached, usage.output_visible) == (441, 10)
    good, _ = tau2["20260531-155904-128551/create_task_1/0"]
    assert (good.status, good.metadata["reward"]) == ("completed", 1)
    assert good.metadata["expected_actions"][0]["name"] == "create_task"


def test_steps_of_a_trajectory_are_calls_with_their_observations(swe: Recorded) -> None:
    _, nodes = swe["flash"]
    calls = tool_calls(nodes)
    assert {n.name for n in calls} == {"action"}
    assert calls[0].call.arguments["command"].startswith("strings flash")
    assert str(calls[0].outcome.value).endswith("No such file")
    _, named = swe["marshmallow-1867__function_calling"]
    assert Counter(n.name for n in tool_calls(named)) == {
        "bash": 4, "edit": 3, "create": 1, "find_file": 1, "open": 1, "submit": 1,
    }  # fmt: skip
    session, whole = swe["BabyEncryption"]
    assert len(tool_calls(whole)) == 16  # the history has only 15
    assert session.metadata["exit_status"] == "submitted"


def differing(nodes: list[Node]) -> list[list[str]]:
    """Results of identical calls, where they are not all one."""
    groups: dict[Any, list[str]] = {}
    for node in tool_calls(nodes):
        groups.setdefault(node.call.key, []).append(str(node.outcome.value))
    return [results for results in groups.values() if len(set(results)) > 1]


def test_t22_identical_calls_have_different_results(swe: Recorded) -> None:
    found = {name: len(differing(nodes)) for name, (_, nodes) in swe.items()}
    assert found == {
        "BabyEncryption": 2, "flash": 1, "marshmallow-1867__default_from_source": 2,
        "marshmallow-1867__default_sys-env_window100": 1, "marshmallow-1867__function_calling": 1,
        "marshmallow-1867__xml_sys-env_cursors_window100": 1,
    }  # fmt: skip


class Asking:
    """Follows the recording, call by call, whatever the results are; keeps what each call got."""

    def __init__(self, case: Case) -> None:
        self.case, self.results = case, list[Any]()

    def __call__(self, ask: ModelAsk) -> ModelSaid:
        from playhead.core.suites.messages import round_messages

        if ask.step:
            self.results.append(ask.messages[-1]["parts"][0]["content"])
        if ask.step < len(self.case.recorded):
            return ModelSaid(message=round_messages(self.case.recorded[ask.step])[0])
        return scripted("tell", self.case)(ask)


def test_t22_as_a_case_they_are_served_in_recorded_order(swe: Recorded) -> None:
    for session, nodes in swe.values():
        captured = Captured()
        names = {n.name for n in tool_calls(nodes)}
        capture(captured, session, nodes, (), CaptureOptions(tools=[ToolSchema(name=name) for name in sorted(names)]))
        first = captured.cases[0]
        model = Asking(first)
        trace = drive(loop(first, captured.tools, max_turns=40), model)
        assert [row.by for row in trace.ledger] == ["served"] * len(tool_calls(nodes))
        recorded = [node.outcome.value for node in tool_calls(nodes)]
        assert model.results[: len(recorded)] == recorded[: len(model.results)]
