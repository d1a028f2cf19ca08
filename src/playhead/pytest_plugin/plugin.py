"""What pytest loads: options, markers and fixtures.

Every run of pytest where playhead is installed loads this module, so it imports nothing but pytest. The rest comes
with the first test that has the marker or asks for one of the fixtures.
"""

import argparse
import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from playhead.pytest_plugin.names import TAPE, TRIALS

if TYPE_CHECKING:
    from playhead.adapters.fixtures import FixtureTape
    from playhead.pytest_plugin.cases import PlayheadCase
    from playhead.pytest_plugin.session_files import SessionReplayer
    from playhead.pytest_plugin.work import Work

_MARKERS = (
    "playhead(set=None, mode=None, http=False, ignore={}, order=None, repeat='error', sequence='all', "
    "allow_empty=False, on_miss='fail'): ops and requests of the test are answered by its recordings",
    "playhead_case(*ids, runs=None): the test answers cases of a suite (use playhead.case)",
)
_PLUGIN = pytest.StashKey["PlayheadPlugin"]()


def _mode(text: str) -> str | None:
    from playhead.core.fixtures.modes import parse_mode
    from playhead.errors import UsageError

    try:
        return parse_mode(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.message}: {error.hint}") from None


def _share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, such as 0.9")
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("playhead", "recorded ops, requests, sessions and suites (playhead)")
    group.addoption("--playhead", type=_mode, metavar="MODE", help="live, record, replay (the default), auto or check")
    group.addoption("--playhead-dir", metavar="DIR", help="the folder of the fixtures, from the root of the tests")
    group.addoption(
        "--playhead-unused", choices=("ignore", "warn", "fail"), default="warn",
        help="recordings of a test that it did not ask for (default: warn)",
    )  # fmt: skip
    group.addoption(
        "--playhead-strict", action="store_true",
        help="recordings that are unused, or outdated (of other code), let a test fail",
    )  # fmt: skip
    group.addoption("--playhead-verify", action="store_true", help="replay each test at once after it was recorded")
    group.addoption("--playhead-report", metavar="FILE", help="write what answered every call as JSON")
    group.addoption("--playhead-suite", metavar="DIR", help="the suite that playhead.case tests answer")
    group.addoption(
        "--playhead-min-rate", type=_share, metavar="SHARE",
        help="of all trials of cases, the share that is guaranteed to pass (95 %% Clopper-Pearson lower bound)",
    )  # fmt: skip
    parser.addini("playhead_suite", "the suite that playhead.case tests answer, from the root", default="")
    group.addoption(
        "--playhead-literal", action="store_true", help="the minimal rate is the plain share, not a guarantee"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """A variable with a mode that is none is told before any code of the user is imported."""
    text = os.environ.get("PLAYHEAD_MODE")
    if text:
        try:
            _mode(text)
        except argparse.ArgumentTypeError as error:
            raise pytest.UsageError(f"PLAYHEAD_MODE: {error}") from None


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers, and what watches this run of pytest."""
    if config.getoption("playhead_min_rate") == 1 and not config.getoption("playhead_literal"):
        raise pytest.UsageError("--playhead-min-rate=1: no number of trials guarantees that; say --playhead-literal")
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    plugin = config.stash[_PLUGIN] = PlayheadPlugin(config)
    config.pluginmanager.register(plugin, "playhead-run")


@pytest.fixture
def playhead_tape(request: pytest.FixtureRequest) -> "Generator[FixtureTape]":
    """What answers the ops and requests of this test: ``mode``, ``served``, ``misses``, ``leftovers``, ``ledger``."""
    work = request.config.stash[_PLUGIN].work
    tape = work.enter(request.node)
    yield tape
    work.leave(request.node)


@pytest.fixture
def playhead_replay(request: pytest.FixtureRequest) -> "SessionReplayer":
    """``playhead_replay("session.jsonl", agent=None)`` re-runs a recorded session; the test fails if it differs."""
    from playhead.pytest_plugin.session_files import SessionReplayer

    return SessionReplayer(folders=(request.path.parent, request.config.rootpath))


@pytest.fixture
def playhead_case(request: pytest.FixtureRequest) -> "PlayheadCase":
    """The case of a suite that a `playhead.case` test answers."""
    if not hasattr(request, "param"):
        raise pytest.UsageError(f"{request.node.nodeid}: playhead_case needs @playhead.case(...) at the test")
    return request.param


class PlayheadPlugin:
    """One run of pytest. ``work`` is made when the first test needs it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows: list[dict[str, Any]] = []
        self.trials: list[dict[str, Any]] = []
        self.collected: dict[str, Any] | None = None
        self._whole = True
        self._work: Work | None = None

    @property
    def work(self) -> "Work":
        if self._work is None:
            from playhead.pytest_plugin.work import Work

            self._work = Work(self.config)
            self.config.pluginmanager.register(self._work, "playhead-work")
        return self._work

    def pytest_report_header(self) -> str | None:
        mode = self.config.getoption("playhead") or _mode(os.environ.get("PLAYHEAD_MODE", ""))
        if mode in ("record", "auto", "check"):
            return f"playhead: mode {mode}: ops and requests run for real"
        return None

    # collection

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.outcome == "passed":
            problems = [each for item in report.result if (each := self._adopt(item))]
            if problems:
                report.outcome, report.result, report.longrepr = "failed", [], "\n".join(problems)  # type: ignore[misc]
        self._whole = self._whole and report.outcome != "failed"
        return report

    def _adopt(self, item: object) -> str | None:
        """Why a test cannot be run with playhead, if so."""
        if not isinstance(item, pytest.Function) or not (
            TAPE in item.fixturenames or item.get_closest_marker("playhead")
        ):
            return None
        return self.work.adopt(item)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        marker = metafunc.definition.get_closest_marker("playhead_case")
        if marker is not None:
            from playhead.pytest_plugin.cases import parametrize

            parametrize(metafunc, marker)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        problems = [each for item in items if (each := self._adopt(item))]  # markers that a conftest has added
        if problems:
            raise pytest.UsageError("\n".join(problems))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._whole = self._whole and not items

    # running

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object | None:
        if pyfuncitem.get_closest_marker("playhead_case") is None:
            return None
        from playhead.pytest_plugin.cases import try_case

        try_case(pyfuncitem)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" and TRIALS in item.stash:
            report.playhead_trials = item.stash[TRIALS]  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.rows += getattr(report, "playhead", ())
        self.trials += getattr(report, "playhead_trials", ())

    # the end

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker of pytest-xdist has collected; all of them collect the same."""
        found = getattr(node, "workeroutput", {}).get("playhead")
        self.collected = found or self.collected

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._work is not None:
            self.collected = self._work.collected(session, whole=self._whole)
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["playhead"] = self.collected  # type: ignore[attr-defined]
        elif self.rows or self.trials or self.config.getoption("playhead_report"):
            from playhead.pytest_plugin.summary import summary_of

            summary = summary_of(self)
            summary.write(self.config.getoption("playhead_report"), self.config.invocation_params.dir)
            if summary.failed and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.rows or self.trials:
            from playhead.pytest_plugin.summary import summary_of

            summary_of(self).tell(terminalreporter)
