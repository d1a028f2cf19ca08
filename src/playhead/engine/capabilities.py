"""What the conformance suite measured of the adapters that playhead brings."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Any

from playhead.core.capabilities import Findings, summary
from playhead.core.values import JSON

FILE = "capabilities.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One adapter. ``version`` is that of the framework's ``distribution`` when it was measured."""

    adapter: str
    distribution: str | None = None
    version: str | None = None
    found: Findings = field(default_factory=dict[str, tuple[str, str]])

    @property
    def installed(self) -> str | None:
        """The version of the framework that is installed here."""
        if self.distribution is None:
            return None
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None

    @property
    def framework(self) -> dict[str, JSON]:
        return {} if self.distribution is None else {"name": self.distribution, "version": self.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Everything that was measured; ``titles`` say what each scenario is about, in the order of the suite."""

    titles: Mapping[str, str]
    adapters: Mapping[str, Measured]


@functools.cache
def measured() -> Table:
    """The table that came with this release."""
    return read(resources.files("playhead.engine").joinpath(FILE).read_text("utf-8"))


def capabilities_of(adapter: str) -> dict[str, JSON]:
    """What an agent version keeps as its capabilities; nothing for an adapter that was never measured."""
    known = measured().adapters.get(adapter)
    return {} if known is None else summary(adapter, known.framework, known.found)


def read(text: str) -> Table:
    """A table from its JSON text.

    Raises:
        ValueError: it has another format.
    """
    data: dict[str, Any] = json.loads(text)
    if data.get("format") != FORMAT:
        raise ValueError(f"capabilities of format {data.get('format')!r}; this release reads {FORMAT}")
    adapters = {
        name: Measured(
            adapter=name,
            distribution=one["framework"].get("name"),
            version=one["framework"].get("version"),
            found={s: (f["verdict"], f.get("reason", "")) for s, f in one["scenarios"].items()},
        )
        for name, one in data["adapters"].items()
    }
    return Table(titles=data["scenarios"], adapters=adapters)


def write(table: Table) -> str:
    """The JSON text of a table."""
    data: dict[str, JSON] = {
        "format": FORMAT,
        "scenarios": dict(table.titles),
        "adapters": {
            name: {
                "framework": one.framework,
                "scenarios": {
                    scenario: {"verdict": verdict, **({"reason": reason} if reason else {})}
                    for scenario, (verdict, reason) in one.found.items()
                },
            }
            for name, one in sorted(table.adapters.items())
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
