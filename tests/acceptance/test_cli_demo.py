"""``playhead demo``: the story that the README tells, offline."""

import json

import pytest

from .conftest import Project


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("offline")
def test_the_demo_records_replays_forks_and_compares(empty: Project) -> None:
    process = empty.start("demo")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert (len(told["sessions"]), told["faithful"], told["live_calls"]) == (8, 8, 0)
    prompt, refused = told["forks"]
    assert prompt["fidelity"]["divergence"]["what"] == "missing"
    assert "needs a person" in prompt["output"]
    assert "refund refused" in refused["output"]

    url = f"{empty.folder}/.playhead/demo.db"
    listed = empty("session", "list", "--url", url, "--origin", "live").json["items"]
    assert {session["id"] for session in listed} == set(told["sessions"])
    assert not (empty.folder / ".playhead" / "store.db").exists()
    compared = empty("replay", "compare", prompt["replay"], "--url", url, "--output", "text")
    assert "issue_refund" in compared.out


@pytest.mark.usefixtures("offline")
def test_a_live_demo_needs_a_key(empty: Project) -> None:
    done = empty("demo", "--live")
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.error["hint"]
