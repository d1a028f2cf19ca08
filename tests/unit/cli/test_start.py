"""The entry point: what it answers by itself, and that it loads nothing to do so."""

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.cli.commands import COMMANDS, noun_help, top_help
from playhead.cli.run import parser
from playhead.cli.start import main


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown and summary in shown for name, _, summary in COMMANDS)


@pytest.mark.parametrize("words", [["session"], ["session", "--help"], ["help", "session"]])
def test_a_noun_alone_lists_its_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "session export" in shown
    assert "replay create" not in shown


def test_help_lines_fit_a_terminal() -> None:
    assert max(len(line) for line in top_help().splitlines()) <= 120


@pytest.mark.parametrize(("name", "target", "summary"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_the_help_text_says_what_the_command_itself_says(name: str, target: str, summary: str) -> None:
    module, _, attribute = target.partition(":")
    function = getattr(importlib.import_module(f"playhead.cli.{module}"), attribute)
    assert inspect.getdoc(function) is not None
    assert (inspect.getdoc(function) or "").splitlines()[0] == summary


@pytest.mark.parametrize(("name", "target"), [row[:2] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_every_option_is_explained(name: str, target: str) -> None:
    module, _, attribute = target.partition(":")
    function = getattr(importlib.import_module(f"playhead.cli.{module}"), attribute)
    arguments = parser(name, function).assemble_argument_collection(parse_docstring=True)
    silent = [
        argument.name
        for argument in arguments
        if argument.parse and argument.name != "*" and not argument.parameter.help
    ]
    assert not silent


def test_unknown_noun_has_no_help() -> None:
    assert noun_help("sessions") is None


def test_help_loads_neither_parser_nor_store() -> None:
    script = (
        "import sys; from playhead.cli.start import main; main(['--help']); main(['replay', '-h']); "
        "heavy = {'cyclopts', 'rich', 'pydantic', 'sqlalchemy', 'orjson', 'json'} & set(sys.modules); "
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", ["--help", "session list --help", "doctor --capabilities --output text"])
def test_a_reader_that_has_seen_enough_is_no_failure(words: str, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    (tmp_path / ".playhead").mkdir()
    script = "import sys; from playhead.cli.start import main; sys.exit(main())"
    command = [sys.executable, "-c", script, *words.split()]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
