"""The example that makes a suite of tau-bench sessions runs as it stands."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "suite_tau_bench.py"


def test_a_suite_of_recorded_sessions_tells_models_apart(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "tau-bench"
    sessions = json.loads((folder / "gpt-4o-airline.json").read_text("utf-8"))[:16]
    (tmp_path / "some.json").write_text(json.dumps(sessions))
    words = [sys.executable, str(EXAMPLE), "some.json", "--tools", str(folder / "tools-airline.json"), "--cases", "40"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["sessions"] == 16
    assert found["confirmed"] == sum(session["reward"] == 1 for session in sessions)
    models = found["models"]
    assert models["recorded"]["schema"]["passed"] == models["recorded"]["schema"]["of"] > 0
    assert models["recorded"]["selection"]["passed"] > models["always_text"]["selection"]["passed"]
    assert models["always_text"]["schema"]["of"] == 0
    assert models["always_first"]["schema"]["passed"] < models["always_first"]["schema"]["of"]
