"""A component as there are many: it looks something up, asks an HTTP API, and decides."""

import httpx

import playhead


def database() -> dict[str, dict[str, str]]:
    """Stands for a database that tests do not have."""
    raise ConnectionError("no database here")


@playhead.op("orders.lookup", effect="read")
def lookup(order_id: str) -> dict[str, str]:
    """Not run in tests: they are given what it once returned."""
    return database()[order_id]


def in_euros(amount: float, currency: str) -> float:
    rates = httpx.get("http://rates.example/latest", params={"base": currency}).raise_for_status().json()
    return round(amount * rates["EUR"], 2)


def refund(order_id: str) -> str:
    order = lookup(order_id)
    if order["status"] == "lost":
        return f"{in_euros(float(order['total']), order['currency'])} EUR"
    return "no refund"


@playhead.tool
def find_order(order_id: str) -> dict[str, str]:
    """A tool of the agent below."""
    return database()[order_id]


@playhead.agent("refunder")
def refunder(question: str) -> str:
    """An agent without a model: what it does with what its tool says is what its test is about."""
    order = find_order(order_id=question.rpartition(" ")[2])
    return f"Order {order['order_id']} was {order['status']}: you get your money back."
