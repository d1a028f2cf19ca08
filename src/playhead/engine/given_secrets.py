"""Secrets that a program tells of, beside those that the settings name."""

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
