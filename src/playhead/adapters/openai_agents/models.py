"""The model that a run asks: it stands before the models of the run's agents."""

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from agents import Agent, ModelResponse, ModelSettings, RunHooks, Usage
from agents.models import get_default_model, get_default_model_settings
from agents.models.interface import Model, ModelProvider
from agents.retry import ModelRetryAdvice

from playhead.adapters.openai_agents.run import Run
from playhead.adapters.openai_agents.turns import Asked, Turn, is_end
from playhead.core.override import override_model
from playhead.errors import RefusedError


class SeamModel(Model):
    """Stands in ``RunConfig.model`` for one run, and finds the model of the agent whose turn it is as the run would.

    It passes for that model: attributes that it has not are that model's, and so is the class that it tells.

    Args:
        given: what stood in ``RunConfig.model``.
        provider: resolves names.
    """

    def __init__(self, run: Run, given: str | Model | None, provider: ModelProvider) -> None:
        self._run = run
        self.given = given
        self._provider = provider
        self._found: list[tuple[Any, Any, Model]] = []  # agent, its model, what that is
        self.asked = False

    @property
    def inner(self) -> Model:
        """The model of the agent whose turn it is."""
        agent: Agent[Any] = self._run.agent
        for known, named, model in self._found:
            if known is agent and named is agent.model:
                return model
        model = self._resolve(agent)
        self._found.append((agent, agent.model, model))
        return model

    def _resolve(self, agent: Agent[Any]) -> Model:
        new = self._override(agent)
        if new is not None:
            try:
                return self._provider.get_model(new)
            except Exception as error:
                raise RefusedError(f"the override's model {new!r} cannot be used: {error}") from error
        chosen = self.given if self.given is not None else agent.model
        return chosen if isinstance(chosen, Model) else self._provider.get_model(chosen)

    def _override(self, agent: Agent[Any]) -> str | None:
        state = self._run.replay
        if state is None or state.override is None or state.override.model is None:
            return None
        name = _own_name(self.given, agent)
        new = override_model(state.override, name)
        return None if new == name else new

    def _name(self) -> str | None:
        return self._override(self._run.agent) or _own_name(self.given, self._run.agent)

    def _settings(self, settings: ModelSettings) -> ModelSettings:
        """The settings with those that the framework implies for a model it knows by name: it saw an object here."""
        agent = self._run.agent
        if agent.model is not None and not isinstance(agent.model, str):
            return settings
        new = self._override(agent)
        if new is None and isinstance(self.given, Model):
            return settings
        if agent.model_settings != _implied(agent.model):
            return settings
        return _implied(new or self.given or agent.model).resolve(settings)

    def _begin(self, args: tuple[Any, ...], rest: dict[str, Any], *, streamed: bool) -> tuple[Turn, Asked, Any]:
        run = self._run
        turn = run.turn = run.turn or Turn(run, run.agent)
        names = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
        given = dict(zip(names, args, strict=False)) | rest
        system, items, settings, tools, schema, handoffs, tracing = (given.pop(name) for name in names)
        asked = Asked(
            self._name(), system, items, self._settings(settings), tools, schema, handoffs, tracing, given, streamed
        )
        if self._override(run.agent) is not None and run.replay is not None and turn.step is None:
            run.replay.override_hits["model"] += 1
        answer = turn.begin(asked)
        self.asked = True
        return turn, asked, answer

    # --- the model's interface ---

    async def get_response(self, *args: Any, **rest: Any) -> ModelResponse:
        turn, asked, answer = self._begin(args, rest, streamed=False)
        if answer is not None:
            return turn.served(answer)
        with _inside(turn):
            try:
                response = await asked.to(self._live(turn))
            except BaseException as error:
                turn.failed(error)
                raise
        turn.answered(response)
        return response

    async def stream_response(self, *args: Any, **rest: Any) -> AsyncGenerator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        turn, asked, answer = self._begin(args, rest, streamed=True)
        if answer is not None:
            for event in turn.served_events(answer):
                yield event
            return
        events: list[Any] = []
        first: int | None = None
        stream: Any = asked.to(self._live(turn))
        try:
            while True:
                with _inside(turn):  # around each step only: a generator shares its consumer's context
                    event = await anext(stream, None)
                if event is None:
                    break
                first = first or _now(turn)
                events.append(event)
                if is_end(event):
                    turn.answered(_response(event), events=events, first=first)
                yield event
        except BaseException as error:
            turn.left(events, error)
            raise
        finally:
            await stream.aclose()

    def _live(self, turn: Turn) -> Model:
        try:
            return self.inner
        except RefusedError as error:
            turn.run.trouble(error, "applying the model override")
            raise

    def get_retry_advice(self, request: Any) -> ModelRetryAdvice | None:
        turn = self._run.turn
        if turn is not None and turn.answer is not None:
            return ModelRetryAdvice(suggested=False, reason="the failure is recorded")
        return self.inner.get_retry_advice(request)

    async def close(self) -> None:
        for _, _, model in self._found:
            await model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        for _, _, model in self._found:
            await model._cleanup_on_run_end(owner)  # pyright: ignore[reportPrivateUsage]

    @property
    def __class__(self) -> Any:
        """What `isinstance` asks: the class of the model that this one stands for."""
        try:
            return type(self.inner)
        except Exception:  # noqa: BLE001 - a provider that cannot make it yet; asking it will say why
            return SeamModel

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("a model in use keeps its class")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


