"""The example runs from what is committed beside it."""

import shutil
from pathlib import Path

from .conftest import Suite

EXAMPLE = Path(__file__).parents[3] / "examples/pytest_fixtures"


def test_the_example_passes_from_its_committed_recordings(suite: Suite) -> None:
    shutil.copytree(EXAMPLE, suite.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    result = suite.run()
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["4 served, 0 recorded, 0 missed, 0 leftovers, 0 outdated, 0 orphans"])
