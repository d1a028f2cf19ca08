"""A program that a worker started for a replay finds out so here: the first session that it opens is the replay's.

A command of a run spec is any program. Where it is Python and imports playhead, the order stands in its environment;
nothing is asked of it but to open its session as it always does. The replay is settled when that session closes.
"""

import json
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playhead.core.values import LedgerRow
from playhead.engine.active import ActiveSession
from playhead.engine.attempt import Attempt
from playhead.engine.client import Client
from playhead.engine.context import replaying
from playhead.engine.isolation.guard import Level
from playhead.engine.project import find_project, use_recorder
from playhead.engine.recorder import Recorder
from playhead.engine.replay import conclude, failed, guard_replay, inputs_of, make_state, without_secrets
from playhead.engine.replay_task import request_of
from playhead.errors import PlayheadError

ORDER = "PLAYHEAD_ORDER"
_kept: list[ExitStack] = []  # the replay and its guard last as long as the process


def begin() -> None:
    """Makes this process the replay's, once.

    Raises:
        PlayheadError: it cannot be; the replay has failed with that.
    """
    text = os.environ.pop(ORDER, None)
    os.environ.pop("PLAYHEAD_REPLAY", None)  # programs that this one starts are no replays of their own
    if text is None:
        return
    order: dict[str, Any] = json.loads(text)
    project = find_project(Path(order["project"]), url=order["store_url"])
    store = project.open_store(create=False)
    attempt = Attempt(store, order["task_id"], order["token"])
    recorder = project.recorder(store)
    use_recorder(recorder)
    try:
        _begin(order, Client(store, project), attempt, recorder)
    except PlayheadError as error:
        attempt.save(without_secrets(failed(store.replays.get(order["replay_id"]), error), project.redactor()))
        raise


def _begin(order: dict[str, Any], client: Client, attempt: Attempt, recorder: Recorder) -> None:
    replay = client.store.replays.get(order["replay_id"])
    plan = client.replays.plan(
        request_of(replay, force=order["force"]), inline=True, settle_dead=False, cohort=replay.cohort
    )
    state = make_state(plan, replay, client.store, recorder=recorder, writer=client.replays.writer)
    state.override_hits["prompt"] += inputs_of(plan).changed
    state.thread = threading.main_thread().ident or 0  # the whole process is the replay's
    rows: list[LedgerRow] = []
    stack = ExitStack()
    _kept.append(stack)
    stack.enter_context(replaying(state))
    hosts = frozenset(client.project.settings.model_endpoints)
    level = guard_replay(stack, plan, state, rows, hosts, True, Level(name="python", hosts=_proxy()))

    def settle(active: ActiveSession) -> None:
        if state.on_end is None or active.session_id != state.sessions[0]:
            return
        state.on_end = None
        settled, _ = conclude(
            plan, replay, state, recorder=recorder, redactor=active.redactor, guard=level, rows=rows
        )  # fmt: skip
        attempt.save(settled.replay)

    state.on_end = settle


def _proxy() -> frozenset[str]:
    """The outer guard's way to the endpoints that are allowed, at this machine's own address."""
    found = urlsplit(os.environ.get("HTTPS_PROXY", ""))
    local = found.hostname in ("127.0.0.1", "localhost") and found.port
    return frozenset({f"127.0.0.1:{found.port}"}) if local else frozenset()
