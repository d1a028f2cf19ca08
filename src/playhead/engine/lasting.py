"""Patience with a store that somebody else holds locked: what a worker has to say is not lost for that."""

import time
from collections.abc import Callable
from typing import TypeVar

from playhead.errors import StoreBusyError

T = TypeVar("T")

LONGEST_WAIT = 150.0


def patiently(say: Callable[[], T], seconds: float = LONGEST_WAIT) -> T:
    """What ``say`` gives, tried again while the store is locked.

    Raises:
        StoreBusyError: it was locked all the time.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return say()
        except StoreBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
