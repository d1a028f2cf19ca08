"""What every command has: the options before and after it, the store, and a way to report progress."""

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from playhead.cli.output import MODES, Mode, emit_note
from playhead.errors import StoreBusyError, StoreReadOnlyError, UsageError

if TYPE_CHECKING:
    from playhead.engine.project import Project
    from playhead.store.ports import Store


@dataclass(slots=True)
class Options:
    """The options of every command. ``mode`` None: decided by what stdout is."""

    mode: Mode | None = None
    url: str | None = None
    debug: bool = False


@dataclass(slots=True)
class Context:
    """Given to a command as its keyword ``context``; never read from the command line.

    Project and store load at first use: they take longer than a mistyped option may.
    """

    mode: Mode = "json"
    url: str | None = None
    opened: "Store | None" = field(default=None, repr=False)
    found: "Project | None" = field(default=None, repr=False)

    @property
    def project(self) -> "Project":
        """The project of the working directory, with its settings."""
        if self.found is None:
            from playhead.engine.project import find_project

            self.found = find_project(url=self.url)
        return self.found

    @property
    def store(self) -> "Store":
        """The store that ``--url``, the environment or the project names; one that is not there is not made.

        Raises:
            NotFoundError: there is none yet.
        """
        if self.opened is None:
            self.opened = self.project.open_store(create=False)
            _settle_dead(self.opened)
        return self.opened

    def make_store(self) -> "Store":
        """As `store`, and made when it is not there."""
        if self.opened is None:
            self.opened = self.project.open_store()
        return self.opened

    def note(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        emit_note(text, self.mode, sys.stderr)

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()
            self.opened = None


def _settle_dead(store: "Store") -> None:
    """Marks sessions whose process died, so that every command shows them as they are."""
    from playhead.engine.owner import mark_abandoned

    with suppress(StoreReadOnlyError, StoreBusyError):
        mark_abandoned(store)


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
