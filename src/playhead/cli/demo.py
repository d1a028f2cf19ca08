"""``playhead demo``: the whole story on a small agent: record, replay, fork, compare."""

import importlib.util
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Result, Table
from playhead.core.values import FidelityKind, Replay, RunSpec, Session
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.engine.client import ReplayClient

FILE = "demo.db"
_ENTRY_POINT = "playhead.cli.demo_agent:handle"
_MODELS = (("OPENAI_API_KEY", "openai:gpt-4.1-mini"), ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-4-5"))
_STRICTER = (
    "You work at the returns desk of a shop. Look up the order, check that it can be returned, "
    "then refund it and send a return label. Hand refunds above $100 to a person."
)
_REFUSED: dict[str, Any] = {"issue_refund": {"type": "static", "cases": [{"result": "refund refused: card expired"}]}}
_FORKED = 0  # the request whose session is forked


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """One fork and the options that make it again."""

    title: str
    options: str
    replay: Replay
    result: Session | None


def demo(*, context: Ctx, live: bool = False, model: str | None = None) -> Result:
    """Record, replay, fork and compare a small agent, offline.

    The agent is a returns desk with five tools, two of which write. It is recorded on eight requests, into a store
    beside the project's own.

    Args:
        live: Record against a real model; needs a provider key in the environment.
        model: The real model, as provider:name; left out, a small one of the provider whose key is there.
    """
    if importlib.util.find_spec("pydantic_ai") is None:
        raise UsageError("the demo's agent is a PydanticAI agent", hint="pip install 'playhead[pydantic-ai]'")
    spec = _run_spec(live=live, model=model)
    url = context.url or str(_place(context))
    sessions = _record(context, url)
    demo_context = Context(mode=context.mode, url=url)
    try:
        return _replay_and_fork(demo_context, sessions, spec)
    finally:
        demo_context.close()


def _run_spec(*, live: bool, model: str | None) -> RunSpec:
    keys = tuple(name for name, _ in _MODELS if os.environ.get(name))
    if not live:
        os.environ.pop("PLAYHEAD_DEMO_MODEL", None)
        return RunSpec(entry_point=_ENTRY_POINT)
    chosen = model or next((name for key, name in _MODELS if key in keys), None)
    if chosen is None:
        names = " or ".join(name for name, _ in _MODELS)
        raise UsageError("--live needs a provider key in the environment", hint=f"set {names}, or leave --live out")
    os.environ["PLAYHEAD_DEMO_MODEL"] = chosen
    return RunSpec(entry_point=_ENTRY_POINT, env=("PLAYHEAD_DEMO_MODEL",), secrets=keys)


def _place(context: Context) -> Path:
    from playhead.engine.project import prepare

    folder = context.project.folder
    prepare(folder)
    path = folder / FILE
    with suppress(ValueError):
        path = path.relative_to(Path.cwd())
    return path


def _record(context: Context, url: str) -> list[str]:
    """Runs the agent on every request; gives the ids of the sessions, in order."""
    from playhead.adapters.installation import install
    from playhead.cli.demo_agent import REQUESTS, handle
    from playhead.core.redaction.redact import Redactor
    from playhead.core.values import Origin
    from playhead.engine.project import use_recorder
    from playhead.engine.recorder import Recorder
    from playhead.store.open import open_store
    from playhead.store.ports import SessionQuery

    context.note(f"recording {len(REQUESTS)} sessions of the returns desk")
    store = open_store(url)
    recorder = Recorder(store, redactor=Redactor())
    before = use_recorder(recorder)
    install()
    try:
        started = recorder.clock.now()
        for request in REQUESTS:
            with suppress(LookupError):  # one order does not exist, and a failed session is a good baseline as well
                handle(request)
        recorder.close()
        query = SessionQuery(agents=("returns-desk",), origins=(Origin.LIVE,), since=started, oldest_first=True)
        return [session.id for session in store.sessions.find(query).items]
    finally:
        use_recorder(before)
        store.close()


def _replay_and_fork(context: Context, ids: list[str], spec: RunSpec) -> Result:
    import playhead
    from playhead.cli.demo_agent import handle
    from playhead.engine.client import Client

    store = context.store
    replays = Client(store, context.project).replays
    context.note("replaying each unchanged, with tools and model from its recording")
    unchanged = [
        playhead.replay(id, agent=handle, model_policy={"type": "history"}, label="demo unchanged", store=store).replay
        for id in ids
    ]
    context.note("forking one: another system prompt, then another refund result")
    chosen = ids[_FORKED]
    explore = {"default": {"type": "history", "on_miss": "error_result"}}
    prompt = _replay(
        replays, spec, chosen, override={"system_prompt": _STRICTER}, tool_policy=explore, label="demo stricter prompt"
    )
    refused = _replay(replays, spec, chosen, tool_policy={"tools": _REFUSED}, label="demo refund refused")
    forks = [
        _fork(context, "refunds above $100 go to a person", f'--system-prompt "{_STRICTER}"', prompt),
        _fork(context, "the refund is refused", "--tool-policy '...'", refused),
    ]
    sessions = [store.sessions.get(id) for id in ids]
    return _result(context, sessions, unchanged, forks)


def _replay(replays: "ReplayClient", spec: RunSpec, id: str, **asked: Any) -> Replay:
    from playhead.core.requests import ReplayCreateRequest

    plan = replays.plan(ReplayCreateRequest(baseline_session_id=id, **asked), run_spec=spec)
    return replays.create(plan).wait().replay


def _fork(context: Context, title: str, options: str, replay: Replay) -> Fork:
    id = replay.result_session_id
    return Fork(title=title, options=options, replay=replay, result=context.store.sessions.get(id) if id else None)


def _result(context: Context, sessions: list[Session], unchanged: list[Replay], forks: list[Fork]) -> Result:
    faithful = sum(r.fidelity is not None and r.fidelity.kind is FidelityKind.FAITHFUL for r in unchanged)
    live = sum(row.by == "live" for replay in unchanged for row in replay.ledger)
    data = {
        "store": context.store.url,
        "sessions": [session.id for session in sessions],
        "replays": [replay.id for replay in unchanged],
        "faithful": faithful,
        "live_calls": live,
        "forks": [
            {
                "title": fork.title,
                "replay": fork.replay.id,
                "status": fork.replay.status.value,
                "output": None if fork.result is None else fork.result.output,
                "fidelity": None if fork.replay.fidelity is None else shown.members(fork.replay.fidelity),
            }
            for fork in forks
        ],
    }
    rows = [
        {
            "session": session.id,
            "request": shown.brief(session.inputs["prompt"], 54),
            "ended": shown.failure(session.error) or shown.brief(session.output, 60),
            "replay": None if replay.fidelity is None else replay.fidelity.kind.value,
        }
        for session, replay in zip(sessions, unchanged, strict=True)
    ]
    text: list[Block] = [
        Table(("session", "request", "ended", "replay"), rows),
        f"\n{faithful} of {len(unchanged)} replays faithful, {live} live calls",
        *(line for fork in forks for line in _fork_text(sessions[_FORKED], fork)),
        _next(context.url, sessions[_FORKED], forks),
    ]
    complete = faithful == len(unchanged) and all(fork.replay.status.value == "completed" for fork in forks)
    return Result(data=data, text=text, exit_code=0 if complete else 1)


def _fork_text(baseline: Session, fork: Fork) -> list[str]:
    lines = [f"\nfork of {baseline.id}: {fork.title}"]
    divergence = fork.replay.fidelity.divergence if fork.replay.fidelity is not None else None
    if divergence is not None:
        lines += [f"  {line}" for line in shown.divergence(divergence)]
    lines.append(f"  recorded output: {shown.brief(baseline.output, 100)}")
    lines.append(f"  output now:      {shown.brief(None if fork.result is None else fork.result.output, 100)}")
    return lines


def _next(url: str | None, session: Session, forks: list[Fork]) -> str:
    return f"""
next:
  playhead session tree {session.id} --url {url}
  playhead replay get {forks[0].replay.id} --url {url}
  playhead replay compare {forks[0].replay.id} --url {url}
  playhead replay create {session.id} --model-history --url {url}
  playhead init                      and record an agent of your own"""
