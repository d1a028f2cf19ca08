"""The process in which tools are fuzzed: ``python -m playhead.cli.fuzz_child FD ENTRY_POINT FOLDER MEMORY``.

It imports the factory once and forks for every call, so each call starts from the same state and may do what it likes
to its process. Orders are lines of JSON on standard input; what came of each is a line on the file descriptor. Time is
not limited in here: whoever started this process kills the fork, and this process too where that is not enough.
"""

import asyncio
import inspect
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from playhead.engine.process_tree import adopt_orphans, children, die_with_parent

MOST_ANSWER = 256 * 1024
MOST_TEXT = 2_000


def main() -> None:
    die_with_parent(int(sys.argv[5]))
    adopt_orphans()
    told = os.fdopen(os.dup(int(sys.argv[1])), "w", encoding="utf-8")
    os.close(int(sys.argv[1]))
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    _without_streams()
    try:
        factory = _factory(sys.argv[2], sys.argv[3])
    except BaseException as error:  # noqa: BLE001 - foreign code is imported
        _tell(told, {"failure": f"{type(error).__name__}: {error}"[:MOST_TEXT]})
        return
    _tell(told, {"ready": True})
    for line in orders:
        _tell(told, _apart(factory, json.loads(line), int(sys.argv[4]), told, orders.fileno()))


