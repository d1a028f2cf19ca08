"""The main job on real input: recorded sessions replay offline, and every change is named exactly."""

import json
import subprocess
import sys
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


def test_every_recorded_airline_session_replays_faithfully_offline(shared_data: Path, tmp_path: Path):
    folder = shared_data / "tau-bench"
    code, found = run(folder / "gpt-4o-airline.json", "--tools", folder / "tools-airline.json", cwd=tmp_path)
    assert found["reasons"] == []
    assert (code, found["sessions"], found["faithful"], found["live_calls"]) == (0, 120, 120, 0)


def test_each_fork_names_what_was_changed(shared_data: Path, tmp_path: Path):
    code, found = run(shared_data / "tau-bench" / "gpt-4o-airline.json", "--limit", 8, "--fork", cwd=tmp_path)
    assert (code, found["faithful"]) == (0, 8)
    prompt, argument = found["other_prompt"], found["other_argument"]
    assert prompt["diverged_at_first_model_request"] == prompt["sessions"] == 8
    assert "+You are a pirate." in prompt["first"]["diff"]
    assert argument["exactly_that_call_named"] == argument["sessions"] == 6  # two of the eight called no tool
    assert argument["first"]["what"] == "arguments"


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
    "two user messages before one answer, and an end with an answered call": [
        says("user", "one"), says("user", "two"), asks(call("z", "transfer", "{}")), gives("z", "transfer", "moved"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_odd_but_honest_conversations_replay_faithfully(what: str, tmp_path: Path):
    record = {"task_id": 0, "trial": 0, "reward": 1.0, "info": {"task": {}}, "traj": ODD[what]}
    file = tmp_path / "odd.json"
    file.write_text(json.dumps([record]))
    code, found = run(file, cwd=tmp_path)
    assert found["reasons"] == []
    assert (code, found["faithful"], found["live_calls"]) == (0, 1, 0)


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
