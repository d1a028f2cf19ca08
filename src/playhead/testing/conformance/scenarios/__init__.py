"""The scenarios, in order."""

from playhead.testing.conformance.scenarios import basics, forks, misses, nested, outcomes, sessions, streams
from playhead.testing.conformance.scenarios.registry import ALL

__all__ = ["ALL", "basics", "forks", "misses", "nested", "outcomes", "sessions", "streams"]
