"""Starting an agent from its entry point with a session's inputs."""

import asyncio
import concurrent.futures
import contextvars
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from playhead.core.canonical import from_stored
from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON, Origin, Session
from playhead.engine.context import importing
from playhead.errors import EntryPointError, RefusedError

Starter = Callable[[Any, "Inputs"], Any]
_starters: list[tuple[Callable[[Any], bool], Starter]] = []


class Inputs:
    """The inputs that a replay hands to the agent: those of the baseline, with the prompt override applied.

    ``recorded`` is the stored form; ``value`` its decoded fresh copy; ``system_prompt`` and ``turns`` are what an
    imported session shows beside it.
    """

    def __init__(self, session: Session, recorded: JSON) -> None:
        self.session = session
        self.recorded = recorded
        self.value = from_stored(recorded)
        self.system_prompt = session.system_prompt


def register_starter(fits: Callable[[Any], bool], start: Starter) -> None:
    """Lets an adapter start entry points that are not plain callables (an agent object, a graph)."""
    _starters.append((fits, start))


def load(entry_point: str, working_dir: str | None = None) -> Any:
    """The object that ``module:qualname`` or ``path/to/file.py:qualname`` names.

    Raises:
        EntryPointError: it does not import, has no such name, or the import raises, exits or runs the agent.
    """
    module_name, colon, qualname = entry_point.rpartition(":")
    if not colon or not module_name or not qualname:
        raise EntryPointError(
            f"{entry_point!r} is not an entry point", hint="write module:name, or path/to/file.py:name"
        )
    if working_dir and working_dir not in sys.path:
        sys.path.insert(0, working_dir)
    try:
        with importing(module_name):
            module = _from_file(module_name, working_dir) if module_name.endswith(".py") else _module(module_name)
    except EntryPointError:
        raise
    except (Exception, SystemExit) as error:
        raise EntryPointError(
            f"importing {module_name!r} failed: {type(error).__name__}: {error}",
            hint="run `python -c 'import ...'` in the agent's working directory to see the whole error",
        ) from error
    found: Any = module
    for part in qualname.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            names = ", ".join(n for n in dir(module) if not n.startswith("_"))[:300]
            raise EntryPointError(
                f"{module_name!r} has no {qualname!r} when it is imported",
                hint=f'make it at the top of the file, not under `if __name__ == "__main__":`; it has: {names}',
            ) from None
    return found


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _from_file(path: str, working_dir: str | None) -> Any:
    full = Path(working_dir or ".", path).resolve()
    name = "_playhead_entry_" + full.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(full):
        return known
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None or spec.loader is None or not full.exists():
        raise FileNotFoundError(f"no file {full}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(full.parent) not in sys.path:
        sys.path.insert(0, str(full.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def start(target: Any, inputs: Inputs) -> Any:
    """Runs the agent to its end and gives its output: functions, coroutines, generators, registered objects."""
    for fits, starter in _starters:
        if fits(target):
            return finish(starter(target, inputs))
    if not callable(target):
        raise EntryPointError(
            f"{type(target).__name__} is not something playhead can start",
            hint="name a function, or an agent object of an installed adapter",
        )
    args, kwargs = bind_inputs(target, inputs)
    return finish(target(*args, **kwargs))


def finish(running: Any) -> Any:
    """Drives what a start returned: awaits coroutines, exhausts generators."""
    if inspect.isawaitable(running):
        return _run(_await(running))
    if inspect.isasyncgen(running):
        return _run(_collect(running))
    if inspect.isgenerator(running):
        return list(running)
    return running


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Like `asyncio.run`, and in a thread of its own where a loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    context = contextvars.copy_context()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, asyncio.run, coroutine).result()


async def _await(running: Any) -> Any:
    return await running


async def _collect(running: Any) -> list[Any]:
    return [item async for item in running]


def bind_inputs(target: Any, inputs: Inputs) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for a function from a session's inputs.

    A session that was recorded by a function holds its arguments by name. An imported one holds a prompt, or
    ``turns``: they go to parameters called ``prompt`` or ``turns`` and ``system_prompt``, else to the first parameter.

    Raises:
        RefusedError: the function cannot take these inputs.
    """
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return [inputs.value], {}
    if inputs.session.origin is not Origin.IMPORT and is_object(inputs.value):
        return _by_name(signature, target, dict(inputs.value))
    return _imported(signature, target, inputs)


def _by_name(signature: inspect.Signature, target: Any, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += list(values.pop(name, ()))
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(values)
            values = {}
        elif name in values:
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = values.pop(name)
            else:
                args.append(values.pop(name))
        elif parameter.kind is not parameter.KEYWORD_ONLY and parameter.default is not parameter.empty:
            args.append(parameter.default)
    if values:
        raise RefusedError(
            f"the entry point {_name(target)} takes no {', '.join(map(repr, values))}, which the recording has",
            hint=f"its parameters are: {', '.join(signature.parameters) or 'none'}",
        )
    _check(signature, target, args, kwargs)
    return args, kwargs


def _imported(signature: inspect.Signature, target: Any, inputs: Inputs) -> tuple[list[Any], dict[str, Any]]:
    value, parameters = inputs.value, signature.parameters
    turns = value.get("turns") if is_object(value) and set(value) == {"turns"} else None
    kwargs: dict[str, Any] = {}
    if "system_prompt" in parameters:
        kwargs["system_prompt"] = inputs.system_prompt
    if "turns" in parameters:
        kwargs["turns"] = turns if turns is not None else [value]
    elif turns is None and "prompt" in parameters:
        kwargs["prompt"] = value
    else:
        first = next((n for n in parameters if n not in kwargs), None)
        if first is None:
            raise RefusedError(f"the entry point {_name(target)} takes no input", hint="give it a parameter `turns`")
        kwargs[first] = value
    _check(signature, target, [], kwargs)
    return [], kwargs


def _check(signature: inspect.Signature, target: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise RefusedError(
            f"the recorded inputs do not fit the entry point {_name(target)}: {error}",
            hint=f"its signature is now {signature}",
        ) from error


def _name(target: Any) -> str:
    return getattr(target, "__qualname__", None) or type(target).__name__
