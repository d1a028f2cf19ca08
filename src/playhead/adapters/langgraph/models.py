"""The model seam: a chat model's own calls to its provider (`_generate`, `_stream` and their async forms).

Whatever leads there (`invoke`, `stream`, `stream_events`, batches, callbacks that ask for tokens) stays the
framework's, in a replay too: a recorded answer comes out of the same place as a live one.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.outputs.chat_generation import merge_chat_generation_chunks

from playhead.adapters.langgraph import memories, overrides, responses, twins
from playhead.adapters.langgraph import messages as forms
from playhead.adapters.langgraph.guard import trouble
from playhead.adapters.langgraph.overrides import Asked
from playhead.adapters.langgraph.scope import executable, is_root, remember
from playhead.core.protocol.shape import is_object
from playhead.core.values import NodeKind, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.frames import FRAME

PROTOCOL = "langchain"


def seen(model: BaseChatModel) -> BaseChatModel:
    """The model as it is asked inside a session."""
    return twins.twin(model, _METHODS)


class _Turn:
    """One request. ``step`` is None where nothing is recorded."""

    def __init__(self, model: BaseChatModel, messages: list[BaseMessage], stop: Any, kwargs: dict[str, Any]) -> None:
        self.asked = Asked(model, messages, stop, {k: v for k, v in kwargs.items() if k != "run_manager"})
        self.more = {k: v for k, v in kwargs.items() if k == "run_manager"}
        self.step: Any = None
        inner = getattr(FRAME.get(), "kind", None) is NodeKind.MODEL_CALL  # one method of a model calls another
        self.active = None if inner else seam.current()
        self.offered: frozenset[str] = frozenset()
        self.chunks: list[ChatGenerationChunk] = []
        self.cuts: list[int] = []
        self.first_at: int | None = None

    # --- before ---

    def begin(self) -> Outcome | None:
        """Opens the step for the request, changed by the override, and gives the recorded answer where there is one.

        Raises:
            ReplayStop: the replay ends here.
            Exception: the recorded or injected failure of the model.
        """
        if self.active is None:
            return None
        if self.active.replay is not None:
            self.active.replay.check()
        try:
            overrides.apply(self.asked, self.active, root=is_root())
            request = self._request()
            self.step = self.active.model_call(request.model or type(self.asked.model).__name__, request=request)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            trouble(error, "reading a model request")
            return None
        answer: Outcome | None = self.step.decide()
        if answer is not None and answer.kind is not OutcomeKind.VALUE:
            self.step.observe(answer)
            raise seam.exception_of(answer)
        return answer

    def _request(self) -> seam.ModelRequest:
        asked = self.asked
        tools = forms.tools(asked.kwargs.get("tools"))
        self.offered = frozenset(tool["name"] for tool in tools if is_object(tool) and "name" in tool)
        return seam.ModelRequest(
            messages=asked.messages,
            to_normal=forms.normal,
            tools=tools,
            tool_choice=forms.tool_choice(asked.kwargs),
            params=forms.params(asked.model, asked.stop, asked.kwargs),
            model=overrides.name_of(asked.model, asked.kwargs),
            provider=overrides.provider_of(asked.model),
            protocol=PROTOCOL,
        )

    def live(self, name: str) -> Any:
        """Calls the model's own method with the request."""
        asked = self.asked
        cls = type(asked.model).__mro__[1] if twins.is_twin(asked.model) else type(asked.model)
        return getattr(cls, name)(asked.model, asked.messages, stop=asked.stop, **asked.kwargs, **self.more)

    def streams(self, *names: str) -> bool:
        """Whether the model that is asked now has a stream of its own; an override may have put in one without."""
        return any(getattr(type(self.asked.model), n) is not getattr(BaseChatModel, n) for n in names)

    # --- after ---

    def answered(self, result: ChatResult) -> None:
        first = result.generations[0]
        self._answered(first.message, first.generation_info, result.llm_output)

    def _answered(self, message: BaseMessage, info: Any, output: Any = None, **how: Any) -> None:
        """The answer is complete (or as complete as it gets): announce its calls, then close the step."""
        if self.step is None:
            return
        try:
            answer = responses.whole(message)
            result = responses.result(answer, info, output, **how)
            self._announce(answer)
            self.step.observe(result)
            remember(answer)
            self._beside(answer, result)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.step.cancel()
            trouble(error, "reading a model's answer")

    def _announce(self, answer: AIMessage) -> None:
        """Reserves the calls that the agent has to answer; output tools belong to the answer itself."""
        runs = executable()
        calls: list[Any] = [*answer.tool_calls, *answer.invalid_tool_calls]
        self.step.announce(
            [
                seam.Requested(call.get("id"), call.get("name") or "", call.get("args"))
                for call in calls
                if runs is None or call.get("name") in runs or call.get("name") not in self.offered
            ]
        )

    def _beside(self, answer: AIMessage, result: seam.ModelResult) -> None:
        """Calls that no tool answers: those with arguments that are no JSON, and those that the provider ran."""
        active = self.active
        if active is None or self.step.silent:
            return
        for call in answer.invalid_tool_calls:
            refused = Outcome(kind=OutcomeKind.INVALID_ARGS, value=call.get("error") or "the arguments are no JSON")
            active.refused(call.get("name") or "", refused, arguments=call.get("args"), call_id=call.get("id"))
        parts: Any = [part for part in result.message["parts"] if "executor" in part]
        given = {part["id"]: part for part in parts if part["type"] == "tool_result"}
        for part in (part for part in parts if part["type"] == "tool_call"):
            found = given.get(part["id"])
            kind = OutcomeKind.RESULT_ERROR if found and found.get("is_error") else OutcomeKind.VALUE
            outcome = None if found is None else Outcome(kind=kind, value=found["content"])
            active.provider_call(
                self.step, part["name"], call_id=part["id"], arguments=part["arguments"], outcome=outcome
            )

    def failed(self, error: BaseException) -> None:
        if self.step is not None:
            self.step.fail(error)

    # --- streams ---

    def arrived(self, chunk: ChatGenerationChunk) -> None:
        if self.step is not None:
            if self.first_at is None and self.active is not None:
                self.first_at = self.active.recorder.clock.now()
            self.cuts.append(responses.text_length(chunk.message))
            self.chunks.append(chunk)

    def stream_ended(self, error: BaseException | None = None) -> None:
        """A stream that broke is a failure; one whose consumer left keeps what had arrived."""
        if self.step is None:
            return
        merged = None if isinstance(error, Exception) else merge_chat_generation_chunks(list(self.chunks))
        if merged is None:
            self.failed(error or ValueError("No generation chunks were returned"))
        else:
            how: dict[str, Any] = {"cuts": self.cuts, "first_chunk_at": self.first_at, "partial": error is not None}
            how["closed"] = getattr(self.chunks[-1].message, "chunk_position", None) is not None
            self._answered(merged.message, merged.generation_info, streamed=True, **how)

    def inside(self) -> Any:
        return nullcontext() if self.step is None else self.step.inside()


