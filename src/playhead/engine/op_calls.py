"""One call of an op: plain, or at the fixtures in force.

The order is fixed: bind, validate, check the parameters, make the key, decide. Only then does anything run, or a
variable get read. An outcome is recorded after the op has ended, and never in the way of its own result.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from playhead.core.canonical import NoKeyError, from_stored, to_stored
from playhead.core.fixture_file import Fixture
from playhead.core.keys import bind, strip
from playhead.core.values import JSON, Provenance
from playhead.engine.binding import lowered, record_types
from playhead.engine.context import current
from playhead.engine.failures import capture, is_registered, rebuild
from playhead.engine.fixture_calls import FixtureCall, FixtureRow, inside_op
from playhead.engine.fixture_run import FixtureRun
from playhead.engine.fixture_scope import current_run
from playhead.engine.frames import FRAME
from playhead.engine.op_context import OpContext
from playhead.engine.op_errors import error_of, stored_error
from playhead.engine.op_schema import problems
from playhead.engine.ops import Op
from playhead.engine.steps import ToolStep
from playhead.errors import OpError


def open_op(op: Op, args: Sequence[Any], kwargs: dict[str, Any], *, asynchronous: bool) -> "OpCall | None":
    """The call at the fixtures in force; None where none are, so that it is a call of the plain function.

    Raises:
        OpError: the arguments or parameters cannot be used.
        ReplayStop: the run was stopped.
    """
    run = None if inside_op.get() else current_run()
    return None if run is None else OpCall(op, run, args, kwargs, asynchronous=asynchronous)


def stored_arguments(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[dict[str, JSON], str | None]:
    """The arguments of a call in stored form, and why they make no key, if so.

    Raises:
        OpError: ``input``: they do not fit the declaration; the text names every problem.
    """
    if op.context in kwargs:
        raise OpError(f"{op.id}: ctx is given by playhead", code="input")
    try:
        bound = bind(
            op.signature, args, {**kwargs, **({op.context: None} if op.context else {})},
            exclude=op.excluded, defaults=op.input.schema_defaults,
        )  # fmt: skip
    except TypeError as error:
        raise OpError(f"{op.id}: {error}", code="input") from None
    stored: dict[str, JSON] = {}
    for name, value in bound.items():
        declared = len(record_types(op.binder.hints.get(name))) == 1
        try:
            stored[name] = to_stored(value, lower=lowered if declared else None)
        except NoKeyError as error:
            error.below(name)
            return stored, str(error)
    wrong = op.input.errors(stored)
    if wrong:
        raise OpError(f"{op.id}: {problems(wrong, 20)}", code="input")
    return stored, None


class OpCall:
    def __init__(
        self, op: Op, run: FixtureRun, args: Sequence[Any], kwargs: dict[str, Any], *, asynchronous: bool
    ) -> None:
        self.op = op
        self._run = run
        run.check()
        try:
            arguments, no_key = stored_arguments(op, args, kwargs)
        except OpError as error:
            raise OpError(run.redactor.redact_text(error.message), code="input") from None
        scope = op.scope(args)
        ignore = (*op.options.ignore, *run.options.ignore.get(op.id, ()))
        key = ""
        if no_key is None:
            try:
                key = run.op_key(op.id, arguments, scope, ignore)
            except NoKeyError as error:
                no_key = str(error)
        kept = strip(arguments, ignore) if ignore else arguments
        self._no_key = no_key
        self._call = FixtureCall(
            run, "op", op.id, key, run.redactor.key_view(kept) if no_key is None else None,
            effect=op.options.effect, ignored=ignore if kept != arguments else (),
            scope=run.redactor.key_view(scope), assertions=self._assertions(),
        )  # fmt: skip
        self._now = self._call_assertions
        self.context = OpContext(op.id, op.access, self._learn, asynchronous=asynchronous)

    def _learn(self, name: str, value: str) -> None:
        self._run.redactor.learn(name, value)
        learn_in_session(name, value)

    # before

    def _assertions(self) -> dict[str, JSON]:
        found = self.op.assertions()
        found = {**found, "defaults": self._run.redactor.redact(found["defaults"]).value}
        self._call_assertions = found
        return found

    def answer(self) -> Fixture | None:
        """The fixture that answers; None when the op is to run.

        Raises:
            ReplayStop: it must not run, and nothing answers. OpError: its effect is not allowed here.
        """
        if self._no_key is not None:
            self._call.no_key(self._no_key)
            return None
        fixture = self._call.answer()
        if fixture is not None:
            self._check_defaults(fixture)
        return fixture

    def _check_defaults(self, fixture: Fixture) -> None:
        now: Any = self._now["defaults"]
        before: Any = fixture.assertions.get("defaults") or {}
        given: Any = fixture.args or {}
        for name, value in before.items():
            if name in now and name not in given and now[name] != value:
                self._call.default_changed(f"{name} was {value!r}, is {now[name]!r}")

    def outcome(self, fixture: Fixture) -> dict[str, JSON]:
        """What the fixture says, with what differs between its declaration and today's noted in the ledger."""
        _say_where_from(self.op.id, fixture)
        return self._call.outcome(fixture, ("outdated",) if self.op.changed_since(fixture.assertions) else ())

    def give(self, fixture: Fixture) -> Any:
        """Returns or raises what was recorded, in fresh copies."""
        outcome = self.outcome(fixture)
        if "error" in outcome:
            raise rebuild(error_of(outcome["error"]))
        if "value" not in outcome:
            raise self._stale("it was recorded as a stream")
        return self.made(outcome["value"])

    def items(self, fixture: Fixture) -> dict[str, JSON]:
        """As `outcome`, of an op that gives a stream."""
        outcome = self.outcome(fixture)
        if "value" in outcome:
            raise self._stale("it was not recorded as a stream")
        return outcome

    def made(self, stored: JSON) -> Any:
        """A recorded value as the declared type.

        Raises:
            OpError: ``output``: it does not fit the declaration any more.
        """
        wrong = problems(self.op.output.errors(stored))
        if not wrong:
            try:
                return self.op.output.make(stored)
            except ValueError as error:
                if not _hidden(stored):
                    wrong = str(error)
                else:  # a tag stands where the type wants something else
                    return from_stored(stored)
        raise self._stale(wrong)

    def _stale(self, wrong: str) -> OpError:
        """Lets the run fail; gives the error to raise."""
        text = self._run.redactor.redact_text(
            f"{self.op.id}: the recorded result does not fit its declaration: {wrong}"
        )
        self._run.row(FixtureRow(tool=self.op.id, key=self._call.key, status="served", note=text, marks=("stale",)))
        self._run.problem(text)
        return OpError(text, code="output")

    def more(self) -> None:
        """More items are asked for than were recorded: a stop."""
        self._call.more()

    # live

    @contextmanager
    def live(self) -> Generator[None]:
        """Around the running op."""
        learn_variables(self.op, self._learn)
        token = inside_op.set(True)
        try:
            with self._call.live():
                yield
        finally:
            inside_op.reset(token)

    def returned(self, value: Any) -> Any:
        """Records a result; gives what the caller gets: what a replay will give, where it could be recorded.

        Raises:
            OpError: ``output``: it does not fit the declaration.
        """
        stored = self.op.output.store(value)
        if stored.problem is None and (wrong := self.op.output.errors(stored.value)):
            self._call.skip("its result does not fit the declaration")
            text = f"{self.op.id}: the result does not fit its declaration: {problems(wrong)}"
            raise OpError(self._run.redactor.redact_text(text), code="output")
        lost = self._no_key or stored.problem
        if lost is not None:
            self._call.skip(lost if self._no_key is None else f"the call has no key: {lost}", lost=True)
            return value
        if self._run.mode == "check":
            self._guarded(lambda: self._call.record({"kind": "value", "value": stored.value}))
            return value
        self._guarded(lambda: self._call.record({"kind": "value", "value": stored.value}, schema=self.op.output.schema))
        return self._again(value, stored.value)

    def _again(self, value: Any, stored: JSON) -> Any:
        try:
            return self.op.output.make(stored)
        except ValueError:
            return value

    def item(self, value: Any) -> tuple[Any, JSON, str | None]:
        """An item of a stream: what the consumer gets, its stored form, and why it has none, if so."""
        stored = self.op.output.store(value)
        if stored.problem is not None or self.op.output.errors(stored.value):
            return value, None, stored.problem or "an item does not fit the declaration"
        return (value if self._run.mode == "check" else self._again(value, stored.value)), stored.value, None

    def ended(self, items: list[JSON], problem: str | None, *, complete: bool = True) -> None:
        """A stream came to its end, or its consumer left."""
        if problem is not None or self._no_key is not None:
            self._call.skip(problem or f"the call has no key: {self._no_key}", lost=True)
            return
        outcome: dict[str, JSON] = {"kind": "value", "items": items}
        self._guarded(lambda: self._call.record(outcome if complete else {**outcome, "complete": False}))

    def failed(self, error: BaseException, items: list[JSON] | None = None) -> None:
        """Records an error if it says something about the op; the caller raises it whatever happens here."""
        why = self._why_not(error)
        if why is not None:
            self._call.skip(why)
            return
        outcome: dict[str, JSON] = {"kind": "error", "error": stored_error(capture(error))}
        self._guarded(lambda: self._call.record(outcome if items is None else {**outcome, "items": items}))

    def _why_not(self, error: BaseException) -> str | None:
        name = type(error).__name__
        if self._no_key is not None:
            return f"the call has no key: {self._no_key}"
        if not isinstance(error, Exception) or is_refusal(error):
            return f"{name}: {error}" if str(error) else name
        listed = isinstance(error, tuple(self.op.options.errors)) or is_registered(type(error))
        return None if listed or capture(error).status is not None else name

    def _guarded(self, record: Callable[[], None]) -> None:
        try:
            record()
        except NoKeyError as error:
            self._run.problem(f"{self.op.id} is not recorded: it has no stored form: {error}")
        except Exception as error:  # noqa: BLE001 - a failure to record is not the op's
            self._run.problem(f"{self.op.id} is not recorded: {type(error).__name__}: {error}")


def learn_in_session(name: str, value: str) -> None:
    """A secret that an op has read goes from what the session around it records from now on."""
    active = current()
    if active is not None:
        active.redactor.learn(name, value)


def learn_variables(op: Op, learn: Callable[[str, str], None]) -> None:
    """The values of an op's declared variables count as read when it runs: they may get into anything."""
    for name in op.access.env:
        value = os.environ.get(name)
        if value:
            learn(name, value)


def _say_where_from(op: str, fixture: Fixture) -> None:
    """The call's node in a session, where there is one, names the file that answered it."""
    step = FRAME.get()
    if isinstance(step, ToolStep) and step.tool == op:
        by = "served" if step.provenance is None else step.provenance.by
        step.provenance = Provenance(by=by, detail=f"{fixture.name}, occurrence {fixture.occurrence}")


def is_refusal(error: BaseException) -> bool:
    """Whether playhead itself refused, or ended, what was running."""
    return isinstance(error, OpError) and error.status is None and error.code not in ("rate_limit", "failed")


def _hidden(stored: JSON) -> bool:
    return "[REDACTED:" in repr(stored)
