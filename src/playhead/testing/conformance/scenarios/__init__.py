"""The scenarios, in order."""

from playhead.testing.conformance.scenarios import (
    attempts,
    basics,
    cases,
    crossing,
    forks,
    handing,
    misses,
    nested,
    outcomes,
    policies,
    sessions,
    streams,
)
from playhead.testing.conformance.scenarios.registry import ALL

__all__ = [
    "ALL", "attempts", "basics", "cases", "crossing", "forks", "handing", "misses", "nested", "outcomes", "policies",
    "sessions", "streams",
]  # fmt: skip
