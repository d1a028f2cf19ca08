"""Finds the command, has its arguments parsed, and turns what comes of it into output and an exit code."""

import importlib
import sys
import traceback
from collections.abc import Callable

import cyclopts

from playhead.cli.commands import COMMANDS, noun_help, top_help
from playhead.cli.context import Context, Options, split_options
from playhead.cli.help_text import command_help
from playhead.cli.output import Mode, Result, emit, emit_error, prepare_streams
from playhead.cli.stdout import written
from playhead.errors import PlayheadError, ReplayStop, UsageError

INTERRUPTED = 130


class _InternalError(PlayheadError):
    code = "internal"


def run(argv: list[str]) -> int:
    """Run one command line; errors end here and nowhere else."""
    prepare_streams()
    mode: Mode = "text" if sys.stdout.isatty() else "json"
    debug = "--debug" in argv
    try:
        options, words = split_options(argv)
        mode = options.mode or mode
        return _run(options, words, mode)
    except PlayheadError as error:
        return _failed(error, mode, debug=debug)
    except ReplayStop as stop:
        return _failed(stop.error, mode, debug=debug)
    except KeyboardInterrupt:
        emit_error(_InternalError("interrupted"), mode, sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # stderr is gone as well
        return PlayheadError.exit_code
    except Exception as error:  # noqa: BLE001 - the last boundary: everything becomes a message and an exit code
        hint = "this is a bug in playhead" if debug else "run the command again with --debug to see where"
        return _failed(_InternalError(f"{type(error).__name__}: {error}", hint=hint), mode, debug=debug)


def _failed(error: PlayheadError, mode: Mode, *, debug: bool) -> int:
    if debug:
        traceback.print_exc(file=sys.stderr)
    emit_error(error, mode, sys.stderr)
    return error.exit_code


def _run(options: Options, words: list[str], mode: Mode) -> int:
    found = find_command(words)
    if isinstance(found, str):
        with written():
            sys.stdout.write(found)
        return 0
    name, function, rest = found
    context = Context(mode=mode, url=options.url)
    try:
        result = call(name, function, rest, context)
        if isinstance(result, Result):
            with written():
                emit(result, mode, sys.stdout)
            return result.exit_code
        return 0
    finally:
        context.close()


def find_command(words: list[str]) -> tuple[str, Callable[..., object], list[str]] | str:
    """The command that a line begins with, its function and the words left; or a help text that was asked for.

    Raises:
        UsageError: no such command.
    """
    asked = words[1:] if words[:1] == ["help"] else words
    if words[:1] == ["--version"]:
        words = asked = ["version", *words[1:]]
    for name, target, _ in COMMANDS:
        parts = name.split()
        if asked[: len(parts)] == parts:
            module, _, attribute = target.partition(":")
            function = getattr(importlib.import_module(f"playhead.cli.{module}"), attribute)
            return name, function, ["--help"] if asked is not words else _spelled_out(words[len(parts) :])
    if not asked or asked[0] in {"--help", "-h"}:
        return top_help()
    return _noun_or_refusal(asked)


_ALONE = {"--evaluate-baselines": (("none", "if_missing", "force"), "if_missing")}
"""Options that may stand without a value: the values they take, and the one that they mean alone."""


def _spelled_out(words: list[str]) -> list[str]:
    """The words, with the value that an option means where it stands alone."""
    spelled: list[str] = []
    for place, word in enumerate(words):
        spelled.append(word)
        values, alone = _ALONE.get(word, ((), ""))
        if values and (place + 1 == len(words) or words[place + 1] not in values):
            spelled.append(alone)
    return spelled


def _noun_or_refusal(words: list[str]) -> str:
    import difflib  # for the misspelt only

    noun = noun_help(words[0])
    if noun and (len(words) == 1 or words[1] in {"--help", "-h"}):
        return noun
    wanted = " ".join(words[:2]) if noun else words[0]
    known = [name for name, _, _ in COMMANDS] + [name.split()[0] for name, _, _ in COMMANDS]
    near = difflib.get_close_matches(wanted, dict.fromkeys(known), n=2)
    hint = f"did you mean {' or '.join(f'`playhead {name}`' for name in near)}?" if near else "see playhead --help"
    raise UsageError(f"there is no command {wanted!r}", hint=hint)


def parser(name: str, function: Callable[..., object]) -> cyclopts.App:
    """The parser of one command, made from its signature."""
    app = cyclopts.App(
        name=f"playhead {name}",
        help_flags=[],
        version_flags=[],
        default_parameter=cyclopts.Parameter(negative=()),
        result_action="return_value",
    )
    app.default(function)
    return app


def call(name: str, function: Callable[..., object], words: list[str], context: Context) -> object:
    """Parse ``words`` and call the command with them.

    Raises:
        UsageError: the words do not fit the command.
    """
    app = parser(name, function)
    before_dashes = words[: words.index("--")] if "--" in words else words
    if "--help" in before_dashes or "-h" in before_dashes:
        return Result(raw=[command_help(app, name, function)])
    try:
        command, bound, ignored = app.parse_args(words, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        raise UsageError(str(error), hint=f"see playhead {name} --help") from error
    if "context" in ignored:
        bound.arguments["context"] = context
    return command(*bound.args, **bound.kwargs)
