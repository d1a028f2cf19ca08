"""The child process of an evaluator: ``python -m playhead.cli.evaluator_child FD``, with its order on standard input.

Imports the code as it was registered, calls it once, writes what it said to the file descriptor, and ends. No tool can
run live in here: a call of one stops the evaluator. Most evaluators never touch the recording side of playhead, so
it is not loaded before somebody asks for it.
"""

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from playhead.core.codec import decode, dump, encode, load
from playhead.core.evaluation import EvaluationContext, Evaluator
from playhead.core.values import JSON, Fidelity, LedgerRow, Node, Session
from playhead.core.verdicts import UnclearError, cut, verdicts_of
from playhead.engine.egress import EgressGuard, guarded
from playhead.errors import EgressBlockedError, ReplayStop


def answer(order: dict[str, JSON]) -> dict[str, JSON]:
    """What the evaluator says: ``verdicts`` or ``failure``."""
    evaluator = load(Evaluator, order["evaluator"], trusted=True)
    try:
        with ExitStack() as stack:
            if not evaluator.network:
                _guard_programs(order["hosts"])
                stack.enter_context(guarded(EgressGuard(allow_models=False, allow_hosts=frozenset(order["hosts"]))))
            function = imported(evaluator)
            if not callable(function):
                return {"failure": f"{evaluator.entry_point} is {type(function).__name__}, which cannot be called"}
            if order["context"] is None:
                return {"verdicts": []}
            returned = _finished(function(context_of(order["context"])))
            return {"verdicts": [dump(v) for v in verdicts_of(returned, name=evaluator.name)]}
    except UnclearError as error:
        return {"failure": str(error)}
    except ReplayStop as stop:
        return {"failure": f"it called a tool, which no evaluator may: {stop}"}
    except EgressBlockedError as error:
        return {"failure": f"it may not open connections unless it is registered with --network: {error.message}"}
    except SystemExit as end:
        return {"failure": f"it called sys.exit({end.code!r})"}
    except BaseException as error:  # noqa: BLE001 - foreign code; the reason is what it says
        return {"failure": _raised(error, evaluator)}


def _guard_programs(hosts: Sequence[str]) -> None:
    """The guard around this process and what it starts, as far as this machine has one."""
    from playhead.engine.isolation.guard import Isolation, enter

    if not hosts:
        enter(Isolation(mode="best"))


def _finished(returned: Any) -> Any:
    """What a coroutine or generator comes to."""
    if not (inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned)):
        return returned
    from playhead.engine.entry import finish

    return finish(returned)


class _NoLiveTools:
    """Puts the recording side, as soon as something imports it, into a replay for which nothing was recorded."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "playhead.engine.context":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            from playhead.core.tape import Tape
            from playhead.engine.replaying import ReplayState

            held = module.replaying(ReplayState(tape=Tape(), replay_id="evaluation"))
            held.__enter__()
            self.entered.append(held)

        loader.exec_module = exec_module
        return spec


def _raised(error: BaseException, evaluator: Evaluator) -> str:
    """The exception and the place in the evaluator's own file that it came from."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text of foreign code
        text = ""
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == evaluator.path]
    at = f" (line {own[-1].lineno}, in {own[-1].name})" if own else ""
    return cut(f"it raised {type(error).__name__}: {text}{at}", 2000)


def context_of(held: dict[str, JSON]) -> EvaluationContext:
    """The context that `engine.evaluator_process` wrote."""

    def one(cls: Any, name: str) -> Any:
        return None if held[name] is None else load(cls, held[name], trusted=True)

    def several(cls: Any, name: str) -> tuple[Any, ...]:
        return tuple(load(cls, item, trusted=True) for item in held[name])

    return EvaluationContext(
        session=one(Session, "session"),
        nodes=several(Node, "nodes"),
        baseline=one(Session, "baseline"),
        baseline_nodes=several(Node, "baseline_nodes"),
        ledger=several(LedgerRow, "ledger"),
        fidelity=one(Fidelity, "fidelity"),
        unchanged=held["unchanged"],
        case=held["case"],
        params=held["params"],
        ignore=held["ignore"],
        model_requests=held["model_requests"],
    )


def imported(evaluator: Evaluator) -> Any:
    """The function, from the source as it was registered; what that imports is found beside its file."""
    where, _, qualname = evaluator.entry_point.rpartition(":")
    path = evaluator.path or where
    beside = str(Path(path).parent) if where.endswith(".py") else None
    sys.path[:0] = [p for p in (beside, evaluator.working_dir) if p and p not in sys.path]
    found: Any = _module(f"_playhead_evaluator_{Path(path).stem}" if beside else where, path, evaluator.source)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _module(name: str, path: str, source: str) -> ModuleType:
    package = name.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    is_package = Path(path).name == "__init__.py"
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(Path(path).parent)] if is_package else None
    )
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def main() -> None:
    sys.meta_path.insert(0, _NoLiveTools())
    fd = os.dup(int(sys.argv[1]))  # the number that foreign code may close is not the one that is kept
    order = decode(sys.stdin.buffer.read())
    told = encode(answer(order))
    with open(fd, "wb") as result:  # noqa: PTH123 - a descriptor
        result.write(told)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed by the evaluator
            stream.flush()
    processes = sys.modules.get("playhead.engine.replay_processes")
    if processes is not None:  # `_NoLiveTools` has put this process into a replay
        processes.end_process()
    os._exit(0)  # threads that never end do not keep the verdict back


if __name__ == "__main__":
    main()