def _without_streams() -> None:
    """What the tool prints, however much, goes nowhere; it reads nothing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _factory(entry_point: str, folder: str) -> Any:
    from playhead.engine.entry import load

    return load(entry_point, folder)


def _tell(told: Any, answer: dict[str, Any]) -> None:
    told.write(json.dumps(answer) + "\n")
    told.flush()


def _apart(factory: Any, order: dict[str, Any], memory: int, told: Any, orders: int) -> dict[str, Any]:
    """Carries out one order in a fork, whose id is told first, so that it can be killed from outside."""
    mine, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(mine)
        for descriptor in (told.fileno(), orders):
            os.close(descriptor)
        _inside(factory, order, memory, theirs)
    os.close(theirs)
    _tell(told, {"pid": pid})
    try:
        data, status = _until_end(pid, mine)
    finally:
        os.close(mine)
        _end_what_is_left()
    try:
        answer: Any = json.loads(data)
        return {"answer": answer}
    except ValueError:
        return {"ended": _how(status, len(data))}


def _until_end(pid: int, mine: int) -> tuple[bytes, int]:
    """What the fork said until it ended; a process that it left behind may hold the pipe open and is not waited for."""
    os.set_blocking(mine, False)
    data = b""
    status: int | None = None
    while True:
        ready, _, _ = select.select([mine], [], [], 0 if status is not None else 0.02)
        more = b""
        if ready:
            with suppress(BlockingIOError):
                more = os.read(mine, 65536)
        data += more
        if len(data) > MOST_ANSWER:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if status is not None and not more:
            return data, status
        if status is None:
            ended, found = os.waitpid(pid, os.WNOHANG)
            if ended:
                status = found
            elif ready and not more:
                time.sleep(0.005)  # it closed its end and has not ended yet


def _end_what_is_left() -> None:
    """Kills what the call started and left behind."""
    for _ in range(100):
        left = children()
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _how(status: int, size: int) -> str:
    if os.WIFSIGNALED(status):
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
        return f"its process was ended by signal {os.WTERMSIG(status)}"
    said = "" if not size else ", after it wrote where results go"
    return f"its process ended with exit code {os.WEXITSTATUS(status)} before it gave a result{said}"


# --- in the fork ----------------------------------------------------------------------------------------------------


def _inside(factory: Any, order: dict[str, Any], memory: int, theirs: int) -> None:
    os.setsid()
    _limit(memory)
    try:
        answer = _names(factory) if order.get("list") else _called(factory, order["tool"], order["arguments"])
        text = json.dumps(answer).encode()
    except BaseException as error:  # noqa: BLE001 - the tool's own
        text = json.dumps(_raised(error)).encode()
    with suppress(OSError):
        while text:
            text = text[os.write(theirs, text) :]
    os._exit(0)


def _limit(memory: int) -> None:
    """Limits memory beyond what the process has now, the processes of a user who is not root, files, and core dumps."""
    now = 0
    with suppress(OSError, ValueError, IndexError):
        now = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    for kind, most in (("RLIMIT_AS", now + memory), ("RLIMIT_FSIZE", 64 * 1024 * 1024), ("RLIMIT_CORE", 0)):
        with suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, kind), (most, most))
    with suppress(AttributeError, ValueError, OSError):
        mine = sum(path.stat().st_uid == os.getuid() for path in Path("/proc").iterdir() if path.name.isdecimal())
        resource.setrlimit(resource.RLIMIT_NPROC, (mine + 64, mine + 64))


def _tools(factory: Any) -> Any:
    """What the factory makes: an object with methods, or functions by name."""
    made: Any = factory() if callable(factory) else factory
    if inspect.isawaitable(made):
        made = asyncio.run(_awaited(made))
    if isinstance(made, list | tuple):
        listed: list[Any] = list(made)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return {str(getattr(tool, "name", None) or getattr(tool, "__name__", "")): tool for tool in listed}
    return made


def _names(factory: Any) -> dict[str, Any]:
    made = _tools(factory)
    names: list[Any] = list(made) if isinstance(made, Mapping) else [n for n in dir(made) if not n.startswith("_")]  # pyright: ignore
    return {"kind": "names", "names": [str(name) for name in names][:5000]}


def _called(factory: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    made: Any = _tools(factory)
    named = _named(made, name)
    ways: list[Any] = [named, getattr(named, "run", None), getattr(named, "invoke", None)]
    tool = next((way for way in ways if callable(way)), None)
    if tool is None:
        return {"kind": "missing"}
    problem = _unbound(tool, arguments)
    if problem is not None:
        return problem
    value = tool(**arguments)
    if inspect.isawaitable(value):
        value = asyncio.run(_awaited(value))
    elif inspect.isgenerator(value):
        value = list(value)
    text = _shown(value)
    return {"kind": "error" if _is_error(value) else "value", "text": text}


def _named(made: Any, name: str) -> Any:
    if not isinstance(made, Mapping):
        return getattr(made, name, None)
    held: Any = made  # pyright: ignore[reportUnknownVariableType]
    return held.get(name)


async def _awaited(value: Any) -> Any:
    return await value


def _unbound(tool: Any, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """The error of arguments that the function's signature cannot take."""
    try:
        inspect.signature(tool).bind(**arguments)
    except TypeError as error:
        return {"kind": "raised", "text": str(error)[:MOST_TEXT], "classes": ["TypeError"], "binding": True}
    except ValueError:
        return None  # it has no signature
    return None


def _is_error(value: Any) -> bool:
    """Whether a result says that the call failed."""
    held: Any = value
    if isinstance(value, Mapping):
        return bool(held.get("error") or held.get("errors") or held.get("isError") or held.get("is_error"))
    if bool(getattr(value, "isError", False) or getattr(value, "is_error", False)):
        return True
    return isinstance(value, str) and value.lstrip().lower().startswith(("error", "invalid "))


def _shown(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception as error:  # noqa: BLE001 - a result that cannot be shown
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    return text[:MOST_TEXT].encode("utf-8", "backslashreplace").decode()


def _raised(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    module = (kind.__module__ or "").partition(".")[0]
    own = isinstance(error, Exception) and module not in sys.stdlib_module_names
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the text of foreign code
        text = ""
    text = text[:MOST_TEXT].encode("utf-8", "backslashreplace").decode()
    return {"kind": "raised", "text": text, "classes": [one.__name__ for one in kind.__mro__[:-1]], "own": own}


if __name__ == "__main__":
    main()
