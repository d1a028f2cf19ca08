"""Tools called in a process of their own, whatever they do to it: the caller lives, and says what happened."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from playhead.core.fuzz.direct import class_of
from playhead.engine.fuzz.direct import DirectTools, UnknownToolError
from playhead.engine.process_tree import MARK
from playhead.errors import EntryPointError

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def tools() -> Iterator[DirectTools]:
    with DirectTools("toolbox.py:tools", seconds=60, folder=FOLDER) as made:
        yield made


@pytest.mark.parametrize(
    ("tool", "kind", "found", "part"),
    [
        ("fine", "value", "ok", "{'n': 7}"),
        ("later", "value", "ok", "7"),
        ("picky", "raised", "rejected", "n must be 1, got 7"),
        ("own", "raised", "rejected", "RefusedByToolError: no 7"),
        ("says_error", "error", "rejected", "no 7"),
        ("surprised", "raised", "crashed", "KeyError: 7"),
        ("exits", "ended", "crashed", "exit code 3"),
        ("segfaults", "ended", "crashed", "SIGSEGV"),
        ("recurses", "raised", "crashed", "RecursionError"),
        ("hungry", "raised", "crashed", "MemoryError"),
        ("leaves", "raised", "crashed", "SystemExit"),
        ("prints", "value", "ok", "7"),
        ("daemon", "value", "ok", "7"),
        ("scribbles", "ended", "crashed", "wrote where results go"),
        ("kills", "ended", "crashed", "ended by it"),
    ],
)
def test_what_a_tool_does_to_its_process_is_told(tools: DirectTools, tool: str, kind: str, found: str, part: str):
    told = tools.call(tool, {"n": 7})
    assert (told.kind, class_of(told, "semantic")) == (kind, found)
    assert part in told.said


def test_processes_without_end_are_ended(tools: DirectTools):
    told = tools.call("forks", {"n": 7})
    assert class_of(told, "semantic") == "crashed"
    assert "processes" in told.text
    assert tools.call("later", {"n": 1}).text == "1"  # not the answer of the call before
    assert tools.call("fine", {"n": 1}).kind == "value"


def test_every_call_starts_from_the_same_state(tools: DirectTools):
    assert [tools.call("remembers", {"n": n}).text for n in range(3)] == ["1", "1", "1"]


def test_a_call_without_end_is_killed_from_outside_and_nothing_is_left():
    before = marked()
    with DirectTools("toolbox.py:tools", seconds=0.5, folder=FOLDER) as tools:
        assert tools.call("hangs", {"n": 7}).kind == "hung"
        tools.seconds = 60
        assert tools.call("daemon", {"n": 7}).kind == "value"
    assert marked() == before


def marked() -> set[int]:
    """The processes of direct calls of this process, wherever they stand now."""
    found: set[int] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK, "").startswith(f"fuzz-{os.getpid()}-"):
                found.add(process.pid)
    return found


def test_arguments_that_the_function_cannot_take_are_rejected(tools: DirectTools):
    for arguments in ({}, {"n": 1, "more": 2}, {"no name": 1}):
        told = tools.call("fine", arguments)
        assert (told.binding, class_of(told, "schema"), class_of(told, "semantic")) == (True, "rejected", "rejected")
    assert class_of(tools.call("fine", {"n": "many"}), "schema") == "silently_accepted"
    assert tools.call("fine", {"n": "x" * 3_000_000}).kind == "value"


def test_tools_and_factories_that_are_not_there_are_named(tools: DirectTools):
    with pytest.raises(UnknownToolError):
        tools.call("nothing", {})
    assert "careless" in tools.names()
    for entry_point, part in (("toolbox.py:nothing", "nothing"), ("no_such_module:tools", "no_such_module")):
        with DirectTools(entry_point, folder=FOLDER) as other, pytest.raises(EntryPointError, match=part):
            other.names()
