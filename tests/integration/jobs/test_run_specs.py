"""What a run spec names, and what it must not: variables, programs and folders, as its replays find them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.values import ReplayStatus, RunSpec
from playhead.engine.client import Client, ReplayHandle
from playhead.engine.worker import Worker

REQUEST = playhead.ReplayCreateRequest(baseline_session_id="last")


def run(client: Client, spec: RunSpec) -> ReplayHandle:
    return client.replays.create(REQUEST, run_spec=spec).wait(60, embedded=False)


@pytest.mark.parametrize("warm", [True, False])
def test_an_agent_sees_the_variables_that_its_run_spec_names_and_no_others(
    client: Client, working: Callable[..., Worker], desk: Path, warm: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DESK_REGION", "eu")
    monkeypatch.setenv("DESK_TOKEN", "tok-8c1e5d7f9a2b")
    monkeypatch.setenv("DESK_OTHER", "not named")
    monkeypatch.delenv("DESK_UNSET", raising=False)
    (desk / "harm").write_text(
        f"import json; json.dump({{k: v for k, v in os.environ.items() if k.startswith('DESK_')}}, "
        f"open({str(desk / 'seen')!r}, 'w')); print(os.environ['DESK_TOKEN'], flush=True); os._exit(3)"
    )
    working(warm=warm)
    names: dict[str, Any] = {"env": ("DESK_REGION", "DESK_UNSET"), "secrets": ("DESK_TOKEN",)}
    done = run(client, RunSpec(entry_point="desk:run", working_dir=str(desk), **names))
    assert json.loads((desk / "seen").read_text()) == {"DESK_REGION": "eu", "DESK_TOKEN": "tok-8c1e5d7f9a2b"}
    assert done.error is not None
    assert (done.error.attributes or {})["stdout"].strip() not in ("", "tok-8c1e5d7f9a2b")
    stored = (desk / ".playhead" / "store.db").read_bytes() + (desk / ".playhead" / "store.db-wal").read_bytes()
    assert b"tok-8c1e5d7f9a2b" not in stored


def test_a_program_is_found_from_its_working_directory(
    client: Client, working: Callable[..., Worker], desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = desk / "tools"
    folder.mkdir()
    (folder / "go").write_text(f"#!{sys.executable}\nimport os\nopen('ran', 'w').write(os.getcwd())\n")
    (folder / "go").chmod(0o755)
    working()
    monkeypatch.chdir(tmp_path)  # the worker may stand anywhere
    done = run(client, RunSpec(command=("./go",), working_dir=str(folder)))
    assert (folder / "ran").read_text() == str(folder)
    assert done.error is not None
    assert "without a session" in done.error.message


@pytest.mark.parametrize("spec", [{"entry_point": "desk:run"}, {"command": ("./go",)}])
def test_a_working_directory_that_is_gone_is_named(
    client: Client, working: Callable[..., Worker], desk: Path, spec: dict[str, Any]
):
    working(warm=False)
    done = run(client, RunSpec(working_dir=str(desk / "gone"), **spec))
    assert done.status is ReplayStatus.FAILED
    assert done.error is not None
    assert str(desk / "gone") in done.error.message or "./go" in done.error.message


@pytest.mark.parametrize("warm", [True, False])
def test_a_hundred_megabytes_of_output_end_a_replay_that_sets_no_limit(
    client: Client, working: Callable[..., Worker], desk: Path, warm: bool
):
    (desk / "harm").write_text("for _ in range(1600): os.write(1, b'x' * 65_536)")
    working(warm=warm)
    done = client.replays.create(REQUEST).wait(60, embedded=False)
    assert done.error is not None
    assert "printed more than 67,108,864 bytes" in done.error.message
    assert len((done.error.attributes or {})["stdout"]) <= 8 * 1024


def test_a_name_that_is_not_set_is_told_when_the_agent_is_registered(desk: Path):
    program = str(Path(sys.executable).with_name("playhead"))
    words = ["agent", "register", "desk", "--entry-point", "desk:run", "--env", "DESK_UNSET"]
    done = subprocess.run([program, *words], cwd=desk, capture_output=True, text=True, check=True, timeout=60)
    assert "DESK_UNSET is not set here" in done.stderr
