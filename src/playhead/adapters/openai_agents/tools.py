"""The tool seam: every function tool that an agent offers is a copy whose invoker decides, runs or serves, observes."""

import copy
import functools
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agents import FunctionTool
from agents.exceptions import ModelBehaviorError

from playhead.adapters.openai_agents import approvals, codec, executors
from playhead.adapters.openai_agents.hooks import BODY
from playhead.adapters.openai_agents.run import Run
from playhead.adapters.openai_agents.servers import AROUND, Around
from playhead.adapters.openai_agents.twins import Twin
from playhead.core.values import JSON, Effect, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.guards import UNCHECKED, checked_async
from playhead.errors import RecordingError

Invoker = Callable[[Any, str], Awaitable[Any]]

# --- copies with a gate ---------------------------------------------------------------------------------------------


def gated(run: Run, tools: list[Any]) -> list[Any]:
    """The tools as the run offers them: each function tool a copy, the same one each turn while its fields are."""
    return [_gated(run, tool) if isinstance(tool, FunctionTool) else executors.gated(run, tool) for tool in tools]


def _gated(run: Run, tool: FunctionTool) -> FunctionTool:
    fields = vars(tool)
    known = run.gates.get(id(tool))
    if known is not None and known[0] is tool and known[1] == fields:
        return known[2]
    made = object.__new__(type(tool))
    made.__dict__.update(fields)
    made.on_invoke_tool = _with_gate(Gate(run, tool))
    run.gates[id(tool)] = (tool, dict(fields), made)
    return made


def _with_gate(gate: "Gate") -> Any:
    """A callable like the tool's invoker in everything that the framework asks of it, that goes through the gate."""
    invoker: Any = gate.invoker
    if not gate.handles_failures:

        @functools.wraps(invoker)
        async def invoke(context: Any, arguments: str) -> Any:
            return await gate(context, arguments)

        return invoke
    made = copy.copy(invoker)
    made.__class__ = _gated_class(cast("Any", type(invoker)))
    made.playhead_gate = gate
    return made


@functools.cache
def _gated_class(kind: Any) -> type:
    async def __call__(self: Any, context: Any, arguments: str) -> Any:  # noqa: N807
        return await self.playhead_gate(context, arguments)

    def bind(self: Any, tool: Any) -> Any:
        return self

    return type(f"Gated{kind.__name__}", (kind,), {"__call__": __call__, "__agents_bind_function_tool__": bind})


