"""What the session answered: equal, contains, valid, states facts."""

from typing import Any, Literal

from pydantic import Field, model_validator

from playhead.core.canonical import to_stored
from playhead.core.evaluation import EvaluationContext, as_text, texts
from playhead.core.evaluators.builtin import Builtin, Params, listed
from playhead.core.facts.named import Fact, find
from playhead.core.match import ABSENT, differences, matches, pattern_differences
from playhead.core.schema import schema_errors, usable
from playhead.core.values import Verdict


class Equals(Params):
    """``value`` left out: the baseline's output."""

    value: Any = Field(default=ABSENT)
    mode: Literal["exact", "subset"] = "exact"


def output_equals(ctx: EvaluationContext, params: Equals) -> Verdict:
    name = "output-equals"
    if params.value is ABSENT and ctx.baseline is None:
        return Verdict(name=name, explanation="there is no baseline and no value to compare with")
    wanted = ctx.baseline.output if params.value is ABSENT and ctx.baseline else to_stored(params.value)
    if matches(wanted, ctx.output, params.mode):
        return Verdict(name=name, passed=True)
    found = (
        pattern_differences(wanted, ctx.output, params.mode)
        if params.mode == "subset"
        else differences(wanted, ctx.output, limit=5)
    )
    where = listed([d.pointer or "the top" for d in found])
    return Verdict(name=name, passed=False, explanation=f"the output differs at {where}")


class Contains(Params):
    """Texts that the answer has to contain (``all``), or one of them (``any``); ``not`` turns it round."""

    text: str | tuple[str, ...]
    match: Literal["all", "any"] = "all"
    ignore_case: bool = True
    negate: bool = Field(default=False, alias="not")


def output_contains(ctx: EvaluationContext, params: Contains) -> Verdict:
    wanted = (params.text,) if isinstance(params.text, str) else params.text
    answer = ctx.text.casefold() if params.ignore_case else ctx.text
    there = [text for text in wanted if (text.casefold() if params.ignore_case else text) in answer]
    missing = [text for text in wanted if text not in there]
    if params.negate:
        told = f"the answer contains {listed([repr(t) for t in there])}" if there else None
        return Verdict(name="output-contains", passed=not there, explanation=told)
    passed = not missing if params.match == "all" else bool(there)
    told = None if passed else f"the answer does not contain {listed([repr(t) for t in missing])}"
    return Verdict(name="output-contains", passed=passed, explanation=told)


class OutputSchema(Params):
    schema_: Any = Field(alias="schema")

    @model_validator(mode="after")
    def _check(self) -> "OutputSchema":
        if not usable(self.schema_):
            raise ValueError("schema is no JSON Schema that can be used")
        return self


def output_schema(ctx: EvaluationContext, params: OutputSchema) -> Verdict:
    found = schema_errors(params.schema_, ctx.output)
    told = "; ".join(f"{e.pointer or 'the top'}: {e.message}" for e in found) or None
    return Verdict(name="output-schema", passed=not found, explanation=told)


class NamedFacts(Params):
    facts: tuple[Fact, ...] = Field(min_length=1)


def named_facts(ctx: EvaluationContext, params: NamedFacts) -> Verdict:
    final = ctx.text
    said = "\n".join(dict.fromkeys([*texts(ctx.nodes), final]))
    wrong: list[str] = []
    for fact in params.facts:
        found = find(fact, final if fact.where == "final" else said)
        if not found.fits(fact):
            why = "stated" if fact.must_not else found.reason or f"also {listed(found.others)}"
            wrong.append(f"{fact.name} ({as_text(fact.value)}): {why}")
    return Verdict(
        name="named-facts",
        passed=not wrong,
        score=(len(params.facts) - len(wrong)) / len(params.facts),
        explanation="; ".join(wrong) or None,
    )


BUILTINS = (
    Builtin(
        name="output-equals", summary="the output is this value, or the baseline's", run=output_equals, params=Equals
    ),
    Builtin(
        name="output-contains", summary="the answer contains texts, or does not", run=output_contains, params=Contains
    ),
    Builtin(name="output-schema", summary="the output fits a JSON Schema", run=output_schema, params=OutputSchema),
    Builtin(
        name="named-facts",
        summary="the answer states numbers, money, dates, ids or texts, however it spells them",
        run=named_facts,
        params=NamedFacts,
    ),
)
