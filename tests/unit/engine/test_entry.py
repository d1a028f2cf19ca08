import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.core.values import Origin
from playhead.engine.entry import Inputs, load, start
from playhead.errors import EntryPointError, RefusedError
from playhead.store.ports import SessionQuery
from playhead.store.sqlite import SqliteStore
from playhead.testing.sessions import a_session


def run(target: Any, recorded: Any, **session: Any) -> Any:
    return start(target, Inputs(a_session(**session), recorded))


def test_recorded_arguments_come_back_by_name_typed_and_with_new_defaults():
    def agent(order: str, *extra: int, when: Any, region: str = "eu", **more: Any) -> Any:
        return order, extra, when.isoformat(), region, more

    recorded = {"order": "4821", "extra": [1, 2], "when": {"$date": "2026-01-02"}, "note": "x"}
    assert run(agent, recorded) == ("4821", (1, 2), "2026-01-02", "eu", {"note": "x"})


def test_coroutines_and_generators_run_to_their_end():
    async def one(prompt: str) -> str:
        await asyncio.sleep(0)
        return prompt.upper()

    async def many(prompt: str):
        for letter in prompt:
            yield letter

    assert run(one, {"prompt": "ab"}) == "AB"
    assert run(many, {"prompt": "ab"}) == ["a", "b"]
    assert run(lambda prompt: (c for c in prompt), {"prompt": "ab"}) == ["a", "b"]


def test_a_running_loop_does_not_stop_a_coroutine_agent():
    async def agent(prompt: str) -> str:
        return prompt

    async def notebook() -> Any:
        return run(agent, {"prompt": "hi"})

    assert asyncio.run(notebook()) == "hi"


def test_imported_inputs_find_their_parameters():
    def turns_agent(turns: list[str], system_prompt: str | None = None) -> Any:
        return turns, system_prompt

    imported = {"origin": Origin.IMPORT, "system_prompt": "be kind"}
    assert run(turns_agent, {"turns": ["a", "b"]}, **imported) == (["a", "b"], "be kind")
    assert run(turns_agent, "only one", **imported) == (["only one"], "be kind")
    assert run(lambda prompt: prompt, "only one", **imported) == "only one"
    assert run(lambda question: question, "only one", **imported) == "only one"


def test_inputs_that_do_not_fit_are_refused_with_the_signature():
    with pytest.raises(RefusedError, match="takes no 'old'") as refused:
        run(lambda new: new, {"old": 1})
    assert "new" in str(refused.value.hint)
    with pytest.raises(RefusedError, match="do not fit"):
        run(lambda a, b: a, {"a": 1})


def test_entry_points_load_from_modules_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "entry_mod.py").write_text("class A:\n    @staticmethod\n    def go(): return 7\n")
    assert load("entry_mod:A.go", str(tmp_path))() == 7
    assert load("entry_mod.py:A.go", str(tmp_path))() == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "is not an entry point"),
        ("no_such_module_here:x", "importing 'no_such_module_here' failed"),
        ("json:no_such", "has no 'no_such'"),
        ("missing.py:x", "importing 'missing.py' failed"),
        ("broken_entry:x", "ZeroDivisionError"),
        ("broken_entry.py:x", "ZeroDivisionError"),
        ("exits_at_once.py:x", "SystemExit: 3"),
    ],
)
def test_bad_entry_points_say_what_is_wrong(text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "broken_entry.py").write_text("1 / 0\n")
    (tmp_path / "exits_at_once.py").write_text("import sys\nsys.exit(3)\n")
    for _ in range(2):  # the second time too: no half of a module stays behind
        with pytest.raises(EntryPointError) as found:
            load(text, str(tmp_path))
        assert words in found.value.message


def test_a_name_that_only_a_running_script_has_says_where_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "guarded.py").write_text("def tool(): ...\nif __name__ == '__main__':\n    agent = tool\n")
    with pytest.raises(EntryPointError) as found:
        load("guarded.py:agent", str(tmp_path))
    assert 'not under `if __name__ == "__main__":`; it has: tool' in (found.value.hint or "")


SCRIPT = """\
import playhead

paid = []

@playhead.tool(effect="write")
def pay(order: str) -> str:
    open("paid.log", "a").write(order)
    return "paid"

@playhead.agent("payer")
def handle(order: str) -> str:
    return pay(order)

{last}
"""


@pytest.mark.parametrize(
    ("last", "what"),
    [
        ("handle('4821')", "agent 'payer' was run"),
        ("pay('4821')", "tool 'pay' was called"),
        ("playhead.replay('last', agent=handle)", "a replay was started"),
        ("try:\n    handle('4821')\nexcept BaseException:\n    pass", "agent 'payer' was run"),
    ],
)
def test_a_file_that_runs_its_agent_when_imported_is_refused_and_nothing_runs(
    last: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(tmp_path / "store.db")
    store.sessions.put(a_session(agent="payer", inputs={"order": "4821"}), [])
    monkeypatch.setenv("PLAYHEAD_URL", store.url)
    (tmp_path / "payer_script.py").write_text(SCRIPT.format(last=last))
    with pytest.raises(EntryPointError, match=what) as found:
        load("payer_script.py:handle", str(tmp_path))
    assert "__main__" in str(found.value.hint)
    assert not (tmp_path / "paid.log").exists()
    assert store.sessions.count(SessionQuery()) == 1
    store.close()
