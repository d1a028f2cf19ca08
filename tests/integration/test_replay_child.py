"""Replays in a process of their own: what an agent does to its process stays there."""

import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.policy import HistoryModel, LiveModel
from playhead.core.values import FidelityKind, Replay, ReplayStatus, RunSpec
from playhead.engine.child import PLACEHOLDER_KEY, environment
from playhead.engine.entry import load
from playhead.engine.project import current_recorder


def write_agent(project: Path, body: str) -> Any:
    """Writes ``agent_under_test.py`` and imports it. ``body`` may use LIVE, a file that live tool calls append to."""
    source = f"""
import os, sys, threading, time, playhead
LIVE = {str(project / "live.log")!r}

@playhead.tool
def look(x: int) -> int:
    with open(LIVE, "a") as f:
        f.write("look\\n")
    return x * 10
{textwrap.dedent(body)}
"""
    (project / "agent_under_test.py").write_text(source)
    return load(f"{project / 'agent_under_test.py'}:run")


def replay(**fields: Any) -> Replay:
    playhead.flush()
    with playhead.open() as client:
        return client.replays.create(playhead.ReplayCreateRequest(baseline_session_id="last", **fields)).wait().replay


def live_calls(project: Path) -> int:
    log = project / "live.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


GOOD = """
@playhead.agent("worker")
def run(prompt: str) -> list[int]:
    return [look(1), look(2)]
"""


def test_a_fresh_process_replays_the_recorded_entry_point(project: Path):
    write_agent(project, GOOD)("hello")
    done = replay()
    assert done.error is None
    assert (done.status, done.fidelity.kind) == (ReplayStatus.COMPLETED, FidelityKind.FAITHFUL)
    assert live_calls(project) == 2  # the recording's own


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("os._exit(7)", "exit code 7"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
        ("time.sleep(60)", "ran out of time"),
        ("sys.stdout.write('x' * 5_000_000); sys.stderr.write('last words\\n'); os._exit(3)", "last words"),
    ],
)
def test_an_agent_that_takes_its_process_down_fails_its_replay_only(project: Path, act: str, words: str):
    body = GOOD.replace("return [", f"if os.path.exists(LIVE + '.harm'): {act}\n    return [")
    write_agent(project, body)("hello")
    (project / "live.log.harm").touch()
    done = replay(timeout=3.0 if "sleep" in act else 60.0)
    assert done.status is ReplayStatus.FAILED
    assert words in done.error.message
    assert len(done.error.attributes["stdout"]) <= 8192


def test_threads_that_never_end_and_a_changed_directory_do_not_hold_a_replay_up(project: Path):
    body = GOOD.replace(
        "return [", "threading.Thread(target=time.sleep, args=(0.2,), daemon=True).start(); os.chdir('/')\n    return ["
    )
    write_agent(project, body)("hello")
    os.chdir(project)
    assert replay().fidelity.kind is FidelityKind.FAITHFUL


def test_an_entry_point_that_no_longer_imports_fails_with_its_name(project: Path):
    write_agent(project, GOOD)("hello")
    playhead.flush()
    (project / "agent_under_test.py").write_text("import no_such_module_anywhere\n")
    done = replay()
    assert (done.status, done.error.code) == (ReplayStatus.FAILED, "entry_point")
    assert "no_such_module_anywhere" in done.error.message


def test_changed_code_that_calls_otherwise_is_a_miss_without_a_live_call(project: Path):
    write_agent(project, GOOD)("hello")
    playhead.flush()
    before = live_calls(project)
    write_agent(project, GOOD.replace("look(2)", "look(3)"))
    done = replay()
    assert (done.status, done.error.code) == (ReplayStatus.FAILED, "miss")
    assert done.fidelity.divergence.pointers == ("/x",)
    assert live_calls(project) == before


def test_the_same_idempotency_key_makes_and_runs_nothing_twice(project: Path):
    write_agent(project, GOOD)("hello")
    first = replay(idempotency_key="k", repeats=2)
    again = replay(idempotency_key="k", repeats=2)
    assert first.id == again.id
    with playhead.open() as client:
        assert len(client.replays.list().items) == 2


def test_only_named_variables_reach_the_agent(monkeypatch: pytest.MonkeyPatch):
    current = {"PATH": "/bin", "SHOP_TOKEN": "s", "OTHER": "o", "OPENAI_API_KEY": "real"}
    spec = RunSpec(entry_point="a:b", env=("SHOP_TOKEN",))
    assert environment(spec, LiveModel(), current) == {"PATH": "/bin", "SHOP_TOKEN": "s"}
    unnamed = environment(RunSpec(entry_point="a:b"), LiveModel(), current)
    assert unnamed["OPENAI_API_KEY"] == "real"
    assert "OTHER" not in unnamed
    offline = environment(RunSpec(entry_point="a:b"), HistoryModel(), current)
    assert offline["OPENAI_API_KEY"] == offline["ANTHROPIC_API_KEY"] == PLACEHOLDER_KEY


def test_a_working_directory_that_is_gone_is_named(project: Path, tmp_path: Path):
    write_agent(project, GOOD)("hello")
    playhead.flush()
    gone = tmp_path / "gone"
    with playhead.open() as client:
        request = playhead.ReplayCreateRequest(baseline_session_id="last")
        done = client.replays.create(request, run_spec=RunSpec(entry_point="x:y", working_dir=str(gone))).wait()
    assert (done.status, done.error.code) == (ReplayStatus.FAILED, "agent_process")
    assert str(gone) in done.error.message


def test_the_recorder_of_the_parent_is_left_alone(project: Path):
    write_agent(project, GOOD)("hello")
    replay()
    recorder = current_recorder()
    assert recorder is not None
    assert not recorder.counters["errors"]
