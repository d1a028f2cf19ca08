"""Collects scenarios under their ids."""

from collections.abc import Callable

from playhead.testing.conformance.harness import Lab, Scenario

ALL: list[Scenario] = []


def scenario(id: str) -> Callable[[Callable[[Lab], None]], Callable[[Lab], None]]:
    """Makes a function the scenario ``id``."""

    def register(run: Callable[[Lab], None]) -> Callable[[Lab], None]:
        ALL.append(Scenario(id, run))
        return run

    return register
