"""The child process of a replay: ``python -m playhead.cli.child``, with its order as JSON on standard input.

Opens the store, imports the agent, runs the whole replay and saves it. Exit code 0 means that the replay is settled in
the store, whatever its result; anything else that it is not.
"""

import json
import sys
from pathlib import Path
from typing import Any

from playhead.adapters.installation import install
from playhead.core.policy_json import parse_model_policy, parse_override, parse_policy
from playhead.core.requests import ReplayCreateRequest
from playhead.core.values import Replay
from playhead.engine.client import Client
from playhead.engine.entry import load
from playhead.engine.isolation import Isolation, enter
from playhead.engine.project import find_project, use_recorder
from playhead.engine.replay import execute, failed, without_secrets
from playhead.errors import PlayheadError


def request_of(replay: Replay, *, force: bool) -> ReplayCreateRequest:
    """The request that a stored replay was made from."""
    return ReplayCreateRequest(
        baseline_session_id=replay.baseline_session_id,
        agent_version=replay.agent_version,
        tool_policy=parse_policy(replay.tool_policy or {}),
        model_policy=parse_model_policy(replay.model_policy or {"type": "live"}),
        override=parse_override(replay.override) if replay.override else None,
        force=force,
    )


def run(order: dict[str, Any]) -> None:
    """Runs the replay that the order names and leaves it settled in the store."""
    project = find_project(Path(order["project"]), url=order["store_url"])
    store = project.open_store(create=False)
    replay = store.replays.get(order["replay_id"])
    recorder = project.recorder(store)
    use_recorder(recorder)
    try:
        outer = enter(Isolation.from_json(order["isolation"])) if "isolation" in order else None
        install()
        client = Client(store, project)
        plan = client.replays.plan(request_of(replay, force=order["force"]), inline=True)
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
            outer=outer,
        )
    except PlayheadError as error:
        lost = failed(store.replays.get(replay.id), error)
        store.replays.save(without_secrets(lost, project.redactor()))
    finally:
        recorder.close()
        store.close()


def main() -> int:
    run(json.loads(sys.stdin.buffer.read()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
