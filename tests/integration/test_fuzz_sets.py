"""T19: fuzz sets of the tools and recordings of others, judged by another validator."""

from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from playhead.core.codec import encode
from playhead.core.fuzz.cases import FuzzSet, read_set
from playhead.core.fuzz.sets import make_set
from playhead.core.suites.suite import ToolSchema
from playhead.core.values import JSON
from playhead.engine.suites.tool_sets import read_tools

SUITES = ("slack", "banking", "travel", "workspace")
SETS = {
    "airline": (["tau-bench/tools-airline.json"], 14, 13),
    "agentdojo": ([f"agentdojo-groundtruth/{suite}.tools.json" for suite in SUITES], 74, 62),
    "bfcl": (["bfcl-executed/tools.json"], 128, 104),
}  # fmt: skip


def tools_of(shared_data: Path, name: str) -> dict[str, ToolSchema]:
    paths = [shared_data / path for path in SETS[name][0]]
    return {f"{path.stem}/{tool.name}": tool for path in paths for tool in read_tools(path)}


@pytest.mark.parametrize("name", SETS)
def test_t19_type_confusion_covers_the_tools_and_fails_an_independent_validator(shared_data: Path, name: str):
    tools = tools_of(shared_data, name)
    assert len(tools) == SETS[name][1]
    covered = 0
    for key, tool in tools.items():
        found = make_set((), {key: tool}, families=("type_confusion",), per_tool=3)
        validator = jsonschema.Draft202012Validator(tool.parameters, format_checker=jsonschema.FormatChecker())
        assert not [case for case in found.cases if validator.is_valid(case.arguments)]
        covered += bool(found.cases)
    assert covered == SETS[name][2]


def test_t19_constraint_makes_near_misses_of_every_enum(shared_data: Path):
    tools = {tool.name: tool for tool in read_tools(shared_data / "tau-bench" / "tools-airline.json")}
    found = make_set((), tools, families=("constraint",), per_tool=5)
    enums = [case for case in found.cases if case.mutation.startswith("enum_") and case.expectation == "schema"]
    assert {(case.tool, case.pointer) for case in enums} == {
        ("book_reservation", "/flight_type"),
        ("book_reservation", "/cabin"),
        ("book_reservation", "/insurance"),
        ("update_reservation_flights", "/cabin"),
    }
    values: dict[str, JSON] = {}
    for case in enums:
        name = case.pointer.removeprefix("/")
        values[case.pointer] = case.arguments[name]
        assert case.arguments[name] not in tools[case.tool].parameters["properties"][name]["enum"]
    assert Counter(case.mutation for case in enums)["enum_synonym"] >= 1  # a plausible one


def test_t19_the_same_seed_gives_the_same_set_byte_for_byte(shared_data: Path):
    tools = tools_of(shared_data, "airline")
    some = {name: tools[name] for name in list(tools)[5:8]}

    def made(seed: int) -> FuzzSet:
        return make_set((), some, per_tool=3, seed=seed)

    first = made(7)
    assert encode(made(7).json()) == encode(first.json())
    assert made(8).digest != first.digest
    assert read_set(first.json()) == first
