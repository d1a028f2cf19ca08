# pyright: reportMissingImports=false
"""Scripted models for Google ADK."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from playhead.testing.conformance.adapter import NotApplicable, Spec


class Script(BaseLlm):
    """The scripted model of a spec, and what it was asked."""

    _spec: Spec = PrivateAttr()
    _asked: list[tuple[str, bytes]] = PrivateAttr(default_factory=list)
    _usage: Any = PrivateAttr(default=None)
    _breaks: Any = PrivateAttr(default=None)
    _told: Any = PrivateAttr(default=None)

    @classmethod
    def of(cls, spec: Spec, usage: Any = None) -> "Script":
        made = cls(model=spec.model)
        made._spec, made._usage = spec, usage
        return made

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse]:
        config = llm_request.config.model_dump(mode="json", exclude_none=True, exclude={"labels", "response_schema"})
        contents = [c.model_dump(mode="json", exclude_none=True) for c in llm_request.contents]
        self._asked.append((llm_request.model, json.dumps([contents, config]).encode()))
        if self._told is not None:
            self._told()
            await asyncio.Event().wait()
        answer = self._answer(llm_request.contents)
        texts = [part.text for part in answer.parts if part.text]
        if stream and texts:
            half = len(texts[0]) // 2
            for piece in (texts[0][:half], texts[0][half:]):
                said = types.Content(role="model", parts=[types.Part(text=piece)])
                yield LlmResponse(content=said, partial=True)
        if self._breaks is not None:
            raise self._breaks
        yield LlmResponse(content=answer, usage_metadata=self._usage, partial=False if stream else None)

    def _answer(self, contents: Sequence[Any]) -> types.Content:
        parts = [part for content in contents for part in content.parts or ()]
        start = max((n for n, p in enumerate(parts) if p.text and _of_user(contents, p)), default=0)
        results = [part.function_response.response for part in parts[start:] if part.function_response]
        turn, left = 0, len(results)
        while left > 0 and turn < len(self._spec.turns):
            left -= len(self._spec.turns[turn])
            turn += 1
        if turn < len(self._spec.turns):
            return types.Content(role="model", parts=[asking(call) for call in self._spec.turns[turn]])
        text = self._spec.says(results) if self._spec.says else f"saw {results}"
        return types.Content(role="model", parts=[types.Part(text=text)])


def _of_user(contents: Sequence[Any], part: Any) -> bool:
    return any(content.role == "user" and any(p is part for p in content.parts or ()) for content in contents)


def asking(call: Any) -> types.Part:
    if isinstance(call.arguments, str):
        raise NotApplicable("the framework's models give arguments as objects")
    return types.Part(function_call=types.FunctionCall(id=call.id, name=call.tool, args=call.arguments or {}))


class Follower(Script):
    """A script whose results are those of its own tools, wherever in the contents they stand."""

    def _answer(self, contents: Sequence[Any]) -> types.Content:
        names = {tool.__name__ for tool in self._spec.tools}
        parts = [part for content in contents for part in content.parts or ()]
        mine = [
            p.function_response.response for p in parts if p.function_response and p.function_response.name in names
        ]
        if len(mine) < len(self._spec.turns):
            return types.Content(role="model", parts=[asking(call) for call in self._spec.turns[len(mine)]])
        return types.Content(role="model", parts=[types.Part(text=f"saw {mine}")])
