"""Takes a fresh process into its level, then becomes the program: ``ORDER PROGRAM ARGUMENT...``.

Standard library only and light, since it stands before every program that `isolation.launch` starts.
"""

import json
import os
import signal
import sys
from typing import NoReturn

from playhead.engine.isolation_inside import first_of
from playhead.engine.isolation_kernel import unshare_network

REFUSED = 126  # what shells say of a program that they found and cannot start
NOT_FOUND = 127


def main() -> None:
    order = json.loads(sys.argv[1])
    program, arguments = sys.argv[2], sys.argv[3:]
    reached, reasons = first_of(order["levels"], order["allow"], order["tunnel"])
    if order["required"] and (reached is None or reached.open):
        _die(REFUSED, f"the egress guard could not be put up: {reached.open if reached else '; '.join(reasons)}")
    _report(order["report"], [reached, reasons])
    added = {} if reached is None else reached.environment
    environment = dict(os.environ, **added)
    for name in order["unset"]:  # the interpreter's own doing
        environment.pop(name, None)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(program, [order["name"], *arguments], environment)
    except OSError as error:
        _die(NOT_FOUND, f"{program}: {error.strerror}")


def _report(writer: int, what: object) -> None:
    os.write(writer, json.dumps(what).encode())
    os.close(writer)


def probe(output: int = 1) -> None:
    """Tries a namespace in this process; writes why it cannot be had, or nothing."""
    try:
        unshare_network()
    except OSError as error:
        os.write(output, str(error.args[1] if len(error.args) > 1 else error).encode())


def _die(code: int, text: str) -> NoReturn:
    os.write(2, f"playhead: {text}\n".encode("utf-8", "replace"))
    os._exit(code)
