"""Conversations of several turns from the Berkeley leaderboard's form: what of them can be asked as it stands."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.core.suites.contents import Contents, counted
from playhead.core.suites.labels import AnyOfLabel, CallLabel
from playhead.core.suites.scoring import Answer, Attempt, Emitted, score
from playhead.core.suites.suite import Case, offered, schemas
from playhead.importers.bfcl import read

STATE = {"GorillaFileSystem": {"root": {}}}


def function(name: str, *names: str) -> dict[str, Any]:
    properties = {one: {"type": "string"} for one in names}
    return {"name": name, "parameters": {"type": "dict", "properties": properties, "required": list(names)}}


def lines(path: Path, *values: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, values)), "utf-8")


def entry(category: str, *said: str, **more: Any) -> dict[str, Any]:
    question = [[{"role": "user", "content": text}] if text else [] for text in said]
    return {
        "id": f"multi_turn_{category}_1", "question": question, "initial_config": STATE,
        "involved_classes": ["GorillaFileSystem"], "excluded_function": ["cp"], **more,
    }  # fmt: skip


def chat() -> dict[str, Any]:
    call = {"id": "c1", "function": {"name": "cd", "arguments": '{"folder": "docs"}'}}
    return {
        "id": "multi_turn_base_1",
        "messages": [
            {"role": "user", "content": "Go to docs."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": '{"current_working_directory": "docs"}'},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "Make temp and sort a.txt."},
        ],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    truth = [["cd(folder='docs')"], ["mkdir(dir_name='temp')", "sort('a.txt')"]]
    said = ("Go to docs.", "Make temp and sort a.txt.")
    made = {
        "base": (entry("base", *said), truth),
        "miss_func": (entry("miss_func", *said, "", missed_function={"2": ["sort"]}), [truth[0], [], truth[1]]),
        "miss_param": (entry("miss_param", "Go there.", "To docs, I mean."), [[], truth[0]]),
    }
    for category, (question, answers) in made.items():
        name = f"BFCL_v4_multi_turn_{category}.json"
        lines(tmp_path / name, question)
        lines(tmp_path / "possible_answer" / name, {"id": question["id"], "ground_truth": answers})
    listed = [function("cd", "folder"), function("mkdir", "dir_name"), function("sort", "file_name"), function("cp")]
    lines(tmp_path / "multi_turn_func_doc" / "gorilla_file_system.json", *listed)
    return tmp_path


def by_id(contents: Contents) -> dict[str, Case]:
    return {case.id.removeprefix("multi_turn_"): case for case in contents.cases}


def test_first_turns_are_cases_and_later_ones_are_skipped_by_name_without_results(folder: Path) -> None:
    found = read(folder)
    cases = by_id(found)
    assert {id: case.label.kind for id, case in cases.items() if case.label} == {
        "base_1/0": "call", "miss_func_1/0": "call", "miss_param_1/0": "no_tool",
    }  # fmt: skip
    assert [one.what.removeprefix("multi_turn_") for one in found.skipped] == [
        "base_1/1", "miss_func_1/1", "miss_func_1/2", "miss_param_1/1",
    ]  # fmt: skip
    assert counted(found)["skipped"] == {"no *.sessions.jsonl shows the results of the turns before it": 4}
    assert [tool.name for tool in offered(cases["base_1/0"], found.tools).values()] == ["cd", "mkdir", "sort"]


def test_a_chat_beside_them_gives_the_turn_without_its_function(folder: Path) -> None:
    lines(folder / "base.sessions.jsonl", chat())
    found = read(folder)
    cases = by_id(found)
    lacking = cases["miss_func_1/1"]
    assert lacking.label is not None
    assert lacking.label.kind == "no_tool"
    assert [tool.name for tool in offered(lacking, found.tools).values()] == ["cd", "mkdir"]
    assert [m.role for m in lacking.history] == ["user", "assistant", "tool", "user"]
    assert lacking.history[2].outcome == {"kind": "value", "value": {"current_working_directory": "docs"}}
    assert lacking.recorded == ()
    assert cases["base_1/0"].recorded[0].calls[0].arguments == {"folder": "docs"}
    assert "miss_func_1/2" not in cases  # nobody knows what was answered at the turn before it


def test_the_chat_of_another_state_gives_no_results(folder: Path) -> None:
    lines(folder / "base.sessions.jsonl", chat())
    path = folder / "BFCL_v4_multi_turn_miss_func.json"
    lines(path, json.loads(path.read_text("utf-8")) | {"initial_config": {"GorillaFileSystem": {"root": {"b": {}}}}})
    assert "miss_func_1/1" not in by_id(read(folder))


def test_calls_that_build_on_each_other_may_come_one_by_one_or_together(folder: Path) -> None:
    lines(folder / "base.sessions.jsonl", chat())
    found = read(folder)
    case = by_id(found)["base_1/1"]
    assert isinstance(case.label, AnyOfLabel)
    first, second = Emitted(tool="mkdir", arguments={"dir_name": "temp"}), Emitted(
        tool="sort", arguments={"file_name": "a.txt"}
    )  # fmt: skip

    def passes(*calls: Emitted) -> bool:
        attempt = Attempt(answers=(Answer(calls=calls),))
        scored = score(case, schemas(case, found.tools), attempt)
        return bool(scored.selection) and scored.arguments is not False

    assert [passes(first), passes(first, second), passes(second, first), passes(second)] == [True, True, False, False]


@pytest.mark.parametrize("text", ["sort(name)", "sort(", "a.b()", "sort('a', 'b')", "sort(**{})"])
def test_an_expected_call_that_cannot_be_read_is_skipped(folder: Path, text: str) -> None:
    name = "BFCL_v4_multi_turn_base.json"
    lines(folder / "possible_answer" / name, {"id": "multi_turn_base_1", "ground_truth": [[text], []]})
    found = read(folder, categories=["multi_turn_base"])
    assert found.skipped[0].why == "an expected call is not a call with literal arguments"


def test_without_the_declared_functions_an_entry_is_skipped(folder: Path) -> None:
    (folder / "multi_turn_func_doc" / "gorilla_file_system.json").unlink()
    found = read(folder)
    assert {one.why for one in found.skipped} == {"multi_turn_func_doc does not declare its functions"}
    assert found.cases == ()


def test_a_positional_argument_has_the_name_that_the_function_gives_it(folder: Path) -> None:
    name = "BFCL_v4_multi_turn_base.json"
    lines(folder / "possible_answer" / name, {"id": "multi_turn_base_1", "ground_truth": [["sort('a.txt')"], []]})
    (case,) = read(folder, categories=["multi_turn_base"]).cases
    assert isinstance(case.label, CallLabel)
    assert case.label.calls[0].arguments == {"file_name": {"$as": "text", "$value": "a.txt"}}
