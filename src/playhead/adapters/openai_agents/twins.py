"""Whether the framework would refuse the arguments of a call, asked without running the tool."""

import inspect
from typing import Any, get_type_hints

from agents import FunctionTool, function_tool
from agents.exceptions import ModelBehaviorError
from agents.tool_context import ToolContext


class Twin:
    """A tool of the framework that takes the same arguments as another and does nothing.

    Of tools that are no functions (MCP, agents) only JSON is asked here; they check the rest themselves.
    """

    def __init__(self, tool: FunctionTool) -> None:
        async def nothing(*args: Any, **kwargs: Any) -> None: ...

        function = getattr(tool, "__wrapped__", None)
        stub: Any = nothing
        stub.__signature__ = inspect.Signature() if function is None else inspect.signature(function)
        stub.__annotations__ = {} if function is None else _hints(function)
        strict = tool.strict_json_schema and function is not None
        self._tool = function_tool(stub, name_override=tool.name, strict_mode=strict, failure_error_function=None)

    async def refusal(self, name: str, arguments: str) -> Exception | None:
        """What the framework says of arguments that it refuses."""
        context: ToolContext[Any] = ToolContext(None, tool_name=name, tool_call_id="twin", tool_arguments=arguments)
        try:
            await self._tool.on_invoke_tool(context, arguments)
        except ModelBehaviorError as refusal:
            return refusal
        return None


def _hints(function: Any) -> dict[str, Any]:
    return get_type_hints(function if inspect.isroutine(function) else type(function).__call__, include_extras=True)