class Gate:
    """The way to one tool of a run."""

    def __init__(self, run: Run, tool: FunctionTool) -> None:
        self.run = run
        self.tool = tool
        self.invoker: Any = tool.on_invoke_tool
        self.handles_failures = BODY in getattr(self.invoker, "__dict__", {})
        self._twin: Twin | None = None

    async def __call__(self, context: Any, arguments: str) -> Any:
        run = self.run
        active = run.active
        if active is None:
            if run.replay is not None:
                run.replay.check()
            return await self.invoker(context, arguments)
        call_id = getattr(context, "tool_call_id", None)
        approvals.agreed(active, call_id)
        if active.replay is not None:
            active.replay.check()
            refusal = await self._refusal(context, arguments)
            if refusal is not None:
                return await self._refused(active, context, arguments, refusal)
        try:
            with run.inside():
                step = self._opened(active, arguments, call_id)
            answer = await step.decide_async()
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            run.trouble(error, f"opening a call of tool {self.tool.name!r}")
            return await self.invoker(context, arguments)
        if answer is not None:
            return await self._give(context, arguments, step, answer)
        return await self._live(context, arguments, step, call_id)

    def _opened(self, active: seam.ActiveSession, arguments: str, call_id: str | None) -> Any:
        effect, attributes = _about(self.tool)
        name = self.tool.qualified_name
        step: Any = active.tool_call(name, arguments=arguments, call_id=call_id, effect=effect, **attributes)
        if self.tool.output_json_schema is not None and not step.silent:
            step.output_schema = self.tool.output_json_schema
        return step

    # --- live ---

    async def _live(self, context: Any, arguments: str, step: Any, call_id: str | None) -> Any:
        seen: list[Exception] = []
        around = Around()
        token = AROUND.set(around)
        try:
            with step.inside():
                result = await self._watched(seen)(context, arguments)
                result, instead = await checked_async(
                    step, result, lambda: self._watched(seen)(context, arguments),
                    lambda given: UNCHECKED if seen or around.failed or around.paused else given,
                )  # fmt: skip
        except Exception as error:
            self._observe_raised(context, step, error)
            raise
        except BaseException as error:
            if self.tool.timeout_seconds is not None and call_id is not None:
                self.run.cut[call_id] = step
            else:
                step.fail(error)
            raise
        finally:
            AROUND.reset(token)
        if instead is not None:
            return await self._give(context, arguments, step, instead)
        try:
            self._observe(context, step, result, seen, around)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            step.cancel()
            self.run.trouble(error, f"reading a result of tool {self.tool.name!r}")
        return result

    def _watched(self, seen: list[Exception]) -> Invoker:
        """The invoker, telling what the tool raised where the framework makes a text of it."""
        if not self.handles_failures:
            return self.invoker
        body: Invoker = getattr(self.invoker, BODY)

        async def watched(context: Any, arguments: str) -> Any:
            try:
                return await body(context, arguments)
            except Exception as error:
                seen.append(error)
                raise

        return self._with_body(watched)

    def _with_body(self, body: Invoker) -> Invoker:
        made = copy.copy(self.invoker)
        setattr(made, BODY, body)
        return made

    def _observe(self, context: Any, step: Any, result: Any, seen: list[Exception], around: Around) -> None:
        if around.paused:
            step.observe(Outcome(kind=OutcomeKind.INTERRUPT, value={"reason": "inside", "metadata": None}))
        elif seen:
            invalid = _is_refusal(context, seen[-1])
            kind = OutcomeKind.INVALID_ARGS if invalid else OutcomeKind.RESULT_ERROR
            error = None if invalid else seam.capture(seen[-1])
            step.observe(Outcome(kind=kind, value=codec.encode_result(result).value, error=error))
        elif around.failed:
            encoded = codec.encode_result(result)
            envelope = encoded.native or codec.native({"as_given": True})
            step.observe(Outcome(kind=OutcomeKind.RESULT_ERROR, value=encoded.value, native=envelope))
        elif codec.is_plain(result):
            step.returned(result)
        else:
            try:
                encoded = codec.encode_result(result)
            except Exception:  # noqa: BLE001 - no stored form of ours: the recorder says which, and why
                step.returned(result)
                return
            step.observe(Outcome(kind=OutcomeKind.VALUE, value=encoded.value, native=encoded.native))

    def _observe_raised(self, context: Any, step: Any, error: Exception) -> None:
        if _is_refusal(context, error):
            step.observe(Outcome(kind=OutcomeKind.INVALID_ARGS, value=str(error)))
        else:
            step.fail(error)

    # --- what is given ---

    async def _give(self, context: Any, arguments: str, step: Any, answer: Outcome) -> Any:
        """Hands an outcome to the framework, in its own shape."""
        step.observe(answer)
        try:
            value, error = self._in_shape(answer)
        except Exception as problem:
            self.run.trouble(problem, f"giving a recorded outcome to tool {self.tool.name!r}")
            raise
        if error is not None and not codec.has("above", answer.native):
            return await self._raise(context, arguments, error)
        if error is not None:
            raise error
        return value

    def _in_shape(self, answer: Outcome) -> tuple[Any, Exception | None]:
        match answer.kind:
            case OutcomeKind.VALUE:
                return codec.decode_result(answer, self.tool), None
            case OutcomeKind.ERROR:
                return None, seam.exception_of(answer)
            case OutcomeKind.RETRY | OutcomeKind.RESULT_ERROR:
                return codec.decode_error(answer, self.tool), None
            case OutcomeKind.INVALID_ARGS:
                text = codec.text_of(answer)
                return None, ModelBehaviorError(f"Invalid JSON input for tool {self.tool.name}: {text}")
            case OutcomeKind.INTERRUPT:
                raise RecordingError(
                    f"the recorded call of tool {self.tool.name!r} paused, which only the framework can do again",
                    hint="let the tool run with a passthrough policy: the calls inside it are still answered",
                )

    async def _raise(self, context: Any, arguments: str, error: Exception) -> Any:
        """Raises where the tool itself would: its own handling of failures says what the model is shown."""
        if not self.handles_failures:
            raise error

        async def raising(context: Any, arguments: str) -> Any:
            raise error

        return await self._with_body(raising)(context, arguments)

    # --- arguments that the framework refuses ---

    async def _refusal(self, context: Any, arguments: str) -> Exception | None:
        """What the framework would say about the arguments."""
        if not self.handles_failures:
            return None
        try:
            if self._twin is None:
                self._twin = Twin(self.tool)
            return await self._twin.refusal(getattr(context, "tool_name", self.tool.name), arguments)
        except Exception as error:  # noqa: BLE001 - validators of the user
            self.run.trouble(error, f"checking the arguments of tool {self.tool.name!r}")
        return None

    async def _refused(self, active: seam.ActiveSession, context: Any, arguments: str, refusal: Exception) -> Any:
        shown: JSON = str(refusal)
        try:
            shown = result = await self._raise(context, arguments, refusal)
            return result
        finally:
            outcome = Outcome(kind=OutcomeKind.INVALID_ARGS, value=shown)
            with self.run.inside():
                name, call_id = self.tool.qualified_name, getattr(context, "tool_call_id", None)
                active.refused(name, outcome, arguments=arguments, call_id=call_id)


def _is_refusal(context: Any, error: Exception) -> bool:
    name = getattr(context, "tool_name", "")
    return isinstance(error, ModelBehaviorError) and str(error).startswith(f"Invalid JSON input for tool {name}")


def _about(tool: FunctionTool) -> tuple[Effect, dict[str, JSON]]:
    """What the tool says of its effect, and which server has it under which name."""
    origin: Any = getattr(tool, "_tool_origin", None)
    server = getattr(origin, "mcp_server_name", None)
    if server is None:
        return Effect.UNKNOWN, {}
    bound = getattr(tool, "_mcp_tool_binding", None)
    return _effect(tool), {"server": server, "bare_tool": bound[1] if bound else tool.name}


def _effect(tool: FunctionTool) -> Effect:
    hints: Any = getattr(tool, "mcp_annotations", None)

    def says(name: str) -> Any:
        return getattr(hints, name, None)

    if says("read_only_hint") or says("readOnlyHint"):
        return Effect.READ
    if says("destructive_hint") or says("destructiveHint"):
        return Effect.DESTRUCTIVE
    return Effect.UNKNOWN
