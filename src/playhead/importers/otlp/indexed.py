"""Messages and tools spread over attributes: ``gen_ai.prompt.2.tool_calls.0.name``. Numbers sort as numbers."""

from collections.abc import Mapping
from typing import Any

from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.protocol.messages import detect, unwrap
from playhead.core.protocol.openai_chat import read_tool
from playhead.core.values import JSON


def prompt(found: Mapping[str, JSON]) -> list[JSON] | None:
    """The messages of the request; None when there are none."""
    return _messages(found, "gen_ai.prompt.")


def completion(found: Mapping[str, JSON]) -> list[JSON] | None:
    """The answer, as a list of messages (choices)."""
    return _messages(found, "gen_ai.completion.")


def functions(found: Mapping[str, JSON]) -> list[JSON] | None:
    """The tools offered."""
    listed = _listed(found, "llm.request.functions.")
    tools = [{**f, "parameters": unwrap(f.get("parameters"))} for f in listed if is_object(f) and "name" in f]
    return [read_tool(t) for t in tools] or None


def _messages(found: Mapping[str, JSON], prefix: str) -> list[JSON] | None:
    listed = _listed(found, prefix)
    return detect([_chat(m) for m in listed if is_object(m)]) if listed else None


def _chat(raw: dict[str, Any]) -> dict[str, Any]:
    calls = raw.get("tool_calls")
    called = [
        {"id": c.get("id"), "type": "function", "function": {"name": c.get("name"), "arguments": c.get("arguments")}}
        for c in (calls if is_list(calls) else ())
        if is_object(c)
    ]
    content = unwrap(raw.get("content"))
    blocks = is_list(content) and all(is_object(b) and "type" in b for b in content) and content
    made = {**raw, "role": raw.get("role") or "user", "content": content if blocks else raw.get("content")}
    made.pop("tool_calls", None)
    return {**made, "tool_calls": called} if called else made


def _listed(found: Mapping[str, JSON], prefix: str) -> list[Any]:
    """The numbered attributes below ``prefix`` as nested lists and objects."""
    tree: dict[str, Any] = {}
    for name, value in found.items():
        if not name.startswith(prefix):
            continue
        steps = name.removeprefix(prefix).split(".")
        at = tree
        for step in steps[:-1]:
            inner = at.setdefault(step, {})
            if not is_object(inner):
                break
            at = inner
        else:
            at[steps[-1]] = value
    shaped = _shaped(tree)
    return shaped if is_list(shaped) else []


def _shaped(tree: Any) -> Any:
    if not is_object(tree):
        return tree
    if tree and all(k.isascii() and k.isdigit() for k in tree):
        return [_shaped(tree[k]) for k in sorted(tree, key=int)]
    return {k: _shaped(v) for k, v in tree.items()}
