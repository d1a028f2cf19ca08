"""The vectors of matching, as every implementation runs them."""

from pathlib import Path
from typing import Any

import pytest

from playhead.core.canonical import parse_json
from playhead.core.match import ABSENT, Candidate, differences, matches, nearest

VECTORS = parse_json((Path(__file__).parents[2] / "spec" / "vectors" / "match.json").read_bytes())


@pytest.mark.parametrize("vector", VECTORS["matches"], ids=lambda v: v["name"])
def test_a_value_fits_a_pattern_or_not(vector: dict[str, Any]) -> None:
    assert matches(vector["pattern"], vector["value"], vector["mode"]) is vector["result"]
    if vector["mode"] == "exact":
        assert matches(vector["value"], vector["pattern"]) is vector["result"]
        assert (not differences(vector["pattern"], vector["value"])) is vector["result"]


@pytest.mark.parametrize("vector", VECTORS["differences"], ids=lambda v: v["name"])
def test_differences_are_named_with_both_values(vector: dict[str, Any]) -> None:
    expected = [(d["at"], d.get("left", ABSENT), d.get("right", ABSENT)) for d in vector["differences"]]
    found = [(d.pointer, d.left, d.right) for d in differences(vector["left"], vector["right"])]
    assert found == expected
    mirrored = [(d.pointer, d.right, d.left) for d in differences(vector["right"], vector["left"])]
    assert mirrored == expected


@pytest.mark.parametrize("vector", VECTORS["nearest"], ids=lambda v: v["name"])
def test_the_nearest_recorded_values_come_first(vector: dict[str, Any]) -> None:
    candidates = [Candidate(c["value"], c["used"]) for c in vector["candidates"]]
    found = nearest(vector["asked"], candidates, limit=vector["limit"])
    assert [n.place for n in found] == vector["order"]


def test_there_are_enough_vectors_and_no_name_twice() -> None:
    names = [v["name"] for part in ("matches", "differences", "nearest") for v in VECTORS[part]]
    assert len(names) == len(set(names))
    assert len(names) >= 40
