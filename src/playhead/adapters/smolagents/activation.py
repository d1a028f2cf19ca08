# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""`install()`: ``Tool.__call__``, and ``run`` and ``__call__`` of agents."""

import functools
import inspect
from typing import Any

from smolagents import tools
from smolagents.agents import MultiStepAgent
from smolagents.default_tools import FinalAnswerTool

from playhead.core.values import Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.calling import Shape, called, guarded, not_a_call, opened
from playhead.engine.patching import Activation, Patches
from playhead.engine.running import ran, scope_of, streamed, wanted

NAME = "smolagents"


class _Results(Shape):
    """The value of an agent's image or sound is what it was made from; the framework wraps it again."""

    def outcome(self, result: Any) -> Outcome | None:
        raw = getattr(result, "to_raw", None)
        return None if raw is None else Outcome(kind=OutcomeKind.VALUE, value=str(result))


_RESULTS = _Results()


def _hooks() -> dict[str, bool]:
    return {
        "Tool.__call__": "__call__" in vars(tools.Tool),
        "MultiStepAgent.run": "run" in vars(MultiStepAgent),
        "MultiStepAgent.__call__": "__call__" in vars(MultiStepAgent),
    }


def _wrap(patches: Patches) -> None:
    for name in ("Tool", "PipelineTool"):
        owner = getattr(tools, name, None)
        if owner is not None and "__call__" in vars(owner):
            patches.wrap(owner, "__call__", functools.partial(_tool, patches))
    patches.wrap(MultiStepAgent, "run", functools.partial(_run, patches))
    patches.wrap(MultiStepAgent, "__call__", functools.partial(_managed, patches))


def _tool(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if not patches.active:
            return original(self, *args, **kwargs)
        if isinstance(self, FinalAnswerTool):
            not_a_call(self.name)
            return original(self, *args, **kwargs)
        step = opened(self.name, _arguments(self, args, kwargs), by=NAME)
        return called(step, lambda: original(self, *args, **kwargs), _RESULTS)

    return __call__


def _arguments(tool: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by name, as the tool itself reads them: one dictionary of them, or in the order of its inputs."""
    names = list(tool.inputs)
    if len(args) == 1 and isinstance(args[0], dict) and not kwargs and all(key in names for key in args[0]):
        return dict(args[0])
    given = {name: value for name, value in kwargs.items() if name != "sanitize_inputs_outputs"}
    return {**dict(zip(names, args, strict=False)), **given}


def _managed(patches: Patches, original: Any) -> Any:
    """An agent that another one calls, as it calls a tool."""

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if not patches.active:
            return original(self, *args, **kwargs)
        named = {"task": args[0], **kwargs} if args else kwargs
        step = opened(str(self.name), named, by=NAME)
        return called(step, lambda: original(self, *args, **kwargs))

    return __call__


def _run(patches: Patches, original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not patches.active or not wanted():
            return original(self, *args, **kwargs)
        given = signature.bind(self, *args, **kwargs).arguments
        scope = _scope(self, given)
        if not given.get("stream"):
            return _remembering(self, scope, lambda: original(self, *args, **kwargs))
        return streamed(scope, original(self, *args, **kwargs), functools.partial(_ended, self, scope))

    return run


def _scope(agent: Any, given: dict[str, Any]) -> seam.SessionScope:
    goes_on = given.get("reset") is False
    inputs = {"task": given.get("task")}
    if given.get("additional_args"):
        inputs["additional_args"] = dict(given["additional_args"])
    if goes_on:
        inputs["reset"] = False
    problems = [f"the run takes {name}, which are not stored" for name in ("images",) if given.get(name)]
    name = agent.name or type(agent).__name__
    return scope_of(
        agent, name, inputs, by=NAME, history=list(agent.memory.steps) if goes_on else (), not_replayable=problems
    )


def _remembering(agent: Any, scope: seam.SessionScope, live: Any) -> Any:
    def run() -> Any:
        result = live()
        scope.messages = list(agent.memory.steps)
        return result

    return ran(scope, run, functools.partial(_ended, agent, scope))


def _ended(agent: Any, scope: seam.SessionScope, result: Any) -> Any:
    """The output of a run. A tool that it ran and that nothing saw is told of."""
    active = scope.active
    if active is not None:
        with guarded(active, "looking for tools that were not seen"):
            for step in agent.memory.steps:
                for call in () if getattr(step, "error", None) else getattr(step, "tool_calls", None) or ():
                    if call.name in agent.managed_agents or _is_ours(agent.tools.get(call.name)):
                        active.was_run(call.name)
    return _output(result)


def _is_ours(tool: Any) -> bool:
    return tool is not None and not isinstance(tool, FinalAnswerTool)


def _output(result: Any) -> Any:
    """The answer of a run: of its full result, of the last step of a stream, or itself."""
    return getattr(result, "output", result)


_activation = Activation("smolagents", "adapter-smolagents.md", hooks=_hooks, wrap=_wrap)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
