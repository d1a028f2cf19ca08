"""A framework that keeps a hook but no longer calls it, or calls it in another way, is told of too.

What is broken is the framework's side: the class that it asks goes back to the framework's own method.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import agents
import claude_agent_sdk
import pytest
from agents import function_tool
from agents.agent import AgentBase
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.test import TestModel

import playhead
from playhead.adapters import claude_agent_sdk as claude
from playhead.adapters import langgraph as graphs
from playhead.adapters import openai_agents
from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner
from playhead.adapters.pydantic_ai import Playhead
from playhead.engine.recorder import Recorder
from playhead.errors import RecordingError
from playhead.testing.claude import Raw, ScriptedClaude

NO_MODEL = "ended and no model call of it was seen"
NO_TOOL = "was answered and nothing saw it run"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, recorder: Recorder) -> Iterator[pytest.LogCaptureFixture]:
    agents.set_tracing_disabled(True)
    with caplog.at_level(logging.WARNING, "playhead"):
        yield caplog
    graphs.uninstall()
    openai_agents.uninstall()
    claude.uninstall()


def look(q: int) -> str:
    """Looks."""
    return "found"


# --- PydanticAI ------------------------------------------------------------------------------------------------------

PYDANTIC_AI = {
    "wrap_run": "did not call wrap_run before the first step of a run: it is not recorded",
    "for_run": "did not call for_run before the first step of a run: it is not recorded",
    "wrap_model_request": NO_MODEL,
    "wrap_tool_execute": NO_TOOL,
}


@pytest.mark.parametrize("hook", PYDANTIC_AI)
def test_pydantic_ai(said: pytest.LogCaptureFixture, hook: str) -> None:
    deaf: Any = type("Deaf", (Playhead,), {hook: getattr(AbstractCapability, hook)})
    agent = Agent(TestModel(), name=f"deaf-{hook}", tools=[look], capabilities=[deaf()])
    with playhead.session(f"deaf-{hook}"):
        assert agent.run_sync("go").output == '{"look":"found"}'
    assert PYDANTIC_AI[hook] in said.text


def test_a_hook_of_pydantic_ai_with_one_more_parameter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrap_run(self: Any, ctx: Any, *, handler: Any, attempt: int) -> Any: ...

    monkeypatch.setattr(AbstractCapability, "wrap_run", wrap_run)
    with pytest.raises(RecordingError, match=r"has no AbstractCapability\.wrap_run without 'attempt'"):
        Playhead()


# --- LangGraph -------------------------------------------------------------------------------------------------------


class Fake(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def graph(name: str) -> Any:
    asks = AIMessage("", tool_calls=[{"name": "look", "args": {"q": 1}, "id": "c1"}])
    return create_agent(Fake(messages=iter([asks, AIMessage("done")])), [look], name=name)


LANGGRAPH: dict[str, tuple[type, tuple[str, ...], str]] = {
    "models": (BaseChatModel, ("generate", "agenerate", "stream", "astream"), NO_MODEL),
    "tools": (BaseTool, ("run", "arun"), NO_TOOL),
}


@pytest.mark.parametrize("what", LANGGRAPH)
def test_langgraph(said: pytest.LogCaptureFixture, what: str) -> None:
    graphs.install()
    cls, methods, text = LANGGRAPH[what]
    for name in methods:
        setattr(cls, name, getattr(cls, name).__wrapped__)
    with playhead.session(f"graph-{what}"):
        graph(f"graph-{what}").invoke({"messages": [("user", "hi")]})
    assert text in said.text


def test_a_graph_that_asks_no_model_is_not_warned_of(said: pytest.LogCaptureFixture) -> None:
    """Its answer is one from before the run: given as input, or kept by a checkpointer."""
    graphs.install()
    made = StateGraph(MessagesState)
    made.add_node("quiet", lambda state: {"messages": [AIMessage("mine")]})
    made.add_edge(START, "quiet")
    old = AIMessage("done", id="lc_run--1")
    kept, plain = made.compile(name="quiet", checkpointer=InMemorySaver()), made.compile(name="plain")
    thread: Any = {"configurable": {"thread_id": "1"}}
    kept.update_state(thread, {"messages": [old]})
    with playhead.session("quiet"):
        kept.invoke({"messages": []}, thread)
    with playhead.session("plain"):
        plain.invoke({"messages": [old]})
    assert said.text == ""


def test_a_middleware_whose_hook_is_gone_or_takes_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap_tool_call(self: Any, request: Any, handler: Any, attempt: int) -> Any: ...

    monkeypatch.setattr(AgentMiddleware, "wrap_tool_call", wrap_tool_call)
    monkeypatch.delattr(AgentMiddleware, "awrap_model_call")
    with pytest.raises(RecordingError, match=r"AgentMiddleware\.awrap_model_call.*wrap_tool_call without 'attempt'"):
        graphs.PlayheadMiddleware()


# --- OpenAI Agents ---------------------------------------------------------------------------------------------------


def run_openai(name: str, **options: Any) -> Any:
    model = ScriptedModel([[function_call("look", '{"q": 1}', call_id="c1")], [assistant_message("done")]])
    agent = agents.Agent(name=name, tools=[function_tool(look)], model=model)
    with playhead.session(name):
        return asyncio.run(agents.Runner.run(agent, "hi", **options)).final_output


def test_openai_agents_tools(said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    openai_agents.install()
    with monkeypatch.context() as patched:  # taken back before what was installed is
        patched.setattr(AgentBase, "get_all_tools", AgentBase.get_all_tools.__wrapped__)  # type: ignore[attr-defined]
        assert run_openai("openai-tools") == "done"
    assert NO_TOOL in said.text


def test_openai_agents_models(said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The framework asks the agent's own model, whatever the options of the run say."""
    openai_agents.install()
    from agents.run_internal import run_loop, turn_preparation

    for module in (run_loop, turn_preparation):
        monkeypatch.setattr(module, "get_model", lambda agent, *_: agent.model, raising=False)
    assert run_openai("openai-models") == "done"
    assert NO_MODEL in said.text


