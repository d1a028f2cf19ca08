# pyright: basic, reportMissingImports=false
"""What a tool's call leaves as an outcome, and back: its value, what it did by its context, and its pauses."""

from typing import Any, NamedTuple

from playhead.adapters.google_adk.requests import CODEC, VERSION
from playhead.core.canonical import from_stored, to_stored
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON, Native, Outcome, OutcomeKind
from playhead.engine.calling import Shape
from playhead.engine.seam import ToolStep, value_of

_ACTIONS = ("escalate", "skip_summarization", "transfer_to_agent")


class Returned(NamedTuple):
    """What a live tool returned, the tool, and the context of the call."""

    value: Any
    tool: Any
    context: Any


class Dicts(Shape):
    """Tools give dictionaries, and do things to the session by their context."""

    def outcome(self, result: Returned) -> Outcome:
        """A value; an error, also one of an MCP server; a pause, for a person or for a result that comes later."""
        value, tool, context = result
        asked = (getattr(context.actions, "requested_tool_confirmations", None) or {}).get(context.function_call_id)
        if asked is not None:
            confirmation = asked.model_dump(mode="json", exclude={"confirmed"})
            return _interrupt("approval", actions=_done(context.actions), result=value, confirmation=confirmation)
        if value is None and tool.is_long_running:
            return _interrupt("deferred", actions=_done(context.actions))
        if isinstance(value, dict) and set(value) == {"error"} and isinstance(value["error"], str):
            return Outcome(kind=OutcomeKind.RESULT_ERROR, value=to_stored(value["error"]))
        if hasattr(tool, "raw_mcp_tool") and is_object(value) and value.get("isError") is True:
            return Outcome(kind=OutcomeKind.RESULT_ERROR, value=_text(value), native=_native(result=value))
        kept = _done(context.actions)
        return Outcome(kind=OutcomeKind.VALUE, value=to_stored(value), native=_native(actions=kept) if kept else None)

    def value(self, outcome: Outcome) -> Any:
        """The framework takes None for "nobody answered"; it writes a tool's None as this dictionary."""
        value = value_of(outcome)
        return {"result": None} if value is None else value

    def again(self, outcome: Outcome, context: Any) -> None:
        """Does to the session what the recorded call did, and asks whom it asked."""
        data = _data(outcome)
        for name, what in (data.get("actions") or {}).items():
            if name == "state":
                for key, value in what.items():
                    context.state[key] = value
            elif name in _ACTIONS:
                setattr(context.actions, name, what)
        if outcome.kind is OutcomeKind.INTERRUPT and data.get("confirmation") is not None:
            context.request_confirmation(**data["confirmation"])

    def refusal(self, outcome: Outcome) -> dict[str, Any]:
        kept = _data(outcome).get("result")
        if kept is not None:
            return kept
        text = outcome.error.message if outcome.error is not None else outcome.value
        return {"error": text if isinstance(text, str) else repr(text)}

    def give(self, step: ToolStep, outcome: Outcome) -> Any:
        """A pause of the framework's own reads as it did: what a person is asked beside, or nothing, which waits."""
        if outcome.kind is OutcomeKind.INTERRUPT and outcome.native is not None and outcome.native.codec == CODEC:
            return _data(outcome).get("result")
        return super().give(step, outcome)


DICTS = Dicts()


def _interrupt(reason: str, **data: Any) -> Outcome:
    told = to_stored({"reason": reason, "metadata": data.get("confirmation")})
    return Outcome(kind=OutcomeKind.INTERRUPT, value=told, native=_native(**data))


def _native(**data: Any) -> Native:
    return Native(codec=CODEC, version=VERSION, data={name: to_stored(what) for name, what in data.items()})


def _data(outcome: Outcome) -> dict[str, Any]:
    native = outcome.native
    if native is None or native.codec != CODEC or native.version != VERSION or not is_object(native.data):
        return {}
    return {name: from_stored(what) for name, what in native.data.items()}


def _done(actions: Any) -> dict[str, Any]:
    done: dict[str, Any] = {name: getattr(actions, name, None) for name in _ACTIONS}
    done["state"] = dict(actions.state_delta or {})
    return {name: what for name, what in done.items() if what}


def _text(result: dict[str, Any]) -> JSON:
    """What an error of an MCP server says, for people and other adapters."""
    blocks = result.get("content")
    texts = [b["text"] for b in blocks if is_object(b) and isinstance(b.get("text"), str)] if is_list(blocks) else []
    return "\n".join(texts) if texts else to_stored(result)
