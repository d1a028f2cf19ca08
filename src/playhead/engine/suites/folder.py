"""A suite as a folder fit for git: readable files, one line a case, and what is held back in a file of its own."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from playhead.core.canonical import parse_json, render
from playhead.core.codec import dump, load
from playhead.core.json_text import pointer
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import FORMAT, Case, Suite, ToolSchema, case_json, suite_json, to_json, unknown_tools
from playhead.core.values import JSON
from playhead.engine.exports import written_whole
from playhead.errors import FormatError, StoreError, UsageError

HEAD: Final = "suite.json"
CASES, TOOLS, LABELS, HELD_BACK, ACCESS = (
    "cases.jsonl", "tools.json", "labels.jsonl", "held_back.jsonl", "access.jsonl",
)  # fmt: skip

V = TypeVar("V")


def is_suite_folder(path: Path) -> bool:
    return (path / HEAD).is_file()


# --- reading --------------------------------------------------------------------------------------------------------


def read_folder(folder: Path) -> Contents:
    """The suite in a folder.

    Raises:
        UsageError: no suite is there.
        FormatError: a file is not what it should be; the message names file, line and member.
    """
    if not is_suite_folder(folder):
        raise UsageError(f"{folder} holds no {HEAD}", hint="playhead suite export writes such a folder")
    head = _json(folder / HEAD)
    said = head.get("format") if is_object(head) else None
    if said != FORMAT:
        raise FormatError(f"{HEAD}: the format is {said!r}, and this playhead reads {FORMAT!r}")
    tools = {name: _made(ToolSchema.model_validate, tool, f"{TOOLS}, {name}") for name, tool in _tools(folder)}
    cases: list[Case] = []
    labels: list[LabelEntry] = []
    for name in (CASES, HELD_BACK):
        for where, line in _lines(folder / name):
            if "case" in line and "state" in line:
                labels.append(_made(_entry, line, where))
            else:
                cases.append(_made(Case.model_validate, line, where))
    labels += [_made(_entry, line, where) for where, line in _lines(folder / LABELS)]
    contents = Contents(
        suite=_made(Suite.model_validate, head, HEAD),
        cases=tuple(cases),
        tools=tools,
        labels=tuple(labels),
        accesses=tuple(line for _, line in _lines(folder / ACCESS)),
    )
    _checked(contents)
    return contents


def _entry(line: JSON) -> LabelEntry:
    return load(LabelEntry, line)


def _tools(folder: Path) -> Iterator[tuple[str, JSON]]:
    """Tools by the name that cases use: an object, or a list whose items name themselves."""
    if not (folder / TOOLS).is_file():
        return
    held = _json(folder / TOOLS)
    if is_list(held):
        yield from ((str(tool.get("name")), tool) for tool in held if is_object(tool))
    elif is_object(held):
        yield from held.items()


def _checked(contents: Contents) -> None:
    seen: set[str] = set()
    for case in contents.cases:
        if case.id in seen:
            raise FormatError(f"two cases have the id {case.id!r}")
        seen.add(case.id)
    for name, ids in unknown_tools(contents.cases, contents.tools).items():
        raise FormatError(f"case {ids[0]!r} offers the tool {name!r}, which {TOOLS} does not have")


def _json(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FormatError(f"{path.name} is not JSON: {error}") from None


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        return
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path.name}, line {number}"
        try:
            value = parse_json(line)
        except ValueError as error:
            raise FormatError(f"{where} is not JSON: {error}") from None
        if not is_object(value):
            raise FormatError(f"{where} is no JSON object")
        yield where, value


def _made(make: Callable[[Any], V], value: Any, where: str) -> V:
    try:
        return make(value)
    except FormatError as error:
        raise FormatError(f"{where}: {error.message}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        at = pointer(first["loc"])
        raise FormatError(f"{where}: {first['msg']} at {at or 'the top'}", at=at) from error


# --- writing --------------------------------------------------------------------------------------------------------


def write_folder(contents: Contents, folder: Path, redact: Callable[[JSON], JSON]) -> None:
    """Writes a suite; every file appears whole, readable by its owner.

    Args:
        redact: takes secrets out of stored JSON; everything passes through it.

    Raises:
        StoreError: the folder cannot be written.
    """
    held = {case.id for case in contents.cases if case.slice == "held_back"}
    head = suite_json(contents.suite)
    tools = {name: to_json(tool) for name, tool in contents.tools.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / HEAD, [_pretty(redact(head))])
        _write(folder / TOOLS, [_pretty(redact(tools))])
        _write_lines(folder / CASES, (case_json(c) for c in contents.cases if c.id not in held), redact)
        _write_lines(folder / LABELS, (dump(e) for e in contents.labels if e.case not in held), redact)
        kept = [case_json(c) for c in contents.cases if c.id in held]
        _write_lines(folder / HELD_BACK, [*kept, *(dump(e) for e in contents.labels if e.case in held)], redact)
        _write_lines(folder / ACCESS, contents.accesses, redact)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}") from None


def _write_lines(path: Path, lines: Iterable[JSON], redact: Callable[[JSON], JSON]) -> None:
    _write(path, (render(redact(line)) + b"\n" for line in lines))


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with written_whole(path) as file:
        for piece in pieces:
            file.write(piece)


def _pretty(value: JSON) -> bytes:
    """JSON with a line for each member of the upper levels, so that a change of one reads as one."""
    return _indented(value, 0).encode("utf-8", "surrogatepass") + b"\n"


def _indented(value: JSON, depth: int) -> str:
    if is_object(value) and value and depth < 3:
        inner = "  " * (depth + 1)
        members = [f"{inner}{render(k).decode()}: {_indented(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(members) + "\n" + "  " * depth + "}"
    return render(value).decode()
