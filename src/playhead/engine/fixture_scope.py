"""Which run of fixtures a request belongs to, and what watches its connections."""

import atexit
import os
import shlex
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from playhead.core.fixture_modes import Mode, is_ci, parse_mode
from playhead.core.http.request import HttpRules
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.engine.egress import EgressGuard, guarded, is_own_traffic
from playhead.engine.fixture_calls import FixtureOptions, inside_op, sending
from playhead.engine.fixture_report import FOLDER, options_here, report_runs
from playhead.engine.fixture_run import FixtureRun
from playhead.engine.http_exchange import look_here
from playhead.engine.project import Project, find_project
from playhead.errors import ConfigError, PlayheadError
from playhead.store.fixtures import FixtureFolder

_HERE: ContextVar[FixtureRun | None] = ContextVar("playhead_fixtures", default=None)
_open: list[FixtureRun] = []
_DEFAULT_DIR = Path(".playhead/fixtures")
_SETTINGS = ("dir", "mode", "ops")


def current_run() -> FixtureRun | None:
    """The run of the calling context; of one without, or one that outlived its own run, the one that began last."""
    run = _HERE.get()
    return run if run in _open else (_open[-1] if _open else _whole_process.run())


def _with_http() -> FixtureRun | None:
    run = None if inside_op.get() else current_run()
    return run if run is not None and run.options.http is not None else None


def chosen_mode(
    mode: str | None, project: Project, environment: Mapping[str, str], *, marker: str | None = None
) -> Mode:
    """The first of argument, ``PLAYHEAD_MODE``, a test's ``marker`` and setting; ``replay`` in pytest, else ``live``.
    In CI auto is replay.

    Raises:
        UsageError: one of them is no mode.
    """
    said = (
        (mode, "mode"),
        (environment.get("PLAYHEAD_MODE"), "PLAYHEAD_MODE"),
        (marker, "mode"),
        (_setting(project, "mode"), f"{project.source}: fixtures.mode"),
    )
    found: Mode = "replay" if "PYTEST_CURRENT_TEST" in environment else "live"
    for text, by in reversed(said):
        found = (parse_mode(text, by) if text is not None else None) or found
    return "replay" if found == "auto" and is_ci(environment.get("CI")) else found


def folder_of(project: Project, directory: str | os.PathLike[str] | None = None) -> FixtureFolder:
    """The fixture folder: the argument, ``PLAYHEAD_FIXTURES``, the setting, or the project's ``.playhead/fixtures``."""
    said = directory or os.environ.get("PLAYHEAD_FIXTURES")
    if said:
        return FixtureFolder(Path(said).absolute())
    return FixtureFolder(project.root / (_setting(project, "dir") or _DEFAULT_DIR))


def _setting(project: Project, name: str) -> str | None:
    """Raises `ConfigError` for an unknown setting, or one that is not text."""
    table: dict[str, Any] = project.settings.fixtures
    unknown = [each for each in table if each not in _SETTINGS]
    if unknown:
        raise ConfigError(f"{project.source}: unknown setting 'fixtures.{unknown[0]}'", hint=f"known: {_SETTINGS}")
    value = table.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{project.source}: fixtures.{name} is {value!r}, not text")
    return value


def open_run(
    mode: str | None, directory: str | os.PathLike[str] | None, options: FixtureOptions, *,
    project: Project | None = None, command: str | None = None,
) -> FixtureRun | None:  # fmt: skip
    """A run in the chosen mode; None in mode live, in which nothing is read or written.

    Args:
        command: how to record what is missing.

    Raises:
        UsageError: no such mode. NoFixturesError: a replay without recordings.
    """
    project = project or find_project()
    chosen = chosen_mode(mode, project, os.environ)
    if chosen == "live":
        return None
    return FixtureRun(
        chosen,
        folder_of(project, directory),
        options,
        redactor=project.redactor(),
        command=command or options_here().command or _command(os.environ),
        clock=SYSTEM_CLOCK,
        ids=SYSTEM_IDS,
        configured=project.settings.secrets,
    )


