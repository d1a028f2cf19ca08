"""Agent versions: how to start the agent, and the state of its code."""

import subprocess
import sys
import types
from pathlib import Path

import pytest

from playhead.engine import version
from playhead.engine.entry import load


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "agent.py").write_text("x = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def module(name: str, file: Path, text: str = "def run():\n    return 7\n") -> types.ModuleType:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    made = types.ModuleType(name)
    made.__file__ = str(file)
    return made


def test_a_clean_checkout_has_a_commit_and_no_dirty_digest(repository: Path):
    found = version.fingerprint(repository)
    assert len(str(found["commit"])) == 40
    assert "dirty" not in found
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_changed_and_new_files_change_the_dirty_digest_and_recordings_do_not(repository: Path):
    digests = [version.fingerprint(repository).get("dirty")]
    (repository / "agent.py").write_text("x = 2\n")
    digests.append(version.fingerprint(repository).get("dirty"))
    (repository / "new.py").write_text("y = 1\n")
    digests.append(version.fingerprint(repository).get("dirty"))
    (repository / "new.py").write_text("y = 2\n")
    digests.append(version.fingerprint(repository).get("dirty"))
    assert len(set(digests)) == 4
    (repository / ".playhead").mkdir()
    (repository / ".playhead" / "store.db").write_text("recorded")
    assert version.fingerprint(repository).get("dirty") == digests[-1]


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "commit" not in version.fingerprint(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert "commit" not in version.fingerprint(tmp_path)


def test_versions_are_those_of_imported_frameworks_only(monkeypatch: pytest.MonkeyPatch):
    import httpx

    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    found = version.framework_versions()
    assert found["httpx"] == httpx.__version__
    assert "litellm" not in found


def test_a_module_of_the_working_directory_is_named_by_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert version.entry_point(module("agent", tmp_path / "agent.py"), "run") == "agent:run"
    package = module("pkg.agent", tmp_path / "pkg" / "agent.py")
    assert version.entry_point(package, "Desk.run") == "pkg.agent:Desk.run"


def test_a_script_is_named_by_its_file_and_can_be_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    script = module("__main__", tmp_path / "scripts" / "start.py")
    found = version.entry_point(script, "run")
    assert found == "scripts/start.py:run"
    assert load(found, str(tmp_path))() == 7


def test_a_module_beside_a_script_elsewhere_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "there"), *sys.path])
    beside = module("desk", tmp_path / "there" / "desk.py")
    assert version.entry_point(beside, "run") == f"{tmp_path}/there/desk.py:run"


def test_what_no_process_could_find_again_has_no_entry_point():
    def local() -> None: ...

    assert version.of_function(local).entry_point is None
    assert version.of_function(lambda: None).entry_point is None
    notebook = types.ModuleType("__main__")
    assert version.entry_point(notebook, "run") is None


def test_a_script_that_has_ended_is_still_found(tmp_path: Path):
    script = tmp_path / "quick.py"
    script.write_text(
        "import atexit, sys\nfrom playhead.engine import version\n"
        "atexit.register(lambda: print(version.entry_point(sys.modules['__main__'], 'agent')))\n"
    )
    ran = subprocess.run([sys.executable, script.name], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout == "quick.py:agent\n"


DESK = object()


def test_an_object_is_found_by_its_name_in_the_calling_module():
    found = version.of_object(DESK)
    assert found.entry_point is not None
    assert found.entry_point.endswith(":DESK")
    assert version.of_object(object()).entry_point is None


def test_capturing_twice_asks_git_once(repository: Path, monkeypatch: pytest.MonkeyPatch):
    code = version.CodeVersion("agent:run", repository / "agent.py")
    first = code.capture("desk")
    monkeypatch.setattr(version, "fingerprint", None)
    assert code.capture("desk").fingerprint == first.fingerprint
    assert first.run_spec is not None
    assert first.run_spec.entry_point == "agent:run"


def test_agents_made_one_after_the_other_ask_git_once(repository: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, ...]] = []
    git_of = version._git
    monkeypatch.setattr(version, "_git", lambda folder, *args: asked.append(args) or git_of(folder, *args))
    monkeypatch.chdir(repository)
    first = version.CodeVersion(None, None).capture("desk")
    once = len(asked)
    assert version.CodeVersion(None, None).capture("desk").fingerprint == first.fingerprint
    assert len(asked) == once
    monkeypatch.setattr(version, "_RECENT", 0.0)
    version.CodeVersion(None, None).capture("desk")
    assert len(asked) == 2 * once
