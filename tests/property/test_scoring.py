"""Scoring against what a slow reading of its rules says."""

from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.core.suites.labels import accepts, options_of, read_label
from playhead.core.suites.matchers import fits, mismatches, variants
from playhead.core.suites.scoring import Answer, Attempt, Emitted, score
from playhead.core.suites.suite import Case, slice_of, trial_seed

TOOLS = ["a", "b"]
SCHEMAS = {tool: {"type": "object"} for tool in TOOLS}
values = st.one_of(st.integers(0, 2), st.fixed_dictionaries({"$any_of": st.lists(st.integers(0, 2), max_size=3)}))
expected = st.lists(st.tuples(st.sampled_from(TOOLS), values), min_size=1, max_size=4)
made = st.lists(st.tuples(st.sampled_from(TOOLS), st.integers(0, 2)), max_size=4)


def judged(label: dict[str, Any], calls: list[tuple[str, int]]) -> Any:
    case = Case.model_validate({"id": "c", "label": label})
    emitted = tuple(Emitted(tool=tool, arguments={"x": x}) for tool, x in calls)
    return score(case, SCHEMAS, Attempt(answers=(Answer(calls=emitted, text="."),)))


@settings(max_examples=150, deadline=None)
@given(expected, made)
def test_values_hold_exactly_when_some_pairing_matches_everything(
    wanted: list[tuple[str, Any]], calls: list[tuple[str, int]]
) -> None:
    label = {"kind": "call", "calls": [{"tool": t, "arguments": {"x": x}} for t, x in wanted]}
    found = judged(label, calls)
    assert found.selection is (sorted(t for t, _ in wanted) == sorted(t for t, _ in calls))
    right = len(wanted) == len(calls) and any(
        all(t == tool and fits(x, seen) for (t, x), (tool, seen) in zip(order, calls, strict=True))
        for order in permutations(wanted)
    )
    assert (found.selection and found.values is True) is right
    (option,) = options_of(read_label(label))
    assert accepts(option, [(tool, {"x": x}) for tool, x in calls]) is right


@settings(max_examples=100, deadline=None)
@given(expected, made)
def test_arguments_never_change_the_selection(wanted: list[tuple[str, Any]], calls: list[tuple[str, int]]) -> None:
    label = {"kind": "call", "calls": [{"tool": t, "arguments": {"x": x}} for t, x in wanted]}
    assert judged(label, calls).why == judged(label, [(tool, 99) for tool, _ in calls]).why


nested = st.recursive(
    st.one_of(st.integers(), st.text(max_size=3), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=3),
        st.fixed_dictionaries({"$any_of": st.lists(inner, min_size=1, max_size=3)}),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(nested)
def test_every_variant_of_a_label_fits_it(label: Any) -> None:
    for value in variants(label):
        assert fits(label, value)
        assert mismatches({"p": label}, {"p": value}, extra="forbid") == []


@given(st.text(max_size=40), st.integers(0, 5))
def test_slices_and_seeds_depend_on_nothing_but_their_names(name: str, run: int) -> None:
    assert slice_of(f"session-{len(name)}") == slice_of(f"session-{len(name)}")
    assert 0 <= trial_seed(0, name, run) < 2**32
    assert trial_seed(0, name, run) != trial_seed(1, name, run) or trial_seed(0, name, run) != trial_seed(2, name, run)


def test_about_a_fifth_of_the_sessions_is_held_back() -> None:
    held = sum(slice_of(f"s{n}") == "held_back" for n in range(5000))
    assert 900 < held < 1100
