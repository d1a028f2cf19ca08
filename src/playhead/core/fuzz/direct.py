"""What a tool did when it was called itself, and what of that is a finding."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from playhead.core.fuzz.cases import Expectation
from playhead.core.lint.errors import Failure, template
from playhead.core.values import JSON

DirectClass: TypeAlias = Literal["ok", "rejected", "crashed", "hung", "silently_accepted"]
DIRECT_CLASSES: Final[tuple[DirectClass, ...]] = ("ok", "rejected", "crashed", "hung", "silently_accepted")
FOUND: Final = frozenset({"crashed", "hung", "silently_accepted"})
"""The classes that are findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of one call.

    Attributes:
        kind: ``value``: it gave a result. ``error``: it gave a result that says it failed. ``raised``: an exception.
            ``ended``: its process ended before it gave anything. ``hung``: it was killed at the time limit.
        text: the result or error, cut.
        classes: names of the exception's class and its bases.
        own: whether the exception is of a class that is not Python's own: the tool refuses in its own words.
        binding: whether the arguments did not fit the function's signature.
    """

    kind: Literal["value", "error", "raised", "ended", "hung"]
    text: str = ""
    classes: tuple[str, ...] = ()
    own: bool = False
    binding: bool = False

    @property
    def said(self) -> str:
        """The text that whoever called the tool would see."""
        return f"{self.classes[0]}: {self.text}" if self.classes else self.text


_REFUSING: Final = frozenset({"ValueError", "PermissionError", "FileNotFoundError", "NotImplementedError"})
"""Python's own exceptions by which code refuses what it is given; others are accidents."""


def class_of(told: Told, expectation: Expectation) -> DirectClass:
    """The class of a call whose arguments fail validation (``schema``), or are valid (``semantic``)."""
    if told.kind == "hung":
        return "hung"
    if told.kind == "ended":
        return "crashed"
    if told.kind == "error":
        return "rejected"
    if told.kind == "value":
        return "silently_accepted" if expectation == "schema" else "ok"
    refuses = told.own or bool(_REFUSING & set(told.classes)) or told.binding
    if expectation == "schema":
        refuses = refuses or "TypeError" in told.classes[:1]
    return "rejected" if refuses else "crashed"


def template_of(tool: str, arguments: JSON, told: Told, found: DirectClass) -> str:
    """The error with what is particular to the call taken out; empty for a result, whatever it was."""
    if found in ("ok", "silently_accepted", "hung"):
        return ""
    first_line = told.text.strip().split("\n", 1)[0][:300]
    return template(Failure(tool, arguments, ": ".join([*told.classes[:1], first_line])))
