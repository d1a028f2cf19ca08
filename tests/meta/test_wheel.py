"""The wheel that users install holds the types marker, every module and every data file, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling", reason="the build backend is part of the development environment")
    folder = tmp_path_factory.mktemp("wheel")
    script = f"import hatchling.build; print(hatchling.build.build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(folder / done.stdout.split()[-1])


def test_the_wheel_says_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    assert "playhead/py.typed" in wheel.namelist()


def test_the_wheel_holds_the_whole_package(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "playhead").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_wheel_names_its_command_licence_and_extras(wheel: zipfile.ZipFile) -> None:
    def text(name: str) -> str:
        return next(wheel.read(n).decode() for n in wheel.namelist() if n.endswith(f".dist-info/{name}"))

    assert "playhead = playhead.cli.start:main" in text("entry_points.txt")
    metadata = text("METADATA")
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert all(f"Provides-Extra: {extra}" in metadata for extra in ("wire", "llm", "pydantic-ai", "collector"))
