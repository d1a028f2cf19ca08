"""The example of the OpenAI Agents adapter runs as it stands, in a project of its own."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "openai_agents_agent.py"


def test_the_example_replays_faithfully_without_paying_twice(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "recorded: Your money is on its way.", "replayed: Your money is on its way. (faithful)", "refunds paid: 1",
    ]  # fmt: skip