def _implied(name: Any) -> ModelSettings:
    return get_default_model_settings() if name is None else get_default_model_settings(name)


def _own_name(given: Any, agent: Agent[Any]) -> str | None:
    chosen = given if given is not None else agent.model
    if chosen is None:
        return get_default_model()
    if isinstance(chosen, str):
        return chosen
    name = getattr(chosen, "model", None)
    return name if isinstance(name, str) else None


def _inside(turn: Turn) -> AbstractContextManager[None]:
    return nullcontext() if turn.step is None else turn.step.inside()


def _now(turn: Turn) -> int | None:
    active = turn.run.active
    return None if active is None else active.recorder.clock.now()


def _response(event: Any) -> ModelResponse:
    """The response that the last event of a stream holds, as the framework reads it."""
    held = event.response
    counted = held.usage
    usage = Usage() if counted is None else Usage(
        requests=1,
        input_tokens=counted.input_tokens,
        input_tokens_details=counted.input_tokens_details,
        output_tokens=counted.output_tokens,
        output_tokens_details=counted.output_tokens_details,
        total_tokens=counted.total_tokens,
    )  # fmt: skip
    return ModelResponse(output=held.output, usage=usage, response_id=held.id)


# --- the hooks of a run ---------------------------------------------------------------------------------------------


class SeamHooks(RunHooks[Any]):
    """The user's hooks of a run, with ours before them: which agent asks, and who hands over to whom."""

    def __init__(self, run: Run, users: Any) -> None:
        self._run = run
        self._users = users

    async def on_llm_start(self, context: Any, agent: Any, *args: Any, **kwargs: Any) -> None:
        run = self._run
        if run.turn is not None:
            run.turn.close()
        run.turn, run.agent = None, agent
        await self._users.on_llm_start(context, agent, *args, **kwargs)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any, *args: Any, **kwargs: Any) -> None:
        try:
            self._run.handed_to(to_agent)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self._run.trouble(error, "recording a handoff")
        await self._users.on_handoff(context, from_agent, to_agent, *args, **kwargs)


def _handed_on(name: str) -> Any:
    async def handed_on(self: SeamHooks, *args: Any, **kwargs: Any) -> None:
        await getattr(self._users, name)(*args, **kwargs)  # pyright: ignore[reportPrivateUsage]

    return handed_on


for _name in [n for n in dir(RunHooks) if n.startswith("on_") and n not in vars(SeamHooks)]:
    setattr(SeamHooks, _name, _handed_on(_name))
