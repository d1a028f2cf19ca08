"""OpenAI chat transcripts: ``{"messages": [...], "model", "tools"}`` or a bare message list; a file or line each."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from playhead.core.assemble.records import RecordError, Trace
from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.assemble.spelling import clean_name
from playhead.core.assemble.transcript import read_messages, transcript_id, transcript_records
from playhead.core.protocol.forms import PARAM_NAMES
from playhead.core.protocol.openai_chat import read_choice, read_tool
from playhead.core.protocol.parts import stored
from playhead.core.values import JSON
from playhead.engine.documents import Document
from playhead.engine.imports import PlainReader, Plan, Planned

NAME = "openai_chat"

_PARAMS = frozenset({
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "seed", "presence_penalty",
    "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "parallel_tool_calls", "response_format",
    "reasoning_effort", "service_tier", "verbosity",
})  # fmt: skip
_READ = _PARAMS | {"messages", "model", "tools", "tool_choice", "id", "metadata"}


class OpenAIChatReader(PlainReader):
    """Every document is a session; nothing is kept between them."""

    def __init__(self, *, tools: Sequence[JSON] | None = None, instance: str = "", depth: int = 200) -> None:
        self._tools, self._instance, self._depth = tools, instance, depth

    def add(self, document: Document) -> Iterator[Planned]:
        body: Any = document.value if is_object(document.value) else {"messages": document.value}
        raw = body.get("messages")
        if not is_list(raw) or not raw:
            raise RecordError("undecodable", "no message list in it")
        own = body.get("id")
        messages = read_messages(raw, str(own or ""), self._depth)
        tools = [read_tool(t) for t in body["tools"] if is_object(t)] if body.get("tools") else self._tools
        model = body.get("model")
        records = transcript_records(
            messages,
            model=str(model) if model else None,
            tools=tools,
            tool_choice=read_choice(body.get("tool_choice")),
            params=_params(body),
            protocol=NAME,
        )
        metadata = {k: stored(v) for k, v in body["metadata"].items()} if is_object(body.get("metadata")) else {}
        if own is None and not document.position:
            metadata["source_file"] = document.file
        yield Plan(runs=((
            Trace(
                format=NAME,
                instance=self._instance,
                external_id=clean_name(str(own), 512) if own is not None else transcript_id(messages),
                metadata=metadata,
                transcript=messages,
                whole=True,
                file=PurePath(document.file).name,
                position=document.position or None,
                raw={k: stored(v) for k, v in body.items() if k not in _READ},
            ),
            records,
        ),))  # fmt: skip


def _params(body: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Parameters, if the transcript shows any: then it is one that shows them all."""
    shown = {PARAM_NAMES.get(k, k): stored(v) for k, v in body.items() if k in _PARAMS and v is not None}
    return shown or None
