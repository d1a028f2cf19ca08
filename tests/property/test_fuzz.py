"""Fuzz cases of any schema, judged by a validator that the generator does not use."""

from typing import Any

import jsonschema
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from playhead.core.fuzz.generate import tool_cases
from playhead.core.fuzz.places import made_arguments
from playhead.core.match import equal
from playhead.core.suites.suite import ToolSchema

names = st.sampled_from(["order_id", "date", "city", "items", "count", "user"])
leaves = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean"])},
        optional={"description": st.sampled_from(["Day, YYYY-MM-DD", "one of 'a', 'b'", ""])},
    ),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.just(["open", "completed"])}),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.just(1), "maximum": st.integers(2, 9)}),
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 4), "maxLength": st.just(8)}),
    st.fixed_dictionaries({"type": st.just(["string", "null"])}),
    st.fixed_dictionaries({"anyOf": st.just([{"type": "integer"}, {"type": "null"}])}),
    st.just({}),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(names, inner, max_size=3).flatmap(
        lambda held: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(held),
                "required": st.lists(st.sampled_from(sorted(held)), unique=True) if held else st.just([]),
            }
        )
    )


schemas = objects(
    st.recursive(
        leaves,
        lambda inner: st.one_of(
            objects(inner), st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={})
        ),
        max_leaves=4,
    )
)


@settings(max_examples=25, deadline=None)
@given(schemas, st.integers(0, 3))
def test_what_a_case_says_of_its_arguments_is_true_and_the_seed_decides_alone(schema: Any, seed: int) -> None:
    tool = ToolSchema(name="t", description="Does something", parameters=schema)
    families = ("type_confusion", "constraint")
    cases = tool_cases(tool, families, per_tool=4, seed=seed)
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for case in cases:
        assert (not validator.is_valid(case.arguments)) is (case.expectation == "schema"), case
        assert validator.is_valid(case.base)
        assert not equal(case.arguments, case.base)
    assert all(case.expectation == "schema" for case in cases if case.family == "type_confusion")
    assert tool_cases(tool, families, per_tool=4, seed=seed) == cases
    assert len({case.id for case in cases}) == len(cases)


@settings(max_examples=25, deadline=None)
@given(schemas)
def test_made_arguments_are_valid(schema: Any) -> None:
    made = made_arguments(schema)
    assume(made is not None)
    jsonschema.Draft202012Validator(schema).validate(made)
