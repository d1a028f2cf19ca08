import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude_agent.py"


@pytest.mark.claude_cli
def test_the_example_records_and_replays(tmp_path: Path):
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ANTHROPIC_", "CLAUDE", "PLAYHEAD_"))}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, env=kept, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "recorded: The command ran once.",
        "replayed: The command ran once.",
        "answered by: Bash served",
        "runs of the command: 1",
    ]
