"""Marks that tests of users carry."""

from collections.abc import Callable
from typing import Any

from playhead.errors import UsageError


def case(*ids: str, runs: int | None = None) -> Callable[[Any], Any]:
    """Marks a test that answers cases of the suite of ``--playhead-suite``: one test for each case.

    The test takes the fixture ``playhead_case`` and returns what the model or agent said; that is scored.

    Args:
        ids: the cases; none for all that the suite would try.
        runs: trials of each case, or the suite's own number.
    """
    import pytest

    if any(callable(each) for each in ids):  # @playhead.case without parentheses
        raise UsageError("playhead.case takes the ids of cases", hint='@playhead.case("refund-4821", runs=3)')
    return pytest.mark.playhead_case(*ids, runs=runs)
