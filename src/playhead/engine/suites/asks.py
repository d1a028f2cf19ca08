"""A recorded model call as a request of a trial."""

from playhead.core.protocol.shape import obj, objects
from playhead.core.suites.drive import ModelAsk
from playhead.core.suites.suite import ToolSchema
from playhead.core.values import Node


def ask_of_node(node: Node, step: int) -> ModelAsk:
    """What was asked, as the request of a trial."""
    inputs = obj(node.inputs)
    tools = tuple(
        ToolSchema(
            name=str(tool["name"]),
            description=str(tool.get("description") or ""),
            parameters=tool.get("parameters") or {"type": "object", "properties": {}},
        )
        for tool in objects(inputs.get("tools"))
        if "name" in tool
    )
    return ModelAsk(
        messages=list(inputs.get("messages") or ()), tools=tools, params=dict(obj(inputs.get("params"))), step=step,
        purpose="turn" if step == 0 else "loop",
    )  # fmt: skip
