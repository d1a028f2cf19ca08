"""The capability that agents are given: hooks of the framework, each handing on to one seam."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering

from playhead.adapters.pydantic_ai import deferred, models, tools
from playhead.adapters.pydantic_ai.run import Run, check_begun
from playhead.engine.patching import require, unknown_parameters
from playhead.engine.recorder import Recorder

_HOOKS = (
    "get_ordering", "for_run", "wrap_run", "on_run_error", "before_node_run", "wrap_model_request",
    "wrap_tool_execute", "on_tool_validate_error", "handle_deferred_tool_calls",
)  # fmt: skip
"""What the framework calls; `get_wrapper_model` came later, and a version without it does without."""


def check() -> None:
    """Looks for every hook.

    Raises:
        RecordingError: this version of the framework would not call one, so its runs would not be recorded.
    """
    found = {f"AbstractCapability.{name}": hasattr(AbstractCapability, name) for name in _HOOKS}
    for name in _HOOKS:
        unknown = unknown_parameters(getattr(AbstractCapability, name, None), getattr(Playhead, name, None))
        found |= {f"AbstractCapability.{name} without {parameter!r}": False for parameter in unknown}
    require("pydantic-ai-slim", "adapter-pydantic-ai.md", {"Agent.iter": "iter" in vars(Agent), **found})


class Playhead(AbstractCapability[Any]):
    """Records the runs of an agent, and answers them from recordings in a replay.

    ``Agent(..., capabilities=[Playhead()])``, or ``capabilities=`` of one run. Without a session around, a run opens
    one of its own; inside a session it is its next turn, or an agent call.

    Args:
        agent: the agent's name in recordings; left out, the framework's name of the agent.
        recorder: where to record; left out, the project's.
    """

    def __init__(self, *, agent: str | None = None, recorder: Recorder | None = None) -> None:
        check()
        self._agent = agent
        self._recorder = recorder
        self._run: Run | None = None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: Any) -> "Playhead":
        mine = type(self)(agent=self._agent, recorder=self._recorder)
        mine._run = Run(self._agent, self._recorder)
        return mine

    # --- boundary ---

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        return await handler() if self._run is None else await self._run.within(ctx, handler)

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:
        raise error if self._run is None else self._run.failed(error)

    async def before_node_run(self, ctx: Any, *, node: Any) -> Any:
        results = getattr(node, "deferred_tool_results", None)
        if self._run is None or results is None:
            return node
        try:
            self._run.add_inputs(results)
            return replace(node, deferred_tool_results=deferred.resumed(self._run, ctx, results))
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self._run.trouble(error, "reading deferred tool results")
            return node

    # --- model ---

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        check_begun(self._run)
        if self._run is None:
            return await handler(request_context)
        return await models.around(self._run, request_context, handler)

    def get_wrapper_model(self, model: Any) -> Any:
        turn = self._run.turn if self._run is not None else None
        return None if turn is None else models.SeamModel(model, turn)

    # --- tools ---

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        check_begun(self._run)
        if self._run is None:
            return await handler(args)
        return await tools.execute(self._run, ctx, call, tool_def, args, handler)

    async def on_tool_validate_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any) -> Any:
        if self._run is not None:
            tools.rejected(self._run, ctx, call, error)
        raise error

    async def handle_deferred_tool_calls(self, ctx: Any, *, requests: Any) -> None:
        if self._run is not None:
            try:
                deferred.paused(self._run, ctx, requests)
            except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
                self._run.trouble(error, "recording deferred tool calls")


def is_present(agent: Agent[Any, Any], capabilities: Sequence[Any] | None) -> bool:
    """Whether an agent, or one run of it, has the capability already."""
    found: list[bool] = []

    def visit(capability: Any) -> None:
        found.append(isinstance(capability, Playhead))

    every: list[Any] = [agent.root_capability, *(capabilities or ())]
    for capability in every:
        if hasattr(capability, "apply"):  # the others are functions that make one per run
            capability.apply(visit)
    return any(found)
