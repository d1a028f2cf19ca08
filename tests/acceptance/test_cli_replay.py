"""Replays from the command line: results, exit codes, and what is refused before anything runs."""

import json
import signal
import sqlite3

import pytest

from .conftest import Project


def session_of(project: Project, agent: str) -> str:
    return project("session", "list", "--agent", agent, "--origin", "live").json["items"][0]["id"]


def test_an_unchanged_replay_is_faithful_and_touches_nothing(project: Project) -> None:
    done = project("replay", "create", "last", "--wait")
    assert (done.code, project.ran()) == (0, [])
    assert {"id", "job_id", "status", "baseline_session_id", "result_session_id", "error"} <= set(done.json)
    assert done.json["fidelity"]["kind"] == "faithful"
    assert [row["by"] for row in done.json["ledger"]] == ["served", "served"]
    assert project("replay", "get", "last").json["id"] == done.json["id"]
    assert project("replay", "compare", "last").json["divergence"] is None


def test_inline_and_child_process_come_to_the_same(project: Project) -> None:
    child = project("replay", "create", "last", "--wait").json
    inline = project("replay", "create", "last", "--inline").json
    for member in ("status", "fidelity", "error", "agent_version"):
        assert child[member] == inline[member]
    assert inline["guard"] == "python"
    assert "python" in child["guard"]
    assert [(row["tool"], row["by"]) for row in child["ledger"]] == [
        (row["tool"], row["by"]) for row in inline["ledger"]
    ]


def test_a_miss_fails_the_replay_although_the_agent_swallows_it(project: Project) -> None:
    project.factor("2")
    done = project("replay", "create", "last", "--inline", "--output", "text")
    assert (done.code, project.ran()) == (1, [])
    for part in ("MissError", "/amount", "refund"):
        assert part in done.out
    compared = project("replay", "compare", "last")
    assert compared.code == 1
    assert compared.json["divergence"]["pointers"] == ["/amount"]


def test_an_agent_without_calls_proves_nothing(project: Project) -> None:
    done = project("replay", "create", session_of(project, "quiet"), "--inline")
    assert done.code == 4
    assert done.json["fidelity"]["kind"] == "unproven"


def test_tools_go_live_only_when_allowed(project: Project) -> None:
    (project.folder / "live.json").write_text('{"tools": {"find_order": {"type": "passthrough"}}}')
    refused = project("replay", "create", "last", "--tool-policy", "@live.json")
    assert (refused.code, refused.error["code"], project.ran()) == (2, "refused", [])
    assert "--allow-live" in refused.error["hint"]
    assert project("replay", "list").json["items"] == []
    done = project("replay", "create", "last", "--inline", "--tool-policy", "@live.json", "--allow-live")
    assert (done.code, project.ran()) == (0, ["find_order"])
    assert "will run live: find_order" in done.notes
    assert done.json["fidelity"]["kind"] == "unproven"


def test_a_static_answer_is_a_fork(project: Project) -> None:
    policy = {"tools": {"refund": {"type": "static", "cases": [{"result": "refused"}]}}}
    done = project("replay", "create", "last", "--inline", "--tool-policy", json.dumps(policy), "--label", "refused")
    assert done.code == 0
    assert project("session", "show", done.json["result_session_id"]).json["output"] == "refused"
    assert "refused" in project("replay", "list", "--output", "text").out


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["--tool-policy", '{"default": {"type": "histroy"}}'], "policy_invalid", ["histroy", "history"]),
        (
            ["--tool-policy", '{"default": {"type": "history", "onmiss": "fail"}}'],
            "policy_invalid",
            ["/default/onmiss"],
        ),
        (["--tool-policy", "{"], "policy_invalid", ["JSON"]),
        (["--tool-policy", "@nothere.json"], "usage", ["nothere.json"]),
        (["--tool-policy", '{"default": {"type": "history", "scope": "cohort_version"}}'], "refused", ["experiment"]),
        (["--override", "{}"], "policy_invalid", ["nothing"]),
        (["--override", "{}", "--model", "x"], "usage", ["--model"]),
        (["--model-params", "[1]"], "usage", ["--model-params"]),
        (["--model-history", "--model-policy", "live"], "usage", ["--model-policy"]),
        (["--repeats", "0"], "usage", ["--repeats"]),
        (["--agent-version", "shop@7"], "not_found", ["shop"]),
        (["--nothere"], "usage", ["--nothere"]),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    project: Project, words: list[str], code: str, parts: list[str]
) -> None:
    done = project("replay", "create", "last", "--inline", *words)
    assert (done.code, done.out, done.error["code"]) == (2, "", code)
    text = f"{done.error['message']} {done.error['hint']}"
    assert [part for part in parts if part not in text] == []
    assert project("replay", "list").json["items"] == []


