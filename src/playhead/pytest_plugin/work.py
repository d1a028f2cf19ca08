"""What a process of pytest does with tests that use fixtures: opens their tape, and says what became of it.

A tape is in force from the first fixture of a test's own to the last one's end. Whether the test succeeded is known
only after all fixtures are torn down, so only then is anything saved, and a miss that was swallowed told.
"""

import shlex
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.adapters.fixtures import FixtureTape
from playhead.engine.fixtures.scope import chosen_mode, folder_of
from playhead.engine.project import find_project
from playhead.errors import PlayheadError, ReplayStop
from playhead.pytest_plugin.marks import read_marker, set_of
from playhead.pytest_plugin.names import TAPE
from playhead.pytest_plugin.tests import FixtureTest, TapeOfTest

_PACKAGE = Path(__file__).parents[1]
_TEST = pytest.StashKey[FixtureTest]()


class Work:
    """Hooks of a process in which at least one test uses fixtures.

    Raises:
        UsageError: settings, or an environment, that cannot be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tests: list[FixtureTest] = []
        self._needing: dict[Any, list[FixtureTest]] = {}
        """By fixture of many tests: those that need it and have a tape."""
        self._further: list[dict[str, Any]] = []
        """What fixtures of many tests did that have ended since the last report."""
        self.broken: str | None = None
        self.strict = bool(config.getoption("playhead_strict"))
        self.unused = "fail" if self.strict else str(config.getoption("playhead_unused"))
        try:
            self.project = find_project(config.rootpath)
            directory = config.getoption("playhead_dir")
            self.folder = folder_of(self.project, None if directory is None else config.rootpath / directory)
        except PlayheadError as error:
            self.broken = _told(error)

    # collection

    def adopt(self, item: pytest.Function) -> str | None:
        """Gives a test its tape, once; says why that cannot be."""
        if _TEST in item.stash:
            return None
        problem = self.broken
        try:
            if problem is None:
                marked = read_marker(item)
                self.folder.place(marked.options.set_name)
                mode = chosen_mode(
                    self.config.getoption("playhead"), self.project, _environment(), marker=marked.mode
                )  # fmt: skip
                test = FixtureTest(
                    nodeid=item.nodeid, mode=mode, own=marked.own, folder=self.folder,
                    options=replace(marked.options, test=item.nodeid if marked.own else ""),
                    project=self.project, command=_command(item, self.config), strict=self.strict, unused=self.unused,
                )  # fmt: skip
                item.stash[_TEST] = test
                self.tests.append(test)
                for each in _wide_fixtures(item):
                    self._needing.setdefault(each, []).append(test)
                item.fixturenames = _with_tape(item)
        except PlayheadError as error:
            problem = _told(error)
        return None if problem is None else f"{item.nodeid}: {problem}"

    def collected(self, session: pytest.Session, *, whole: bool) -> dict[str, Any]:
        """What is left over of the whole suite, as far as collection tells; empty if it was not collected whole."""
        if not whole or not is_whole(self.config) or self.broken is not None:
            return {}
        known = {test.options.set_name for test in self.tests}
        common = {test.options.set_name for test in self.tests if not test.own}
        return {
            "orphans": [name for name in _sets_of_tests(self.folder.root) if name not in known],
            "files": {name: [path.name for path in self.folder.files(name)] for name in sorted({*common, ""})},
            "tests": [test.nodeid for test in self.tests if test.mode in ("replay", "auto")],
        }

    # one test

    def enter(self, item: pytest.Function) -> FixtureTape:
        """Puts the tape of a test in force."""
        problem = self.adopt(item)  # a test that asks for it by name was not known before
        if problem is not None:
            pytest.fail(problem, pytrace=False)
        test = item.stash[_TEST]
        test.begin()  # anew, where something runs a test again
        try:
            return test.tape.enter()
        except PlayheadError as error:
            problem = f"{type(error).__name__}: {_told(error)}"
        pytest.fail(problem, pytrace=False)  # here, so that the error is not shown before it

    def leave(self, item: pytest.Function) -> None:
        item.stash[_TEST].tape.leave()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """With ``--playhead-verify`` a test that was recorded is run again, from what was recorded."""
        test = item.stash.get(_TEST, None)
        if test is None or test.mode != "record" or not self.config.getoption("playhead_verify"):
            return None
        from playhead.pytest_plugin.verification import run_twice

        run_twice(item, nextitem, test)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        """A fixture of a class, module, package or session that a test with a tape needs has a tape and set of its
        own, so that it does not matter which test comes first, and whether that one has a tape."""
        if fixturedef.scope == "function":
            return (yield)
        first = getattr(request, "_pyfuncitem").stash.get(_TEST, None)  # noqa: B009 - of no public name
        needing = self._needing.get(fixturedef, [] if first is None else [first])
        if not needing:
            return (yield)
        # what one of them is never to run is run for none
        test = next((each for each in needing if each.mode == "replay"), needing[0])
        return (yield from self._wide(fixturedef, request, test))

    def _wide(self, fixturedef: Any, request: Any, test: FixtureTest) -> Generator[None, Any, Any]:
        number = getattr(request, "param_index", 0) if hasattr(request, "param") else None
        name = f"{request.node.nodeid}::{fixturedef.argname}-fixture" + ("" if number is None else f"[{number}]")
        tape = TapeOfTest(test.of_fixture(name, set_of(name)))
        tape.enter()
        tape.gentle()
        failure: BaseException | None = None

        def end() -> None:
            tape.leave()
            problems = tape.settle(failure)
            if tape.run is not None and tape.run.rows:
                self._further.append(tape.row(ended=failure is None))
            if problems and failure is None:
                pytest.fail("\n\n".join(problems), pytrace=False)

        fixturedef.addfinalizer(end)  # which is called after the fixture's own end
        try:
            return (yield)
        except BaseException as error:
            failure = error
            raise
        finally:
            tape.leave()
            fixturedef.addfinalizer(tape.again)  # and this one before it

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        test = item.stash.get(_TEST, None)
        if test is not None and call.excinfo is not None:
            _without_own_frames(call.excinfo)
        report = yield
        test = item.stash.get(_TEST, None)  # which may have asked for its tape by name just now
        if test is not None and report.when != "teardown":
            test.saw(report, call)
        elif report.when == "teardown":
            if test is not None and call.excinfo is not None and test.tape.missed():
                _not_expected(report)
            further, self._further = self._further, []
            rows = [*(() if test is None else test.rows()), *further]
            if rows:
                report.playhead = rows  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        test = item.stash.get(_TEST, None)
        if test is None:
            yield
            return
        test.tape.gentle()
        try:
            yield
        except BaseException as error:
            test.failed(error)
            problems = test.settle(item)
            rest = test.not_shown(error)
            if rest is not None:
                for problem in problems:
                    if not test.is_stop(rest, problem):
                        item.add_report_section("teardown", "playhead", problem)
                if rest is error:
                    raise
                raise rest from None
        else:
            problems = test.settle(item)
        if problems:
            pytest.fail("\n\n".join(problems), pytrace=False)


def _not_expected(report: pytest.TestReport) -> None:
    """A test that is marked to fail was not asked what it is marked for where a call had no recording."""
    if hasattr(report, "wasxfail"):
        report.outcome = "failed"
        del report.wasxfail


def _without_own_frames(found: pytest.ExceptionInfo[BaseException]) -> None:
    """A stop ends in the line of the test: the modules that it came through say that they are not to be shown."""
    for entry in found.traceback if _is_ours(found) else ():
        if Path(str(entry.path)).is_relative_to(_PACKAGE):
            entry.frame.f_globals["__tracebackhide__"] = _is_ours


def _is_ours(found: pytest.ExceptionInfo[BaseException]) -> bool:
    return isinstance(found.value, ReplayStop | PlayheadError)


def _with_tape(item: pytest.Function) -> list[str]:
    """The fixtures of a test with the tape before all that are its own, behind those of its class and module."""
    names = [name for name in item.fixturenames if name != TAPE]
    known = _known_fixtures(item)
    own = [name for name in names if not (name in known and known[name][-1].scope != "function")]
    place = names.index(own[0]) if own else len(names)
    return [*names[:place], TAPE, *names[place:]]


def _wide_fixtures(item: pytest.Function) -> list[Any]:
    """What a test needs that may have been set up for another one, as far as its signature and marks tell."""
    known = _known_fixtures(item)
    return [each for name in item.fixturenames for each in known.get(name, ()) if each.scope != "function"]


def _known_fixtures(item: pytest.Function) -> Any:
    return getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - of no public name


def _sets_of_tests(root: Any) -> list[str]:
    """The sets that were recorded by a test."""
    from playhead.core.json_text import parse_json
    from playhead.core.protocol.shape import is_object

    found: list[str] = []
    for path in sorted(root.glob("*/*/recording.json")):
        if path.parents[1].name.startswith("."):  # runs that have not ended, or failed
            continue
        try:
            report = parse_json(path.read_bytes())
        except (OSError, ValueError):
            continue
        if is_object(report) and report.get("test"):
            found.append(path.parent.relative_to(root).as_posix())
    return found


def is_whole(config: pytest.Config) -> bool:
    """Whether the arguments leave nothing of the suite out."""
    option = config.option
    if any(getattr(option, name, None) for name in ("lf", "ignore", "ignore_glob", "deselect", "pyargs")):
        return False
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return True
    here, root = config.invocation_params.dir, config.rootpath
    paths = [path for each in config.getini("testpaths") for path in root.glob(each)] or [root]
    given = [(here / each.partition("::")[0]).resolve() for each in config.args if "::" not in each]
    return all(any(path.resolve().is_relative_to(each) for each in given) for path in paths)


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTEST_CURRENT_TEST": os.environ.get("PYTEST_CURRENT_TEST", "")}


def _command(item: pytest.Item, config: pytest.Config) -> str:
    path, mark, rest = item.nodeid.partition("::")
    full = config.rootpath / path
    here = config.invocation_params.dir
    shown = full.relative_to(here).as_posix() if full.is_relative_to(here) else path
    return f"pytest {shlex.quote(f'{shown}{mark}{rest}')} --playhead=record"


def _told(error: PlayheadError) -> str:
    return f"{error.message}\n  {error.hint}" if error.hint else error.message
