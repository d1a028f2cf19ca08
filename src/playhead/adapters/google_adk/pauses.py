# pyright: basic, reportMissingImports=false
"""Calls of long-running tools, whose results the program brings later in a message of the user's."""

from typing import Any
from weakref import WeakKeyDictionary

from playhead.adapters.google_adk.requests import CODEC
from playhead.adapters.google_adk.results import DICTS
from playhead.core.canonical import to_stored
from playhead.core.values import Outcome, OutcomeKind
from playhead.engine.calling import opened
from playhead.engine.seam import ToolStep, current


class Waiting:
    """Calls by session and id: what is brought for one is its next attempt."""

    def __init__(self) -> None:
        self._calls: WeakKeyDictionary[Any, dict[str, tuple[str, Any]]] = WeakKeyDictionary()

    def add(self, step: ToolStep, arguments: dict[str, Any]) -> None:
        if step.call_id is not None:
            self._calls.setdefault(step.active, {})[step.call_id] = (step.tool, dict(arguments))

    async def answered(self, message: Any) -> Any:
        """Records results that a message brings; in a replay the recorded ones take their place.

        Returns:
            The message to go on with, None for the one that came.

        Raises:
            ReplayStop: the replay ends here.
        """
        active = current()
        calls = self._calls.get(active, {}) if active is not None else {}
        if not calls:
            return None
        parts = list(message.parts or ())
        changed = False
        for number, part in enumerate(parts):
            given = part.function_response
            if given is None or given.id not in calls:
                continue
            tool, arguments = calls[given.id]
            step = opened(tool, arguments, by=CODEC, call_id=given.id)
            answer = await step.decide_async() if step is not None else None
            if step is not None:
                step.observe(answer or Outcome(kind=OutcomeKind.VALUE, value=to_stored(given.response)))
            if step is not None and answer is not None:
                failed = answer.kind is OutcomeKind.ERROR
                response = DICTS.refusal(answer) if failed else DICTS.give(step, answer)
                instead = given.model_copy(update={"response": response})
                parts[number] = part.model_copy(update={"function_response": instead})
                changed = True
        return message.model_copy(update={"parts": parts}) if changed else None
