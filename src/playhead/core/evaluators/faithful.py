"""``fidelity``: whether an unchanged replay was faithful."""

from playhead.core.evaluation import EvaluationContext, at
from playhead.core.evaluators.builtin import Builtin, Params
from playhead.core.values import JSON, Divergence, FidelityKind, Verdict

_PASSED = {FidelityKind.FAITHFUL: True, FidelityKind.DIVERGED: False, FidelityKind.UNPROVEN: None}


def fidelity(ctx: EvaluationContext, params: Params) -> Verdict:
    found = ctx.fidelity
    if found is None:
        return Verdict(name="fidelity", explanation="only the result of a replay has a fidelity")
    where = found.divergence
    told = f"{where.where}: {where.explanation}" if where is not None else "; ".join(found.reasons[:3])
    if not ctx.unchanged:
        told = f"this replay changes something, so it may differ. {told}".strip()
    return Verdict(
        name="fidelity",
        label=found.kind.value,
        passed=_PASSED[found.kind] if ctx.unchanged else None,
        explanation=told or None,
        evidence=_places(where),
    )


def _places(where: Divergence | None) -> tuple[JSON, ...]:
    if where is None:
        return ()
    pointers = [f"/call/arguments{p}" for p in where.pointers] if where.what == "arguments" else [""]
    nodes = [node for node in (where.result_node, where.baseline_node) if node is not None]
    return tuple(at(node, pointer) for node in nodes for pointer in pointers)


BUILTINS = (
    Builtin(
        name="fidelity",
        summary="an unchanged replay was faithful; on a fork it only describes",
        run=fidelity,
        needs_replay=True,
    ),
)
