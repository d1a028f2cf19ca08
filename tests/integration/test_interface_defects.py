"""Defects seeded into real tool schemas: what the lint finds of them, and what it says of what nobody touched."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "interface_defects.py"


@pytest.fixture(scope="module")
def seeding() -> ModuleType:
    """The benchmark whose table stands in `docs/lint.md`."""
    spec = importlib.util.spec_from_file_location("interface_defects", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_forty_defects_in_real_schemas(seeding: ModuleType, shared_data: Path):
    sets = seeding.tool_sets(shared_data.parent)
    defects = seeding.seeded(sets)
    assert Counter(d.kind for d in defects) == dict.fromkeys([*seeding.ONE_TOOL, *seeding.SEVERAL], 4)
    assert [d.kind for d in defects if not d.found_against] == []
    alone = Counter(d.kind for d in defects if d.found_by_lint)
    partly = {"enum dropped", "type loosened to text"}  # of some nothing is left that could be seen
    assert {kind for kind, n in alone.items() if n < 4} <= partly
    assert alone.total() >= 36
    assert [d.kind for d in defects if d.found_by_fuzz] == ["type loosened to text"] * 4
    assert sum(d.found_by_lint or d.found_by_fuzz for d in defects) >= 38
    assert [(d.kind, d.touched) for d in defects if d.elsewhere] == []


def test_nothing_is_said_of_the_same_tools_written_in_another_way(seeding: ModuleType, shared_data: Path):
    assert seeding.false_changes(seeding.tool_sets(shared_data.parent)) == 0


def test_rules_that_compare_texts_with_schemas_leave_real_tools_alone(seeding: ModuleType, shared_data: Path):
    sets = seeding.tool_sets(shared_data.parent)
    counts = seeding.untouched({name: sets[name] for name in seeding.FILES})
    assert sum(len(sets[name]) for name in seeding.FILES) == 216
    # read by hand: a flag declared as text, and four parameters of which no value is told
    assert {rule: counts.get(rule, 0) for rule in ("type_in_prose", "values_unsaid", "optional_unsaid")} == {
        "type_in_prose": 1, "values_unsaid": 4, "optional_unsaid": 0,
    }  # fmt: skip
    assert "description_elsewhere" not in counts
    assert seeding.fuzz_alarms({name: sets[name] for name in seeding.FILES}) == 0
