"""Time, ids and entropy: the only module that reads them."""

import os
import time
from typing import Protocol


class Clock(Protocol):
    """Time, as an argument. `now` is nanoseconds since the Unix epoch, UTC; `tick` is monotonic nanoseconds."""

    def now(self) -> int: ...

    def tick(self) -> int: ...


class IdSource(Protocol):
    """Makes ids: UUIDv7 as lower-case text, ordered by the time they were made."""

    def __call__(self) -> str: ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns()

    def tick(self) -> int:
        return time.perf_counter_ns()


def uuid7(now_ns: int, entropy: bytes) -> str:
    """A UUIDv7 (RFC 9562, 5.7) from a time and 10 bytes of entropy; the sub-millisecond part fills ``rand_a``."""
    ms, rest = divmod(now_ns, 1_000_000)
    value = (ms & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | ((rest << 12) // 1_000_000) << 64
    value |= 0b10 << 62 | int.from_bytes(entropy[:8], "big") & 0x3FFFFFFFFFFFFFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class SystemIds:
    """Ids from the system's clock and entropy; entropy is drawn in blocks, which keeps an id under a microsecond."""

    def __init__(self) -> None:
        self._block: list[bytes] = []

    def __call__(self) -> str:
        try:
            entropy = self._block.pop()  # atomic, so threads never share a piece
        except IndexError:
            drawn = os.urandom(8 * 128)
            self._block = [drawn[i : i + 8] for i in range(8, len(drawn), 8)]
            entropy = drawn[:8]
        return uuid7(time.time_ns(), entropy)

    def after_fork(self) -> None:
        """Forget drawn entropy, so that a forked child does not repeat its parent's ids."""
        self._block = []


SYSTEM_CLOCK = SystemClock()
SYSTEM_IDS = SystemIds()
os.register_at_fork(after_in_child=SYSTEM_IDS.after_fork)