@pytest.mark.parametrize("entry_point", ["nothere:handle", "shop.py:nothere", "shop"])
def test_an_entry_point_that_does_not_import_fails_with_its_reason(project: Project, entry_point: str) -> None:
    done = project("replay", "create", "last", "--inline", "--entry-point", entry_point)
    assert done.code == 2
    text = done.error["message"] if done.out == "" else done.json["error"]["message"]
    assert entry_point.partition(":")[0] in text


def test_a_policy_for_a_tool_that_is_not_there_names_its_neighbours(project: Project) -> None:
    done = project(
        "replay", "create", "last", "--inline", "--tool-policy", '{"tools": {"refnud": {"type": "history"}}}'
    )
    assert any("refnud" in note and "refund" in note for note in done.notes)


def test_an_override_that_changes_nothing_fails(project: Project) -> None:
    done = project("replay", "create", "last", "--inline", "--system-prompt", "Be brief.")
    assert done.code == 1
    assert done.json["error"]["code"] == "override_not_applied"


def test_a_key_makes_creating_again_give_the_first_replay(project: Project) -> None:
    first, again = (project("replay", "create", "last", "--inline", "--idempotency-key", "k1").json for _ in range(2))
    assert again["id"] == first["id"]
    assert len(project("replay", "list").json["items"]) == 1


def test_repeats_make_as_many_replays(project: Project) -> None:
    done = project("replay", "create", "last", "--inline", "--repeats", "2", "--output", "jsonl")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["fidelity"]["kind"] for line in lines] == ["faithful", "faithful"]
    assert len({line["group_id"] for line in lines}) == 1


def test_a_running_baseline_is_refused_and_an_abandoned_one_needs_force(project: Project) -> None:
    (project.folder / "slow").touch()
    process = project.start_agent("slow", "4821")
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    running = project("replay", "create", "last")
    process.kill()
    process.communicate()
    assert (running.code, running.error["code"]) == (2, "refused")
    assert "still running" in running.error["message"]

    (project.folder / "slow").unlink()
    assert project("session", "show", "last").json["status"] == "abandoned"
    refused = project("replay", "create", "last")
    assert (refused.code, refused.error["code"]) == (2, "refused")
    assert "--force" in refused.error["message"]
    assert project("replay", "create", "last", "--inline", "--force").json["status"] == "completed"


@pytest.mark.parametrize("way", [["--inline"], ["--wait"]])
def test_an_interrupt_ends_the_agent_and_exits_with_130(project: Project, way: list[str]) -> None:
    (project.folder / "slow").touch()
    process = project.start("replay", "create", session_of(project, "slow"), *way)
    while not (project.folder / "started").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert project("replay", "get", "last").json["status"] == "canceled"


def test_a_timeout_ends_the_agent(project: Project) -> None:
    (project.folder / "slow").touch()
    done = project("replay", "create", session_of(project, "slow"), "--wait", "--timeout", "3")
    assert done.code == 3
    assert done.json["error"]["code"] == "agent_process"
    assert "time" in done.json["error"]["message"]


def test_the_store_is_one_ordinary_sqlite_file(project: Project) -> None:
    with sqlite3.connect(project.folder / ".playhead" / "store.db") as opened:
        assert opened.execute("SELECT count(*) FROM sessions").fetchone() == (3,)
    opened.close()
