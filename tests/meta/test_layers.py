"""The layer contracts of pyproject.toml hold, and each of them still catches what it forbids."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(lint_imports), "--no-cache"], cwd=folder, capture_output=True, text=True, check=False, env=_environment()
    )


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def test_imports_keep_the_contracts() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("core/values.py", "import playhead.store", "layers point down"),
        ("store/ports.py", "import playhead.engine", "layers point down"),
        ("core/values.py", "import os", "core: no I/O, clock, dice"),
        ("engine/clock.py", "import pydantic_ai", "only adapters import frameworks"),
    ],
)
def test_a_broken_contract_is_found(tmp_path: Path, module: str, line: str, contract: str) -> None:
    import shutil

    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    broken = tmp_path / "src" / "playhead" / module
    broken.write_text(f"{broken.read_text('utf-8')}\n{line}\n", "utf-8")
    script = (
        "import sys; sys.path.insert(0, 'src'); sys.argv = ['lint-imports', '--no-cache'];"
        "from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{contract} BROKEN" in done.stdout


def test_every_package_has_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["type"] == "layers")
    assert layers["exhaustive"] is True
    placed = {name.strip() for row in layers["layers"] for name in row.split("|")}
    packages = {p.name.removesuffix(".py") for p in (ROOT / "src" / "playhead").iterdir() if not p.name.startswith("_")}
    assert packages - {"py.typed"} <= placed
