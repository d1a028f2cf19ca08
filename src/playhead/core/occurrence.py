"""Which call is which: references of calls inside a session, and the count of equal calls.

A call's *slot* is (model call, call id), or a number for calls that no model announced. Providers and test models
reuse call ids inside a session, so an id alone names nothing. A *ref* is a slot and an attempt: framework retries and
the resumption of an interrupted call come back under the same slot.
"""

from collections.abc import Sequence
from typing import NamedTuple

_START = "start"


class Slot(NamedTuple):
    slot: str
    attempt: int


def call_ref(model_call: str, call_id: str, attempt: int = 1) -> str:
    """The ref of a call that ``model_call`` (an id without a colon) announced under ``call_id`` (see `slot_ids`)."""
    return f"{model_call}:{call_id}#{attempt}"


def start_ref(name: int | str, attempt: int = 1) -> str:
    """The ref of a call that nobody announced; ``name`` is new in the replay, in which several sessions may open."""
    return f"{_START}:{name}#{attempt}"


def slot_of(ref: str) -> Slot:
    """The slot and attempt of a ref. A text without an attempt is a first attempt."""
    slot, mark, attempt = ref.rpartition("#")
    if not mark or not attempt.isdecimal():
        return Slot(ref, 1)
    return Slot(slot, int(attempt))


def response_of(slot: str) -> str | None:
    """The model call that announced the call in ``slot``, None when nobody did."""
    asked, mark, _ = slot.partition(":")
    return asked if mark and asked != _START else None


def slot_ids(ids: Sequence[str | None]) -> tuple[str, ...]:
    """Call ids of one response, each usable as a slot: a missing or repeated one is made up from its position."""
    seen: set[str] = set()
    result: list[str] = []
    for index, given in enumerate(ids):
        own = given if given and given not in seen else f"@{index}"
        seen.add(own)
        result.append(own)
    return tuple(result)


class Occurrences:
    """Counts the calls of a session per (path of enclosing calls, key), in the order in which they are reserved.

    Reserve in the model's order when its response is announced; what nobody announced, when it starts. Calls without
    a key are counted per tool.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[tuple[str, ...], str], int] = {}
        self._slots: dict[str, int] = {}

    def reserve(self, slot: str, *, tool: str, key: str | None, path: tuple[str, ...] = ()) -> int:
        """The 1-based occurrence of the call in ``slot``; the same one each time for the same slot."""
        known = self._slots.get(slot)
        if known is not None:
            return known
        group = (path, key or "-" + tool)
        number = self._counts.get(group, 0) + 1
        self._counts[group] = self._slots[slot] = number
        return number

    def of(self, slot: str) -> int | None:
        """The occurrence reserved for ``slot``, None when there is none."""
        return self._slots.get(slot)
