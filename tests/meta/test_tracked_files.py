"""What is committed names no machine and no registry, and holds no secret of ours."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written in parts, so that this file does not hold what it looks for.
HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]
PATHS = [
    "/wo" + "rk/",
    "/ho" + "me/",
    "/ro" + "ot/",
    "/Us" + "ers/",
    "/fa" + "rm/",
    "/tmp/bash" + "_jobs",
    "/opt/" + "pypi",
]
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS), *(rf"(?<![\w.$}}]){re.escape(path)}" for path in PATHS)]))


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name in tracked()
        for number, line in enumerate((ROOT / name).read_text("utf-8", "replace").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("line", ["see https://" + HOSTS[0], "cd " + PATHS[0] + "x", '"' + PATHS[2] + 'a"'])
def test_the_search_finds_what_it_is_for(line: str) -> None:
    assert FORBIDDEN.search(line)


@pytest.mark.parametrize("line", ["tmp_path/home/", "$HOME/x", "a/work/b"])
def test_the_search_leaves_other_paths_alone(line: str) -> None:
    assert not FORBIDDEN.search(line)


def test_the_lock_pins_every_package_by_hash() -> None:
    lines = (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    pins = [index for index, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
    assert len(pins) > 50
    assert [lines[index] for index in pins if "==" not in lines[index] or "--hash=" not in lines[index + 1]] == []
    assert [line for line in lines if "://" in line or line.startswith("-")] == []


def test_the_lock_holds_every_declared_requirement() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    locked = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[1].split()  # type: ignore[index]
    declared = [
        *project["project"]["dependencies"],
        *(name for extra in locked for name in extras[extra]),
        *project["dependency-groups"]["dev"],
    ]
    pinned = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements-dev.lock").read_text("utf-8"), re.MULTILINE))
    names = {re.match(r"[A-Za-z0-9._-]+", name)[0].lower().replace("_", "-").replace(".", "-") for name in declared}  # type: ignore[index]
    assert names - {name.replace(".", "-") for name in pinned} == set()
