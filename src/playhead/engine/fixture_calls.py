"""One call at the fixtures: served, sent and recorded, compared, or refused."""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal, NoReturn, Protocol

from playhead.core.fixture_file import Fixture, outcome_digest
from playhead.core.fixture_modes import Mode
from playhead.core.http.request import HttpRules
from playhead.core.http.response import HttpAnswer, read
from playhead.core.json_text import pointer
from playhead.core.match import differences
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.redact import Redactor
from playhead.core.values import JSON
from playhead.engine.clock import Clock
from playhead.errors import FixtureFormatError, OpError, PlayheadError, RefusedError, ReplayStop
from playhead.store.fixtures import FixtureFolder

sending: ContextVar[bool] = ContextVar("playhead_fixture_sending", default=False)
"""Whether the calling context is inside a request that the fixtures know of."""

inside_op: ContextVar[bool] = ContextVar("playhead_fixture_inside_op", default=False)
"""Whether the calling context is inside an op that is running for real: the outermost call is what is recorded."""

_COMPARED_HEADERS = ("content-type", "location")


Status = Literal["served", "recorded", "missed", "live", "refused", "not_recorded", "same", "changed", "new", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureRow:
    """What became of one call. ``file`` is the fixture that answered it, or that it was compared with."""

    tool: str
    key: str
    status: Status
    file: str | None = None
    occurrence: int | None = None
    kind: str = "op"
    note: str = ""
    pointers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    """``loose``: pointers were ignored; ``outdated``: recorded under another declaration or code; ``stale``: it does
    not fit the declared result; ``superseded``: recording it again failed (``note``: why), so the answer is older;
    ``repeated``: it answered before, as ``repeat`` and ``sequence`` allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureOptions:
    """How a run of fixtures behaves. ``http`` is None where requests are left alone; ``save="always"`` puts in use what
    a run recorded that failed; ``test`` is the node id of the test that the set belongs to."""

    set_name: str = ""
    http: HttpRules | None = None
    ignore: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Pointers that do not count, by op id or request."""
    on_miss: Literal["fail", "error_result"] = "fail"
    repeat: Literal["error", "last", "first"] = "error"
    sequence: Literal["all", "last"] = "all"
    order: Literal["recorded"] | None = None
    effects: str | None = None
    timing: float = 0.0
    allow_empty: bool = False
    strict: bool = False
    save: Literal["success", "always"] = "success"
    test: str = ""


class Run(Protocol):
    """What a call needs of the run that it belongs to."""

    mode: Mode
    options: FixtureOptions
    folder: FixtureFolder
    redactor: Redactor
    clock: Clock

    def begin(self, call: "FixtureCall") -> int: ...
    def end(self, call: "FixtureCall") -> None: ...
    def claim(self, kind: str, tool: str, key: str) -> Fixture | None: ...
    def unclaim(self, key: str) -> None: ...
    def may_run(self, effect: str) -> bool: ...
    def miss(self, call: "FixtureCall", reason: str, note: str = "") -> NoReturn: ...
    def stop(self, error: PlayheadError) -> ReplayStop | PlayheadError: ...
    def row(self, row: FixtureRow) -> None: ...
    def problem(self, text: str) -> None: ...
    def write(self, order: int, fixture: Fixture) -> None: ...
    def now(self) -> str: ...
    def ran_live(self, tool: str, outcome: JSON) -> None: ...
    def repeats(self, fixture: Fixture) -> bool: ...
    def superseded(self, key: str) -> str | None: ...


class FixtureCall:
    """Made when the call begins, which fixes its place among equal ones. An `engine.http_exchange.HttpCall`."""

    def __init__(
        self, run: Run, kind: str, tool: str, key: str, arguments: JSON, *, effect: str,
        ignored: tuple[str, ...] = (), scope: JSON = None, assertions: dict[str, JSON] | None = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.tool = tool
        self.key = key
        self.arguments = arguments
        self.effect = effect
        self._run = run
        self._ignored = ignored
        self._scope = scope
        self._assertions = assertions or {}
        self.thread = threading.get_ident()
        self.overlapped = False
        self._order = run.begin(self)
        self._tick = run.clock.tick()
        self._compared: Fixture | None = None

    # before

    def served(self) -> JSON | None:
        fixture = self.answer()
        return None if fixture is None else self._value(fixture)

    def answer(self) -> Fixture | None:
        """The fixture that answers; None when the call is to run.

        Raises:
            ReplayStop: nothing answers it, and it must not run.
        """
        run = self._run
        runs_live = run.may_run(self.effect)
        if run.mode == "record":
            return None if runs_live else self._refused()
        if run.mode == "check" and runs_live:
            self._compared = self._claimed()
            return None
        fixture = self._claimed()
        if fixture is not None:
            return fixture
        if run.mode == "auto" and runs_live:
            return None
        run.miss(self, "unknown")

    def no_key(self, reason: str) -> None:
        """The call has no key: it runs where the mode lets it, and no fixture can answer it."""
        run = self._run
        if run.mode == "replay" or not run.may_run(self.effect):
            run.miss(self, "no_key", reason)

    def outcome(self, fixture: Fixture, marks: tuple[str, ...] = ()) -> dict[str, JSON]:
        """What a fixture says, its large value read. Says in the ledger that it was served."""
        value = self._value(fixture, marks)
        return fixture.outcome if "body" not in fixture.outcome else {"kind": "value", "value": value}

    def _claimed(self) -> Fixture | None:
        try:
            return self._run.claim(self.kind, self.tool, self.key)
        except FixtureFormatError as error:
            raise self._run.stop(error) from None

    def _refused(self) -> NoReturn:
        effects = self._run.options.effects or "its default"
        reason = f"it may {self.effect}, which mode {self._run.mode} does not run (effects: {effects})"
        self._row("refused", note=reason)
        if self.kind == "op":
            self._run.end(self)
            raise OpError(f"{self.tool} was not run: {reason}", code="permission")
        raise self._run.stop(RefusedError(f"{self.tool} was not run: {reason}", hint=f"effects={self.effect!r}"))

    def default_changed(self, name: str) -> NoReturn:
        """A recorded default is another now: what was claimed answers another call."""
        self._run.unclaim(self.key)
        self._run.miss(self, "default_changed", name)

    def _value(self, fixture: Fixture, marks: tuple[str, ...] = ()) -> JSON:
        run = self._run
        if "truncated" in fixture.outcome:
            run.miss(self, "truncated")
        if fixture.overlapped and run.options.order != "recorded" and self._answers_differ(fixture):
            run.miss(self, "ambiguous")
        try:
            value = run.folder.value(fixture, run.options.set_name)
            if self.kind == "http":
                _readable(value, fixture)
        except FixtureFormatError as error:
            raise run.stop(error) from None
        older = run.superseded(self.key)
        marks = (*marks, *(("loose",) if fixture.ignored or self._ignored else ()))
        marks = (*marks, *(("superseded",) if older else ()), *(("repeated",) if run.repeats(fixture) else ()))
        self._row("served", fixture, note=older or "", marks=marks)
        run.end(self)
        return value

    def _answers_differ(self, fixture: Fixture) -> bool:
        run = self._run
        count = run.folder.count(run.options.set_name, self.kind, self.tool, self.key)
        found = [run.folder.find(run.options.set_name, self.kind, self.tool, self.key, n + 1) for n in range(count)]
        return any(each is not None and each.outcome != fixture.outcome for each in found)

    def more(self) -> NoReturn:
        self._run.miss(self, "incomplete")

    # after

    @contextmanager
    def live(self) -> Generator[None]:
        token = sending.set(True)
        try:
            yield
        finally:
            sending.reset(token)

    def observe(self, value: JSON) -> None:
        """The response of a request, in stored form and without secrets."""
        self.record({"kind": "value", "value": value})

    def record(self, outcome: dict[str, JSON], *, schema: JSON = None) -> None:
        """An outcome in stored form; ``schema`` is that of its value."""
        run = self._run
        run.end(self)
        if run.mode in ("auto", "check"):
            run.ran_live(self.tool, run.redactor.redact(outcome).value)
        if run.mode == "check":
            self._compare(outcome)
            return
        for member in ("value", "items", "error"):
            if member not in outcome:
                continue
            value = outcome[member]
            if member == "items" and is_list(value):
                cleaned = run.redactor.redact_items(value)
            else:
                cleaned = run.redactor.redact(value, outcome=True, schema=schema if member == "value" else None)
            if cleaned.refused:
                self.skip(f"{cleaned.refused[0]} is not text and holds a secret", lost=True)
                return
            outcome = {**outcome, member: cleaned.value}
        arguments = run.redactor.redact(self.arguments)
        scope = run.redactor.redact(self._scope)
        pointers = [f"/args{each}" for each in arguments.pointers] + [f"/outcome{each}" for each in tags_in(outcome)]
        pointers += [f"/scope{each}" for each in scope.pointers]
        fixture = Fixture(
            kind=self.kind,
            tool=self.tool,
            key=self.key,
            args=arguments.value,
            outcome=outcome,
            effect=self.effect,
            scope=scope.value,
            assertions=self._assertions,
            ignored=self._ignored,
            redacted=tuple(pointers),
            overlapped=self.overlapped,
            recorded={
                "at": run.now(),
                "ms": round((run.clock.tick() - self._tick) / 1e6, 1),
                "playhead": version("playhead"),
                "language": "python",
                "outcome": outcome_digest(outcome),
            },
        )
        run.write(self._order, fixture)
        self._row("recorded", fixture)

    def skip(self, reason: str, *, lost: bool = False) -> None:
        """Nothing is recorded; ``lost`` lets the run fail, because a replay will miss what there was."""
        self._run.end(self)
        self._row("not_recorded", note=reason)
        if lost:
            self._run.problem(f"{self.tool} is not recorded: {reason}")

    def _compare(self, outcome: dict[str, JSON]) -> None:
        if self._compared is None:
            self._row("new", note="it was never recorded")
            return
        if self.kind == "op":
            before: JSON = self._compared.outcome
            if "body" in self._compared.outcome:
                before = {"kind": "value", "value": self._run.folder.value(self._compared, self._run.options.set_name)}
            # what is a secret in the live outcome is a tag in the recorded one
            found = differences(before, self._run.redactor.redact(outcome).value)
        else:
            before = self._run.folder.value(self._compared, self._run.options.set_name)
            found = differences(_comparable(before), _comparable(outcome["value"]))
        pointers = tuple(each.pointer for each in found)
        self._row("changed" if pointers else "same", self._compared, pointers=pointers)

    def _row(
        self, status: Status, fixture: Fixture | None = None, note: str = "", pointers: tuple[str, ...] = (),
        marks: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self._run.row(
            FixtureRow(
                tool=self.tool,
                key=self.key,
                status=status,
                kind=self.kind,
                file=fixture.name if fixture is not None else None,
                occurrence=fixture.occurrence if fixture is not None else None,
                note=note,
                pointers=pointers,
                marks=marks,
            )
        )


def _readable(value: JSON, fixture: Fixture) -> HttpAnswer:
    try:
        return read(value)
    except ValueError as error:
        raise FixtureFormatError(f"{fixture.name}: /outcome/value: {error}", file=fixture.name) from None


def _comparable(value: JSON) -> JSON:
    """A response without what changes from one time to the next: pauses, and headers about the moment."""
    if not is_object(value):
        return value
    headers: list[Any] = value.get("headers") or []
    answer = {name: item for name, item in value.items() if name not in ("headers", "chunks")}
    answer["headers"] = [pair for pair in headers if pair[0] in _COMPARED_HEADERS]
    if is_list(value.get("chunks")):
        answer["chunks"] = "".join(str(chunk.get("text", chunk.get("b64"))) for chunk in value["chunks"])
    return answer


def tags_in(value: JSON, steps: tuple[str | int, ...] = ()) -> list[str]:
    """Where the value holds a tag in the place of a secret."""
    if isinstance(value, str):
        return [pointer(steps)] if "[REDACTED:" in value else []
    if is_object(value):
        return [each for name, item in value.items() for each in tags_in(item, (*steps, name))]
    if is_list(value):
        return [each for place, item in enumerate(value) for each in tags_in(item, (*steps, place))]
    return []
