"""``@playhead.case``: a test that answers cases of a suite, scored as the suite's own runs are."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import ModelAsk, ModelSaid, drive, turn
from playhead.core.suites.scoring import Answer, Attempt, Score, score
from playhead.core.suites.suite import Case, ToolSchema, schemas
from playhead.engine.project import find_project
from playhead.engine.suites.location import find_suite
from playhead.engine.suites.run import Selection, chosen, in_a_loop
from playhead.errors import PlayheadError, UsageError
from playhead.pytest_plugin.names import CASE, TRIALS

_SUITE = pytest.StashKey[Contents]()


@dataclass(kw_only=True)
class PlayheadCase:
    """What the body of a test is asked. It is asked once for each trial; where facts judge the final answer and the
    first one gave none, once more, with the recorded results in ``messages``.

    Attributes:
        case: the case of the suite.
        run: the number of the trial, from 0.
        ask: the request: ``messages`` and ``tools`` are of it.
    """

    case: Case
    contents: Contents
    ask: ModelAsk
    run: int = 0

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def messages(self) -> Sequence[Message]:
        """The messages before the answer, in normal form."""
        return self.ask.messages

    @property
    def tools(self) -> Sequence[ToolSchema]:
        return self.ask.tools

    @property
    def prompt(self) -> str:
        """The text of the last message of the user."""
        return next((parts.text_of(m) for m in reversed(self.messages) if m["role"] == "user"), "")


def parametrize(metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
    """Makes a test for each case.

    Raises:
        pytest.Collector.CollectError: no suite, or a case that it does not have.
    """
    unknown = set(marker.kwargs) - {"runs"}
    if CASE not in metafunc.fixturenames or unknown:
        why = f"unknown option {min(unknown)!r}" if unknown else f"the test has to take the fixture {CASE}"
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: playhead.case: {why}")
    try:
        contents = _suite(metafunc.config)
        cases = _chosen(contents, marker.args)
    except PlayheadError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error.message}{hint}") from None
    made = [PlayheadCase(case=each, contents=contents, ask=next(turn(each, contents.tools))) for each in cases]
    metafunc.parametrize(CASE, made, ids=[each.id for each in made], indirect=True)


def _suite(config: pytest.Config) -> Contents:
    found = config.stash.get(_SUITE, None)
    if found is None:
        said, setting = config.getoption("playhead_suite"), config.getini("playhead_suite")
        if not said and not setting:
            raise UsageError("no suite is named", hint="--playhead-suite DIR, or playhead_suite in pytest's settings")
        folder = config.invocation_params.dir / said if said else config.rootpath / setting
        project = find_project(config.rootpath)
        name = str(folder) if folder.exists() else said or setting
        home = find_suite(lambda: project.open_store(create=False), name)
        found = config.stash[_SUITE] = home.contents()
    return found


def _chosen(contents: Contents, ids: Sequence[str]) -> list[Case]:
    found = chosen(contents, Selection(ids=tuple(ids)))
    lost = [each for each in ids if each not in {case.id for case in found}]
    if lost:
        raise UsageError(f"case {lost[0]!r} is retired or held back, or nothing of it can be scored")
    return found


def try_case(item: pytest.Function) -> None:
    """Runs the trials of a case's test, and notes each. Without a minimal rate the first that fails fails the test.

    Raises:
        pytest.fail.Exception: a trial failed. Whatever the body raises.
    """
    asked = cast(PlayheadCase, item.funcargs[CASE])
    marker = item.get_closest_marker("playhead_case")
    runs = (marker.kwargs.get("runs") if marker else None) or asked.contents.suite.defaults.runs
    trials = item.stash[TRIALS] = []
    for number in range(runs):
        asked.run = number
        trial: dict[str, Any] = {"case": asked.id, "n": number, "passed": False, "why": []}
        trials.append(trial)
        found = _trial(item, asked)
        trial |= {"passed": bool(found.passed), "why": _why(found), "selection": found.selection,
                  "arguments": found.arguments, "outcome": found.outcome}  # fmt: skip
    failed = [trial for trial in trials if not trial["passed"]]
    if not failed:
        return
    lines = [f"trial {trial['n'] + 1}: {'; '.join(trial['why']) or 'nothing of it can be scored'}" for trial in failed]
    text = "\n".join([f"case {asked.id}: {len(failed)} of {runs} trials failed", *lines])
    if item.config.getoption("playhead_min_rate") is None:
        pytest.fail(text, pytrace=False)
    item.add_report_section("call", "playhead", text)


def _trial(item: pytest.Function, asked: PlayheadCase) -> Score:
    first: list[_Said] = []

    def ask(request: ModelAsk) -> ModelSaid:
        if request.purpose == "outcome" and first[0].final is not None:
            return ModelSaid(message=parts.message("assistant", parts.texts([first[0].final])))
        asked.ask = request
        said = said_of(_body(item))
        first.append(said)
        return ModelSaid(message=said.message)

    trace = drive(turn(asked.case, asked.contents.tools), ask)
    attempt = trace.attempt
    if first[0].final is not None and attempt.final is None:
        attempt = Attempt(answers=attempt.answers, final=first[0].final)
    return score(asked.case, schemas(asked.case, asked.contents.tools), attempt, asked.contents.suite.effects)


def _body(item: pytest.Function) -> Any:
    names: Sequence[str] = getattr(item, "_fixtureinfo").argnames  # noqa: B009 - of no public name
    value = item.obj(**{name: item.funcargs[name] for name in names})
    if not inspect.isawaitable(value):
        return value
    kept: list[Any] = []

    async def wait() -> None:
        kept.append(await value)

    in_a_loop(wait())
    return kept[0]


@dataclass(frozen=True, kw_only=True)
class _Said:
    message: Message
    final: str | None = None


def said_of(value: Any) -> _Said:
    """What a test returned, as a message.

    Text; a list of calls ``{"tool", "arguments"}``; ``{"calls": [...], "text": ..., "final": ...}``, where ``final``
    is the answer after the calls; an assistant message in normal form; a `ModelSaid`; an `Answer`.

    Raises:
        UsageError: none of these.
    """
    kind = type(value).__name__
    if isinstance(value, ModelSaid):
        return _Said(message=value.message)
    if isinstance(value, Answer):
        calls = [parts.call(each.tool, each.arguments, each.id) for each in value.calls]
        return _Said(message=parts.message("assistant", [*parts.texts([value.text]), *calls]))
    if isinstance(value, str):
        return _Said(message=parts.message("assistant", parts.texts([value])))
    if isinstance(value, Mapping) and "parts" in value:
        return _Said(message=_members(value))
    answer = _members(value)
    if not answer or set(answer) - {"calls", "text", "final"}:
        raise UsageError(
            f"a test of a case returned {kind}",
            hint='return text, [{"tool": ..., "arguments": {...}}], or {"calls": [...], "text": ..., "final": ...}',
        )
    calls = [_call(each, place) for place, each in enumerate(answer.get("calls") or ())]
    said_parts = [*parts.texts([answer.get("text") or ""]), *calls]
    if not said_parts and answer.get("final"):
        said_parts = parts.texts([answer["final"]])
    return _Said(message=parts.message("assistant", said_parts), final=answer.get("final"))


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return dict(members)
    return {"calls": value} if isinstance(value, list | tuple) else {}


def _call(value: Any, place: int) -> Any:
    if not isinstance(value, Mapping) or "tool" not in value:
        raise UsageError(f"call {place + 1} is {value!r}", hint='{"tool": "get_order", "arguments": {...}}')
    found = cast("Mapping[str, Any]", value)
    return parts.call(str(found["tool"]), found.get("arguments", {}), found.get("id") or f"call-{place + 1}")


def _why(found: Score) -> list[str]:
    """What was wrong, in words."""
    lines = [] if found.selection is not False else [f"selection: {found.why}"]
    lines += [f"arguments: {call.tool}: {error.pointer or '/'} {error.message}" for call in found.calls
              for error in call.errors]  # fmt: skip
    lines += [f"arguments: {each.tool}: {each.mismatch.pointer} is {each.mismatch.seen!r}, "
              f"expected {each.mismatch.expected!r}" for each in found.value_errors]  # fmt: skip
    if found.outcome is False:
        missing = f" (missing: {', '.join(found.missing_facts)})" if found.missing_facts else ""
        lines.append(f"outcome: {found.outcome_why or 'not as the facts say'}{missing}")
    return lines
