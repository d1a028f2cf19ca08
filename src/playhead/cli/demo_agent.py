"""The returns desk: the small agent that `playhead demo` records, replays and forks.

It is an ordinary PydanticAI agent with five tools, two of which write. Offline its model is a script that reads the
system prompt as a model would, so that a changed prompt changes what it does; with ``PLAYHEAD_DEMO_MODEL`` set it is
the real model of that name.
"""

import os
import re
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import playhead

SYSTEM_PROMPT = (
    "You work at the returns desk of a shop. Look up the order, check that it can be returned, "
    "then refund it and send a return label. Hand refunds above $200 to a person."
)

ORDERS: dict[str, dict[str, Any]] = {
    "4821": {"item": "desk lamp", "amount": 129.0, "days_ago": 6, "customer": "c-17"},
    "4822": {"item": "oak table", "amount": 480.0, "days_ago": 3, "customer": "c-18"},
    "4823": {"item": "teapot", "amount": 35.5, "days_ago": 44, "customer": "c-17"},
    "4824": {"item": "raincoat", "amount": 89.9, "days_ago": 12, "customer": "c-20"},
    "4825": {"item": "headphones", "amount": 199.0, "days_ago": 1, "customer": "c-21"},
    "4826": {"item": "bread knife", "amount": 24.0, "days_ago": 9, "customer": "c-18"},
    "4827": {"item": "office chair", "amount": 310.0, "days_ago": 20, "customer": "c-22"},
}
REQUESTS = [
    "Order 4821 arrived damaged, refund it please.",
    "I want my money back for order 4822, it does not fit.",
    "Please refund order 4823.",
    "The raincoat of order 4824 leaks. Refund?",
    "Return order 4825, wrong colour.",
    "Order 4826 came twice, refund one.",
    "Refund order 4827, a wheel is broken.",
    "Refund order 9999.",
]

desk = Agent(name="returns-desk", instructions=SYSTEM_PROMPT)


@desk.tool_plain
def find_order(order_id: str) -> dict[str, Any]:
    """Look up an order."""
    if order_id not in ORDERS:
        raise LookupError(f"no order {order_id}")
    return {"order_id": order_id, **ORDERS[order_id]}


@desk.tool_plain
def return_window(order_id: str) -> dict[str, Any]:
    """Whether an order can still be returned."""
    return {"open": ORDERS[order_id]["days_ago"] <= 30, "days_left": 30 - ORDERS[order_id]["days_ago"]}


@desk.tool_plain
def find_customer(customer: str) -> dict[str, Any]:
    """Look up a customer."""
    return {"customer": customer, "refunds_this_year": 3 if customer == "c-17" else 0}


@desk.tool_plain
def issue_refund(order_id: str, amount: float) -> str:
    """Pay money back. Writes."""
    return f"refund R-{order_id} issued: ${amount:.2f}"


@desk.tool_plain
def send_label(order_id: str) -> dict[str, str]:
    """Send a return label. Writes."""
    return {"label": f"L-{order_id}", "sent": "by e-mail"}


@playhead.agent("returns-desk")
def handle(prompt: str) -> str:
    """One customer request, from question to answer."""
    model: Any = os.environ.get("PLAYHEAD_DEMO_MODEL") or FunctionModel(script, model_name="scripted-desk")
    return desk.run_sync(prompt, model=model).output


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands in for a model: the next step, from the system prompt and what was said and found so far."""
    rules = info.instructions or ""
    asked = next(str(p.content) for m in messages for p in m.parts if isinstance(p, UserPromptPart))
    order_id = (re.findall(r"\d{4}", asked) or ["0000"])[0]
    found = {p.tool_name: p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)}
    step = _next_step(order_id, found, rules)
    if isinstance(step, str):
        return ModelResponse(parts=[TextPart(step)])
    return ModelResponse(
        parts=[
            ToolCallPart(tool, args, tool_call_id=f"call_{len(messages)}_{i}") for i, (tool, args) in enumerate(step)
        ]
    )


def _next_step(order_id: str, found: dict[str, Any], rules: str) -> str | list[tuple[str, dict[str, Any]]]:
    limit = float((re.findall(r"above \$(\d+)", rules) or ["200"])[0])
    if "find_order" not in found:
        return [("find_order", {"order_id": order_id})]
    order = found["find_order"]
    if "return_window" not in found:
        extra = [("find_customer", {"customer": order["customer"]})] if "customer" in rules else []
        return [("return_window", {"order_id": order_id}), *extra]
    if not found["return_window"]["open"]:
        return f"Order {order_id} is past its return window, so I cannot refund it."
    if order["amount"] > limit:
        return f"A refund of ${order['amount']:.2f} needs a person; I have handed order {order_id} over."
    if "issue_refund" not in found:
        return [
            ("issue_refund", {"order_id": order_id, "amount": order["amount"]}),
            ("send_label", {"order_id": order_id}),
        ]
    return f"Done: {found['issue_refund']}. The label is on its way."
