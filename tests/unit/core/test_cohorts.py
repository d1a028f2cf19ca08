"""Membership, changes and samples of cohorts."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from playhead.core.cohorts import changed, parse_ref, sampled, stratified
from playhead.core.experiments.definition import Arm, ExperimentConfig
from playhead.engine.cohorts import CohortClient
from playhead.errors import UsageError
from playhead.store.memory import MemoryStore


def itself(text: str) -> str:
    return text


def test_a_change_keeps_places_and_appends():
    assert changed(("a", "b", "c"), add=["d", "a"], remove=["b"]) == ("a", "c", "d")


def test_what_is_no_member_cannot_be_removed():
    with pytest.raises(UsageError, match="'x'"):
        changed(("a",), add=[], remove=["x"])


@pytest.mark.parametrize("text", ["", "@1", "a@", "a@x", "a@0"])
def test_what_names_no_cohort_is_said(text: str):
    with pytest.raises(UsageError, match="names no cohort"):
        parse_ref(text)


@pytest.mark.parametrize("name", ["", "a b", "line\nbreak", "bell\x07", "-x", "x" * 65, "ü", "a/b", "\u202eevil"])
def test_cohorts_are_named_as_experiments_are(name: str):
    client = CohortClient(MemoryStore())
    with pytest.raises(UsageError, match="letters, digits"):
        client.create(name, sessions=["last"])
    with pytest.raises(ValidationError, match="letters, digits"):
        ExperimentConfig(name=name, arms=(Arm(name="unchanged"),))


def test_a_name_may_hold_an_at_sign_before_the_version():
    assert parse_ref("mail@home@2") == ("mail@home", 2)


@given(st.lists(st.text(), unique=True), st.integers(0, 20), st.text())
def test_a_sample_is_the_same_for_a_seed_and_keeps_the_order(items: list[str], size: int, seed: str):
    found = sampled(items, size, seed=seed, id_of=itself)
    assert len(found) == min(size, len(items))
    assert found == [item for item in items if item in set(found)]
    assert sampled(items[::-1], size, seed=seed, id_of=itself)[::-1] == found


def test_another_seed_draws_others():
    items = [str(n) for n in range(100)]
    assert sampled(items, 10, seed="a", id_of=itself) != sampled(items, 10, seed="b", id_of=itself)


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(0, 50))
@example(["a", "b", "c", "c", "c", "c"], 3)  # each of the small ones has half a place
def test_strata_are_drawn_in_proportion(groups: list[str], size: int):
    items = [f"{group}{n}" for n, group in enumerate(groups)]
    found = stratified(items, size, seed="s", id_of=itself, stratum=lambda item: item[0])
    assert len(found) == min(size, len(items))
    drawn, there = Counter(item[0] for item in found), Counter(groups)
    for group, count in there.items():
        share = len(found) * count / len(items)
        assert int(share) - len(there) <= drawn[group] <= share + 1
    if len(found) >= len(there):
        assert set(drawn) == set(there)
