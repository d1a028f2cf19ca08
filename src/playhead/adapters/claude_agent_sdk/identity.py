"""Whose sessions a runner's are, and what captures the version of the agent."""

from typing import Any, NamedTuple

from playhead.engine import seam
from playhead.engine.project import default_recorder, find_project
from playhead.engine.recorder import Recorder
from playhead.engine.version import CodeVersion
from playhead.errors import RefusedError

DEFAULT = "claude"


class Identity(NamedTuple):
    """The agent's name, and its version (an id, or what captures one)."""

    agent: str
    version: Any = None


_version = CodeVersion(None, None, adapter="claude_agent_sdk")  # of an agent that is code around a runner


def identify(agent_id: Any, agent_version_id: Any, recorder: Recorder | None) -> Identity:
    """Whose session a query opens. A replay's, or the session's around, wins over what the runner was given.

    Raises:
        RefusedError: nothing says whose it is.
        NotFoundError: there is no such agent version.
    """
    state = seam.replay_here()
    if state is not None and state.baseline is not None:
        return Identity(state.baseline.agent, _version)
    if agent_version_id is not None:
        store = (recorder or default_recorder()).store
        found = store.agents.get(str(agent_version_id))
        return Identity(found.agent, found.id)
    if agent_id is not None:
        return Identity(str(agent_id), _version)
    around = seam.current()
    if around is not None:
        return Identity(around.agent, None)
    if _in_project():
        return Identity(DEFAULT, _version)
    raise RefusedError(
        "a standalone query needs agent_id or agent_version_id",
        hint="PlayheadClaudeRunner(agent_id=...), or run it in a folder with .playhead/ (playhead init)",
    )


def _in_project() -> bool:
    project = find_project()
    return project.url_source != "project" or project.folder.is_dir()
