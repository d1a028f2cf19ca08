"""Tools that others wrote, called for real: what fuzzing finds of them, and failures injected over them (T19)."""

import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HAS_BFCL = find_spec("bfcl_eval") is not None
HAS_AGENTDOJO = find_spec("agentdojo") is not None
if not (HAS_BFCL or HAS_AGENTDOJO):
    pytest.skip("packages not installed: bfcl-eval, agentdojo (nox -s third-party-tools)", allow_module_level=True)

import third_party  # noqa: E402

import playhead  # noqa: E402
from playhead.engine.suites.tool_sets import read_tools  # noqa: E402

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.filterwarnings("ignore")  # of the packages' own


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".playhead").mkdir()


def told(name: str, found: Any) -> None:
    """A line for whoever runs it with -s."""
    classes = found.report["direct"]["classes"]
    kinds = Counter(one.outcome for one in found.confirmed)
    sys.stderr.write(
        f"\n{name}: {found.report['direct']['calls']} calls {classes}; {len(found.confirmed)} confirmed findings "
        f"{dict(kinds)} in {len({one.tool for one in found.confirmed})} tools, false discovery rate "
        f"{found.report['false_discovery_rate']}\n"
    )


def fuzzed(tools: Any, entry: str, *families: str) -> Any:
    names: Any = families
    found = playhead.fuzz(
        tools=tools, direct=f"third_party.py:{entry}", families=names, per_tool=5, seconds=5, folder=FOLDER
    )
    told(f"{entry} {'+'.join(families)}", found)
    return found


@pytest.mark.skipif(not HAS_BFCL, reason="package not installed: bfcl-eval")
def test_t19_the_apis_of_bfcl_with_valid_arguments(shared_data: Path):
    tools = read_tools(shared_data / "bfcl-executed" / "tools.json")
    found = fuzzed(tools, "bfcl", "constraint")
    confirmed = {(one.tool, one.outcome): one for one in found.confirmed}
    door = confirmed["lockDoors", "crashed"]
    assert door.text.startswith("KeyError")
    assert not set(door.arguments["door"]) & {"driver", "passenger", "rear_left", "rear_right"}
    root = confirmed["square_root", "hung"]
    assert root.arguments["precision"] >= 10**4
    assert {(one.expectation, one.seen, one.runs) for one in (door, root)} == {("semantic", 2, 2)}
    assert found.report["direct"]["missing"] == []
    assert found.report["direct_run"]["status"] == "completed"  # a call that hangs does not hold up the run


@pytest.mark.skipif(not HAS_BFCL, reason="package not installed: bfcl-eval")
def test_the_apis_of_bfcl_with_other_types(shared_data: Path):
    found = fuzzed(read_tools(shared_data / "bfcl-executed" / "tools.json"), "bfcl", "type_confusion")
    assert {one.expectation for one in found.confirmed} == {"schema"}
    assert "silently_accepted" in {one.outcome for one in found.confirmed}


@pytest.mark.skipif(not HAS_AGENTDOJO, reason="package not installed: agentdojo")
@pytest.mark.parametrize("name", third_party.SUITES)
def test_the_suites_of_agentdojo(name: str):
    found = fuzzed(third_party.agentdojo_schemas(name), name, "constraint", "type_confusion")
    assert found.report["direct_run"]["status"] == "completed"
    assert found.report["direct"]["calls"] > 40
    assert found.report["direct"]["classes"]["rejected"] > 0


@pytest.mark.skipif(not HAS_BFCL, reason="package not installed: bfcl-eval")
@pytest.mark.parametrize(
    ("kind", "outcome"), [("timeout", "timed out"), ("validation_error", "must not be"), ("rate_limit", "Wait 30")]
)
def test_failures_are_injected_over_live_tools_of_bfcl(kind: str, outcome: str):
    @playhead.agent
    def driver(doors: list[str]) -> list[str]:
        lock = playhead.gate(third_party.bfcl()["lockDoors"], effect="write")
        said: list[str] = []
        for door in doors:
            try:
                said.append(str(lock(unlock=False, door=[door])))
            except Exception as error:
                said.append(str(error))
        return said

    driver(["driver", "driver", "passenger"])
    playhead.flush()
    failing = {"type": "inject", "kind": kind, "nth": 1, "times": 1, "then": {"type": "passthrough"}}
    played = playhead.replay("last", agent=driver, tool_policy={"tools": {"lockDoors": failing}}, force=True)
    assert outcome in played.output[0]
    assert "locked" in played.output[1]
    assert "locked" in played.output[2]
    # the failure hides what was recorded, the repetition gets it, and what is not recorded is asked of the tool
    assert [row.by for row in played.ledger][:3] == ["injected", "served", "live"]
