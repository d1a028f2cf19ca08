"""Sets of tool schemas: read from files in the forms that are around, and from what recorded model calls offered."""

from collections.abc import Iterable
from pathlib import Path

from playhead.core.canonical import parse_json
from playhead.core.evaluation import as_text, failed, tool_calls
from playhead.core.lint.errors import Failure
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.core.suites.suite import ToolSchema
from playhead.core.values import JSON, NodeKind
from playhead.errors import UsageError
from playhead.store.ports import Store

_SCHEMAS = ("parameters", "inputSchema", "input_schema")


def read_tools(path: Path) -> list[ToolSchema]:
    """The tools of a JSON file: a list of them, an object of them by name, or either under ``tools`` (as MCP servers
    list them, and folders of suites hold them). Each in OpenAI's, Anthropic's or MCP's form.

    Raises:
        UsageError: the file cannot be read, or holds something that is no tool; names its place.
    """
    try:
        held = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"tools cannot be read from {str(path)!r}: {error}") from None
    if is_object(held) and "tools" in held:
        held = held["tools"]
    listed: list[tuple[str, JSON]] = (
        [(name, {"name": name, **obj(one)}) for name, one in held.items()]
        if is_object(held)
        else [(str(place), one) for place, one in enumerate(held)]
        if is_list(held)
        else []
    )
    if not listed:
        raise UsageError(f"{str(path)!r} holds no tools", hint="a JSON list of tool schemas")
    return [_tool(one, f"{path}: tool {place}") for place, one in listed]


def _tool(raw: JSON, where: str) -> ToolSchema:
    declared = obj(raw)
    declared = {**declared, **obj(declared.get("function"))}
    name = declared.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}: no tool schema: it has no name")
    schema = next((declared[key] for key in _SCHEMAS if is_object(declared.get(key))), None)
    return ToolSchema(
        name=name,
        description=str(declared.get("description") or ""),
        parameters=schema if schema is not None else {"type": "object", "properties": {}},
        strict=declared.get("strict") is True,
    )


def offered_tools(store: Store, session_ids: Iterable[str]) -> list[ToolSchema]:
    """The tools that the model calls of sessions offered; of one name the schema that was seen last."""
    found: dict[str, ToolSchema] = {}
    for id in session_ids:
        for node in store.sessions.nodes(id):
            if node.kind is NodeKind.MODEL_CALL:
                for raw in objects(obj(node.inputs).get("tools")):
                    if isinstance(raw.get("name"), str):
                        found[str(raw["name"])] = _tool(raw, id)
    return list(found.values())


def failures(store: Store, session_ids: Iterable[str]) -> list[Failure]:
    """The failed tool calls of sessions with the texts that their models saw."""
    found: list[Failure] = []
    for id in session_ids:
        for node in tool_calls(store.sessions.nodes(id)):
            if node.call is not None and node.outcome is not None and failed(node):
                error = node.outcome.error
                text = error.message if error is not None else as_text(node.outcome.value)
                found.append(Failure(node.call.tool, node.call.arguments, text))
    return found
