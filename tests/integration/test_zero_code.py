"""`playhead.install()`: recording without a line of the agent's code changed."""

import subprocess
import sys
from pathlib import Path

import pytest

import playhead

AGENT = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def respond(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("look", {"x": 1})])
    return ModelResponse(parts=[TextPart("done")])

agent = Agent(FunctionModel(respond, model_name="scripted"), name="looker")

@agent.tool_plain
def look(x: int) -> int:
    return x * 10
"""


def python(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sessions() -> list[str]:
    with playhead.open() as client:
        return [s.agent for s in client.sessions.find(playhead.SessionQuery()).items]


def test_a_run_of_a_framework_that_is_imported_later_is_a_session(project: Path):
    (project / "plain_agent.py").write_text(AGENT)
    python("import playhead; playhead.install()\nimport plain_agent; plain_agent.agent.run_sync('hi')", project)
    assert sessions() == ["looker"]
    with playhead.open() as client:
        nodes = client.sessions.nodes(client.sessions.resolve("last"))
        assert [n.kind for n in nodes] == ["model_call", "tool_call", "model_call"]


def test_uninstalled_again_nothing_is_recorded(project: Path):
    (project / "plain_agent.py").write_text(AGENT)
    code = "import playhead; playhead.install(); playhead.install(); playhead.uninstall()\n"
    python(code + "import plain_agent; plain_agent.agent.run_sync('hi')", project)
    assert not (project / ".playhead" / "store.db").exists()


def test_install_imports_no_framework(project: Path):
    code = "import sys, playhead; playhead.install()\n"
    code += "print([m for m in ('pydantic_ai', 'httpx', 'httpx2', 'openai', 'langchain_core') if m in sys.modules])"
    assert python(code, project).strip() == "[]"


def test_a_replay_records_no_run_beside_it(project: Path):
    (project / "plain_agent.py").write_text(AGENT)
    python("import playhead; playhead.install()\nimport plain_agent; plain_agent.agent.run_sync('hi')", project)
    code = (
        "import playhead, plain_agent\n"
        "result = playhead.replay('last', agent=plain_agent.agent)\n"
        "plain_agent.agent.run_sync('afterwards')\n"
        "print(result.fidelity.kind.value)"
    )
    assert python(code, project).strip() == "faithful"
    assert len(sessions()) == 2


@pytest.mark.parametrize(
    "first",
    ["from langchain.agents import create_agent", "import langgraph.graph", "from langchain_core.tools import tool"],
)
def test_installing_before_langchain_is_imported_neither_hangs_nor_misses_a_part(project: Path, first: str):
    code = (
        "import playhead; playhead.install()\n"
        f"{first}\n"
        "from langgraph.pregel import Pregel\n"
        "from langchain_core.tools import BaseTool\n"
        "from langchain_core.language_models.chat_models import BaseChatModel\n"
        "print([hasattr(m, '__wrapped__') for m in (BaseTool.run, BaseChatModel.generate, Pregel.invoke)])"
    )
    assert python(code, project).strip() == "[True, True, True]"
