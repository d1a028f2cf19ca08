"""Which kind of step a span is, from the attributes of every tracer that writes OTLP. The specific ones go first."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from playhead.core.values import JSON, NodeKind

_MODEL, _TOOL, _AGENT, _SPAN = NodeKind.MODEL_CALL, NodeKind.TOOL_CALL, NodeKind.AGENT_CALL, NodeKind.SPAN


class Kind(NamedTuple):
    kind: NodeKind | None
    word: str | None


def _table(**words: NodeKind) -> Callable[[str], NodeKind]:
    return lambda word: words.get(word.lower().replace(" ", "_"), _SPAN)


def _ai_sdk(operation: str) -> NodeKind:
    if operation == "ai.toolCall":
        return _TOOL
    if operation.endswith((".doGenerate", ".doStream")):
        return _MODEL
    whole = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
    return _AGENT if operation in whole else _SPAN


_RULES: tuple[tuple[str, Callable[[str], NodeKind]], ...] = (
    ("langfuse.observation.type", _table(generation=_MODEL, tool=_TOOL, agent=_AGENT)),
    ("lmnr.span.type", _table(llm=_MODEL, tool=_TOOL)),
    ("ai.operationId", _ai_sdk),
    ("openinference.span.kind", _table(llm=_MODEL, tool=_TOOL, agent=_AGENT)),
    ("span.type", _table(llm_request=_MODEL, tool=_TOOL, interaction=_AGENT)),
    (
        "gen_ai.operation.name",
        _table(
            chat=_MODEL,
            generate_content=_MODEL,
            text_completion=_MODEL,
            execute_tool=_TOOL,
            invoke_agent=_AGENT,
            create_agent=_AGENT,
            invoke_workflow=_AGENT,
            plan=_AGENT,
        ),
    ),
    ("langsmith.span.kind", _table(llm=_MODEL, tool=_TOOL)),
    ("llm.request.type", _table(chat=_MODEL, completion=_MODEL)),
    ("traceloop.span.kind", _table(tool=_TOOL, agent=_AGENT)),
    ("mcp.method.name", lambda word: _TOOL if word == "tools/call" else _SPAN),
)

_UNREAD = {
    "langfuse.observation.type": "Langfuse",
    "lmnr.span.type": "Laminar",
    "ai.operationId": "the AI SDK",
    "openinference.span.kind": "OpenInference",
    "span.type": "Claude Code",
    "langsmith.span.kind": "LangSmith",
}


def unread_tracer(attributes: Mapping[str, JSON]) -> str | None:
    """The tracer whose own attributes hold content that only its kinds are read from; None when all is read."""
    return next((name for attribute, name in _UNREAD.items() if attribute in attributes), None)


def kind_of(attributes: Mapping[str, JSON]) -> Kind:
    """The kind and the tracer's own word; no kind when no tracer names one."""
    for name, read in _RULES:
        word: Any = attributes.get(name)
        if isinstance(word, str) and word:
            return Kind(read(word), word)
    if "agent_name" in attributes and ("final_result" in attributes or "all_messages" in attributes):
        return Kind(_AGENT, "agent")
    return Kind(None, None)
