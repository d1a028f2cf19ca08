"""Driver `agent`: the user's own code is replayed from the source session, and its turn is scored."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.core.suites.suite import Case
from playhead.core.values import Origin, RunSpec
from playhead.engine.exports import find_ids
from playhead.engine.project import find_project
from playhead.engine.suites.agent import execute_agent
from playhead.engine.suites.build import build
from playhead.engine.suites.run import Selection, chosen, new_run, todo
from playhead.engine.suites.summary import run_summary
from playhead.errors import UsageError
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.suites import a_suite

RECORD = """
import playhead

playhead.install(sessions=False)
from playhead.cli.demo_agent import REQUESTS, handle

for request in (REQUESTS[0], REQUESTS[2]):
    handle(request)
playhead.flush()
"""
ENTRY_POINT = "playhead.cli.demo_agent:handle"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / ".playhead").mkdir()
    subprocess.run([sys.executable, "-c", RECORD], cwd=folder, check=True, timeout=120)
    return folder


def prepared(recorded: Path) -> Any:
    project = find_project(recorded)
    store = project.open_store()
    contents, _ = build(store, find_ids(store, SessionQuery(origins=(Origin.LIVE,))), name="desk")
    labelled = [_labelled(case) for case in contents.cases]
    contents = type(contents)(
        suite=contents.suite,
        tools=contents.tools,
        cases=tuple(c.model_copy(update={"slice": "tune"}) for c in labelled),
    )
    store.suites.put(contents)
    return project, store, contents


def _labelled(case: Case) -> Case:
    """Each turn is to call what the recording called next."""
    calls = [{"tool": c.tool} for one in case.recorded[:1] for c in one.calls]
    label = {"kind": "call", "calls": calls} if calls else {"kind": "no_tool"}
    return Case.model_validate({**case.model_dump(by_alias=True), "label": label})


@pytest.mark.parametrize("model", ["recorded", "as recorded"])
def test_every_turn_of_the_users_code_is_found_and_scored(recorded: Path, model: str) -> None:
    project, store, contents = prepared(recorded)
    cases = chosen(contents, Selection())
    changed = cases[1].model_copy(update={"id": "elsewhere", "history": (*cases[1].history[:-1], cases[0].history[-1])})
    whole = type(contents)(suite=contents.suite, tools=contents.tools, cases=(*cases, changed))
    store.suites.put(whole)
    run = new_run(whole, whole.cases, model=model, driver="agent", runs=1)
    spec = RunSpec(entry_point=ENTRY_POINT, working_dir=str(recorded))
    done = execute_agent(store, project, whole, run, whole.cases, run_spec=spec)
    summary = run_summary(store, done.id)
    found = {case.id: case.trials[0] for case in summary.cases}
    assert (found["elsewhere"].status, found["elsewhere"].error) == ("error", "prefix diverged")
    others = [trial for id, trial in found.items() if id != "elsewhere"]
    assert len(others) == 7
    assert [(t.selection, t.schema) for t in others if not t.selection or t.schema is False] == []
    trials = {t.case: t for t in store.suites.trials(done.id)}
    assert all(t.session is not None for t in trials.values())
    assert [case for case, _ in todo(store, done)] == ["elsewhere"]
    store.close()


def test_a_session_that_is_gone_is_an_error_of_its_trials(recorded: Path) -> None:
    project, store, contents = prepared(recorded)
    case = contents.cases[0].model_copy(
        update={"source": contents.cases[0].source.model_copy(update={"session": "no-such-session"})}
    )
    whole = type(contents)(suite=contents.suite, tools=contents.tools, cases=(case,))
    store.suites.put(whole)
    run = new_run(whole, [case], model="recorded", driver="agent", runs=1)
    execute_agent(store, project, whole, run, [case])
    (trial,) = store.suites.trials(run.id)
    assert trial.status == "error"
    assert "no-such-session" in (trial.error or "")
    store.close()


def test_cases_without_a_session_are_refused(recorded: Path) -> None:
    project, store, _ = prepared(recorded)
    contents = a_suite()
    run = new_run(contents, contents.cases, model="recorded", driver="agent")
    with pytest.raises(UsageError, match="no source session"):
        execute_agent(store, project, contents, run, contents.cases)
    store.close()
