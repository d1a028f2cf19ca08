"""Secrets by name: values that a program tells of, and variables that a replay does without."""

import os

from playhead.errors import ConfigError


class Secrets:
    """Values that are kept out of everything written and out of keys, beside those that the settings name."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def add(self, name: str, value: str) -> None:
        """From now on ``value`` goes by ``[REDACTED:name]``; tell it before what should be kept from it begins."""
        if not name or not value:
            raise ConfigError("a secret has a name and a value")
        self._values[name] = value

    def remove(self, name: str) -> None:
        """Forgets a name again."""
        self._values.pop(name, None)

    def values(self) -> dict[str, str]:
        return dict(self._values)


secrets = Secrets()
"""What this process was told of."""


def secret(name: str) -> str:
    """The variable ``name``; in a replay that has none, the tag that recordings have in its place.

    Raises:
        ConfigError: it is not set, and this is no replay.
    """
    value = os.environ.get(name) or secrets.values().get(name)
    if value:
        return value
    if _in_replay():
        return f"[REDACTED:{name}]"
    raise ConfigError(f"{name} is not set", hint="set it; only a replay goes without")


def _in_replay() -> bool:
    from playhead.engine.context import current  # heavier than this module, which every project loads
    from playhead.engine.fixture_scope import current_run

    run = current_run()
    if run is not None:
        return run.mode == "replay"
    active = current()
    return active is not None and active.replay is not None