def _command(environment: Mapping[str, str]) -> str:
    """How this program is run again to record."""
    test = environment.get("PYTEST_CURRENT_TEST")
    if test:
        return f"PLAYHEAD_MODE=record pytest {shlex.quote(test.rpartition(' ')[0])}"
    return f"PLAYHEAD_MODE=record python {shlex.join(sys.argv)}"


class _WholeProcess:
    """The run of a process below `playhead fixtures run`: it answers what no block and no test does, to the very end.

    It begins with the first call that asks, so that a process without any costs nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._begun: FixtureRun | None = None
        self._asked = False

    def run(self) -> FixtureRun | None:
        if self._asked or FOLDER not in os.environ:
            return self._begun
        with self._lock:
            if not self._asked:
                self._begun = self._begin()
                self._asked = True
            return self._begun

    def _begin(self) -> FixtureRun | None:
        said = options_here()
        options = FixtureOptions(
            set_name=os.environ.get("PLAYHEAD_SET", ""),
            http=None if said.http is None else HttpRules(hosts=said.http or None),
            effects=said.effects, save=said.save, allow_empty=True,
        )  # fmt: skip
        run = open_run(None, None, options)
        if run is not None:
            report_runs()
            run.claims = Path(os.environ[FOLDER])
            look_here(_with_http)
            _open.insert(0, run)
            self._stack.enter_context(guarded(_watch(run)))
            atexit.register(self._end)
            if "multiprocessing" in sys.modules:  # its processes end without the rest of Python's exit
                util: Any = import_module("multiprocessing.util")
                util.Finalize(self, self._end, exitpriority=0)
        return run

    def _end(self) -> None:
        if self._begun is not None and self._begun in _open:
            _open.remove(self._begun)
            self._stack.close()
            with suppress(PlayheadError):  # the command says it
                self._begun.finish(None, hand_over=True)

    def forget(self) -> None:
        """In a forked process: the run is the parent's."""
        if self._begun in _open:
            _open.remove(self._begun)
        self.__init__()


_whole_process = _WholeProcess()
os.register_at_fork(after_in_child=_whole_process.forget)


def join() -> None:
    """Begins the run of this process, if it belongs to a `playhead fixtures run`, before anything asks."""
    _whole_process.run()


@contextmanager
def in_force(run: FixtureRun) -> Generator[FixtureRun]:
    """The run answers and records what is asked in this context, for the block."""
    look_here(_with_http)
    report_runs()
    token = _HERE.set(run)
    _open.append(run)
    try:
        with ExitStack() as stack:
            if run.options.http is not None or run.mode == "replay":
                stack.enter_context(guarded(_watch(run)))
            yield run
    finally:
        _open.remove(run)
        _HERE.reset(token)


def _watch(run: FixtureRun) -> EgressGuard:
    if run.mode != "replay":
        return _Watcher(run)
    # unless every host is meant, a server that the test itself started on loopback is none of the fixtures' business
    loopback = run.options.http is None or run.options.http.hosts is not None
    guard = EgressGuard(allow_models=False, loopback=loopback, on_block=lambda host: run.problem(_blocked(host)))

    def let_through(host: str) -> None:
        guard.allow_hosts |= {host}

    run.on_let_through = let_through
    return guard


def _blocked(host: str) -> str:
    return f"a connection to {host} was refused: in replay nothing but recorded requests is answered"


class _Watcher(EgressGuard):
    """Notes connections of a recording that no seam knows of, and refuses none."""

    def __init__(self, run: FixtureRun) -> None:
        super().__init__(allow_models=True)
        self._run = run

    def check(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "socket.connect" or sending.get() or is_own_traffic():
            return
        address: Any = args[1] if len(args) > 1 else None
        if isinstance(address, tuple) and address:
            self._run.reached(str(cast("tuple[Any, ...]", address)[0]))
