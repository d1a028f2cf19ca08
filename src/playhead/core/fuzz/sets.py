"""The fuzz set of a suite: the cases of every tool, each with the turn of a case that it starts from."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from playhead.core.effects import Effects
from playhead.core.fuzz.cases import FAMILIES, Family, FuzzCase, FuzzSet, digest_of
from playhead.core.fuzz.generate import Base, tool_cases
from playhead.core.fuzz.grown import over_context, rows
from playhead.core.fuzz.interface import interface_cases
from playhead.core.protocol.shape import obj
from playhead.core.suites.messages import outcome_of
from playhead.core.suites.suite import Case, Tools
from playhead.core.values import JSON, OutcomeKind

CONTEXT: Final = 128_000
"""Tokens that a model is taken to hold where nothing better is known."""


def make_set(
    cases: Sequence[Case], tools: Tools, *, families: Sequence[Family] = FAMILIES, per_tool: int = 5, seed: int = 0,
    context: int = CONTEXT, only: Sequence[str] = (), effects: Effects | None = None,
) -> FuzzSet:  # fmt: skip
    """The cases of every tool that a case offers; of every tool where there is no case.

    Args:
        cases: active cases of the suite, with their labels.
        context: tokens that the model holds, for results that are larger.
        only: tools of these names.
        effects: what is declared of the tools; bookkeeping ones have no cases.
    """
    offered_names = {name for case in cases for name in case.tools}
    keys = [key for key in tools if not cases or key in offered_names]
    found: list[FuzzCase] = []
    skipped: dict[str, str] = {}
    for key in keys:
        tool = tools[key]
        if only and tool.name not in only:
            continue
        declared = (effects or {}).get(tool.name)
        if declared is not None and declared.bookkeeping:
            skipped[key] = "bookkeeping"
            continue
        recorded = recorded_bases(cases, tools, key, seed)
        made = tool_cases(tool, families, recorded, per_tool=per_tool, seed=seed)
        if "oversized" in families:
            made += _grown(tool.name, recorded, per_tool, context)
        made = [_placed(case, cases, key, variant=key != tool.name) for case in made]
        if not made and set(families) - {"interface", "ambiguity"}:
            skipped[key] = (
                "no parameter" if not _has_parameters(tool.parameters) else "no valid arguments to start from"
            )
        found += made
    if "interface" in families and not only:
        found += interface_cases(cases, tools, per_tool=per_tool, seed=seed)
    return FuzzSet(
        cases=tuple({case.id: case for case in found}.values()), families=tuple(families), per_tool=per_tool,
        seed=seed, skipped=skipped,
    )  # fmt: skip


def _has_parameters(parameters: JSON) -> bool:
    return bool(obj(parameters).get("properties"))


def recorded_bases(cases: Sequence[Case], tools: Tools, key: str, seed: int) -> list[Base]:
    """The recorded calls of a tool, in an order that the seed gives."""
    name = tools[key].name
    found = [
        Base(
            arguments=call.emitted,
            source=case.id,
            round=place,
            result=outcome.value if (outcome := outcome_of(one, call.id)).kind is OutcomeKind.VALUE else None,
        )
        for case in cases
        if key in case.tools
        for place, one in enumerate(case.recorded)
        for call in one.calls
        if call.tool == name
    ]
    return sorted(found, key=lambda base: _lot(seed, [base.source, base.round, base.arguments]))


def _lot(seed: int, value: JSON) -> bytes:
    return sha256(f"playhead.fuzz/1:{seed}:{digest_of(value)}".encode()).digest()


def _placed(case: FuzzCase, cases: Sequence[Case], key: str, *, variant: bool) -> FuzzCase:
    """The case with the turn that it starts from: that of the recorded call, else the first that offers the tool."""
    id = f"{case.id}-{digest_of([key])[:4]}" if variant else case.id
    source = case.source or next((one.id for one in cases if key in one.tools), None)
    return replace(case, id=id, source=source)


def _grown(tool: str, recorded: Sequence[Base], per_tool: int, context: int) -> list[FuzzCase]:
    """A good call with a result of many rows, and one with more than the model can hold."""
    usable = [base for base in recorded if base.result is not None and base.result not in ("", [], {})]
    made: list[FuzzCase] = []
    for base in usable[: max(1, per_tool // 2)]:
        for mutation, result in (
            ("many_rows", rows(base.result)),
            ("over_context", over_context(base.result, context)),
        ):
            identity: list[JSON] = [tool, mutation, base.source, base.round, base.arguments]
            made.append(
                FuzzCase(
                    id=f"oversized-{tool}-{digest_of(identity)[:8]}", tool=tool, family="oversized",
                    mutation=mutation, expectation="semantic", arguments=base.arguments, base=base.arguments,
                    source=base.source, round=base.round, result=result,
                )
            )  # fmt: skip
    return made
