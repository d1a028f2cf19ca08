# pyright: reportMissingImports=false
"""The scripted agents with kitaru's adapters, as its pages show them, with its defaults."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from benchmarks.scripted import Run, Shape


def pydantic_ai(shape: Shape, agent_id: UUID) -> Run:
    from kitaru_pydantic_ai import KitaruAgent

    from benchmarks.scripted import pydantic_ai as ours

    return ours.runs(KitaruAgent(ours.agent(shape), agent_id=agent_id))


def openai_agents(shape: Shape, agent_id: UUID) -> Run:
    from kitaru_openai_agents import KitaruRunner

    from benchmarks.scripted import openai_agents as ours

    return ours.runs(shape, KitaruRunner(agent_id=agent_id))


def langgraph(shape: Shape, agent_id: UUID) -> Run:
    from kitaru_langgraph import KitaruGraphRunner
    from langchain.agents import create_agent

    from benchmarks.scripted import langgraph as ours

    made: Any = KitaruGraphRunner.from_agent_factory(create_agent, factory_kwargs=ours.parts(shape), agent_id=agent_id)
    return ours.runs(shape, made)


def claude_agent_sdk(shape: Shape, agent_id: UUID) -> Run:
    from kitaru_claude_agent_sdk import KitaruClaudeRunner, replayable_sdk_mcp_server

    from benchmarks.scripted import claude_agent_sdk as ours

    server = replayable_sdk_mcp_server(name="desk", tools=ours.tools())
    return ours.runs(shape, KitaruClaudeRunner(agent_id=agent_id), server)


SCRIPTS: dict[str, tuple[str, Callable[[Shape, UUID], Run]]] = {
    "pydantic_ai": ("kitaru-pydantic-ai", pydantic_ai),
    "openai_agents": ("kitaru-openai-agents", openai_agents),
    "langgraph": ("kitaru-langgraph", langgraph),
    "claude_agent_sdk": ("kitaru-claude-agent-sdk", claude_agent_sdk),
}
"""By our adapter's name: kitaru's package for it, and the run that it records."""
