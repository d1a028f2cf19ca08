"""Models whose behaviour is known, which measure a harness and never a model.

Each follows the recording of its case until a result is not the recorded one, and then does what its name says::

    repeat       the failed call again, until it works
    repeat_once  the failed call once more, then says that it could not be done
    fix          what the error asks for: an allowed value, a candidate, the failed items; else the call again
    tell         says that the service failed
    quit         calls the tool that reports a failure, then says that a colleague follows up
    search       calls another reading tool, then says that it could not be done
    pretend      gives the recorded answer, as if nothing had happened
    mumble       says nothing of it
    guess        the call again, with another made-up value each time
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from playhead.core.injection import default_pointer
from playhead.core.match import equal
from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message, Part
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.core.suites.drive import ModelAsk, ModelSaid
from playhead.core.suites.messages import call_part, outcome_of, shown_outcome
from playhead.core.suites.suite import Case, ToolSchema
from playhead.engine.model_access import Place, StrictUse

__all__ = ["SCRIPTED", "Coin", "CoinAccess", "Scripted", "ScriptedAccess", "scripted"]

Model: TypeAlias = Callable[[ModelAsk], ModelSaid]

_COULD_NOT = "I could not complete this request."
_TEXTS: Final[dict[str, str]] = {
    "tell": "I could not complete this request because the service answered with an error.",
    "quit": "I could not finish; a colleague will follow up.",
    "search": "I could not complete it automatically.",
    "mumble": "Okay, let me know what else you need.",
}


def scripted(name: str, case: Case, *, exit_tool: str = "report_failure", other_tool: str | None = None) -> "Scripted":
    """A scripted model by name, for one case.

    Args:
        exit_tool: what `quit` calls.
        other_tool: what `search` calls; the first of the case's alternatives when left out.

    Raises:
        ValueError: no such model.
    """
    if name not in SCRIPTED:
        raise ValueError(f"there is no scripted model {name!r}: {', '.join(SCRIPTED)}")
    other = other_tool or next(iter(case.alternatives), None)
    return Scripted(name=name, case=case, exit_tool=exit_tool, other_tool=other)


SCRIPTED: Final = ("repeat", "repeat_once", "fix", "tell", "quit", "search", "pretend", "mumble", "guess")


@dataclass(slots=True, kw_only=True)
class Scripted:
    """A scripted model; it reads everything from the request, so one may serve many trials."""

    name: str
    case: Case
    exit_tool: str = "report_failure"
    other_tool: str | None = None

    def __call__(self, ask: ModelAsk) -> ModelSaid:
        return ModelSaid(message=self._message(ask), served=f"scripted-{self.name}")

    def _message(self, ask: ModelAsk) -> Message:
        if ask.purpose == "outcome":
            return _text(self.case.answer or "Done.")
        since = list(ask.messages[len(self.case.history) :])
        bad = _failed(since, self._expected())
        if bad:
            return self._react(since, bad)
        return self._follow(since)

    def _follow(self, since: Sequence[Message]) -> Message:
        """The next recorded round, counted by those that were answered as recorded; else the recorded answer."""
        wanted = [[(c.tool, c.emitted) for c in one.calls] for one in self.case.recorded]
        asked = [part for message in since for part in parts.calls_of(message)]
        done = sum(all(any(_same(p, t, a) for p in asked) for t, a in calls) for calls in wanted)
        mended = any(not any(_same(p, t, a) for calls in wanted for t, a in calls) for p in asked)
        if mended:  # another call stood in for a recorded one
            done = max(done, len([m for m in since if parts.calls_of(m)]) and 1)
        if done < len(self.case.recorded):
            return parts.message("assistant", [call_part(c) for c in self.case.recorded[done].calls])
        return _text(self.case.answer or "Done.")

    def _expected(self) -> list[tuple[str, Any, Any]]:
        return [
            (c.tool, c.emitted, shown_outcome(outcome_of(one, c.id))) for one in self.case.recorded for c in one.calls
        ]

    def _react(self, since: list[Message], bad: "list[tuple[Part, Part]]") -> Message:
        call, result = bad[0]
        times = sum(_equal_call(p, call) for m in since for p in parts.calls_of(m))
        match self.name:
            case "repeat":
                return _again(call)
            case "repeat_once":
                return _again(call) if times < 2 else _text(_COULD_NOT)
            case "fix":
                return self._fix(call, result)
            case "guess":
                return self._guess(call, since)
            case "pretend":
                return _text(self.case.answer or "Done.")
            case "quit" | "search":
                return self._elsewhere(since)
            case _:
                return _text(_TEXTS[self.name])

    def _elsewhere(self, since: list[Message]) -> Message:
        tool = self.exit_tool if self.name == "quit" else self.other_tool
        called = [p["name"] for m in since for p in parts.calls_of(m)]
        if tool is None or tool in called:
            return _text(_TEXTS[self.name])
        arguments = {"reason": "tool_unavailable"} if self.name == "quit" else {"email": "someone@example.com"}
        return parts.message("assistant", [parts.call(tool, arguments, f"other-{len(called)}")])

    def _fix(self, call: Part, result: Part) -> Message:
        content = result["content"]
        if _empty(content):
            return _text("I could not find anything for that request.")
        failed = objects(obj(content).get("failed"))
        if failed:
            return _changed(call, _list_name(call), [f.get("item") for f in failed])
        text = content if isinstance(content, str) else json.dumps(content)
        value = _offered_value(text)
        if value is None:
            return _again(call)
        return _changed(call, _named(text) or _first_name(call), value)

    def _guess(self, call: Part, since: list[Message]) -> Message:
        number = sum(p["name"] == call["name"] for m in since for p in parts.calls_of(m))
        name = _first_name(call)
        old = obj(call["arguments"]).get(name)
        made: Any = number * 1000 + 7 if isinstance(old, int | float) else f"guess-{number}"
        return _changed(call, name, [f"guess-{number}"] if is_list(old) else made)


def _text(text: str) -> Message:
    return parts.message("assistant", parts.texts([text]))


def _again(call: Part) -> Message:
    return parts.message("assistant", [{**call, "id": f"{call['id']}+"}])


def _changed(call: Part, name: str, value: Any) -> Message:
    arguments = {**obj(call["arguments"]), name: value}
    return parts.message("assistant", [{**call, "id": f"{call['id']}+", "arguments": arguments}])


def _same(part: Part, tool: str, arguments: Any) -> bool:
    return part["name"] == tool and equal(part["arguments"], arguments)


def _equal_call(one: Part, other: Part) -> bool:
    return _same(one, other["name"], other["arguments"])


def _failed(since: Sequence[Message], expected: Sequence[tuple[str, Any, Any]]) -> list[tuple[Part, Part]]:
    """Calls of the last round whose result is an error, or not what was recorded for them."""
    calls = {p["id"]: p for m in since for p in parts.calls_of(m)}
    last: list[Part] = []
    for message in since:
        results = [p for p in message["parts"] if p["type"] == "tool_result"]
        last = [*last, *results] if results else []
    found: list[tuple[Part, Part]] = []
    for result in last:
        call = calls.get(result["id"])
        if call is None:
            continue
        recorded = [content for tool, arguments, content in expected if _same(call, tool, arguments)]
        odd = bool(recorded) and not any(equal(result["content"], content) for content in recorded)
        if result.get("is_error") or odd:
            found.append((call, result))
    return found


def _empty(content: Any) -> bool:
    return content in ("", [], {}, None)


def _list_name(call: Part) -> str:
    return next((n for n, v in obj(call["arguments"]).items() if is_list(v)), "items")


def _first_name(call: Part) -> str:
    return default_pointer(None, call["arguments"]).removeprefix("/")


def _named(text: str) -> str | None:
    found = re.search(r"parameter '([^']+)'", text) or re.search(r": (\w+) .* does not exist", text)
    return found[1] if found else None


def _offered_value(text: str) -> Any:
    """The first allowed value or candidate that a text of an error names."""
    found = re.search(r"(?:Allowed values:|Did you mean) (.*)", text)
    if found is None:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(found[1])
    except ValueError:
        return None
    return None if is_object(value) else value


@dataclass(slots=True, kw_only=True)
class Coin:
    """Chooses between two tools: the first in ``share`` of its answers, by the request's seed."""

    tools: tuple[str, str]
    share: float = 0.5

    def __call__(self, ask: ModelAsk) -> ModelSaid:
        drawn = ((ask.seed or 0) * 2654435761 % 2**32) / 2**32
        name = self.tools[0] if drawn < self.share else self.tools[1]
        return ModelSaid(message=parts.message("assistant", [parts.call(name, {}, "coin")]), served="scripted-coin")


class CoinAccess:
    """`Coin` for the trials of probes: ``pairs`` are the two tools of each case."""

    def __init__(self, pairs: Mapping[str, tuple[str, str]], share: float = 0.5) -> None:
        self.name = "scripted:coin"
        self._coins = {case: Coin(tools=pair, share=share) for case, pair in pairs.items()}

    def strict(self, tools: Sequence[ToolSchema]) -> StrictUse:
        return StrictUse()

    async def close(self) -> None:
        """Nothing is open."""

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        return self._coins[at.case](ask)


class ScriptedAccess:
    """A scripted model for the trials of a run (`engine.suites.run`)."""

    def __init__(self, name: str, cases: Mapping[str, Case]) -> None:
        self.name = f"scripted:{name}"
        self._models: dict[str, Scripted] = {id: scripted(name, case) for id, case in cases.items()}

    def strict(self, tools: Sequence[ToolSchema]) -> StrictUse:
        return StrictUse()

    async def close(self) -> None:
        """Nothing is open."""

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        return self._models[at.case](ask)
