"""Adapters with their frameworks in environments of their own: oldest and newest supported versions, and frameworks
that the development environment does not hold.

``nox -l`` lists the sessions; ``nox -s thin-crewai`` runs one. What is installed comes from the package registry that
the machine knows; nothing else needs a network.
"""

from collections.abc import Callable
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = []

MAIN: dict[str, dict[str, list[str]]] = {
    "pydantic_ai": {
        "oldest": ["pydantic-ai-slim[openai,anthropic,mcp]==2.28.0"],
        "newest": ["pydantic-ai-slim[openai,anthropic,mcp]"],
    },
    "langgraph": {
        "oldest": [
            "langgraph==1.0.10", "langgraph-prebuilt==1.0.8", "langchain-core==1.2.20", "langchain==1.2.10",
            "langchain-openai", "mcp",
        ],
        "newest": ["langgraph", "langchain-core", "langchain", "langchain-openai", "mcp"],
    },
    "openai_agents": {"oldest": ["openai-agents==0.21.0"], "newest": ["openai-agents"]},
    "claude": {"oldest": ["claude-agent-sdk==0.2.149"], "newest": ["claude-agent-sdk<0.3"]},
}  # fmt: skip
"""The four main adapters: their contract tests with the oldest supported version and with the newest."""

THIN: dict[str, dict[str, list[str]]] = {
    "mcp": {"oldest": ["mcp==1.21.2"], "newest": ["mcp"]},
    "google-genai": {"oldest": ["google-genai==1.40.0"], "newest": ["google-genai", "aiohttp"]},
    "google-adk": {"oldest": ["google-adk[mcp]==2.9.0"], "newest": ["google-adk[mcp]"]},
    "smolagents": {
        "oldest": ["smolagents[openai,mcp]==1.24.0", "mcp<2"], "newest": ["smolagents[openai,mcp]", "mcp<2"],
    },
    "crewai": {"oldest": ["crewai==1.15.20"], "newest": ["crewai"]},
    "litellm": {"oldest": ["litellm==1.109.0"], "newest": ["litellm"]},
}  # fmt: skip
"""The thin adapters: their own tests, which the development environment skips where the framework is not there."""

APART = {
    "google-adk": "test_google_adk.py:ADKHarness",
    "smolagents": "test_smolagents.py:SmolagentsHarness",
    "crewai": "test_crewai.py:CrewAIHarness",
    "litellm": "test_litellm.py:LiteLLMHarness",
}
"""The harnesses of those that the development environment does not hold: ``make capabilities`` measures the others."""

TOOLS = ["httpx", "httpx2", "pytest>=9", "pytest-randomly", "pytest-xdist"]

PYTEST = ["python", "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider"]


def trying(paths: list[str], needs: list[str], page: str | None = None) -> Callable[[nox.Session], None]:
    """A session that installs the project with a framework and runs the tests of its files, and its page."""

    def session(session: nox.Session) -> None:
        session.install("-e", ".", *TOOLS, *needs)
        # frameworks, old ones first of all, warn while they are imported
        session.run(*PYTEST, "-W", "ignore", *paths, *session.posargs, env={"PLAYHEAD_CONFORMANCE": "all"})
        if page is not None:
            session.run(*PYTEST, "tests/docs/test_code_blocks.py", "-k", f"python_blocks and {page}")

    return session


def measuring(harness: str, needs: list[str]) -> Callable[[nox.Session], None]:
    """A session that measures a thin adapter; ``-- FILE`` names where the result is kept, beside others."""

    def session(session: nox.Session) -> None:
        session.install("-e", ".", *TOOLS, *needs)
        table = session.posargs[0] if session.posargs else "src/playhead/engine/capabilities.json"
        command = ["python", "-W", "ignore", "-m", "playhead.testing.conformance", f"tests/thin/{harness}"]
        session.run(*command, "--save", table, success_codes=[0, 1], env={"HOME": session.create_tmp()})

    return session


for adapter, versions in MAIN.items():
    for which, needs in versions.items():
        nox.session(name=f"{which}-{adapter}")(trying([f"tests/contract/test_adapter_{adapter}.py"], needs))

for adapter, versions in THIN.items():
    paths = sorted(str(path) for path in Path("tests/thin").glob(f"test_{adapter.replace('-', '_')}*.py"))
    nox.session(name=f"thin-{adapter}")(trying(paths, versions["newest"], f"adapter-{adapter}.md"))
    nox.session(name=f"thin-oldest-{adapter}")(trying(paths, versions["oldest"]))

for adapter, harness in APART.items():
    nox.session(name=f"measure-{adapter}")(measuring(harness, THIN[adapter]["newest"]))


@nox.session(name="third-party-tools")
def third_party_tools(session: nox.Session) -> None:
    """Fuzzes tools of other packages for real, and injects failures over them (``-s`` prints the figures).

    What bfcl-eval needs to run models (torch, among others) its tools do not need.
    """
    session.install("-e", ".", *TOOLS, "agentdojo", "mpmath")
    session.install("--no-deps", "bfcl-eval")
    session.run(*PYTEST, "-s", "-W", "ignore", "tests/thin/test_third_party_tools.py", *session.posargs)
