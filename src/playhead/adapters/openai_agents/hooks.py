"""The places of the framework that the adapter holds on to, and the check that they are still there.

All are public but one: the object behind ``FunctionTool.on_invoke_tool`` that turns a tool's exception into a text for
the model keeps the tool's own code under a private name. It has to be known, so that a recorded exception is raised
where the live tool would raise it, below that object and not around it.
"""

import dataclasses
from importlib import metadata
from typing import Any

from agents import Agent, FunctionTool, RunConfig, RunHooks, Runner, function_tool
from agents.models.interface import Model

from playhead.errors import RecordingError

BODY = "_invoke_tool_impl"
"""Where an invoker that handles failures keeps the tool's own code."""

RUNNERS = ("run", "run_sync", "run_streamed")


def check() -> None:
    """Looks for every hook.

    Raises:
        RecordingError: this version of the framework has moved one, so nothing would be recorded.
    """
    missing = [f"Runner.{name}" for name in RUNNERS if not isinstance(vars(Runner).get(name), classmethod)]
    missing += [f"Model.{n}" for n in ("get_response", "stream_response", "get_retry_advice") if not hasattr(Model, n)]
    missing += [f"RunHooks.{name}" for name in ("on_llm_start", "on_handoff") if not hasattr(RunHooks, name)]
    if "model" not in {field.name for field in dataclasses.fields(RunConfig)}:
        missing.append("RunConfig.model")
    if not callable(getattr(Agent, "get_all_tools", None)):
        missing.append("Agent.get_all_tools")
    if not hasattr(FunctionTool, "qualified_name"):
        missing.append("FunctionTool.qualified_name")
    if BODY not in getattr(_sample().on_invoke_tool, "__dict__", {}):
        missing.append(f"FunctionTool.on_invoke_tool.{BODY}")
    if missing:
        raise RecordingError(
            f"openai-agents {metadata.version('openai-agents')} has no {', '.join(missing)}: its agents would not be "
            "recorded",
            hint="use a version that docs/adapter-openai-agents.md names, or a newer playhead",
        )


def _sample() -> Any:
    def sample() -> str:
        return ""

    return function_tool(sample)
