"""``playhead suite refresh | retire``."""

from typing import TYPE_CHECKING, Any

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.cli.suites import home_of, whoever
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.engine.suites.upkeep import Freshness


def refresh(
    suite: str, /, *, context: Ctx, since: str = "30d", per_intent: int = 20, agent: tuple[str, ...] = (),
    apply: bool = False,
) -> Result:  # fmt: skip
    """Plan new cases from recent sessions, and say how fresh a suite is.

    Near duplicates are left out: the same tools called after the same last words of the user. Labels come as with
    playhead suite build. Nothing changes without --apply.

    Args:
        suite: Name of a suite, or its folder.
        since: Sessions that started at or after: 30d, 2026-05-01.
        per_intent: New cases of the intent with most traffic, at most; the others in proportion to their traffic, at
            least one each.
        agent: Sessions of this agent; those that the cases come from when left out.
        apply: Add what the plan says.
    """
    from playhead.engine.suites.location import note_access
    from playhead.engine.suites.upkeep import apply_refresh, plan_refresh

    home = home_of(context, suite)
    contents = home.contents()
    now = SYSTEM_CLOCK.now()
    start = shown.instant(since, now=now) or 0
    plan = plan_refresh(context.store, contents, since=start, now=now, per_intent=per_intent, agents=agent)
    if apply:
        apply_refresh(home, contents, plan)
        note_access(home, home.contents(), who=whoever(), command="suite refresh", reason=f"since {since}")
    data: dict[str, Any] = {
        "applied": apply, "sessions": plan.sessions, "new": [case.id for case in plan.new if case.slice == "tune"],
        "new_held_back": sum(case.slice == "held_back" for case in plan.new), "by_intent": plan.by_intent,
        "near_duplicates": plan.duplicates, "beyond_per_intent": plan.beyond, **plan.freshness.data(),
    }  # fmt: skip
    rows = [{"intent": intent, "new_cases": count} for intent, count in sorted(plan.by_intent.items())]
    text: list[Block] = [
        f"{'added' if apply else 'would add'} {len(plan.new)} cases from {plan.sessions} sessions",
        Table(("intent", "new_cases"), rows, empty="nothing new"),
        Fields([("near duplicates left out", plan.duplicates), ("beyond --per-intent", plan.beyond)]),
        _freshness(plan.freshness),
    ]
    return Result(data=data, text=text if apply or not plan.new else [*text, "add them with --apply"])


def _freshness(found: "Freshness") -> Fields:
    old = found.older_than_90_days
    return Fields(
        [
            ("median age", None if found.median_age_days is None else f"{found.median_age_days:g} days"),
            ("older than 90 days", None if old is None else f"{old:.1%}"),
            ("intents without cases", ", ".join(found.intents_without_cases) or None),
            ("intents without traffic", ", ".join(found.intents_without_traffic) or None),
            ("tools no longer offered", ", ".join(found.tools_no_longer_offered) or None),
        ]
    )


def retire(
    suite: str, /, *, context: Ctx, case: tuple[str, ...] = (), intent: tuple[str, ...] = (),
    tool: tuple[str, ...] = (), reason: str | None = None, since: str = "30d", apply: bool = False,
) -> Result:  # fmt: skip
    """Plan which cases are no longer run.

    Without --case, --intent or --tool it proposes those of intents that no recent session has, and of tools that none
    offers any more. Retired cases are kept with their history; a gate lists them. Nothing changes without --apply.

    Args:
        suite: Name of a suite, or its folder.
        case: This case; may be given several times.
        intent: Cases of this intent; may be given several times.
        tool: Cases that need this tool; may be given several times.
        reason: Why; it is kept with the cases, and needed with --apply.
        since: What counts as recent for proposals: 30d, 2026-05-01.
        apply: Retire what the plan says.
    """
    from playhead.engine.suites.upkeep import apply_retirement, plan_retirement, propose_retirement

    home = home_of(context, suite)
    contents = home.contents()
    state = None
    if case or intent or tool:
        plan = plan_retirement(contents, ids=case, intents=intent, tools=tool)
    else:
        now = SYSTEM_CLOCK.now()
        start = shown.instant(since, now=now) or 0
        plan, state = propose_retirement(context.store, contents, since=start, now=now)
    if apply:
        if reason is None:
            raise UsageError("retiring cases needs a reason", hint="--reason TEXT; it is kept with them")
        apply_retirement(home, contents, plan, reason)
    held = {c.id for c in contents.cases if c.slice == "held_back"}
    rows = [{"case": id, "because": why} for id, why in plan.cases.items() if id not in held]
    hidden = len(plan.cases) - len(rows)
    data: dict[str, Any] = {"applied": apply, "cases": rows, "held_back": hidden, "reason": reason}
    if state is not None:
        data |= state.data()
    head = f"{'retired' if apply else 'would retire'} {len(plan.cases)} cases" + (
        f", {hidden} of them held back" if hidden else ""
    )
    text: list[Block] = [head, Table(("case", "because"), rows, empty="nothing to retire")]
    if state is not None:
        text.append(_freshness(state))
    return Result(data=data, text=text if apply or not rows else [*text, "retire them with --apply --reason TEXT"])
