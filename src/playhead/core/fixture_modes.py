"""The five modes of fixtures, and what each lets run."""

from typing import Literal

from playhead.errors import UsageError

Mode = Literal["live", "record", "replay", "auto", "check"]
MODES: tuple[Mode, ...] = ("live", "record", "replay", "auto", "check")
EFFECTS = ("read", "write", "destructive")
_ALLOWED = {"record": "write", "auto": "read", "check": "read"}


def parse_mode(text: str, source: str = "mode") -> Mode | None:
    """A mode from text: trimmed, in any case; None for an empty one.

    Raises:
        UsageError: it is none of the five.
    """
    found = text.strip().lower()
    if not found:
        return None
    if found not in MODES:
        raise UsageError(f"{source} is {text!r}", hint=f"the modes are {', '.join(MODES)}")
    return found


def is_ci(value: str | None) -> bool:
    """Whether the variable ``CI`` says that nobody watches this run."""
    return (value or "").strip().lower() in ("1", "true", "yes")


def may_run(mode: Mode, effect: str, allowed: str | None) -> bool:
    """Whether a mode runs a call of this effect for real; ``allowed`` is what the user raised it to."""
    if mode == "live":
        return True
    return mode in _ALLOWED and EFFECTS.index(effect) <= EFFECTS.index(allowed or _ALLOWED[mode])


def most_effect(mode: Mode, allowed: str | None) -> str:
    """The effects up to which a mode runs calls for real, as words."""
    most = EFFECTS.index(allowed or _ALLOWED.get(mode, EFFECTS[-1]))
    return " or ".join(EFFECTS[: most + 1])


def parse_effects(text: str | None) -> str | None:
    """Raises `UsageError` for a word that is no effect."""
    if text is not None and text not in EFFECTS:
        raise UsageError(f"effects is {text!r}", hint=f"the effects are {', '.join(EFFECTS)}")
    return text
