"""Runs of pytest inside the test's own process, with a project that has one op."""

import sys
from pathlib import Path
from typing import Any

import pytest
from _pytest.pytester import SysModulesSnapshot


@pytest.fixture(autouse=True)
def _libraries_stay(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """pytester forgets what an inner run imported. Of a library a second copy would be made later on, whose classes
    are not those that the rest of this process knows; only the modules of the inner run's folder have to go."""
    inner, restore = str(tmp_path_factory.getbasetemp()), SysModulesSnapshot.restore

    def keeping(snapshot: SysModulesSnapshot) -> None:
        kept = {name: module for name, module in sys.modules.items() if not _is_in(module, inner)}
        restore(snapshot)
        sys.modules.update({name: module for name, module in kept.items() if name not in sys.modules})

    monkeypatch.setattr(SysModulesSnapshot, "restore", keeping)


def _is_in(module: Any, folder: str) -> bool:
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    return any(str(place).startswith(folder) for place in places if place)


OPS = """
import os
import playhead
calls = []

@playhead.op("orders.lookup", effect="read", version=os.environ.get("ORDERS_VERSION", "1"))
def lookup(order_id, limit=5):
    calls.append(order_id)
    return {"id": order_id, "limit": limit}

@playhead.op("orders.token", effect="read")
def token():
    calls.append("token")
    return os.urandom(8).hex()
"""


class Suite:
    """A folder of tests, run in this process: as often as a test wants, each time with fresh modules."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    def write(self, text: str, name: str = "test_orders.py") -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import pytest\nfrom ops import *\n{text}", "utf-8")

    def run(self, *args: str, plugins: Any = ()) -> pytest.RunResult:
        own = ("-p", "playhead.pytest_plugin.plugin", "-p", "no:cacheprovider")
        return self.pytester.runpytest_inprocess(*own, *args, plugins=plugins)

    def record(self, *args: str) -> pytest.RunResult:
        return self.run("--playhead=record", *args)

    def files(self, ending: str = "op.*.json") -> list[str]:
        root = self.path / ".playhead/fixtures"
        return sorted(path.relative_to(root).as_posix() for path in root.rglob(ending) if ".partial" not in path.parts)


@pytest.fixture(autouse=True)
def not_the_outer_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others import much in every run


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(ops=OPS)
    return Suite(pytester)


@pytest.fixture
def fixtures_of(suite: Suite) -> Path:
    return suite.path / ".playhead/fixtures"
