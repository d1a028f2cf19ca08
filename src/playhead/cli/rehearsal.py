"""A replay of a small agent of ours, so that a process has loaded and built all that a replay needs.

Its tools are coroutines: synchronous ones would leave a thread of a pool behind, and a process with threads must not
be forked.
"""

import asyncio
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from playhead.adapters.functions import agent, tool
from playhead.adapters.inline import replay
from playhead.engine.project import Project, use_recorder
from playhead.engine.settings import Settings
from playhead.store.sqlite import SqliteStore


@tool("playhead_rehearsal")
async def _look(x: int) -> dict[str, int]:
    return {"x": x}


@agent("playhead rehearsal")
async def _plain(prompt: str) -> list[Any]:
    return [await _look(1), await asyncio.sleep(0, prompt)]


def rehearse() -> None:
    """Records and replays, in a store that is thrown away."""
    agents = [_plain, *([_framework_agent()] if "pydantic_ai" in sys.modules else [])]
    with tempfile.TemporaryDirectory(prefix="playhead-rehearsal-") as folder:
        store = SqliteStore(Path(folder) / "store.db")
        project = Project(root=Path(folder), settings=Settings(), url=store.url)
        recorder = project.recorder(store)
        before = use_recorder(recorder)
        try:
            for one in agents:
                asyncio.run(one("hello"))
                recorder.flush()
                replay("last", agent=one, store=store, recorder=recorder)
        finally:
            use_recorder(before)
            recorder.close()
            store.close()


def _framework_agent() -> Any:
    framework: Any = sys.modules["pydantic_ai"]
    models: Any = importlib.import_module("pydantic_ai.models.test")
    made = framework.Agent(models.TestModel(), name="playhead rehearsal")

    async def look(x: int) -> dict[str, int]:
        """Looks."""
        return {"x": x}

    made.tool_plain(look)

    @agent("playhead framework rehearsal")
    async def run(prompt: str) -> str:
        return (await made.run(prompt)).output

    return run
