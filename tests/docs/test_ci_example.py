"""The workflow under examples/ci calls commands that exist, with options that exist."""

import shlex
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
            found += [line.strip() for line in text.splitlines() if line.strip().startswith("playhead ")]
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
