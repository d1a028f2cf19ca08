"""A secret by its name, which a replay does without."""

import os

from playhead.engine.context import current
from playhead.engine.fixtures.scope import current_run
from playhead.engine.given_secrets import secrets
from playhead.errors import ConfigError


def secret(name: str) -> str:
    """The variable ``name``, or what `playhead.secrets` was told of it; in a replay that has neither, the tag that
    recordings have in its place.

    Raises:
        ConfigError: it is not set, and this is no replay.
    """
    value = os.environ.get(name) or secrets.values().get(name)
    run = current_run()
    if run is not None:
        run.named(name, value or None)
    if value:
        return value
    if _in_replay():
        return f"[REDACTED:{name}]"
    raise ConfigError(f"{name} is not set", hint="set it; only a replay goes without")


def _in_replay() -> bool:
    run = current_run()
    if run is not None:
        return run.mode == "replay"
    active = current()
    return active is not None and active.replay is not None
