"""Takes a fresh process into its level, then becomes the program: ``ORDER PROGRAM ARGUMENT...``.

Light like `isolation_kernel`, since it stands before every program that `isolation.launch` starts.
"""

import marshal
import os
import sys

from playhead.engine.isolation.inside import first_of
from playhead.engine.isolation.kernel import unshare_network

_CANNOT_START = 126  # what shells say of a program that they found and cannot start
_PYTHON_IGNORES = (13, 25)  # SIGPIPE and SIGXFSZ, which programs expect as they are by default


def main() -> None:
    order = marshal.loads(bytes.fromhex(sys.argv[1]))
    program, arguments = sys.argv[2], sys.argv[3:]
    reached, reasons = first_of(order["levels"], order["ports"], order["tunnel"])
    if order["required"] and (reached is None or reached.open):
        _die(f"the egress guard could not be put up: {reached.open if reached else '; '.join(reasons)}")
    os.write(order["report"], marshal.dumps((reached and reached.members(), reasons)))
    os.close(order["report"])
    environment = dict(os.environ, **(reached.environment if reached else {}))
    for name in order["unset"]:  # the interpreter's own doing
        environment.pop(name, None)
    _restore_signals()
    try:
        os.execve(program, [order["name"], *arguments], environment)
    except OSError as error:
        _die(f"{program}: {error.strerror}")


def _restore_signals() -> None:
    import _signal as signals  # pyright: ignore[reportMissingImports] - `signal` itself would build enumerations

    for number in _PYTHON_IGNORES:
        signals.signal(number, signals.SIG_DFL)  # pyright: ignore[reportUnknownMemberType]


def probe(output: int = 1) -> None:
    """Tries a namespace in this process; writes why it cannot be had, or nothing."""
    try:
        unshare_network()
    except OSError as error:
        os.write(output, str(error.args[1] if len(error.args) > 1 else error).encode())


def _die(text: str) -> None:
    os.write(2, f"playhead: {text}\n".encode("utf-8", "replace"))
    os._exit(_CANNOT_START)
