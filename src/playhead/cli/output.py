"""What a command gives back, and how it is shown: as text on a terminal, as JSON to a program.

Recorded text is hostile: in text form, control characters and characters that reorder a line are made visible, and
nothing is read as markup.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO, TypeAlias

from playhead.core.visible import one_line, plain
from playhead.errors import PlayheadError

Mode: TypeAlias = Literal["text", "json", "jsonl"]
MODES: tuple[Mode, ...] = ("text", "json", "jsonl")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values under ``columns`` (keys of the rows), shown in that order."""

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    empty: str = "nothing found"


@dataclass(frozen=True, slots=True)
class Fields:
    """Names and values of one thing; a value of None is left out."""

    pairs: Sequence[tuple[str, Any]]


Block: TypeAlias = str | Table | Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command found. ``data`` is its JSON form, ``text`` its blocks; ``items`` marks ``data`` as a list of
    items, which is one line each under jsonl; ``raw`` replaces both by text that is already in its final form."""

    data: Any = None
    text: Sequence[Block] = ()
    items: bool = False
    next_cursor: str | None = None
    raw: Iterable[str] | None = None
    exit_code: int = 0


def shortened(value: object, width: int) -> str:
    """One line of at most ``width`` characters, the end marked where it is cut."""
    text = one_line(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def emit(result: Result, mode: Mode, stream: TextIO) -> None:
    """Print a result."""
    if result.raw is not None:
        for chunk in result.raw:
            stream.write(chunk)
    elif mode == "text":
        for index, block in enumerate(result.text):
            _print_block(block, stream, first=index == 0)
        if result.next_cursor:
            stream.write(f"\nmore: --cursor {result.next_cursor}\n")
    elif mode == "jsonl" and result.items:
        for item in result.data:
            stream.write(f"{to_json(item)}\n")
    elif result.items:
        stream.write(f"{to_json({'items': list(result.data), 'next_cursor': result.next_cursor})}\n")
    else:
        stream.write(f"{to_json(result.data)}\n")


def to_json(value: Any) -> str:
    """One line of JSON. What a store holds is nested 200 levels at most, so nothing is too deep here."""
    return json.dumps(value, ensure_ascii=False, default=str, separators=(", ", ": "))


def emit_error(error: PlayheadError, mode: Mode, stream: TextIO) -> None:
    """Print an error: one object with code, message, hint and details, or two lines of text."""
    if mode == "text":
        stream.write(f"error: {plain(error.message)}\n")
        if error.hint:
            stream.write(f"hint: {plain(error.hint)}\n")
        return
    body = {"code": error.code, "message": error.message, "hint": error.hint, "details": error.details}
    stream.write(f"{to_json({'error': body})}\n")


def emit_note(text: str, mode: Mode, stream: TextIO) -> None:
    """Print progress or a warning beside the result."""
    stream.write(f"{plain(text)}\n" if mode == "text" else f"{to_json({'note': text})}\n")
    stream.flush()


def _print_block(block: Block, stream: TextIO, *, first: bool) -> None:
    if isinstance(block, str):
        stream.write(f"{plain(block)}\n")
        return
    if not first:
        stream.write("\n")
    if isinstance(block, Fields):
        _print_fields(block, stream)
    elif block.rows:
        _print_table(block, stream)
    else:
        stream.write(f"{block.empty}\n")


def _print_fields(block: Fields, stream: TextIO) -> None:
    shown = [(name, value) for name, value in block.pairs if value is not None]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        first, *rest = plain(value).split("\n")
        stream.write(f"{name:<{width}}  {first}\n")
        for line in rest:
            stream.write(f"{'':<{width}}  {line}\n")


def _print_table(block: Table, stream: TextIO) -> None:
    from rich.console import Console  # loaded only where a table is drawn
    from rich.table import Table as Drawn
    from rich.text import Text

    class Raising(Console):
        def on_broken_pipe(self) -> None:  # its own would end the command with exit code 1, which is an answer here
            raise BrokenPipeError

    console = Raising(file=stream, width=None if stream.isatty() else 10_000, soft_wrap=False, highlight=False)
    drawn = Drawn(box=None, pad_edge=False, header_style="bold")
    for column in block.columns:
        drawn.add_column(Text(column.replace("_", " ")), overflow="fold", no_wrap=column in {"id", "status"})
    for row in block.rows:
        drawn.add_row(*(Text("" if row.get(name) is None else one_line(row[name])) for name in block.columns))
    console.print(drawn)


def prepare_streams() -> None:
    """Make both streams able to print any text, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