# --- the model's methods --------------------------------------------------------------------------------------------


def _generate(own: Callable[..., Any]) -> Callable[..., Any]:
    def generate(self: BaseChatModel, messages: list[BaseMessage], stop: Any = None, *args: Any, **kwargs: Any) -> Any:
        turn = _Turn(self, messages, stop, _named(args, kwargs))
        answer = turn.begin()
        if answer is not None:
            result = responses.chat_result(answer)
            turn.answered(result)
            return result
        try:
            with turn.inside():
                result = turn.live("_generate")
        except BaseException as error:
            turn.failed(error)
            raise
        turn.answered(result)
        return result

    return generate


def _agenerate(own: Callable[..., Any]) -> Callable[..., Any]:
    async def agenerate(
        self: BaseChatModel, messages: list[BaseMessage], stop: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        turn = _Turn(self, messages, stop, _named(args, kwargs))
        answer = turn.begin()
        if answer is not None:
            result = responses.chat_result(answer)
            turn.answered(result)
            return result
        try:
            with turn.inside():
                result = await turn.live("_agenerate")
        except BaseException as error:
            turn.failed(error)
            raise
        turn.answered(result)
        return result

    return agenerate


def _stream(own: Callable[..., Any]) -> Callable[..., Any]:
    def stream(
        self: BaseChatModel, messages: list[BaseMessage], stop: Any = None, *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        turn = _Turn(self, messages, stop, _named(args, kwargs))
        answer = turn.begin()
        source = iter(responses.chunks(answer) if answer is not None else _live_stream(turn))
        try:
            while True:
                with turn.inside():  # not around the yield: what the consumer does there is not the model's
                    chunk = next(source, None)
                if chunk is None:
                    break
                turn.arrived(chunk)
                yield chunk
        except BaseException as error:
            turn.stream_ended(error)
            raise
        turn.stream_ended()

    return stream


def _live_stream(turn: _Turn) -> Iterator[ChatGenerationChunk]:
    if turn.streams("_stream"):
        yield from turn.live("_stream")
        return
    with turn.inside():
        result = turn.live("_generate")
    yield from responses.chunks_of(responses.whole(result.generations[0].message))


def _astream(own: Callable[..., Any]) -> Callable[..., Any]:
    async def astream(
        self: BaseChatModel, messages: list[BaseMessage], stop: Any = None, *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        turn = _Turn(self, messages, stop, _named(args, kwargs))
        answer = turn.begin()
        source = aiter(responses.achunks(answer) if answer is not None else _live_astream(turn))
        try:
            while True:
                with turn.inside():
                    chunk = await anext(source, None)
                if chunk is None:
                    break
                turn.arrived(chunk)
                yield chunk
        except BaseException as error:
            turn.stream_ended(error)
            raise
        turn.stream_ended()

    return astream


async def _live_astream(turn: _Turn) -> AsyncIterator[ChatGenerationChunk]:
    if turn.streams("_astream", "_stream"):
        async for chunk in turn.live("_astream"):
            yield chunk
        return
    result = await turn.live("_agenerate")
    for chunk in responses.chunks_of(responses.whole(result.generations[0].message)):
        yield chunk


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call after ``stop``, by name: the third is the run manager."""
    return {**kwargs, "run_manager": args[0]} if args else kwargs


_METHODS = twins.Methods(
    root=BaseChatModel,
    always={"_generate": _generate},
    own={"_agenerate": _agenerate, "_stream": _stream, "_astream": _astream},
    fields=memories.MODEL_FIELDS,
)
