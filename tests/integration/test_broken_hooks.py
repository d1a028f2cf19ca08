"""A framework upgrade that moves a hook is told of when it is wrapped, not by recordings that lack calls.

The adapters of frameworks that the development environment does not hold have the same test beside their others, in
tests/thin.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from playhead.adapters.installation import _ADAPTERS
from playhead.errors import RecordingError

HOOKS = [
    ("pydantic_ai", "pydantic_ai.capabilities:AbstractCapability", "wrap_tool_execute", "pydantic-ai-slim"),
    ("pydantic_ai", "pydantic_ai:Agent", "iter", "pydantic-ai-slim"),
    ("langgraph", "langchain_core.tools.base:BaseTool", "run", "langchain-core"),
    ("langgraph", "langchain_core.language_models.chat_models:BaseChatModel", "generate", "langchain-core"),
    ("langgraph", "langgraph.pregel:Pregel", "astream", "langgraph"),
    ("openai_agents", "agents:Runner", "run_streamed", "openai-agents"),
    ("openai_agents", "agents.models.interface:Model", "get_response", "openai-agents"),
    ("claude_agent_sdk", "claude_agent_sdk", "query", "claude-agent-sdk"),
    ("mcp", "mcp:ClientSession", "call_tool", "mcp"),
    ("google_genai", "google.genai._extra_utils", "get_function_map", "google-genai"),
    ("wire", "httpx:AsyncClient", "send", "httpx"),
    ("wire", "httpx2:Client", "send", "httpx2"),
]
"""Adapter, what it wraps, a hook there, the distribution that the text names."""


@pytest.mark.parametrize(("adapter", "place", "hook", "distribution"), HOOKS, ids=[f"{a}-{h}" for a, _, h, _ in HOOKS])
def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(
    monkeypatch: pytest.MonkeyPatch, adapter: str, place: str, hook: str, distribution: str
) -> None:
    ours = import_module(f"playhead.adapters.{adapter}")
    module, _, name = place.partition(":")
    owner: Any = import_module(module)
    owner = getattr(owner, name) if name else owner
    assert not ours.is_installed()
    monkeypatch.delattr(owner, hook)
    with pytest.raises(
        RecordingError, match=rf"{distribution} \S+( version\))? has no .*{hook}.*not be recorded"
    ) as told:
        ours.install()
    assert "docs/adapter-" in (told.value.hint or "")
    monkeypatch.undo()
    ours.uninstall()
    ours.install()
    assert ours.is_installed()


def test_the_explicit_form_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic_ai.capabilities import AbstractCapability

    from playhead.adapters.pydantic_ai import Playhead

    monkeypatch.delattr(AbstractCapability, "wrap_run")
    with pytest.raises(RecordingError, match=r"has no AbstractCapability\.wrap_run"):
        Playhead()


def test_every_adapter_has_such_a_test() -> None:
    thin = Path(__file__).parents[1] / "thin"
    apart = {
        path.stem.removeprefix("test_")
        for path in thin.glob("test_*.py")
        if "test_a_version_without_the_hook_is_refused_when_it_is_wrapped" in path.read_text("utf-8")
    }
    every = {adapter.module.rpartition(".")[2] for adapter in _ADAPTERS}
    assert every == apart | {adapter for adapter, *_ in HOOKS}
    assert "playhead.adapters.installation" in sys.modules
