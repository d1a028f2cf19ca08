"""The help of one command, from its signature and docstring.

The parser can print one itself, but only by loading a terminal renderer that takes longer than the command may take to
start; and the two would not look alike.
"""

import inspect
import textwrap
from collections.abc import Callable
from typing import get_args, get_origin

import cyclopts

from playhead.cli.commands import GLOBAL_OPTIONS

WIDTH = 100
_COLUMN = 28


def command_help(app: cyclopts.App, name: str, function: Callable[..., object]) -> str:
    """What ``playhead NAME --help`` prints."""
    given = [
        argument
        for argument in app.assemble_argument_collection(parse_docstring=True)
        if argument.parse and argument.name != "*"
    ]
    operands = [argument for argument in given if not argument.name.startswith("-")]
    options = [argument for argument in given if argument.name.startswith("-")]
    usage = " ".join(_operand(argument) for argument in operands)
    parts = [f"Usage: playhead {name}{f' {usage}' if usage else ''}{' [OPTIONS]' if options else ''}", _prose(function)]
    if operands:
        parts.append("Arguments:\n" + "\n".join(_entry(argument.name, argument) for argument in operands))
    if options:
        parts.append("Options:\n" + "\n".join(_entry(_option(argument), argument) for argument in options))
    return "\n\n".join([*parts, GLOBAL_OPTIONS])


def _prose(function: Callable[..., object]) -> str:
    """The docstring up to its list of arguments."""
    return (inspect.getdoc(function) or "").partition("\nArgs:")[0].strip()


def _operand(argument: cyclopts.Argument) -> str:
    name = f"{argument.name}..." if _several(argument) else argument.name
    return name if argument.required else f"[{name}]"


def _option(argument: cyclopts.Argument) -> str:
    kinds = {argument.hint, *get_args(argument.hint)}
    if bool in kinds:
        return argument.name
    value = "N" if int in kinds or float in kinds else "TEXT"
    choices = argument.get_choices()
    if choices:
        value = "|".join(choices)
    return f"{argument.name} {value}{' ...' if _several(argument) else ''}"


def _several(argument: cyclopts.Argument) -> bool:
    return get_origin(argument.hint) is tuple


def _entry(name: str, argument: cyclopts.Argument) -> str:
    default = argument.field_info.default
    shown = (
        f" [default: {default}]" if isinstance(default, str | int | float) and default and default is not True else ""
    )
    required = " [required]" if argument.required and name.startswith("-") else ""
    lines = textwrap.wrap(f"{argument.parameter.help or ''}{required}{shown}", WIDTH - _COLUMN) or [""]
    if len(name) > _COLUMN - 4:
        lines = ["", *lines]
    first, *rest = lines
    return "\n".join([f"  {name:<{_COLUMN - 2}}{first}".rstrip(), *(f"{'':<{_COLUMN}}{line}" for line in rest)])
