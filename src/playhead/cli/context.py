"""What every command has: the options before and after it, the store, and a way to report progress."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from playhead.cli.output import MODES, Mode, emit_note
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.store.ports import Store


@dataclass(slots=True)
class Options:
    """The options of every command. ``mode`` None: decided by what stdout is."""

    mode: Mode | None = None
    url: str | None = None
    debug: bool = False


@dataclass(slots=True)
class Context:
    """Given to a command as its keyword ``context``; never read from the command line."""

    mode: Mode = "json"
    url: str | None = None
    opened: "Store | None" = field(default=None, repr=False)

    @property
    def store(self) -> "Store":
        """The store that ``--url``, the environment or the project names, opened at first use."""
        if self.opened is None:
            from playhead.store.open import open_store  # takes longer than a parser error may

            self.opened = open_store(self.url)
        return self.opened

    def note(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        emit_note(text, self.mode, sys.stderr)

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()
            self.opened = None


Ctx: TypeAlias = Annotated[Context, Parameter(parse=False)]
"""Annotation of the ``context`` parameter of a command."""


def split_options(argv: list[str]) -> tuple[Options, list[str]]:
    """Take the options of every command out of a command line, wherever they stand before a ``--``.

    Raises:
        UsageError: an option without its value, or with one that is not known.
    """
    options = Options()
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            rest += ["--", *words]
        elif word == "--debug":
            options.debug = True
        elif name in {"--output", "--url"}:
            given = value if equals else next(words, None)
            if given is None:
                raise UsageError(f"{name} needs a value", hint=f"for example: {name} {_EXAMPLES[name]}")
            _set(options, name, given)
        else:
            rest.append(word)
    return options, rest


_EXAMPLES = {"--output": "json", "--url": "sqlite:///recordings/store.db"}


def _set(options: Options, name: str, value: str) -> None:
    if name == "--url":
        options.url = value
        return
    for mode in MODES:
        if value == mode:
            options.mode = mode
            return
    raise UsageError(f"--output {value!r} is not known", hint=f"one of: {', '.join(MODES)}")
