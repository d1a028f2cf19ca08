"""The workflow under examples/ci calls commands that exist, with options that exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT

WORKFLOWS = sorted((ROOT / "examples" / "ci").glob("*.yml"))


def commands(path: Path) -> list[str]:
    found: list[str] = []
    jobs: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    for job in jobs.values():
        for step in job["steps"]:
            text = step.get("run", "").replace("\\\n", " ")
            lines = [line.strip() for line in text.splitlines() if line.strip().startswith("playhead ")]
            found += [re.split(r"\s(?:>>?|\|\|?|&&)\s", line)[0] for line in lines]  # without what the shell does
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_the_commands_of_a_workflow_exist(path: Path) -> None:
    from playhead.cli.context import split_options
    from playhead.cli.run import find_command, parser

    lines = commands(path)
    assert lines
    for line in lines:
        _, rest = split_options(shlex.split(line)[1:])
        found = find_command(rest)
        assert not isinstance(found, str), line
        name, function, given = found
        parser(name, function).parse_args(given, exit_on_error=False, print_error=False)


def step(path: Path, name: str) -> str:
    """What a step runs."""
    jobs: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return next(step["run"] for job in jobs.values() for step in job["steps"] if step.get("name") == name)


@pytest.mark.parametrize(("candidate", "code", "verdict"), [("worse", 1, "fail"), ("unsure", 0, "inconclusive")])
def test_the_gate_step_blocks_and_writes_what_the_next_steps_take(
    tmp_path: Path, candidate: str, code: int, verdict: str
) -> None:
    """As the runner does it: under bash with -e, with a committed baseline and criteria."""
    from playhead.core.suites.summary import to_text
    from playhead.testing.runs import simulated_run

    rates = {"worse": [0.5] * 60, "unsure": [1.0] * 40}
    (tmp_path / "suites").mkdir()
    base = simulated_run([1.0] * len(rates[candidate]), seed="base", run="base")
    (tmp_path / "suites" / "baseline.json").write_text(to_text(base), "utf-8")
    (tmp_path / "suites" / "gate.toml").write_text('criteria = ["selection", "stability"]\n', "utf-8")
    (tmp_path / "candidate.json").write_text(to_text(simulated_run(rates[candidate], seed="new", run="new")), "utf-8")
    script = step(ROOT / "examples" / "ci" / "playhead-gate.yml", "gate")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(f"{verdict}: new against base")
    comment = (tmp_path / "gate.md").read_text("utf-8")
    assert verdict in comment.splitlines()[0]
    assert (tmp_path / "summary.md").read_text("utf-8") == comment
    assert "<testsuite " in (tmp_path / "gate.xml").read_text("utf-8")
    assert "default-src 'none'" in (tmp_path / "gate.html").read_text("utf-8")
