"""From a command line to output and exit code."""

import json
from typing import Any

import pytest

from playhead.cli import run as running
from playhead.cli.context import Ctx, split_options
from playhead.cli.output import Result
from playhead.cli.run import call, find_command, run
from playhead.errors import MissError, PlayheadError, ReplayStop, StoreBusyError, UsageError


def pretend(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    monkeypatch.setattr(running, "find_command", lambda words: ("pretend", function, words))


def raising(error: BaseException) -> Any:
    def command(*, context: Ctx) -> Result:
        """Fail."""
        raise error

    return command


def error_of(text: str) -> dict[str, Any]:
    return json.loads(text.splitlines()[-1])["error"]


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (UsageError("bad"), "usage", 2),
        (MissError("no recording answers", tool="refund"), "miss", 1),
        (StoreBusyError("locked"), "store_busy", 3),
        (ReplayStop(MissError("stopped")), "miss", 1),
        (RuntimeError("oops"), "internal", 3),
        (KeyboardInterrupt(), "internal", 130),
    ],
)
def test_every_error_is_one_object_with_its_exit_code(
    error: BaseException, code: str, exit_code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, raising(error))
    assert run(["--output", "json"]) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert error_of(err)["code"] == code
    assert set(error_of(err)) == {"code", "message", "hint", "details"}


def test_an_error_in_text_says_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, raising(UsageError("no such thing", hint="try another")))
    assert run(["--output", "text"]) == 2
    assert capsys.readouterr().err == "error: no such thing\nhint: try another\n"


def test_an_unexpected_error_shows_its_traceback_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, raising(RuntimeError("oops")))
    run(["--output", "text"])
    assert "Traceback" not in capsys.readouterr().err
    run(["--output", "text", "--debug"])
    assert "Traceback" in capsys.readouterr().err


def test_hostile_error_text_reaches_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, raising(PlayheadError("\x1b[2Jgone\u202e", hint="\x07")))
    run(["--output", "text"])
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\\x1b[2Jgone\\u202e" in err


def test_a_result_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> Result:
        """Answer no."""
        return Result(data={"answer": "no"}, exit_code=1)

    pretend(monkeypatch, command)
    assert run([]) == 1
    assert json.loads(capsys.readouterr().out) == {"answer": "no"}


@pytest.mark.parametrize(
    ("words", "near"),
    [(["sesion"], "playhead session"), (["session", "lst"], "playhead session list"), (["x"], "--help")],
)
def test_a_misspelt_command_names_its_neighbour(words: list[str], near: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_command(words)
    assert near in str(caught.value.hint)


def test_a_misspelt_option_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(*, context: Ctx, limit: int = 5) -> None:
        """Take a limit."""

    with pytest.raises(UsageError, match="--limi"):
        call("pretend", command, ["--limi", "3"], None)  # type: ignore[arg-type]


def test_the_context_cannot_be_given_on_the_command_line() -> None:
    def command(*, context: Ctx) -> None:
        """Take nothing."""

    with pytest.raises(UsageError):
        call("pretend", command, ["--context", "x"], None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [
        ["--output", "jsonl", "--url", "sqlite:///x.db", "session", "list", "--limit", "3"],
        ["session", "--output=jsonl", "list", "--limit", "3", "--url=sqlite:///x.db"],
    ],
)
def test_options_of_every_command_stand_anywhere(words: list[str]) -> None:
    options, rest = split_options(words)
    assert (options.mode, options.url) == ("jsonl", "sqlite:///x.db")
    assert rest == ["session", "list", "--limit", "3"]


def test_what_follows_two_dashes_is_left_alone() -> None:
    options, rest = split_options(["session", "tag", "--", "--output"])
    assert options.mode is None
    assert rest == ["session", "tag", "--", "--output"]


@pytest.mark.parametrize("words", [["--output"], ["--url"], ["--output", "yaml"]])
def test_a_wrong_option_of_every_command_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", *words]) == 2
    assert error_of(capsys.readouterr().err)["code"] == "usage"


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version_prints_the_installed_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([word, "--output", "text"]) == 0
    assert capsys.readouterr().out.startswith("playhead ")


def test_the_help_of_a_command_shows_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["session", "list", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--limit" in out
    assert "--output text|json|jsonl" in out
    assert "context" not in out.lower()
