"""Mistakes of ours: counted outside a replay, a stop inside one."""

import logging

from playhead.engine import seam
from playhead.errors import PlayheadError, RecordingError

log = logging.getLogger("playhead")


def trouble(error: Exception, doing: str) -> None:
    """Called with what went wrong inside an adapter hook.

    Raises:
        ReplayStop: in a replay.
    """
    state = seam.replay_here()
    active = seam.current() if state is None else None
    state = state or (active.replay if active is not None else None)
    if state is not None:
        wrapped = error if isinstance(error, PlayheadError) else RecordingError(
            f"playhead failed while {doing}: {type(error).__name__}: {error}"
        )  # fmt: skip
        raise state.stop(wrapped) from error
    if active is not None:
        active.recorder.count("errors", error)
    else:
        log.warning("playhead failed while %s", doing, exc_info=error)
