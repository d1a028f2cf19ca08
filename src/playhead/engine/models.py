"""The one door to the model layer: results written by a model (the llm policy), and questions to a judge.

The layer is pydantic-ai's, an extra; nothing here is imported before a policy asks for it.
"""

import importlib.util
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from playhead.core.canonical import canonical_stored, parse_json
from playhead.core.policy import LLMConfig
from playhead.core.values import JSON, Outcome, OutcomeKind
from playhead.engine.egress import own_traffic
from playhead.errors import ModelAccessError, RefusedError

_SYSTEM = (
    "You stand in for a tool that an assistant calls. Write what the tool would return for the given arguments: "
    "the result only, as one JSON value, without explanation and without code fences. Stay consistent with the "
    "examples of earlier results, in form and in facts."
)
_TRIES = 2


class ToolWriter:
    """Writes tool results with a model.

    Args:
        default_model: used where the policy names none, as ``provider:name``.
    """

    def __init__(self, default_model: str | None = None) -> None:
        self.default_model = default_model

    def check(self, config: LLMConfig) -> None:
        """Refuses a config that no model can serve here.

        Raises:
            RefusedError: the model layer is not installed, no model is named, or its client cannot be built.
        """
        if importlib.util.find_spec("pydantic_ai") is None:
            raise RefusedError("the llm policy needs the model layer", hint="pip install 'playhead[llm]'")
        self._model(config)

    def _model(self, config: LLMConfig) -> Any:
        from pydantic_ai.models import infer_model

        name = config.model or self.default_model
        if not name:
            raise RefusedError(
                "the llm policy names no model", hint='add "model": "provider:name", or set llm_model in the project'
            )
        try:
            return infer_model(name)
        except Exception as error:
            raise RefusedError(f"the llm policy's model {name!r} cannot be used: {error}") from error

    def write(self, config: LLMConfig, request: "ToolRequest") -> Outcome:
        """The outcome that the model writes for one call, valid by the output schema when there is one.

        Raises:
            ModelAccessError: the model could not be asked, or wrote nothing valid.
        """
        from pydantic_ai.direct import model_request_sync

        model, dialogue = self._model(config), _dialogue(config, request)
        messages = next(dialogue)
        while True:
            with own_traffic(), _translated(request.tool):
                response = model_request_sync(model, messages)
            try:
                messages = dialogue.send(response)
            except StopIteration as end:
                return end.value

    async def write_async(self, config: LLMConfig, request: "ToolRequest") -> Outcome:
        """`write`, for asyncio."""
        from pydantic_ai.direct import model_request

        model, dialogue = self._model(config), _dialogue(config, request)
        messages = next(dialogue)
        while True:
            with own_traffic(), _translated(request.tool):
                response = await model_request(model, messages)
            try:
                messages = dialogue.send(response)
            except StopIteration as end:
                return end.value


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """What a model is told of a tool and of one call of it; ``examples`` are (arguments, result) pairs."""

    tool: str
    arguments: JSON
    description: str = ""
    parameters: JSON = None
    output_schema: JSON = None
    examples: Sequence[tuple[JSON, JSON]] = ()


def _dialogue(config: LLMConfig, request: ToolRequest) -> Generator[list[Any], Any, Outcome]:
    """Yields the messages to send, takes the response, returns the outcome; whoever drives it does the I/O."""
    messages, problem = _ask(config, request), ""
    for _ in range(_TRIES):
        response = yield messages
        value, problem = _read(response, request.output_schema)
        if not problem:
            return Outcome(kind=OutcomeKind.VALUE, value=value)
        messages = _again(messages, response, problem)
    raise ModelAccessError(f"the model wrote no valid result for {request.tool!r}: {problem}")


@contextmanager
def _translated(tool: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        raise ModelAccessError(f"the model for tool {tool!r} could not be asked: {error}") from error


def _ask(config: LLMConfig, request: ToolRequest) -> list[Any]:
    from pydantic_ai.messages import ModelRequest

    lines = [f"Tool: {request.tool}"]
    if request.description:
        lines.append(f"Description: {request.description}")
    if request.parameters is not None:
        lines.append(f"Parameters (JSON Schema): {_text(request.parameters)}")
    if request.output_schema is not None:
        lines.append(f"The result must be valid by this JSON Schema: {_text(request.output_schema)}")
    if config.instructions:
        lines.append(f"Instructions: {config.instructions}")
    for asked, answered in list(request.examples)[:5]:
        lines.append(f"Example: {_text(asked)[:4000]} -> {_text(answered)[:4000]}")
    lines.append(f"Arguments: {_text(request.arguments)}")
    return [ModelRequest.user_text_prompt("\n".join(lines), instructions=_SYSTEM)]


def _again(messages: list[Any], response: Any, problem: str) -> list[Any]:
    from pydantic_ai.messages import ModelRequest

    told = ModelRequest.user_text_prompt(f"That is not valid: {problem}. Write the result again.", instructions=_SYSTEM)
    return [*messages, response, told]


def _read(response: Any, output_schema: JSON) -> tuple[JSON, str]:
    text = _said(response).strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1].rsplit("```", 1)[0].strip()
    try:
        value = parse_json(text)
    except ValueError:
        value = text
    if output_schema is None:
        return value, ""
    for error in jsonschema_rs.validator_for(output_schema).iter_errors(value):
        return value, f"/{'/'.join(map(str, error.instance_path))}: {error.message}"
    return value, ""


def _text(value: JSON) -> str:
    return canonical_stored(value).decode("utf-8", "replace")


def usable(model: str | None) -> Any:
    """The model layer's object for a model that can be asked from here.

    Raises:
        RefusedError: the model layer is not installed, no model is named, or its client cannot be built.
    """
    if importlib.util.find_spec("pydantic_ai") is None:
        raise RefusedError("asking a model needs the model layer", hint="pip install 'playhead[llm]'")
    from pydantic_ai.models import infer_model

    if not model:
        raise RefusedError("no model is named", hint='name one as "provider:name", or set llm_model in the project')
    try:
        return infer_model(model)
    except Exception as error:
        raise RefusedError(f"model {model!r} cannot be used: {error}") from error


def ask(model: str | None, *, system: str, prompt: str) -> str:
    """The text that a model answers to a question.

    Raises:
        RefusedError: as `usable`. ModelAccessError: the model could not be asked.
    """
    known = usable(model)
    from pydantic_ai.direct import model_request_sync
    from pydantic_ai.messages import ModelRequest

    try:
        with own_traffic():
            response = model_request_sync(known, [ModelRequest.user_text_prompt(prompt, instructions=system)])
    except Exception as error:
        raise ModelAccessError(f"model {model!r} could not be asked: {error}") from error
    return _said(response)


def _said(response: Any) -> str:
    return "".join(p.content for p in response.parts if getattr(p, "part_kind", "") == "text")
