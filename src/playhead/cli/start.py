"""Entry point of the ``playhead`` script. Light on purpose: help costs little more than Python itself."""

import sys

from playhead.cli.commands import noun_help, top_help
from playhead.cli.stdout import written

_HELP = ("--help", "-h", "help")


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    text = _ready_answer(words)
    if text is None:
        from playhead.cli.run import run  # the parser alone takes longer than the help text may

        return run(words)
    with written():
        sys.stdout.write(text)
    return 0


def _ready_answer(words: list[str]) -> str | None:
    """The text that needs no parser: help of the whole and of a noun."""
    if not words or (len(words) == 1 and words[0] in _HELP):
        return top_help()
    asked = words[1:] if words[0] == "help" else words
    if len(asked) == 1 or (len(asked) == 2 and asked[1] in _HELP):
        return noun_help(asked[0])
    return None
