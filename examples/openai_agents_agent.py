"""An OpenAI Agents agent, recorded once and replayed offline: no key, no network, no tool that runs twice.

    python examples/openai_agents_agent.py

The model is scripted so that the example runs anywhere; leave ``model=`` out and nothing else changes.
"""

from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

import playhead
from playhead.adapters.openai_agents import Runner

refunds: list[str] = []


@function_tool
def lookup(order_id: str) -> dict[str, Any]:
    """Looks up an order."""
    return {"order_id": order_id, "total": 129.0, "damaged": True}


@function_tool
def refund(order_id: str, amount: float) -> str:
    """Pays money back."""
    refunds.append(order_id)
    return f"refunded {amount:.2f}"


def scripted() -> ScriptedModel:
    """A model that plays a script: looks an order up, hands over, pays it back, says so."""
    return ScriptedModel(
        [
            [function_call("lookup", {"order_id": "4821"}, call_id="call-1")],
            [function_call("transfer_to_cashier", {}, call_id="call-2")],
            [function_call("refund", {"order_id": "4821", "amount": 129.0}, call_id="call-3")],
            [assistant_message("Your money is on its way.")],
        ]
    )


@playhead.agent
def desk(prompt: str) -> str:
    model = scripted()
    cashier = Agent(name="cashier", model=model, tools=[refund])
    agent = Agent(name="desk", model=model, tools=[lookup], handoffs=[cashier])
    return str(Runner.run_sync(agent, prompt).final_output)


def main() -> None:
    set_tracing_disabled(True)
    print("recorded:", desk("My lamp is broken. Order 4821."))
    playhead.flush()
    result = playhead.replay(agent=desk, model_policy={"type": "history"})
    fidelity = result.replay.fidelity
    print("replayed:", result.session.output, f"({fidelity.kind.value if fidelity else 'no fidelity'})")
    print("refunds paid:", len(refunds))


if __name__ == "__main__":
    main()
