"""Writes docs/cli.md from the commands themselves: ``python tests/docs/cli_page.py``."""

import importlib
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

HEAD = """\
# Command line

Made from the commands themselves by `python tests/docs/cli_page.py`; `playhead COMMAND --help` shows the same.

Results go to stdout, progress and errors to stderr. On a terminal a result is text; in a pipe it is one JSON value, or
one line per item with `--output jsonl`. In both JSON forms an error is one object on stderr,
`{"error": {"code", "message", "hint", "details"}}`, and a remark is `{"note": "..."}`; [errors](errors.md) explains
every code. Members of JSON results are the ones of the stored value, times in nanoseconds since 1970.

Wherever a session is named, an id, a unique beginning or end of one (four characters or more), `last` (the newest
session that is not a replay or probe) or `last~1` (the one before) will do. The same holds for replays.

## Exit codes

| code | meaning |
|---|---|
| 0 | ok |
| 1 | the answer is no: diverged, missed, a verdict failed, two sessions differ |
| 2 | usage, configuration, or refused before anything ran |
| 3 | infrastructure: the store, the model, a crash |
| 4 | inconclusive: an unchanged replay that is unproven |
| 130 | interrupted |

## Options of every command

| option | meaning |
|---|---|
| `--output text\\|json\\|jsonl` | form of the result: text on a terminal, else json |
| `--url URL` | the store to use, in place of the project's own |
| `--debug` | show the traceback of an unexpected error |
| `--help`, `-h` | show what a command takes |
"""


def text() -> str:
    """What the page must hold."""
    from playhead.cli.commands import COMMANDS, GLOBAL_OPTIONS
    from playhead.cli.help_text import command_help
    from playhead.cli.run import parser

    parts = [HEAD]
    for name, target, _ in COMMANDS:
        module, _, attribute = target.partition(":")
        function = getattr(importlib.import_module(f"playhead.cli.{module}"), attribute)
        shown = command_help(parser(name, function), name, function).removesuffix(GLOBAL_OPTIONS).strip()
        parts.append(f"## playhead {name}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