def test_openai_agents_options_that_cannot_be_changed(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fixed(agents.RunConfig):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "model" and name in vars(self):
                raise AttributeError(f"{name} cannot be set")
            super().__setattr__(name, value)

    openai_agents.install()
    assert run_openai("fixed", run_config=Fixed()) == "done"
    assert "preparing a run" in said.text


# --- Claude Agent SDK ------------------------------------------------------------------------------------------------


async def messages(stream: Any) -> list[Any]:
    return [message async for message in stream]


def test_claude_messages_that_are_not_known_any_more(said: pytest.LogCaptureFixture) -> None:
    """The program says that tokens were spent, and nothing that was seen spent them."""
    status = Raw({"type": "system", "subtype": "assistant_v2", "session_id": "s"})
    transport: Any = ScriptedClaude([[status]], result={"usage": {"input_tokens": 9, "output_tokens": 3}})
    asyncio.run(messages(PlayheadClaudeRunner("deaf-claude").query(prompt="Go", transport=transport)))
    assert NO_MODEL in said.text


def test_a_query_with_options_that_are_not_known_yet_runs_and_is_told_of(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    async def query(*, prompt: Any, options: Any = None, transport: Any = None, agent: str = "") -> Any:
        given.update(agent=agent)
        yield "answered"

    monkeypatch.setattr(claude_agent_sdk, "query", query)
    claude.install()
    ask: Callable[..., Any] = claude_agent_sdk.query
    with playhead.session("newer"):
        assert asyncio.run(messages(ask(prompt="Go", agent="desk"))) == ["answered"]
    assert given == {"agent": "desk"}
    assert "was given agent, which this version of playhead does not know: the query is not recorded" in said.text
