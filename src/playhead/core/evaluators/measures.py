"""What it took: time, tokens, money, calls; and which model answered."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from pydantic import Field, model_validator

from playhead.core.compare import Totals, totals
from playhead.core.evaluation import EvaluationContext, at
from playhead.core.evaluators.builtin import Builtin, Params, listed
from playhead.core.values import JSON, Node, NodeKind, Verdict

_Measure: TypeAlias = Callable[[Totals], float | None]


class Limit(Params):
    """``max``: at most so much. ``max_ratio``: at most so many times the baseline's."""

    max: float | None = Field(default=None, ge=0)
    max_ratio: float | None = Field(default=None, gt=0)


def _seconds(of: Totals) -> float | None:
    return None if of.latency_ns is None else of.latency_ns / 1e9


def _tokens(of: Totals) -> float | None:
    known = [part for part in (of.input_tokens, of.output_tokens) if part is not None]
    return sum(known) if known else None


def _cost(of: Totals) -> float | None:
    return None if of.cost is None else float(Decimal(of.cost))


def _limited(name: str, unit: str, measure: _Measure) -> Callable[[EvaluationContext, Limit], Verdict]:
    def run(ctx: EvaluationContext, params: Limit) -> Verdict:
        value = measure(totals(ctx.session, ctx.nodes))
        if value is None:
            return Verdict(name=name, explanation="the recording does not say")
        over = [f"{value:g} {unit}, at most {params.max:g}"] if params.max is not None and value > params.max else []
        ratio, checked = None, params.max is not None
        if params.max_ratio is not None and ctx.baseline is not None:
            before = measure(totals(ctx.baseline, ctx.baseline_nodes))
            if before:
                checked, ratio = True, value / before
                if ratio > params.max_ratio:
                    over.append(f"{ratio:.2f} times the baseline's {before:g} {unit}, at most {params.max_ratio:g}")
        told = "; ".join(over) or (f"{ratio:.2f} times the baseline" if ratio is not None else None)
        return Verdict(name=name, score=value, passed=not over if checked else None, explanation=told)

    return run


class Budget(Params):
    """At least one limit."""

    cost: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0)
    model_calls: int | None = Field(default=None, ge=0)
    tool_calls: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _check(self) -> "Budget":
        if all(getattr(self, name) is None for name in Budget.model_fields):
            raise ValueError(f"a budget needs a limit: {', '.join(Budget.model_fields)}")
        return self


_SPENT: dict[str, _Measure] = {
    "cost": _cost,
    "tokens": _tokens,
    "seconds": _seconds,
    "model_calls": lambda of: of.model_calls,
    "tool_calls": lambda of: of.tool_calls,
}


def budget(ctx: EvaluationContext, params: Budget) -> Verdict:
    spent = totals(ctx.session, ctx.nodes)
    over: list[str] = []
    unknown: list[str] = []
    for name, measure in _SPENT.items():
        most, value = getattr(params, name), measure(spent)
        if most is not None and value is None:
            unknown.append(name)
        elif most is not None and value is not None and value > most:
            over.append(f"{name.replace('_', ' ')}: {value:g}, at most {most:g}")
    told = "; ".join([*over, *([f"not recorded: {', '.join(unknown)}"] if unknown else [])])
    return Verdict(name="budget", passed=False if over else None if unknown else True, explanation=told or None)


class Served(Params):
    """``model``: the model that must have answered; left out, the one that each call asked for."""

    model: str | None = None


def served_model(ctx: EvaluationContext, params: Served) -> Verdict:
    calls = [n for n in ctx.nodes if n.kind is NodeKind.MODEL_CALL and n.model is not None]
    known = [n for n in calls if n.model is not None and n.model.served and (params.model or n.model.requested)]
    if not known:
        return Verdict(name="served-model", explanation="no model call says which model answered")
    wrong = [n for n in known if not _is_same(params.model or _requested(n), _served(n))]
    evidence: tuple[JSON, ...] = tuple(at(n, "/model/served") for n in wrong)
    names = listed(sorted({f"{_served(n)} instead of {params.model or _requested(n)}" for n in wrong}))
    return Verdict(name="served-model", passed=not wrong, explanation=names or None, evidence=evidence)


def _requested(node: Node) -> str:
    return (node.model.requested if node.model is not None else None) or ""


def _served(node: Node) -> str:
    return (node.model.served if node.model is not None else None) or ""


_SNAPSHOT = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3}|latest|v\d+(?::\d+)?)$")


def _is_same(asked: str, served: str) -> bool:
    """Whether a served name is the asked one, or a dated snapshot of it; the provider in front does not count."""
    one, other = (name.rpartition("/")[2].rpartition(":")[2].casefold() for name in (asked, served))
    return one == other or _SNAPSHOT.sub("", other) == one or one.removesuffix("-latest") == _SNAPSHOT.sub("", other)


BUILTINS = (
    Builtin(
        name="latency", summary="seconds from start to end", run=_limited("latency", "s", _seconds), params=Limit
    ),
    Builtin(name="tokens", summary="tokens in and out", run=_limited("tokens", "tokens", _tokens), params=Limit),
    Builtin(name="cost", summary="what the model calls cost", run=_limited("cost", "", _cost), params=Limit),
    Builtin(
        name="budget", summary="cost, tokens, time and calls stayed within limits", run=budget, params=Budget
    ),
    Builtin(
        name="served-model", summary="the model that answered is the one that was asked for", run=served_model,
        params=Served,
    ),
)  # fmt: skip
