"""What the outer egress guard costs a process, beside the same process without it, in one run.

`fork` is what a warm worker does for each replay; a fresh interpreter that replays enters the guard the same way.
`launch` is how programs are started: a bare interpreter stands before them, so its start is printed too. The two sides
take turns, so that what else the machine does hits both.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from playhead.engine.isolation import guard as isolation
from playhead.engine.isolation.guard import Isolation, enter, launch, tunnelled

RUNS = 60
TARGET = " (target 10 ms)"
HOSTS = frozenset({"api.openai.com:443", "127.0.0.1:9"})


def forked(policy: Isolation | None) -> float:
    """Milliseconds from before a fork until the child is ready for an agent."""
    reader, writer = os.pipe()
    begun = time.perf_counter()
    child = os.fork()
    if child == 0:
        if policy is not None:
            enter(policy)
        os.write(writer, b"1")
        os._exit(0)
    os.read(reader, 1)
    took = (time.perf_counter() - begun) * 1000
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    return took


def forked_with_tunnel() -> float:
    """The same with a tunnel of its own, opened and closed: for a replay whose models are live."""
    begun = time.perf_counter()
    with tunnelled(Isolation(mode="require", allow_hosts=HOSTS)) as policy:
        opened = (time.perf_counter() - begun) * 1000
        return opened + forked(policy)


def started(argv: Sequence[str], policy: Isolation | None) -> float:
    begun = time.perf_counter()
    child = subprocess.Popen(argv) if policy is None else launch(argv, policy=policy)
    child.wait()
    return (time.perf_counter() - begun) * 1000


def compare(
    name: str, without: Callable[[], float], guarded: Callable[[], float], *, runs: int = RUNS, target: str = ""
) -> None:
    """Prints the fastest of both, the least disturbed by what else the machine does, and the medians."""
    sides = list(zip(*((without(), guarded()) for _ in range(runs)), strict=True))
    plain, held = (min(side) for side in sides)
    medians = " -> ".join(f"{statistics.median(side):.1f}" for side in sides)
    print(
        f"{name:<32} without {plain:5.1f} ms, with {held:5.1f} ms: {held - plain:5.1f} ms{target}; medians {medians} ms"
    )


def main() -> None:
    levels = isolation.available()
    print(
        f"namespace: {levels.namespace or 'yes'}; bwrap: {levels.bwrap or 'yes'}; landlock: {levels.landlock or 'yes'}"
    )
    offline = Isolation(mode="require")
    compare("fork, models from history", lambda: forked(None), lambda: forked(offline), target=TARGET)
    compare("fork, live models and a tunnel", lambda: forked(None), forked_with_tunnel, target=TARGET)
    program = ["/bin/true"]
    bare = [sys.executable, "-S", "-E", "-c", "pass"]
    compare("launch of /bin/true", lambda: started(program, None), lambda: started(program, offline), runs=20)
    compare("  of it: a bare interpreter", lambda: started(program, None), lambda: started(bare, None), runs=20)


if __name__ == "__main__":
    main()
