"""What a command that looks something up must not load. (How long it takes is measured in `benchmarks/startup.py`.)"""

import subprocess
import sys
from pathlib import Path

HEAVY = ("pydantic", "psutil", "asyncio", "sqlalchemy", "alembic", "httpx", "rich", "playhead.engine.recorder")
RUN = f"""
import sys
from playhead.cli.start import main
try:
    main()
except SystemExit:
    pass
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""


def started(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words], cwd=folder, capture_output=True, text=True, check=True
    )  # fmt: skip


def test_a_listing_loads_neither_the_recorder_nor_what_only_settings_need(tmp_path: Path) -> None:
    started(["init"], tmp_path)
    done = started(["session", "list", "--output", "json"], tmp_path)
    assert '"items"' in done.stdout or done.stdout.strip().startswith("[")
    assert done.stderr.splitlines()[-1] == "[]"
