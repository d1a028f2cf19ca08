"""Upkeep of a suite, always as a plan first: new cases from recent sessions, and cases that are no longer run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from statistics import median
from typing import Any, Final

from playhead.core.capture import intent_of
from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Case, Intent
from playhead.core.values import JSON, NodeKind, Origin, Session
from playhead.engine.exports import find_ids
from playhead.engine.suites.build import build
from playhead.engine.suites.location import SuiteHome
from playhead.errors import UsageError
from playhead.store.ports import SessionQuery, Store

OLD_DAYS: Final = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How far the cases are those of today. ``traffic`` counts recent sessions by intent."""

    median_age_days: float | None = None
    older_than_90_days: float | None = None
    intents_without_cases: tuple[str, ...] = ()
    intents_without_traffic: tuple[str, ...] = ()
    tools_no_longer_offered: tuple[str, ...] = ()
    traffic: Mapping[str, int] = field(default_factory=dict[str, int])

    def data(self) -> dict[str, JSON]:
        return {
            "median_age_days": self.median_age_days,
            "older_than_90_days": self.older_than_90_days,
            "intents_without_cases": list(self.intents_without_cases),
            "intents_without_traffic": list(self.intents_without_traffic),
            "tools_no_longer_offered": list(self.tools_no_longer_offered),
            "traffic": dict(self.traffic),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPlan:
    """What a refresh adds: cases with their labels, by intent; how many more it leaves out, and why."""

    contents: Contents
    new: tuple[Case, ...] = ()
    duplicates: int = 0
    beyond: int = 0
    sessions: int = 0
    freshness: Freshness = Freshness()

    @property
    def by_intent(self) -> dict[str, int]:
        return dict(Counter(case.intent for case in self.new))


def plan_refresh(
    store: Store, contents: Contents, *, since: int, now: int, per_intent: int, agents: Sequence[str] = ()
) -> RefreshPlan:
    """New cases from live and imported sessions since then, none that says the same as another.

    Args:
        per_intent: cases of the intent with most traffic, at most; the others in proportion, one at least.
        agents: whose sessions; those that the cases come from when left out.
    """
    asked = tuple(agents) or tuple(sorted({c.source.agent for c in contents.cases if c.source.agent}))
    if not asked:
        raise UsageError("no case says which agent it is from", hint="--agent NAME")
    query = SessionQuery(agents=asked, origins=(Origin.LIVE, Origin.IMPORT), since=since)
    ids = find_ids(store, query)
    grown, _ = build(
        store, ids, name=contents.suite.name, tools=list(contents.tools.values()), effects={}, known=contents
    )
    known = {case.id for case in contents.cases}
    fresh = sorted((c for c in grown.cases if c.id not in known), key=lambda c: _lot(contents.suite.name, c.id))
    said = {_gist(case) for case in contents.cases}
    traffic = Counter(intent_of(store.sessions.get(id)) for id in ids)
    most = quotas(traffic, per_intent)
    taken: list[Case] = []
    counts: Counter[str] = Counter()
    duplicates = beyond = 0
    for case in fresh:
        gist = _gist(case)
        if gist in said:
            duplicates += 1
        elif counts[case.intent] >= most.get(case.intent, 0):
            beyond += 1
        else:
            said.add(gist)
            counts[case.intent] += 1
            taken.append(case)
    chosen = {case.id for case in taken}
    suite = grown.suite.model_copy(update={"intents": _shares(contents, traffic)})
    labels = [e for e in grown.labels[len(contents.labels) :] if e.case in chosen]
    made = replace(
        contents, suite=suite, tools=grown.tools, cases=(*contents.cases, *taken), labels=(*contents.labels, *labels)
    )
    return RefreshPlan(
        contents=made, new=tuple(taken), duplicates=duplicates, beyond=beyond, sessions=len(ids),
        freshness=freshness(made, traffic, offered_now(store, ids), now=now),
    )  # fmt: skip


def apply_refresh(home: SuiteHome, before: Contents, plan: RefreshPlan) -> None:
    """Adds the cases of a plan."""
    labels = plan.contents.labels[len(before.labels) :]
    home.change(suite=plan.contents.suite, cases=plan.new, tools=plan.contents.tools, labels=labels)


def quotas(traffic: Mapping[str, int], busiest: int) -> dict[str, int]:
    """How many cases each intent gets: so many for the one with most traffic, in proportion for the others, and at
    least one, so that no intent is left without."""
    top = max(traffic.values(), default=0)
    return {intent: min(busiest, max(1, (2 * busiest * count + top) // (2 * top))) for intent, count in traffic.items()}


def _lot(name: str, case: str) -> bytes:
    return sha256(f"playhead.refresh/1:{name}:{case}".encode()).digest()


def _gist(case: Case) -> tuple[Any, ...]:
    """What makes two cases near duplicates: the same tools called, after the same last words of the user."""
    said = next((m.content for m in reversed(case.history) if m.role == "user"), "")
    answered = sum(m.role == "tool" for m in case.history)
    tools = tuple(call.tool for one in case.recorded[:1] for call in one.calls)
    return (tools, str(said).strip().casefold(), bool(answered))


def _shares(contents: Contents, traffic: Mapping[str, int]) -> dict[str, Intent]:
    total = sum(traffic.values())
    made = dict(contents.suite.intents)
    for intent in {*made, *traffic} if total else ():
        share = round(traffic.get(intent, 0) / total, 4)
        made[intent] = made.get(intent, Intent()).model_copy(update={"traffic": share})
    return made


def offered_now(store: Store, sessions: Sequence[str]) -> set[str]:
    """The tools that recent sessions offered; empty where none shows any."""
    found: set[str] = set()
    for id in sessions[-50:]:
        for node in store.sessions.nodes(id):
            if node.kind is NodeKind.MODEL_CALL and node.inputs:
                found |= {str(tool.get("name")) for tool in node.inputs.get("tools") or ()}
    return found


def freshness(contents: Contents, traffic: Mapping[str, int], offered: set[str], *, now: int) -> Freshness:
    """How old the cases are, and what of them no recent session shows."""
    active = [case for case in contents.cases if case.status == "active"]
    ages = [age for case in active if (age := _age(case.source.captured_at, now)) is not None]
    intents = {case.intent for case in active}
    named = {contents.tools[name].name for case in active for name in case.tools}
    return Freshness(
        median_age_days=round(median(ages), 1) if ages else None,
        older_than_90_days=round(sum(age > OLD_DAYS for age in ages) / len(ages), 4) if ages else None,
        intents_without_cases=tuple(sorted(set(traffic) - intents)),
        intents_without_traffic=tuple(sorted(intents - set(traffic))) if traffic else (),
        tools_no_longer_offered=tuple(sorted(named - offered)) if offered else (),
        traffic=dict(traffic),
    )


def _age(captured: str | None, now: int) -> float | None:
    if captured is None:
        return None
    try:
        moment = datetime.fromisoformat(captured)
    except ValueError:
        return None
    return (now / 1_000_000_000 - moment.timestamp()) / 86_400


# --- retirement -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirePlan:
    """Cases to retire, with the reason of each."""

    cases: Mapping[str, str]


def plan_retirement(
    contents: Contents, *, ids: Iterable[str] = (), intents: Iterable[str] = (), tools: Iterable[str] = ()
) -> RetirePlan:
    """The active cases with these ids, of these intents, or whose label or recording needs one of these tools.

    Raises:
        UsageError: a case, intent or tool that the suite does not have.
    """
    active = {case.id: case for case in contents.cases if case.status == "active"}
    known_tools = {tool.name for tool in contents.tools.values()}
    for what, given, known in (
        ("case", ids := list(ids), set(active)),
        ("intent", intents := list(intents), {case.intent for case in active.values()}),
        ("tool", tools := list(tools), known_tools),
    ):
        missing = [name for name in given if name not in known]
        if missing:
            raise UsageError(f"the suite has no active {what} {missing[0]!r}")
    found: dict[str, str] = {id: "named" for id in ids}
    for case in active.values():
        needed = sorted(_needs(case) & set(tools))
        if case.intent in intents:
            found.setdefault(case.id, f"intent {case.intent}")
        elif needed:
            found.setdefault(case.id, f"needs the tool {needed[0]}")
    return RetirePlan(cases=found)


def _needs(case: Case) -> set[str]:
    from playhead.core.suites.labels import tools_of

    labelled = tools_of(case.label) if case.label is not None else set[str]()
    return labelled | {call.tool for one in case.recorded for call in one.calls}


def propose_retirement(store: Store, contents: Contents, *, since: int, now: int) -> tuple[RetirePlan, Freshness]:
    """Cases of intents that no recent session has, and of tools that none offers any more."""
    agents = tuple(sorted({c.source.agent for c in contents.cases if c.source.agent}))
    query = SessionQuery(agents=agents or None, origins=(Origin.LIVE, Origin.IMPORT), since=since)
    ids = find_ids(store, query)
    sessions: list[Session] = [store.sessions.get(id) for id in ids]
    traffic = Counter(map(intent_of, sessions))
    state = freshness(contents, traffic, offered_now(store, ids), now=now)
    plan = plan_retirement(contents, intents=state.intents_without_traffic, tools=state.tools_no_longer_offered)
    return plan, state


def apply_retirement(home: SuiteHome, contents: Contents, plan: RetirePlan, reason: str) -> None:
    """Retires the cases of a plan: they are kept with their history and no longer run.

    Raises:
        UsageError: no reason is given.
    """
    if not reason.strip():
        raise UsageError("retiring cases needs a reason", hint="--reason TEXT; it is kept with them")
    changed = [
        case.model_copy(update={"status": "retired", "retired_because": reason})
        for case in contents.cases
        if case.id in plan.cases
    ]
    home.change(cases=changed)
