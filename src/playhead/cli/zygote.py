"""Makes the process that replays of one agent are forked from: adapters, the agent, a rehearsal, then the loop.

``python -m playhead.cli.zygote DESCRIPTOR ORDER``, started by a worker.
"""

import json
import os
import socket
import sys
import sysconfig
from typing import Any

from playhead.adapters.installation import install
from playhead.cli.child import run
from playhead.cli.rehearsal import rehearse
from playhead.engine.egress import EgressGuard, guarded
from playhead.engine.entry import load
from playhead.engine.zygote import Zygote, send_json, unfit


def main(descriptor: int, order: dict[str, Any]) -> int:
    """Serves until the worker at the other end of the socket is gone."""
    control = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    why = _prepare(order)
    send_json(control, {"unfit": why, "files": {} if why else own_files()})
    if why is None:
        Zygote(control, run).serve()
    return 0


def _prepare(order: dict[str, Any]) -> str | None:
    """Imports the agent; gives why nothing can be forked from here.

    Nothing may be reached meanwhile, since the guard of a replay begins later.
    """
    if not hasattr(os, "fork"):
        return "this system cannot fork"
    install()
    try:
        with guarded(EgressGuard(allow_models=False)):
            load(order["entry_point"], order["working_dir"])
            why = unfit()
            if why is not None:
                return why
            rehearse()
    except BaseException as error:  # noqa: BLE001 - a fresh process will show it whole
        return f"its import failed: {type(error).__name__}: {error}"
    return unfit()


def own_files() -> dict[str, int]:
    """Files of imported code that somebody may change while we wait, and when they were last changed."""
    paths = sysconfig.get_paths()
    installed = tuple({f"{paths[name]}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    found: dict[str, int] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and not os.path.realpath(file).startswith(installed) and not file.startswith(installed):
            try:
                found[file] = os.stat(file).st_mtime_ns  # noqa: PTH116
            except OSError:
                continue
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), json.loads(sys.argv[2])))
