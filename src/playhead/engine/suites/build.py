"""Suites from recorded sessions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from playhead.core.capture import Captured, CaptureOptions, capture, declared_effects
from playhead.core.effects import ToolEffect
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import by_case, settle
from playhead.core.suites.suite import Case, Intent, Suite, ToolSchema
from playhead.core.values import JSON, Session
from playhead.store.ports import Store

KNOWN_EFFECTS: Mapping[str, Mapping[str, JSON]] = {
    "think": {"class": "read", "bookkeeping": True},
    "transfer_to_human_agents": {"class": "read", "give_up": True},
    "report_failure": {"class": "read", "give_up": True},
}
"""What tools of these names are in the benchmarks that have them."""


def build(
    store: Store,
    sessions: Iterable[str],
    *,
    name: str,
    tools: Sequence[ToolSchema] = (),
    effects: Mapping[str, Any] | None = None,
    intent: str | None = None,
    confirming: frozenset[str] | None = None,
    known_effects: bool = False,
    known: Contents | None = None,
) -> tuple[Contents, Captured]:
    """The suite of some sessions, and what became of each.

    Args:
        tools: schemas for recordings that show none.
        effects: what is declared of the tools; recordings add the classes that they hold.
        intent: of every case; what a session itself names when left out.
        confirming: names of verdicts that confirm a session; all but fidelity when None.
        known_effects: declare what well-known tools of benchmarks are.
        known: a suite that the cases are added to; those that it has stay as they are.
    """
    declared: dict[str, Any] = {k: ToolEffect.model_validate(v) for k, v in (effects or {}).items()}
    if known is not None:
        declared = {**known.suite.effects, **declared}
    names = {tool.name for tool in tools}
    if known_effects:
        found = {k: ToolEffect.model_validate(v) for k, v in KNOWN_EFFECTS.items() if k in names}
        declared = {**found, **declared}
    captured = Captured(tools=dict(known.tools) if known else {})
    tasks: dict[str, JSON] = {}
    for id in sessions:
        session, nodes = store.sessions.get(id), store.sessions.nodes(id)
        declared = declared_effects(nodes, declared)
        options = CaptureOptions(tools=tools, effects=declared, confirming=confirming, intent=intent)
        capture(captured, session, nodes, store.sessions.verdicts(id), options)
        tasks |= _task(session)
    return _joined(captured, name, declared, tasks, known), captured


def _joined(
    captured: Captured, name: str, effects: dict[str, Any], tasks: dict[str, JSON], known: Contents | None
) -> Contents:
    have = {case.id for case in known.cases} if known else set[str]()
    new = [case for case in captured.cases if case.id not in have]
    labels = [entry for entry in captured.labels if entry.case not in have]
    cases = [*(known.cases if known else ()), *_labelled(new, labels)]
    base = known.suite if known else Suite(name=name)
    suite = base.model_copy(
        update={"effects": effects, "tasks": {**base.tasks, **tasks}, "intents": _intents(base, cases)}
    )
    return Contents(
        suite=suite,
        cases=tuple(cases),
        tools=captured.tools,
        labels=(*(known.labels if known else ()), *labels),
        accesses=known.accesses if known else (),
        skipped=tuple(captured.skipped),
    )


def _labelled(cases: Sequence[Case], entries: Sequence[Any]) -> list[Case]:
    """Cases with the label that the log gives them."""
    own = by_case(entries)
    return [case.model_copy(update={"label": settle(case, own.get(case.id, ())).label}) for case in cases]


def _intents(base: Suite, cases: Sequence[Case]) -> dict[str, Intent]:
    """Intents with their share of the captured turns, where nothing better is known."""
    counts = Counter(case.intent for case in cases)
    total = sum(counts.values()) or 1
    made = dict(base.intents)
    for intent, count in counts.items():
        if intent not in made:
            made[intent] = Intent(traffic=round(count / total, 4))
    return made


def _task(session: Session) -> dict[str, JSON]:
    """What a benchmark expects of the whole task that a session tried."""
    kept = {name: session.metadata.get(f"expected_{name}") for name in ("actions", "outputs")}
    task = session.metadata.get("task_id")
    if task is None or not any(value is not None for value in kept.values()):
        return {}
    return {str(task): {name: value for name, value in kept.items() if value is not None}}
