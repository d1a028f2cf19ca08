"""The main job on real input: recorded sessions replay offline, and every change is named exactly."""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "tau_bench.py"


def run(*words: object, cwd: Path) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *map(str, words), "--output", "json"],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_recorded_airline_sessions_replay_faithfully_offline(shared_data: Path, tmp_path: Path):
    """Every fourth session; all of them, which takes a minute, where PLAYHEAD_CONFORMANCE asks for all."""
    folder = shared_data / "tau-bench"
    file, wanted = folder / "gpt-4o-airline.json", 120
    if os.environ.get("PLAYHEAD_CONFORMANCE") != "all":
        few = json.loads(file.read_text())[::4]
        file, wanted = tmp_path / "few.json", len(few)
        file.write_text(json.dumps(few))
    code, found = run(file, "--tools", folder / "tools-airline.json", cwd=tmp_path)
    assert found["reasons"] == []
    assert (code, found["sessions"], found["faithful"], found["live_calls"]) == (0, wanted, wanted, 0)


def test_each_fork_names_what_was_changed(shared_data: Path, tmp_path: Path):
    code, found = run(shared_data / "tau-bench" / "gpt-4o-airline.json", "--limit", 8, "--fork", cwd=tmp_path)
    assert (code, found["faithful"]) == (0, 8)
    prompt, argument = found["other_prompt"], found["other_argument"]
    assert prompt["diverged_at_first_model_request"] == prompt["sessions"] == 8
    assert "+You are a pirate." in prompt["first"]["diff"]
    assert argument["exactly_that_call_named"] == argument["sessions"] == 6  # two of the eight called no tool
    assert argument["first"]["what"] == "arguments"


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The example in this process: its exit code and its last line."""

    def runs(*words: object) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *map(str, words), "--output", "json"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(EXAMPLE), run_name="__main__")
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert {"sessions", "faithful", "diverged", "live_calls", "reasons"} <= set(found)
        assert found["sessions"] == found["faithful"] + len(found["reasons"])
        return int(str(ended.value.code)), found

    return runs


def call(id: str, tool: str, text: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}


def asks(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def gives(id: str, tool: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "name": tool, "content": text}


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


ODD = {
    "parallel calls of one tool with different answers, and one id in two responses": [
        says("system", "Help."), says("user", "two?"),
        asks(call("c", "look", '{"n": 1}'), call("d", "look", '{"n": 1}'), content="Looking."),
        gives("c", "look", "first"), gives("d", "look", "second"),
        asks(call("c", "look", '{"n": 2}')), gives("c", "look", "third"), says("assistant", "done"),
    ],
    "results that are JSON, null text, unicode and empty": [
        says("user", "x"),
        asks(call("a", "look", '{"q": "日本 naïve 🚀"}')), gives("a", "look", '{ "b":1,\n"a": [1.0, null]}'),
        asks(call("b", "look", "{}")), gives("b", "look", ""),
        asks(call("c", "look", '{"id": 9007199254740993}')), gives("c", "look", "null"), says("assistant", "fine"),
    ],
    "no tools at all, three turns, and a last word that nobody answers": [
        says("system", "Chat."), says("user", "hi"), says("assistant", "hello"),
        says("user", "again"), says("assistant", "hello again"), says("user", "bye"), says("assistant", "bye"),
        says("user", "###STOP###"),
    ],
    "answers that are empty": [
        says("user", "x"), asks(call("a", "look", "{}")), gives("a", "look", "1"), says("assistant", ""),
        says("user", "again"), {"role": "assistant", "content": None},
    ],
    "two user messages before one answer, and an end with an answered call": [
        says("user", "one"), says("user", "two"), asks(call("z", "transfer", "{}")), gives("z", "transfer", "moved"),
    ],
}  # fmt: skip


def test_odd_but_honest_conversations_replay_faithfully(tmp_path: Path):
    records = [
        {"task_id": n, "trial": 0, "reward": 1.0, "info": {"task": {}}, "traj": traj}
        for n, traj in enumerate(ODD.values())
    ]
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(records))
    code, found = run(file, cwd=tmp_path)
    assert found["reasons"] == []
    assert (code, found["faithful"], found["live_calls"]) == (0, len(ODD), 0)


def test_a_call_whose_result_was_not_recorded_is_named(tmp_path: Path):
    traj = [
        says("user", "x"),
        asks(call("a", "look", '{"n": 1}'), call("b", "look", '{"n": 2}')),
        gives("a", "look", "one"),
        says("assistant", "only one came back"),
    ]
    file = tmp_path / "gap.json"
    file.write_text(json.dumps([{"task_id": 0, "trial": 0, "reward": 0.0, "info": {}, "traj": traj}]))
    code, found = run(file, cwd=tmp_path)
    assert (code, found["diverged"], found["live_calls"]) == (1, 1, 0)
    assert found["reasons"][0]["where"] == "tool call 2 look"


GOOD = [says("user", "x"), asks(call("a", "look", '{"n": 1}')), gives("a", "look", "one"), says("assistant", "done")]


def record(task: int | None, traj: Any) -> dict[str, Any]:
    return {"task_id": task, "trial": 0, "reward": 1.0, "info": {}, "traj": traj}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no session"),
        ("not JSON", "known format"),
        ("[]", "known format"),
        ("{}", "known format"),
        ('[{"task_id": 1, "reward": 0.0}]', "known format"),
        (json.dumps([record(1, "x")]), "known format"),
        (json.dumps([record(1, [])]), "no message list"),
        (json.dumps([record(1, [{"content": "no role"}])]), "no known shape"),
        (json.dumps([record(1, [says("system", "only")])]), "nothing in it is a step"),
        (json.dumps([record(None, GOOD)]), "without task_id"),
    ],
)
def test_a_file_with_nothing_to_replay_says_why(text: str, why: str, tmp_path: Path, run_here: Callable[..., Any]):
    file = tmp_path / "bad.json"
    file.write_text(text)
    code, found = run_here(file)
    assert (code, found["sessions"]) == (2, 0)
    assert why in json.dumps([found["error"], found["not_imported"]])
    assert "None" not in json.dumps(found["not_imported"])


def test_records_that_cannot_be_read_are_named_and_the_others_replayed(tmp_path: Path, run_here: Callable[..., Any]):
    file = tmp_path / "mixed.json"
    file.write_text(json.dumps([record(1, GOOD), {"task_id": 2}, record(3, GOOD)])[:-2])  # cut off
    code, found = run_here(file)
    assert (code, found["faithful"], found["diverged"]) == (1, 1, 0)
    assert [one["where"] for one in found["not_imported"]] == [f"{file}:/1", f"{file}:/2"]


def test_a_conversation_that_cannot_be_started_again_is_refused_with_its_reason(
    tmp_path: Path, run_here: Callable[..., Any]
):
    file = tmp_path / "greeting.json"
    file.write_text(json.dumps([record(1, [says("assistant", "Welcome!"), *GOOD]), record(2, GOOD)]))
    code, found = run_here(file, "--fork")
    assert (code, found["faithful"], found["reasons"][0]["fidelity"]) == (1, 1, "refused")
    assert "what the agent was started with" in found["reasons"][0]["why"]


@pytest.mark.parametrize("tools", ["not JSON", "[{}]", '["look"]', '[{"type": "function", "function": {}}]', None])
def test_tool_schemas_that_are_none_are_refused(tools: str | None, tmp_path: Path, run_here: Callable[..., Any]):
    (tmp_path / "good.json").write_text(json.dumps([record(1, GOOD)]))
    if tools is not None:
        (tmp_path / "tools.json").write_text(tools)
    code, found = run_here(tmp_path / "good.json", "--tools", tmp_path / "tools.json")
    assert code == 2
    assert "tools.json" in found["error"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path, run_here: Callable[..., Any]):
    code, found = run_here(tmp_path / "missing.json")
    assert code == 2
    assert "missing.json" in found["error"]
