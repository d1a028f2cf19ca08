"""How the agent went about it: failures repeated, effects had twice, circles."""

from typing import Any

from pydantic import Field, field_validator

from playhead.core.effects import COUNTED, ToolEffect, doubles, effect_of
from playhead.core.evaluation import EvaluationContext, at
from playhead.core.evaluators.builtin import Builtin, Params
from playhead.core.loops import FAILURES, ROUND, TIMES, loops, repeated_failures
from playhead.core.values import Verdict


class Declared(Params):
    """``effects``: what tools do, by name (`core.effects.ToolEffect`)."""

    effects: dict[str, ToolEffect] = Field(default_factory=dict[str, ToolEffect])

    @field_validator("effects", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """A bare class (``"refund": "write"``) is short for ``{"class": "write"}``."""
        if not isinstance(given, dict):
            return given
        return {k: {"class": v} if isinstance(v, str) else v for k, v in given.items()}  # pyright: ignore[reportUnknownVariableType]


class RepeatedFailure(Params):
    """``allow``: so many identical failing calls are fine. ``ignore``: tools that may be tried again."""

    allow: int = Field(default=1, ge=1)
    ignore: tuple[str, ...] = ()


def no_repeated_failure(ctx: EvaluationContext, params: RepeatedFailure) -> Verdict:
    calls = [n for n in ctx.tool_calls if n.name not in params.ignore]
    found = repeated_failures(calls, at_least=params.allow + 1)
    told = [f"{nodes[0].name} failed {len(nodes)} times with the same arguments" for nodes in found.values()]
    return Verdict(
        name="no-repeated-failure",
        passed=not found,
        explanation="; ".join(told) or None,
        evidence=tuple(at(node) for nodes in found.values() for node in nodes[params.allow :]),
    )


class DoubleEffect(Declared):
    """``repeat_ok``: so many equal effects were asked for."""

    repeat_ok: int = Field(default=1, ge=1)


def no_double_side_effect(ctx: EvaluationContext, params: DoubleEffect) -> Verdict:
    found = doubles(ctx.tool_calls, params.effects, repeat_ok=params.repeat_ok)
    counted = [d for d in found if d.kind in COUNTED]
    told = [f"{d.second.name} had its effect again ({d.kind})" for d in found]
    return Verdict(
        name="no-double-side-effect",
        passed=not counted,
        score=len(counted),
        explanation="; ".join(told[:5]) or None,
        evidence=tuple(at(node) for d in found for node in (d.first, d.second)),
    )


class Circles(Declared):
    failures: int = Field(default=FAILURES, ge=2)
    round: int = Field(default=ROUND, ge=1, le=50)
    times: int = Field(default=TIMES, ge=2)


def no_loops(ctx: EvaluationContext, params: Circles) -> Verdict:
    found = loops(
        ctx.tool_calls,
        failures=params.failures,
        round=params.round,
        times=params.times,
        skip=lambda node: effect_of(node, params.effects).bookkeeping,
    )
    return Verdict(
        name="no-loops",
        passed=not found,
        explanation="; ".join(loop.why for loop in found[:5]) or None,
        evidence=tuple(at(node) for loop in found for node in loop.calls),
    )


BUILTINS = (
    Builtin(
        name="no-repeated-failure",
        summary="no call failed again with the same arguments",
        run=no_repeated_failure,
        params=RepeatedFailure,
    ),
    Builtin(
        name="no-double-side-effect",
        summary="no effect on the world was had twice",
        run=no_double_side_effect,
        params=DoubleEffect,
    ),
    Builtin(
        name="no-loops", summary="no call and no round of calls came again and again", run=no_loops, params=Circles
    ),
)
