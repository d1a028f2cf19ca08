"""Who read what is held back: a log in which each line holds the digest of the one before, so none can be taken out."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from playhead.core.canonical import canonical_stored
from playhead.core.values import JSON


def line_digest(line: JSON) -> str:
    return sha256(canonical_stored(line)).hexdigest()


def chained(lines: Sequence[JSON], entry: Mapping[str, JSON]) -> dict[str, JSON]:
    """The line for an access: who, when, command, reason, run, digest of the suite, and the line before."""
    return {**entry, "previous": line_digest(lines[-1]) if lines else None}


def broken(lines: Sequence[JSON]) -> int | None:
    """The number (from 1) of the first line that does not follow from the one before; None when the log is whole."""
    for place, line in enumerate(lines):
        if line.get("previous") != (line_digest(lines[place - 1]) if place else None):
            return place + 1
    return None


def since_refresh(lines: Sequence[JSON]) -> int:
    """Accesses since the suite was last refreshed."""
    count = 0
    for line in lines:
        count = 0 if line.get("command") == "suite refresh" else count + 1
    return count
