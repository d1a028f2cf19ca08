"""Standard output whose reader may have seen enough (`| head`): that is no error, and no other exit code."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def written() -> Generator[None]:
    """Around what writes to standard output."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # nothing more can be written, also not when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
