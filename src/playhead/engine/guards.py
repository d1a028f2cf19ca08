"""Guards in live use: the seam checks what a live tool gave, and the adapter hands on what comes of it.

A result that a recording gives is never checked: a replay gives the model what it was given, corrections included.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from playhead.core.canonical import to_stored
from playhead.core.effects import ToolEffect, retry_safe
from playhead.core.guards import Fault, Guard, again, correction, fault, read_guards, told
from playhead.core.values import JSON, Outcome
from playhead.engine.binding import lowered
from playhead.engine.steps import ToolStep
from playhead.errors import UsageError

__all__ = ["GuardScope", "checked", "checked_async", "guards"]


class GuardScope:
    """Guards that are on, until `off` or the end of a ``with``. Those turned on last come first."""

    def __init__(self, guards: Mapping[str, Guard], effects: Mapping[str, ToolEffect]) -> None:
        self.guards, self.effects = guards, effects

    def off(self) -> None:
        """Turns them off; once is enough."""
        if self in _on:
            _on.remove(self)

    def __enter__(self) -> "GuardScope":
        return self

    def __exit__(self, *_: object) -> None:
        self.off()


_on: list[GuardScope] = []


def guards(given: Mapping[str, Any], *, effects: Mapping[str, Any] | None = None) -> GuardScope:
    """Turns guards on, for every agent of this process that is recorded or replayed.

    Args:
        given: by the name of the tool, what is checked: ``{"search": {"not_empty": True, "action": "retry"}}``.
        effects: what tools do to the world, as a suite declares it: ``{"search": "read"}``. A call is made again only
            where that, or what the adapter knows of the tool, says that repeating is safe.

    Raises:
        UsageError: something is no guard or no effect.
    """
    declared = {k: {"class": v} if isinstance(v, str) else v for k, v in (effects or {}).items()}
    try:
        made = GuardScope(
            read_guards(given),
            {k: v if isinstance(v, ToolEffect) else ToolEffect.model_validate(v) for k, v in declared.items()},
        )
    except ValueError as error:
        raise UsageError(str(error), hint="not_empty, schema, range, action (retry or message), message") from None
    _on.append(made)
    return made


UNCHECKED: Any = object()
"""What ``shown`` gives for a result that is none to check: an error that the tool reported itself."""


class Checked(NamedTuple):
    """What the adapter hands on: the live result, or ``instead`` of it an outcome that the model reads."""

    result: Any
    instead: Outcome | None = None


def checked(step: Any, result: Any, live: Callable[[], Any], shown: Callable[[Any], Any] | None = None) -> Checked:
    """Checks what a live tool gave.

    Args:
        live: calls the tool once more; what it raises is raised.
        shown: what of a result the model sees, where that is not the result itself.
    """
    watch = _watch(step, shown)
    first = None if watch is None else watch.fault(result)
    if watch is None or first is None:
        return Checked(result)
    if not again(watch.guard, safe=watch.safe):
        return watch.instead(result, first, attempts=1)
    return watch.second(result, first, live())


async def checked_async(
    step: Any, result: Any, live: Callable[[], Awaitable[Any]], shown: Callable[[Any], Any] | None = None
) -> Checked:
    """`checked`, for asyncio."""
    watch = _watch(step, shown)
    first = None if watch is None else watch.fault(result)
    if watch is None or first is None:
        return Checked(result)
    if not again(watch.guard, safe=watch.safe):
        return watch.instead(result, first, attempts=1)
    return watch.second(result, first, await live())


class _Watch(NamedTuple):
    step: ToolStep
    guard: Guard
    safe: bool
    shown: Callable[[Any], Any] | None

    def fault(self, result: Any) -> Fault | None:
        """What is wrong with a result; nothing where it cannot be read: the tool's result stands then."""
        try:
            seen = self.seen(result)
            return None if seen is UNCHECKED else fault(self.guard, seen)
        except Exception as error:  # noqa: BLE001 - the tool's result stands, whatever happens here
            self.step.active.recorder.count("errors", error)
            return None

    def seen(self, result: Any) -> JSON:
        """A result as plain data, records as their members."""
        shown = result if self.shown is None else self.shown(result)
        return shown if shown is UNCHECKED else to_stored(shown, lower=lowered)

    def second(self, before: Any, first: Fault, result: Any) -> Checked:
        """After the call was made again."""
        still = self.fault(result)
        if still is not None:
            return self.instead(result, still, attempts=2)
        self.step.note(guard=told(first, action="retry", attempts=2, withheld=self.seen(before)))
        return Checked(result)

    def instead(self, result: Any, wrong: Fault, *, attempts: int) -> Checked:
        self.step.note(guard=told(wrong, action="message", attempts=attempts, withheld=self.seen(result)))
        return Checked(result, correction(self.step.tool, self.guard, wrong, safe=self.safe, retried=attempts > 1))


def _watch(step: Any, shown: Callable[[Any], Any] | None) -> _Watch | None:
    if not _on or not isinstance(step, ToolStep):
        return None
    for scope in reversed(_on):
        guard = scope.guards.get(step.tool)
        if guard is not None:
            declared = scope.effects.get(step.tool) or ToolEffect.model_validate({"class": step.effect})
            return _Watch(step, guard, retry_safe(declared, step.identity.arguments), shown)
    return None
