"""Static cases: which one fits a call."""

from collections.abc import Mapping

from playhead.core.keys import strip
from playhead.core.match import matches
from playhead.core.policy import StaticCase, StaticConfig
from playhead.core.values import JSON


def fits(config: StaticConfig, case: StaticCase, arguments: JSON) -> bool:
    """Whether the arguments fit the case's pattern, whatever its ``occurrence`` says."""
    if case.match is None:
        return True
    if not config.ignore:
        return matches(case.match, arguments, case.match_mode)
    return matches(strip(case.match, config.ignore), strip(arguments, config.ignore), case.match_mode)


def first_case(config: StaticConfig, arguments: JSON, counted: Mapping[int, int]) -> int | None:
    """The index of the first case that answers, None when none does. ``counted``: see `Claim.cases`."""
    for index, case in enumerate(config.cases):
        if case.occurrence is not None and counted.get(index) != case.occurrence:
            continue
        if fits(config, case, arguments):
            return index
    return None


def is_loose(config: StaticConfig, case: StaticCase, arguments: JSON) -> bool:
    """Whether the case fits only because of what the config ignores."""
    return bool(config.ignore) and case.match is not None and not matches(case.match, arguments, case.match_mode)
