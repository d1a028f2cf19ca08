"""Which tools were called, how often, and with which arguments."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from playhead.core.argument_schema import BINS, Offered, argument_errors
from playhead.core.evaluation import EvaluationContext, at
from playhead.core.evaluators.builtin import Builtin, Params, listed
from playhead.core.values import JSON, Node, Verdict


class Sequenced(Params):
    """``tools`` left out: those of the baseline. ``ignore``: tools that do not count."""

    tools: tuple[str, ...] | None = None
    mode: Literal["exact", "in_order", "contains_all", "exact_set"] = "exact"
    ignore: tuple[str, ...] = ()


def tool_sequence(ctx: EvaluationContext, params: Sequenced) -> Verdict:
    name = "tool-sequence"
    if params.tools is None and ctx.baseline is None:
        return Verdict(name=name, explanation="there is no baseline and no list of tools to compare with")
    calls = [n for n in ctx.tool_calls if n.name not in params.ignore]
    source = params.tools if params.tools is not None else tuple(n.name for n in ctx.baseline_tool_calls)
    wanted, seen = [t for t in source if t not in params.ignore], [n.name for n in calls]
    why = _MODES[params.mode](wanted, seen)
    first = next((i for i, (a, b) in enumerate(zip(wanted, seen, strict=False)) if a != b), min(len(wanted), len(seen)))
    evidence = (at(calls[first]),) if why and params.mode == "exact" and first < len(calls) else ()
    return Verdict(name=name, passed=why is None, explanation=why, evidence=evidence)


def _exact(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    for place, (a, b) in enumerate(zip(wanted, seen, strict=False), 1):
        if a != b:
            return f"call {place} was {b}, not {a}"
    if len(wanted) > len(seen):
        return f"{wanted[len(seen)]} was not called after {len(seen)} call(s)"
    return f"{seen[len(wanted)]} was called after the last one that was expected" if len(seen) > len(wanted) else None


def _in_order(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    left = iter(seen)
    for tool in wanted:
        if tool not in left:
            return f"{tool} was not called in its place"
    return None


def _contains_all(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    missing = list((Counter(wanted) - Counter(seen)).elements())
    return f"not called: {listed(missing)}" if missing else None


def _exact_set(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    missing, extra = sorted(set(wanted) - set(seen)), sorted(set(seen) - set(wanted))
    told = [f"not called: {listed(missing)}"] if missing else []
    return "; ".join([*told, *([f"called beside: {listed(extra)}"] if extra else [])]) or None


_MODES = {"exact": _exact, "in_order": _in_order, "contains_all": _contains_all, "exact_set": _exact_set}


class Tools(Params):
    tools: tuple[str, ...] = Field(min_length=1)


def required_tools(ctx: EvaluationContext, params: Tools) -> Verdict:
    missing = [tool for tool in params.tools if tool not in {n.name for n in ctx.tool_calls}]
    told = f"not called: {listed(missing)}" if missing else None
    return Verdict(name="required-tools", passed=not missing, explanation=told)


def forbidden_tools(ctx: EvaluationContext, params: Tools) -> Verdict:
    called = [n for n in ctx.tool_calls if n.name in params.tools]
    told = f"called: {listed(sorted({n.name for n in called}))}" if called else None
    return Verdict(name="forbidden-tools", passed=not called, explanation=told, evidence=tuple(map(at, called)))


class MostCalls(Params):
    """``max``: of every tool together; ``tools``: of each by name, ``*`` of any other one."""

    max: int | None = Field(default=None, ge=0)
    tools: dict[str, int] = Field(default_factory=dict[str, int])


def max_calls(ctx: EvaluationContext, params: MostCalls) -> Verdict:
    by_tool: dict[str, list[Node]] = {}
    for node in ctx.tool_calls:
        by_tool.setdefault(node.name, []).append(node)
    over: list[str] = []
    evidence: list[JSON] = []
    for tool, nodes in by_tool.items():
        most = params.tools.get(tool, params.tools.get("*"))
        if most is not None and len(nodes) > most:
            over.append(f"{tool} was called {len(nodes)} times, at most {most}")
            evidence += [at(node) for node in nodes[most:]]
    total = len(ctx.tool_calls)
    if params.max is not None and total > params.max:
        over.append(f"{total} tool calls, at most {params.max}")
    limited = params.max is not None or bool(params.tools)
    return Verdict(
        name="max-calls",
        passed=not over if limited else None,
        score=total,
        explanation="; ".join(over) or None,
        evidence=tuple(evidence),
    )


class ArgumentSchemas(Params):
    """``schemas``: of tools by name, in place of those that the model was offered."""

    schemas: dict[str, JSON] = Field(default_factory=dict[str, JSON])


def argument_schema(ctx: EvaluationContext, params: ArgumentSchemas) -> Verdict:
    bins: Counter[str] = Counter()
    told: list[str] = []
    evidence: list[JSON] = []
    checked, offered = 0, Offered(ctx.nodes)
    for node in ctx.tool_calls:
        assert node.call is not None
        schema = params.schemas.get(node.name, offered.schema(node))
        if schema is None:
            continue
        checked += 1
        for error in argument_errors(schema, node.call.arguments):
            bins[error.bin] += 1
            told.append(f"{node.name}{error.pointer}: {error.message}")
            evidence.append(at(node, f"/call/arguments{error.pointer}"))
    if not checked:
        return Verdict(name="argument-schema", explanation="no call of a tool whose schema is known")
    counts = ", ".join(f"{bins[name]} {name}" for name in BINS if bins[name])
    return Verdict(
        name="argument-schema",
        passed=not told,
        label=counts or None,
        explanation="; ".join(told[:5]) or f"{checked} call(s) are valid",
        evidence=tuple(evidence),
    )


BUILTINS = (
    Builtin(
        name="tool-sequence",
        summary="the tools were called exactly so, in this order, all of them, or no others",
        run=tool_sequence,
        params=Sequenced,
    ),
    Builtin(name="required-tools", summary="each of these tools was called", run=required_tools, params=Tools),
    Builtin(name="forbidden-tools", summary="none of these tools was called", run=forbidden_tools, params=Tools),
    Builtin(name="max-calls", summary="tools were called at most so often", run=max_calls, params=MostCalls),
    Builtin(
        name="argument-schema",
        summary="arguments fit the schema that the model was offered",
        run=argument_schema,
        params=ArgumentSchemas,
    ),
)
