"""Every built-in evaluator on small sessions."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.core.evaluation import EvaluationContext
from playhead.core.evaluators.builtin import names, parsed
from playhead.core.evaluators.catalog import BUILTINS
from playhead.core.values import (
    Cost,
    Divergence,
    ErrorInfo,
    Fidelity,
    FidelityKind,
    Node,
    Outcome,
    OutcomeKind,
    Session,
    Usage,
    Verdict,
)
from playhead.errors import UsageError
from playhead.testing.sessions import START, a_model_call, a_session, a_tool_call, user

BROKEN = Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="ValueError", message="no"))


def calls(*tools: str, session: str = "s1") -> tuple[Node, ...]:
    return tuple(a_tool_call(n, tool, {"n": n}, "ok", session=session) for n, tool in enumerate(tools))


def context(*nodes: Node, output: Any = "done", baseline: Session | None = None, **more: Any) -> EvaluationContext:
    fields = {name: more.pop(name) for name in ("ended_at", "usage", "cost") if name in more}
    return EvaluationContext(session=a_session(output=output, **fields), nodes=nodes, baseline=baseline, **more)


def says(name: str, ctx: EvaluationContext, **params: Any) -> Verdict:
    builtin = BUILTINS[name]
    assert builtin.run is not None
    found = builtin.run(ctx, parsed(builtin, params))
    assert isinstance(found, Verdict)
    assert found.name == name
    return found


def passed(name: str, ctx: EvaluationContext, **params: Any) -> bool | None:
    return says(name, ctx, **params).passed


BASE = a_session("s0", output={"a": 1, "b": [1, 2]})


@pytest.mark.parametrize(
    ("output", "params", "wanted"),
    [
        ({"a": 1}, {"value": {"a": 1.0}}, True),
        ({"a": 1}, {"value": {"a": 2}}, False),
        ({"a": 1, "b": 2}, {"value": {"a": 1}}, False),
        ({"a": 1, "b": 2}, {"value": {"a": 1}, "mode": "subset"}, True),
        (None, {"value": None}, True),
        ({"a": 1, "b": [1, 2]}, {}, True),
        ({"a": 1, "b": [1, 3]}, {}, False),
    ],
)
def test_output_equals(output: Any, params: dict[str, Any], wanted: bool) -> None:
    assert passed("output-equals", context(output=output, baseline=BASE), **params) is wanted


def test_output_equals_needs_something_to_compare_with() -> None:
    assert passed("output-equals", context()) is None
    assert "/b/1" in (says("output-equals", context(output={"a": 1, "b": [1, 3]}, baseline=BASE)).explanation or "")


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({"text": "REFUND"}, True),
        ({"text": "REFUND", "ignore_case": False}, False),
        ({"text": ["refund", "4821"]}, True),
        ({"text": ["refund", "9"]}, False),
        ({"text": ["refund", "9"], "match": "any"}, True),
        ({"text": "sorry", "not": True}, True),
        ({"text": ["sorry", "refund"], "not": True}, False),
    ],
)
def test_output_contains(params: dict[str, Any], wanted: bool) -> None:
    assert passed("output-contains", context(output="Refund for 4821."), **params) is wanted


def test_output_schema() -> None:
    schema = {"type": "object", "required": ["id"]}
    assert passed("output-schema", context(output={"id": 1}), schema=schema) is True
    assert passed("output-schema", context(output={}), schema=schema) is False
    with pytest.raises(UsageError, match="schema"):
        parsed(BUILTINS["output-schema"], {"schema": {"type": 7}})


def test_named_facts_in_the_answer_and_anywhere() -> None:
    said = a_model_call(1, [user("x")], "Refund R-77 is on its way.")
    ctx = context(said, output="You get $129.00.")
    facts = [
        {"name": "amount", "as": "money", "value": "129.00", "currency": "USD"},
        {"name": "refund", "as": "id", "value": "R-77", "where": "any"},
    ]
    assert passed("named-facts", ctx, facts=facts) is True
    facts[1]["where"] = "final"
    found = says("named-facts", ctx, facts=facts)
    assert (found.passed, found.score) == (False, 0.5)
    assert "refund (R-77): absent" in (found.explanation or "")


@pytest.mark.parametrize(
    ("mode", "seen", "wanted"),
    [
        ("exact", "a b c", True),
        ("exact", "a c b", False),
        ("exact", "a b", False),
        ("exact", "a b c d", False),
        ("in_order", "a x b c", True),
        ("in_order", "b a c", False),
        ("contains_all", "c b a x", True),
        ("contains_all", "a b", False),
        ("exact_set", "c a b a", True),
        ("exact_set", "a b", False),
        ("exact_set", "a b c d", False),
    ],
)
def test_tool_sequence(mode: str, seen: str, wanted: bool) -> None:
    ctx = context(*calls(*seen.split()))
    assert passed("tool-sequence", ctx, tools=["a", "b", "c"], mode=mode) is wanted
    recorded = calls("a", "b", "c", session="s0")
    again = context(*calls(*seen.split()), baseline=BASE, baseline_nodes=recorded)
    assert passed("tool-sequence", again, mode=mode) is wanted


def test_tools_that_do_not_count_and_the_call_that_was_wrong() -> None:
    ctx = context(*calls("think", "a", "think", "b"))
    assert passed("tool-sequence", ctx, tools=["a", "b"], ignore=["think"]) is True
    found = says("tool-sequence", ctx, tools=["a", "b"])
    assert found.evidence == ({"node": "s1-n0", "pointer": ""},)
    assert passed("tool-sequence", ctx) is None


def test_required_and_forbidden_tools() -> None:
    ctx = context(*calls("a", "b", "b"))
    assert passed("required-tools", ctx, tools=["a", "b"]) is True
    assert passed("required-tools", ctx, tools=["a", "c"]) is False
    assert passed("forbidden-tools", ctx, tools=["c"]) is True
    found = says("forbidden-tools", ctx, tools=["b"])
    assert found.passed is False
    assert [e["node"] for e in found.evidence] == ["s1-n1", "s1-n2"]


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({"max": 3}, True),
        ({"max": 2}, False),
        ({"tools": {"a": 2}}, True),
        ({"tools": {"a": 1}}, False),
        ({"tools": {"*": 1}}, False),
        ({"tools": {"a": 2, "*": 1}}, True),
        ({}, None),
    ],
)
def test_max_calls(params: dict[str, Any], wanted: bool | None) -> None:
    assert passed("max-calls", context(*calls("a", "a", "b")), **params) is wanted


def test_argument_schema_by_what_was_offered() -> None:
    tool = {"name": "pay", "parameters": {"type": "object", "properties": {"n": {"type": "string"}}}}
    asked = a_model_call(0, [user("x")])
    offered = replace(asked, inputs={**asked.inputs, "tools": [tool]})
    bad, good = a_tool_call(1, "pay", {"n": 7}), a_tool_call(2, "pay", {"n": "7"})
    found = says("argument-schema", context(offered, bad, good))
    assert (found.passed, found.label) == (False, "1 type")
    assert found.evidence == ({"node": "s1-n1", "pointer": "/call/arguments/n"},)
    assert passed("argument-schema", context(offered, good)) is True
    assert passed("argument-schema", context(bad)) is None
    assert passed("argument-schema", context(bad), schemas={"pay": {"required": ["m"]}}) is False


def test_no_repeated_failure() -> None:
    once = a_tool_call(1, "pay", {"n": 1}, outcome=BROKEN)
    again = a_tool_call(2, "pay", {"n": 1}, outcome=BROKEN)
    other = a_tool_call(3, "pay", {"n": 2}, outcome=BROKEN)
    assert passed("no-repeated-failure", context(once, other)) is True
    found = says("no-repeated-failure", context(once, again, other))
    assert (found.passed, found.evidence) == (False, ({"node": "s1-n2", "pointer": ""},))
    assert passed("no-repeated-failure", context(once, again), allow=2) is True
    assert passed("no-repeated-failure", context(once, again), ignore=["pay"]) is True


def test_no_double_side_effect_by_declared_effects() -> None:
    twice = context(*(a_tool_call(n, "pay", {"to": "a"}, "ok") for n in range(2)))
    assert passed("no-double-side-effect", twice, effects={"pay": "write"}) is False
    assert passed("no-double-side-effect", twice, effects={"pay": {"class": "read"}}) is True
    assert passed("no-double-side-effect", twice, effects={"pay": "write"}, repeat_ok=2) is True
    undeclared = says("no-double-side-effect", twice)
    assert undeclared.passed is True
    assert "undeclared" in (undeclared.explanation or "")


def test_no_loops() -> None:
    around = context(*(a_tool_call(n, "ab"[n % 2], {}, "ok") for n in range(6)))
    assert passed("no-loops", around) is False
    assert passed("no-loops", around, times=4) is True
    assert passed("no-loops", around, round=1) is True
    assert passed("no-loops", around, effects={"a": {"class": "read", "bookkeeping": True}}, times=4) is True
    failing = context(*(a_tool_call(n, "a", {}, outcome=BROKEN if n % 2 else None) for n in range(5)))
    assert passed("no-loops", failing, failures=2, round=1) is False


LATENT = {"ended_at": START + 2_000_000_000}
SPENT = {
    **LATENT, "usage": Usage(input_uncached=80, output_visible=20), "cost": Cost(amount="0.02"),
}  # fmt: skip
CHEAP = a_session(
    "s0", ended_at=START + 1_000_000_000, usage=Usage(input_uncached=50), cost=Cost(amount="0.01")
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("latency", 2), ("tokens", 100), ("cost", 0.02)])
def test_measures(name: str, value: float) -> None:
    ctx = context(**SPENT, baseline=CHEAP)
    assert says(name, ctx).score == value
    assert passed(name, ctx) is None
    assert passed(name, ctx, max=value) is True
    assert passed(name, ctx, max=value / 2) is False
    assert passed(name, ctx, max_ratio=2) is True
    assert passed(name, ctx, max_ratio=1.5) is False
    assert passed(name, context(**SPENT), max_ratio=1.5) is None
    assert passed(name, context(ended_at=None), max=1) is None


def test_budget_of_several_limits() -> None:
    ctx = context(*calls("a", "b"), **SPENT)
    assert passed("budget", ctx, cost=0.02, tokens=100, seconds=2, tool_calls=2, model_calls=0) is True
    found = says("budget", ctx, cost=0.01, tool_calls=1)
    assert found.passed is False
    assert "cost" in (found.explanation or "")
    assert "tool calls" in (found.explanation or "")
    assert passed("budget", context(), cost=1) is None
    with pytest.raises(UsageError, match="limit"):
        parsed(BUILTINS["budget"], {})


@pytest.mark.parametrize(
    ("asked", "served", "wanted"),
    [
        ("gpt-x", "gpt-x", True),
        ("openai:gpt-x", "gpt-x-2025-08-07", True),
        ("claude-x", "claude-x-20250514", True),
        ("gpt-x-latest", "gpt-x-2025-08-07", True),
        ("gpt-x", "gpt-x-mini", False),
        ("gpt-x", "gpt-x-mini-2025-08-07", False),
        ("gpt-x-mini", "gpt-x", False),
    ],
)
def test_served_model(asked: str, served: str, wanted: bool) -> None:
    ctx = context(a_model_call(1, [user("x")], model={"requested": asked, "served": served}))
    assert passed("served-model", ctx) is wanted
    assert passed("served-model", ctx, model="other") is False
    assert passed("served-model", context()) is None


FAITHFUL = Fidelity(kind=FidelityKind.FAITHFUL)
DIVERGED = Fidelity(
    kind=FidelityKind.DIVERGED,
    divergence=Divergence(what="arguments", where="tool call 1 pay", result_node="s1-n1", pointers=("/n",)),
)
UNPROVEN = Fidelity(kind=FidelityKind.UNPROVEN, reasons=("nothing was recorded",))


@pytest.mark.parametrize(("fidelity", "wanted"), [(FAITHFUL, True), (DIVERGED, False), (UNPROVEN, None)])
def test_fidelity_judges_an_unchanged_replay_and_describes_a_fork(fidelity: Fidelity, wanted: bool | None) -> None:
    unchanged = says("fidelity", context(baseline=BASE, fidelity=fidelity, unchanged=True))
    fork = says("fidelity", context(baseline=BASE, fidelity=fidelity))
    assert (unchanged.passed, fork.passed) == (wanted, None)
    assert unchanged.label == fork.label == fidelity.kind.value
    assert says("fidelity", context()).label is None


def test_the_place_of_a_divergence_is_evidence() -> None:
    found = says("fidelity", context(baseline=BASE, fidelity=DIVERGED, unchanged=True))
    assert found.evidence == ({"node": "s1-n1", "pointer": "/call/arguments/n"},)


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_parameters_that_do_not_exist_are_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        parsed(BUILTINS[name], {"nothere": 1, **{n: None for n in names(BUILTINS[name])}})
    assert "params/" in refused.value.message


@pytest.mark.parametrize("name", sorted(n for n, b in BUILTINS.items() if b.run is not None))
def test_an_empty_session_is_judged_without_a_fault(name: str) -> None:
    needed: dict[str, dict[str, Any]] = {
        "output-contains": {"text": "x"},
        "output-schema": {"schema": True},
        "named-facts": {"facts": [{"name": "n", "as": "number", "value": 1}]},
        "required-tools": {"tools": ["a"]},
        "forbidden-tools": {"tools": ["a"]},
        "budget": {"tokens": 1},
    }
    assert says(name, context(output=None), **needed.get(name, {}))
