"""A test with a tape: when it is in force, what it did, and what speaks against the test in the end."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from playhead.adapters.fixtures import FixtureTape
from playhead.adapters.http import intercepting
from playhead.core.fixtures.modes import Mode
from playhead.engine.fixtures.calls import FixtureOptions
from playhead.engine.fixtures.run import FixtureRun
from playhead.engine.fixtures.scope import in_force, open_run
from playhead.engine.project import Project
from playhead.errors import FixtureRunError, PlayheadError
from playhead.store.fixtures import FixtureFolder


@dataclass(kw_only=True)
class FixtureTest:
    """A test, or a fixture of many tests. ``own``: its set belongs to it alone."""

    nodeid: str
    mode: Mode
    own: bool
    options: FixtureOptions
    folder: FixtureFolder
    project: Project
    command: str
    strict: bool
    unused: str

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forgets an earlier run of the test."""
        self.tape = TapeOfTest(self)
        self._failure: BaseException | None = None
        self._ended = False
        self._shown = ""
        self._problems: list[str] = []

    def of_fixture(self, name: str, set_name: str) -> "FixtureTest":
        options = replace(self.options, set_name=set_name, test="", allow_empty=True)
        return replace(self, nodeid=name, own=True, options=options)

    def saw(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """The test was set up, or run; shows in a failure what was missed on the way."""
        if call.excinfo is not None:
            self.failed(call.excinfo.value)
        if report.when == "call":
            self._ended = report.passed
        if report.failed:
            said = report.longreprtext
            hidden = [text for text in self.tape.missed() if not _holds(said, text)]
            if hidden:
                report.sections.append(("playhead: calls without a recording", "\n\n".join(hidden)))
            self._shown += "\n".join([said, *hidden])

    @property
    def recorded(self) -> bool:
        """Whether the run wrote anything."""
        return bool(self.tape.counts().get("recorded"))

    def failed(self, error: BaseException) -> None:
        self._failure = self._failure or error

    def not_shown(self, error: BaseException) -> BaseException | None:
        """What an error at the end of the test tells beside the stop that a failure has shown already: fixtures whose
        ends call ops are stopped by it again."""
        stop = self.tape.stop()
        if stop is None or not _holds(self._shown, stop.message):
            return error
        if not isinstance(error, BaseExceptionGroup):
            return None if error is stop else error
        again, rest = cast("BaseExceptionGroup[BaseException]", error).split(lambda each: each is stop)
        if again is None or rest is None:
            return rest
        return rest.exceptions[0] if len(rest.exceptions) == 1 else rest

    def is_stop(self, error: BaseException, text: str) -> bool:
        """Whether an error is the stop of this test, with this text."""
        return error is self.tape.stop() and text in str(error)

    def settle(self, item: pytest.Item) -> list[str]:
        """The end of the test: saves what it recorded. Gives what speaks against it and was not shown yet."""
        self.tape.leave()
        problems = self.tape.settle(self._failure, ended=self._ended)
        self._problems = problems
        for name, value in self.tape.counts().items():
            item.user_properties.append((f"playhead_{name}", value))
        return [text for text in problems if not _holds(self._shown, text)]

    def rows(self) -> list[dict[str, Any]]:
        """What a report of the whole run tells of this test, in plain JSON."""
        return [] if self.tape.run is None else [self.tape.row(ended=self._ended and self._failure is None)]


class TapeOfTest:
    """The run of fixtures that answers one test; no run in mode live."""

    def __init__(self, test: FixtureTest) -> None:
        self._test = test
        self.run: FixtureRun | None = None
        self._stack = ExitStack()
        self._problems: list[str] = []
        self._leftovers: list[str] = []
        self._settled = False

    def enter(self) -> FixtureTape:
        """Opens the run and puts it in force.

        Raises:
            PlayheadError: it cannot be opened.
        """
        test = self._test
        self.run = open_run(
            test.mode, test.folder.root, test.options, project=test.project, command=test.command,
        )  # fmt: skip
        self.again()
        return FixtureTape(self.run)

    def again(self) -> None:
        """Puts the run in force after `leave`."""
        if self.run is not None and not self._settled:
            with ExitStack() as stack:
                stack.enter_context(in_force(self.run))
                if self.run.options.http is not None:
                    stack.enter_context(intercepting())
                self._stack = stack.pop_all()

    def gentle(self) -> None:
        """From now on stops are ordinary errors: pytest's teardown must come to its end."""
        if self.run is not None:
            self.run.gentle = True

    def leave(self) -> None:
        stack, self._stack = self._stack, ExitStack()
        stack.close()

    def missed(self) -> list[str]:
        """The texts of misses so far."""
        return [row.note for row in self.run.rows if row.status == "missed"] if self.run is not None else []

    def stop(self) -> PlayheadError | None:
        """What every call is refused with, once there is that."""
        return None if self.run is None or self.run.latch is None else self.run.latch.error

    def settle(self, failure: BaseException | None, *, ended: bool = True) -> list[str]:
        """Ends the run. Gives what lets it fail."""
        run, test = self.run, self._test
        if run is None or self._settled:
            return self._problems
        self._settled = True
        problems = self.missed()
        ended = ended and failure is None and not problems
        if ended and test.own and test.unused != "ignore" and run.mode in ("replay", "auto"):
            self._leftovers = run.leftovers()
        try:
            run.finish(failure)
        except FixtureRunError as error:
            problems += [text for text in error.details["reasons"] if text not in problems]
        except PlayheadError as error:
            problems += [error.message] if error.message not in problems else []
        if ended:
            problems += [f"{name} was recorded and not asked for" for name in self._leftovers
                         if test.unused == "fail"]  # fmt: skip
            problems += run.outdated() if test.strict else []
        self._problems = problems
        return problems

    def counts(self) -> dict[str, Any]:
        run = self.run
        if run is None:
            return {"mode": "live"}
        status = [row.status for row in run.rows]
        return {
            "mode": run.mode, "served": status.count("served"), "recorded": status.count("recorded"),
            "missed": status.count("missed"), "leftovers": len(self._leftovers),
            "outdated": sum("outdated" in row.marks for row in run.rows),
        }  # fmt: skip

    def row(self, *, ended: bool = True) -> dict[str, Any]:
        """What a report tells, in plain JSON."""
        run = self.run
        if run is None:
            return {"test": self._test.nodeid, "mode": "live", "ended": ended, "calls": []}
        place = run.folder.place(run.options.set_name)
        return {
            "test": self._test.nodeid,
            "set": run.options.set_name,
            **self.counts(),
            "ended": ended,
            "misses": self.missed(),
            "unused": list(self._leftovers),
            "problems": list(self._problems),
            "calls": [
                {
                    "tool": each.tool, "status": each.status, "file": each.file, "occurrence": each.occurrence,
                    "note": each.note if each.status != "missed" else "", "marks": list(each.marks),
                    "pointers": list(each.pointers),
                    "set": run.options.set_name if each.file and (place / each.file).exists() else "",
                }
                for each in run.rows
            ],
        }  # fmt: skip


def _holds(shown: str, text: str) -> bool:
    """Whether a text was shown already: what it says first, and of which call."""
    return all(line.strip() in shown for line in text.splitlines()[:2])
