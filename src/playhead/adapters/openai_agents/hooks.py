"""The places of the framework that the adapter holds on to, and the check that they are still there.

All are public but one: the object behind ``FunctionTool.on_invoke_tool`` that turns a tool's exception into a text for
the model keeps the tool's own code under a private name. It has to be known, so that a recorded exception is raised
where the live tool would raise it, below that object and not around it.
"""

import dataclasses
from typing import Any

from agents import Agent, FunctionTool, RunConfig, RunHooks, Runner, function_tool
from agents.models.interface import Model

from playhead.engine.patching import require

BODY = "_invoke_tool_impl"
"""Where an invoker that handles failures keeps the tool's own code."""

RUNNERS = ("run", "run_sync", "run_streamed")


def check() -> None:
    """Looks for every hook.

    Raises:
        RecordingError: this version of the framework has moved one, so nothing would be recorded.
    """
    found = {f"Runner.{name}": isinstance(vars(Runner).get(name), classmethod) for name in RUNNERS}
    found |= {f"Model.{n}": hasattr(Model, n) for n in ("get_response", "stream_response", "get_retry_advice")}
    found |= {f"RunHooks.{name}": hasattr(RunHooks, name) for name in ("on_llm_start", "on_handoff")}
    found["RunConfig.model"] = "model" in {field.name for field in dataclasses.fields(RunConfig)}
    found["Agent.get_all_tools"] = callable(getattr(Agent, "get_all_tools", None))
    found["FunctionTool.qualified_name"] = hasattr(FunctionTool, "qualified_name")
    found[f"FunctionTool.on_invoke_tool.{BODY}"] = BODY in getattr(_sample().on_invoke_tool, "__dict__", {})
    require("openai-agents", "adapter-openai-agents.md", found)


def _sample() -> Any:
    def sample() -> str:
        return ""

    return function_tool(sample)
