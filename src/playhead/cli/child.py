"""The process of a replay: ``python -m playhead.cli.child``, with its order as JSON on standard input.

Opens the store, imports the agent, runs the whole replay and saves it. Exit code 0 means that the replay is settled in
the store, whatever its result; anything else that it is not.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.adapters.installation import install
from playhead.core.values import Replay, ReplayStatus
from playhead.engine.attempt import Attempt, to_evaluate
from playhead.engine.client import Client
from playhead.engine.entry import load
from playhead.engine.isolation.guard import Isolation, enter
from playhead.engine.process_tree import adopt_orphans
from playhead.engine.project import Project, find_project, use_recorder
from playhead.engine.recorder import Recorder
from playhead.engine.replay import execute, failed, without_secrets
from playhead.engine.replay_processes import end_process
from playhead.engine.replay_task import UNSTORED, request_of
from playhead.engine.zygote import limit_memory
from playhead.errors import LeaseLostError, PlayheadError, StoreError
from playhead.store.ports import Store


@dataclass(frozen=True, slots=True)
class Held:
    """What a replay needs of its project, opened."""

    project: Project
    store: Store
    recorder: Recorder


def hold(order: Mapping[str, Any]) -> Held:
    """Opens what the order names: ``project`` and ``store_url``.

    Raises:
        PlayheadError: the settings or the store cannot be used.
    """
    project = find_project(Path(order["project"]), url=order["store_url"])
    store = project.open_store(create=False)
    return Held(project, store, project.recorder(store))


def run(order: dict[str, Any], held: Held | None = None) -> int:
    """Runs the replay that the order names and leaves it settled in the store. Gives the exit code."""
    held = held or hold(order)
    use_recorder(held.recorder)
    save = _saver(held.store, order)
    try:
        return _run(order, held.project, held.store, held.recorder, save)
    finally:
        if "task_id" in order:
            end_process()
        held.recorder.close()
        held.store.close()


def _saver(store: Store, order: Mapping[str, Any]) -> Callable[[Replay], None]:
    return Attempt(store, order["task_id"], order["token"]).save if "task_id" in order else _plain_save(store)


def _plain_save(store: Store) -> Callable[[Replay], None]:
    return lambda replay: store.replays.save(to_evaluate(replay))


def _run(order: dict[str, Any], project: Project, store: Store, recorder: Recorder, save: Any) -> int:
    replay = store.replays.get(order["replay_id"])
    if replay.status not in (ReplayStatus.PENDING, ReplayStatus.RUNNING):
        return 0
    try:
        outer = enter(Isolation.from_json(order["isolation"])) if "isolation" in order else None
        install()
        client = Client(store, project)
        plan = client.replays.plan(
            request_of(replay, force=order["force"]), inline=True, settle_dead=False, cohort=replay.cohort
        )
        target = load(order["entry_point"], order["working_dir"])
        execute(
            plan,
            replay,
            target,
            store=store,
            recorder=recorder,
            writer=client.replays.writer,
            model_hosts=frozenset(project.settings.model_endpoints),
            whole_process=True,
            to_the_end="task_id" in order,
            outer=outer,
            save=save,
        )
    except (LeaseLostError, StoreError) as error:
        sys.stderr.write(f"{error.message}\n")
        return UNSTORED
    except PlayheadError as error:
        return _give_up(store, project, replay, error, save)
    return 0


def _give_up(store: Store, project: Project, replay: Replay, error: PlayheadError, save: Any) -> int:
    try:
        save(without_secrets(failed(store.replays.get(replay.id), error), project.redactor()))
    except (LeaseLostError, StoreError):
        return UNSTORED
    return 0


def main() -> int:
    adopt_orphans()
    order = json.loads(sys.stdin.buffer.read())
    limit_memory(order.get("limits", {}).get("memory"))
    code = run(order)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)  # a thread that never ends must not hold a replay up that is settled


if __name__ == "__main__":
    sys.exit(main())
