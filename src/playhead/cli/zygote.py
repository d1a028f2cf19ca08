"""Makes the process that replays of one agent are forked from: adapters, the agent, a rehearsal, then the loop.

``python -m playhead.cli.zygote DESCRIPTOR ORDER``, started by a worker.
"""

import json
import os
import socket
import sys
import sysconfig
from functools import partial
from pathlib import Path
from typing import Any

from playhead.adapters.installation import install
from playhead.cli.child import hold, run
from playhead.cli.rehearsal import rehearse
from playhead.engine.egress import EgressGuard, guarded
from playhead.engine.entry import load
from playhead.engine.project import settings_files
from playhead.engine.watching import last_changed
from playhead.engine.zygote import Run, Zygote, send_json, unfit
from playhead.errors import PlayheadError


def main(descriptor: int, order: dict[str, Any]) -> int:
    """Serves until the worker at the other end of the socket is gone."""
    control = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    why = _prepare(order)
    send_json(control, {"unfit": why, "files": {} if why else watched_files(Path(order["project"]))})
    if why is None:
        Zygote(control, partial(begin, order)).serve()
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


def begin(order: dict[str, Any], idle: bool) -> Run:
    """In a child: opens the store, and with time to spare goes through a replay once, so that the memory which every
    replay writes to is its own already."""
    try:
        held = hold(order)
    except PlayheadError:
        return run  # which meets it again, and tells
    if idle:
        rehearse()
    return partial(run, held=held)


def watched_files(root: Path) -> dict[str, int]:
    """Files of imported code and of settings, which somebody may change while we wait, and when they last did."""
    paths = sysconfig.get_paths()
    installed = tuple({f"{paths[name]}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    found = {str(path): last_changed(str(path)) for path in settings_files(root)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and not os.path.realpath(file).startswith(installed) and not file.startswith(installed):
            found[file] = last_changed(file)
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), json.loads(sys.argv[2])))
