"""A function of a framework behind the seam: asked first, told after, in both colours.

What adapters of frameworks with one choke point share. They give the call as the framework shows it and say how an
outcome reads there (`Shape`); recording, refusing and serving are here.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

from playhead.core.values import JSON, NodeKind, Outcome, OutcomeKind
from playhead.engine.binding import FunctionBinder
from playhead.engine.context import current, refuse_outside
from playhead.engine.failures import rebuild
from playhead.engine.frames import FRAME
from playhead.engine.gating import broken
from playhead.engine.guards import UNCHECKED, checked, checked_async
from playhead.engine.snapshot import freeze_bound, freeze_emitted
from playhead.engine.steps import ToolStep
from playhead.errors import RecordingError, ReplayedToolError, ReplayStop


class Shape:
    """How the results of one framework read. Subclasses change what is different there."""

    def outcome(self, result: Any) -> Outcome | None:
        """What came of a live call that returned; None: the value is ``result`` itself."""
        return None

    def checked(self, result: Any) -> Any:
        """What guards check of a live result; nothing of an error that the tool reported itself."""
        outcome = self.outcome(result)
        if outcome is None:
            return result
        return outcome.value if outcome.kind is OutcomeKind.VALUE else UNCHECKED

    def value(self, outcome: Outcome) -> Any:
        """What the framework is given for a recorded or written value."""
        from playhead.engine.seam import value_of

        return value_of(outcome)

    def refusal(self, outcome: Outcome) -> Any:
        """What the framework is given for an error that the model reads; raises where it has no such thing."""
        text = outcome.value if isinstance(outcome.value, str) else repr(outcome.value)
        if outcome.error is not None:
            raise rebuild(outcome.error)
        raise ReplayedToolError(text, original_class="ToolError")

    def give(self, step: ToolStep, outcome: Outcome) -> Any:
        """Gives the answer of a replay as the framework's tool would: returns it, or raises it."""
        match outcome.kind:
            case OutcomeKind.VALUE:
                return self.value(outcome)
            case OutcomeKind.ERROR if outcome.error is not None:
                raise rebuild(outcome.error)
            case OutcomeKind.INTERRUPT:
                problem = RecordingError(f"the recorded call of {step.tool!r} paused for a person")
                raise step.active.replay.stop(problem) if step.active.replay else ReplayStop(problem)
            case _:
                return self.refusal(outcome)


PLAIN = Shape()


def opened(
    tool: str, arguments: Any, *, by: str, call_id: str | None = None, note: dict[str, JSON] | None = None
) -> ToolStep | None:
    """The step of a call, None when it is not ours to record. Mistakes of ours stop a replay and nothing else.

    Args:
        by: the adapter that sees it, which the session remembers: what it cannot do refuses replays.
        arguments: as emitted or as seen, text or plain data; a function that gives a snapshot where that is costly.

    Raises:
        ReplayStop: in a replay, when it is not clear what answers.
    """
    active = current()
    if active is None:
        refuse_outside(tool)
        return None
    step: Any = None
    with guarded(active, f"opening tool call {tool!r}"):
        active.met(by)
        snapshot: Any = arguments() if callable(arguments) else freeze_emitted(arguments)
        step = active.open_tool(tool, snapshot, call_id=call_id)
        if note and isinstance(step, ToolStep):
            step.note(**note)
        elif note:  # an outer seam owns the call: what it has said of it stands
            known: dict[str, JSON] = step.owner.attributes or {}
            step.note(**{name: value for name, value in note.items() if name not in known})
    return step if isinstance(step, ToolStep) else None


@contextmanager
def guarded(active: Any, doing: str) -> Generator[None]:
    """Around lines of ours: what goes wrong is counted, and stops a replay.

    Raises:
        ReplayStop: in a replay.
    """
    try:
        yield
    except Exception as error:
        if active.replay is not None:
            raise broken(active.replay, error, doing) from error
        active.recorder.count("errors", error)


def told(step: ToolStep, result: Any, shape: Shape = PLAIN) -> None:
    """Ends a step with what the live tool returned. Never raises: the tool's result stands."""
    try:
        outcome = shape.outcome(result)
        if outcome is None:
            step.returned(result)
        else:
            step.observe(outcome)
    except Exception as error:  # noqa: BLE001 - the tool's result stands, whatever happens here
        step.active.recorder.count("errors", error)
        step.cancel(error)


def called(step: ToolStep | None, live: Callable[[], Any], shape: Shape = PLAIN) -> Any:
    """Runs a call: what answers it, else ``live``."""
    if step is None:
        return live()
    answer = step.decide()
    if answer is not None:
        step.observe(answer)
        return shape.give(step, answer)
    try:
        with step.inside():
            result, instead = checked(step, live(), live, shape.checked)
    except BaseException as error:
        step.fail(error)
        raise
    if instead is not None:
        step.observe(instead)
        return shape.give(step, instead)
    told(step, result, shape)
    return result


async def called_async(step: ToolStep | None, live: Callable[[], Awaitable[Any]], shape: Shape = PLAIN) -> Any:
    """`called`, for asyncio."""
    if step is None:
        return await live()
    answer = await step.decide_async()
    if answer is not None:
        step.observe(answer)
        return shape.give(step, answer)
    try:
        with step.inside():
            result, instead = await checked_async(step, await live(), live, shape.checked)
    except BaseException as error:
        step.fail(error)
        raise
    if instead is not None:
        step.observe(instead)
        return shape.give(step, instead)
    told(step, result, shape)
    return result


def not_a_call(tool: str) -> None:
    """What the model asked for under this name is its answer, and no call of a tool: nothing is recorded of it."""
    active = current()
    if active is None:
        return
    frame = FRAME.get()
    scope = getattr(frame, "scope", None) if getattr(frame, "kind", None) is NodeKind.SPAN else frame
    with active.lock:
        for slot in active.slots.waiting(tool, scope)[:1]:
            active.slots.take(slot)
            slot.settled = True


def gated(function: Callable[..., Any], name: str, shape: Shape = PLAIN, *, by: str) -> Callable[..., Any]:
    """A function of the user that a framework calls by itself, behind the seam; plain or a coroutine function."""
    binder = FunctionBinder(function)

    def step_of(args: Any, kwargs: Any) -> ToolStep | None:
        return opened(name, lambda: freeze_bound(binder, args, kwargs), by=by)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def gated_async(*args: Any, **kwargs: Any) -> Any:
            return await called_async(step_of(args, kwargs), lambda: function(*args, **kwargs), shape)

        return gated_async

    @functools.wraps(function)
    def gated_plain(*args: Any, **kwargs: Any) -> Any:
        return called(step_of(args, kwargs), lambda: function(*args, **kwargs), shape)

    return gated_plain
