"""A graph's inputs and output in recordings, and inputs of recordings for a graph.

State that a graph starts with stands as it is; messages in it are ``{"role", "content", ...}``. Beside it:
``graph_configurable`` (the config's own values), ``graph_context``, ``graph_form`` where the input is a bare list, and
``graph_entry`` where the run was not an `invoke` (so that a replay starts it the same way).
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from playhead.adapters.langgraph import objects
from playhead.core.canonical import NoKeyError, from_stored, to_stored
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON

_BESIDE = ("graph_configurable", "graph_context", "graph_form", "graph_entry")
_OWN = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")
_ROLES = {"human": "user", "system": "system"}
_PAIRS = {"user": "user", "human": "user", "system": "system", "assistant": "assistant", "ai": "assistant"}


# --- recorded -------------------------------------------------------------------------------------------------------


def encode(given: Any, config: Any, context: Any, entry: str) -> tuple[dict[str, Any], list[str]]:
    """Everything needed to start the graph again, and the names of what has no stored form."""
    made: dict[str, Any] = {}
    refused: list[str] = []
    types = objects.graph_types()
    if given is None or (types is not None and isinstance(given, types.Command)):
        refused.append("input: the run goes on from a checkpoint")
    if is_list(given):
        made.update(messages=given, graph_form="list")
    elif is_object(given):
        made.update(given)
    elif given is not None:
        made.update({"graph_input": given} if isinstance(given, str | int | float | bool) else _fields(given))
    made = {str(name): _member(str(name), value, refused) for name, value in made.items()}
    values = {k: v for k, v in obj(obj(config).get("configurable")).items() if not k.startswith("__") and k not in _OWN}
    for name, value in (("graph_configurable", values or None), ("graph_context", context)):
        if value is not None:
            made[name] = _member(name, value, refused)
    if entry != "invoke":
        made["graph_entry"] = entry
    return {name: value for name, value in made.items() if value is not _NOTHING}, refused


_NOTHING = object()


def _member(name: str, value: Any, refused: list[str]) -> Any:
    try:
        return from_stored(to_stored(_plain(value)))
    except NoKeyError:
        pass
    try:
        return from_stored(objects.encode(value))
    except Exception as error:  # noqa: BLE001 - objects of the user
        refused.append(f"{name}: {type(error).__name__}: {error}")
        return _NOTHING


def _fields(given: Any) -> dict[str, Any]:
    """A state that is a record."""
    held = getattr(given, "__dict__", None)
    return dict(held) if held else {"graph_input": given}


def _plain(value: Any) -> Any:
    if is_list(value):
        return [_plain_message(v) for v in value]
    return _plain_message(value)


def _plain_message(value: Any) -> Any:
    pair = objects.as_tuple(value)
    if len(pair) == 2 and pair[0] in _PAIRS:
        return {"role": _PAIRS[pair[0]], "content": pair[1]}
    if not isinstance(value, BaseMessage):
        return value
    if value.type not in _ROLES or value.additional_kwargs:
        return from_stored(objects.encode(value))
    made: dict[str, Any] = {"role": _ROLES[value.type], "content": value.content}
    return {**made, **{name: v for name in ("name", "id") if (v := getattr(value, name))}}


def messages_of(state: Any) -> Sequence[Any]:
    """The messages of a state; none where it has none."""
    found = state if is_list(state) else state.get("messages") if is_object(state) else getattr(state, "messages", None)
    return found if is_list(found) else []


def messages_given(arguments: Any) -> Sequence[Any]:
    """The messages of the graph's state that a tool was given: the state or its messages injected, or its runtime's."""
    for value in obj(arguments).values():
        found = messages_of(getattr(value, "state", value))
        if found and isinstance(found[0], BaseMessage):
            return found
    return []


def output(state: Any, last: AIMessage | None) -> Any:
    """What a run gave: the last answer's text for a conversation, with other parts of the state beside it; else all.

    Args:
        state: the final state, None where only the stream was seen.
        last: the last answer of the graph's own model.
    """
    if state is None:
        return _text(last) if last is not None else None
    paused = [one.value for one in obj(state).get("__interrupt__", ())]
    said = messages_of(state)
    if not said:
        return _safe(state)
    ended = next((m for m in reversed(said) if isinstance(m, AIMessage)), last)
    answer = _text(ended) if ended is not None else None
    rest = {
        k: v for k, v in obj(state).items() if k not in ("messages", "__interrupt__") and v not in (None, [], {}, "")
    }
    if paused:
        rest["interrupts"] = paused
    return {"answer": answer, **_safe(rest)} if rest else answer


def _text(message: AIMessage) -> str:
    text: Any = message.text
    return str(text() if callable(text) and not isinstance(text, str) else text)


def _safe(state: Any) -> Any:
    """The state as data; what has no stored form as its text."""
    if is_object(state):
        return {str(name): _safe_value(value) for name, value in state.items()}
    return _safe_value(state)


def _safe_value(value: Any) -> Any:
    try:
        return from_stored(objects.encode(value))
    except NoKeyError:
        return f"<{type(value).__name__}>"


# --- started again --------------------------------------------------------------------------------------------------


def decode(recorded: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A graph's input, the keyword arguments to run it with, and what is said beside them."""
    if not is_object(recorded):  # an import: the bare prompt, or messages
        return {"messages": recorded if is_list(recorded) else [HumanMessage(str(recorded))]}, {}, {}
    if set(recorded) == {"prompt"}:
        return {"messages": [HumanMessage(str(recorded["prompt"]))]}, {}, {}
    beside = {name: objects.decode(to_stored(recorded[name])) for name in _BESIDE if name in recorded}
    state: dict[str, JSON] = {name: v for name, v in recorded.items() if name not in _BESIDE}
    if set(state) == {"graph_input"}:
        given: Any = state["graph_input"]
    else:
        given = {name: _restored(value) for name, value in state.items()}
        given = given["messages"] if beside.get("graph_form") == "list" else given
    options: dict[str, Any] = {}
    if "graph_configurable" in beside:
        options["config"] = {"configurable": beside["graph_configurable"]}
    if "graph_context" in beside:
        options["context"] = beside["graph_context"]
    return given, options, beside


def _restored(value: Any) -> Any:
    value = objects.decode(to_stored(value))
    return [_message(v) for v in value] if is_list(value) else value


def _message(value: Any) -> Any:
    """A message that was written as role and content; anything else as it is."""
    if not is_object(value) or not {"role", "content"} <= set(value) or set(value) - {"role", "content", "name", "id"}:
        return value
    kind = {"user": HumanMessage, "system": SystemMessage}.get(value["role"])
    more = {name: value[name] for name in ("name", "id") if value.get(name)}
    return value if kind is None else kind(content=value["content"], **more)
