"""``playhead session diff`` and ``playhead replay compare``."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.output import Block, Result, Table
from playhead.core.values import JSON, Session
from playhead.errors import NotFoundError, UsageError
from playhead.store.ports import Store

if TYPE_CHECKING:
    from playhead.core.compare import Comparison, Totals


def diff(first: str, second: str, /, *, context: Ctx, calls_only: bool = False) -> Result:
    """Compare two sessions call by call.

    Exit code 1 when they differ.

    Args:
        first: Id, shortened id, last or last~N of the session that is the measure.
        second: The session to compare with it.
        calls_only: Leave model requests, final output and status out.
    """
    sessions = context.store.sessions
    a, b = (sessions.get(sessions.resolve(text)) for text in (first, second))
    return _compared(context.store, a, b, calls_only=calls_only)


def compare(first: str = "last", second: str | None = None, /, *, context: Ctx, calls_only: bool = False) -> Result:
    """Compare a replay with its baseline, or any two sessions.

    Exit code 1 when they differ.

    Args:
        first: A replay, compared with its baseline; with a second one, a replay or session.
        second: A replay (its result counts) or session.
        calls_only: Leave model requests, final output and status out.
    """
    store = context.store
    if second is not None:
        return _compared(store, _session(store, first), _session(store, second), calls_only=calls_only)
    replay = store.replays.get(store.replays.resolve(first))
    if replay.result_session_id is None:
        raise UsageError(
            f"replay {replay.id} has no result session (it is {replay.status.value})",
            hint=f"playhead replay get {replay.id} says why",
        )
    baseline = store.sessions.get(replay.baseline_session_id)
    result = store.sessions.get(replay.result_session_id)
    from playhead.core.policy import HistoryConfig, StaticConfig, ToolPolicy

    policy = ToolPolicy.model_validate(replay.tool_policy or {})
    ignore = {
        tool: config.ignore for tool, config in policy.tools.items() if isinstance(config, HistoryConfig | StaticConfig)
    }
    model_policy: dict[str, JSON] = replay.model_policy or {}
    live_model = model_policy.get("type") != "history"  # then its requests are not what is measured
    return _compared(store, baseline, result, calls_only=calls_only, models=not live_model, ignore=ignore)


def _session(store: Store, text: str) -> Session:
    try:
        return store.sessions.get(store.sessions.resolve(text))
    except NotFoundError as missing:
        try:
            replay = store.replays.get(store.replays.resolve(text))
        except NotFoundError:
            raise missing from None
        if replay.result_session_id is None:
            raise UsageError(f"replay {replay.id} has no result session") from None
        return store.sessions.get(replay.result_session_id)


def _compared(
    store: Store,
    a: Session,
    b: Session,
    *,
    calls_only: bool,
    models: bool = True,
    ignore: Mapping[str, Sequence[str]] | None = None,
) -> Result:
    from playhead.core.compare import compare as compare_sessions

    found = compare_sessions(
        a,
        store.sessions.nodes(a.id),
        b,
        store.sessions.nodes(b.id),
        ignore=ignore,
        models=models and not calls_only,
        output=not calls_only,
    )
    differ = found.divergence is not None
    return Result(data=_data(found), text=_text(found), exit_code=1 if differ else 0)


def _data(found: "Comparison") -> dict[str, JSON]:
    return {
        "baseline_id": found.baseline_id,
        "result_id": found.result_id,
        "divergence": None if found.divergence is None else shown.members(found.divergence),
        "differences": [shown.members(difference) for difference in found.differences],
        "aligned": [list(pair) for pair in found.aligned],
        "status": list(found.status),
        "output_equal": found.output_equal,
        "output_diff": found.output_diff,
        "baseline": dataclasses.asdict(found.baseline),
        "result": dataclasses.asdict(found.result),
    }


def _text(found: "Comparison") -> list[Block]:
    text: list[Block] = [f"{found.baseline_id} -> {found.result_id}"]
    if found.divergence is None:
        text.append(f"no difference in {len(found.aligned)} aligned calls")
    else:
        first, *lines = shown.divergence(found.divergence)
        text += [f"first difference: {first}", *lines]
        rest = found.differences[1:]
        if rest:
            rows = [
                {"what": d.what, "where": d.where, "pointers": " ".join(d.pointers), "why": _why(d.explanation)}
                for d in rest
            ]
            text.append(Table(("what", "where", "pointers", "why"), rows))
    if found.output_diff and (found.divergence is None or found.divergence.what != "output"):
        text.append(f"\noutput:\n{found.output_diff}")
    text.append(Table(("measure", "baseline", "result"), _totals(found.baseline, found.result)))
    return text


def _why(explanation: str) -> str:
    return shown.brief(explanation.partition("\n")[0], 100)


def _totals(a: "Totals", b: "Totals") -> list[dict[str, object]]:
    return [
        {"measure": "model calls", "baseline": a.model_calls, "result": b.model_calls},
        {"measure": "tool calls", "baseline": a.tool_calls, "result": b.tool_calls},
        {"measure": "input tokens", "baseline": a.input_tokens, "result": b.input_tokens},
        {"measure": "output tokens", "baseline": a.output_tokens, "result": b.output_tokens},
        {"measure": "cost", "baseline": a.cost, "result": b.cost},
        {"measure": "took", "baseline": shown.lasted(0, a.latency_ns), "result": shown.lasted(0, b.latency_ns)},
    ]
