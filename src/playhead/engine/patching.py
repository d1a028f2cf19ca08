"""Wrapping methods of other people's classes, and taking it back."""

from collections.abc import Callable
from typing import Any


class Patches:
    """Wrapped methods. ``active`` is false once they are undone.

    Where somebody else wrapped on top of ours meanwhile, ours stays in the middle: wrappers ask `active`, and do
    nothing more when it is false.
    """

    def __init__(self) -> None:
        self.active = True
        self._made: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Puts ``make(original)`` in the place of a method of ``owner``."""
        original = getattr(owner, name)
        made = make(original)
        self._made.append((owner, name, original, made))
        setattr(owner, name, made)

    def undo(self) -> None:
        self.active = False
        for owner, name, original, made in reversed(self._made):
            if getattr(owner, name) is made:
                setattr(owner, name, original)
        self._made.clear()
