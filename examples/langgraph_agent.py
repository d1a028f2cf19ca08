"""A LangChain agent, recorded once and replayed offline: no key, no network, no tool that runs twice.

    python examples/langgraph_agent.py

The model is scripted so that the example runs anywhere; put a real chat model in its place and nothing else changes.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import playhead
from playhead.adapters.langgraph import PlayheadMiddleware

refunds: list[str] = []


def lookup(order_id: str) -> dict[str, Any]:
    """Looks up an order."""
    return {"order_id": order_id, "total": 129.0, "damaged": True}


def refund(order_id: str, amount: float) -> str:
    """Pays money back."""
    refunds.append(order_id)
    return f"refunded {amount:.2f}"


class Scripted(BaseChatModel):
    """A model that plays a script: looks an order up, pays it back, says so."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        script: list[Any] = [
            {"name": "lookup", "args": {"order_id": "4821"}, "id": "call-1"},
            {"name": "refund", "args": {"order_id": "4821", "amount": 129.0}, "id": "call-2"},
        ]
        turn = sum(message.type == "ai" for message in messages)
        said = AIMessage(content="Your money is on its way.")
        if turn < len(script):
            said = AIMessage(content="", tool_calls=[script[turn]])
        return ChatResult(generations=[ChatGeneration(message=said)])


@playhead.agent
def desk(prompt: str) -> str:
    agent = create_agent(Scripted(), [lookup, refund], middleware=[PlayheadMiddleware()])
    state = agent.invoke({"messages": [{"role": "user", "content": prompt}]})
    return str(state["messages"][-1].content)


def main() -> None:
    print("recorded:", desk("My lamp is broken. Order 4821."))
    playhead.flush()
    result = playhead.replay(agent=desk, model_policy={"type": "history"})
    fidelity = result.replay.fidelity
    print("replayed:", result.session.output, f"({fidelity.kind.value if fidelity else 'no fidelity'})")
    print("refunds paid:", len(refunds))


if __name__ == "__main__":
    main()
