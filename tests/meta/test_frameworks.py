"""The versions of frameworks stand in three places: pyproject.toml, noxfile.py and the pages of the adapters."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
_EXTRA = {"pydantic_ai": "pydantic-ai", "openai_agents": "openai-agents", "claude": "claude-agent-sdk"}


def table(name: str) -> dict[str, dict[str, list[str]]]:
    """A table of the noxfile, which only nox can import."""
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    found: Any = next(n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == name)
    return ast.literal_eval(found)


ADAPTERS = {**table("MAIN"), **table("THIN")}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_lowest_version_that_is_declared_is_the_oldest_that_is_tried(adapter: str) -> None:
    tried = dict(pin.split("==") for pin in ADAPTERS[adapter]["oldest"] if "==" in pin)
    tried = {name.partition("[")[0]: version for name, version in tried.items()}
    for requirement in EXTRAS[_EXTRA.get(adapter, adapter)]:
        name, lowest = re.match(r"([a-z-]+)[^>]*>=([0-9.]+)", requirement).groups()  # type: ignore[union-attr]
        assert tried[name].startswith(lowest), f"{requirement}, but {name} {tried[name]} is tried"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_page_of_an_adapter_names_the_oldest_version(adapter: str) -> None:
    own = ROOT / "docs" / f"adapter-{_EXTRA.get(adapter, adapter)}.md"
    page = (own if own.exists() else ROOT / "docs" / "adapters.md").read_text("utf-8")
    name, version = ADAPTERS[adapter]["oldest"][0].split("==")
    assert version in page, f"{name} {version} is not named"


def test_every_thin_adapter_has_a_session_a_test_and_an_extra() -> None:
    for adapter in table("THIN"):
        assert (ROOT / "tests" / "thin" / f"test_{adapter.replace('-', '_')}.py").exists()
        assert (ROOT / "src" / "playhead" / "adapters" / adapter.replace("-", "_")).is_dir()
        assert adapter in EXTRAS
