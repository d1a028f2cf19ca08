"""``playhead evaluator ...`` as a person types it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.core.requests import EvaluatorConfig
from playhead.errors import ConflictError, EntryPointError, NotFoundError, UsageError
from playhead.store.memory import MemoryStore

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def check(here: Path, body: str = "return ctx.session.status == 'completed'") -> str:
    (here / "checks.py").write_text(f'def done_well(ctx):\n    """It completed."""\n    {body}\n')
    return "checks.py:done_well"


def test_the_scaffold_works_as_it_stands(command: Command, here: Path) -> None:
    made = command("evaluator scaffold", "refund-check").json
    assert (here / "refund_check.py").is_file()
    found = command("evaluator test", made["entry_point"], "last~1")
    assert found.result.exit_code == 0
    assert found.json["sessions"][0]["verdicts"][0]["passed"] is True
    assert command("evaluator register", made["entry_point"], "--name", "refund-check").json["version"] == 1


def test_a_scaffold_overwrites_nothing(command: Command, here: Path) -> None:
    command("evaluator scaffold", "a", "--file", "deep/down/own.py")
    assert (here / "deep" / "down" / "own.py").is_file()
    with pytest.raises(ConflictError, match=r"own\.py exists"):
        command("evaluator scaffold", "a", "--file", "deep/down/own.py")


@pytest.mark.parametrize("name", ["Refund Check", "fidelity", "1a", "../x"])
def test_names_that_cannot_be_used_are_refused(command: Command, name: str) -> None:
    with pytest.raises(UsageError):
        command("evaluator scaffold", name)


def test_test_really_calls_it_and_stores_nothing_unless_asked(command: Command, here: Path, store: MemoryStore) -> None:
    target = check(here)
    found = command("evaluator test", target, "last~1")
    (one,) = found.json["sessions"]
    assert one["verdicts"][0]["passed"] is True
    assert "done-well" in found.text
    assert store.sessions.verdicts(one["session_id"]) == []
    command("evaluator test", target, "last~1", "--keep")
    assert [v.name for v in store.sessions.verdicts(one["session_id"])] == ["done-well"]
    assert "done-well" in command("session show", one["session_id"]).text


def test_a_broken_evaluator_says_why_and_exits_3(command: Command, here: Path) -> None:
    found = command("evaluator test", check(here, "raise ValueError('no refund')"), "last")
    assert found.result.exit_code == 3
    assert "ValueError: no refund (line 3, in done_well)" in found.text
    assert found.json["sessions"][0]["verdicts"][0]["error"]["code"] == "evaluator"


def test_parameters_and_built_ins_can_be_tried(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "params.json"
    file.write_text('{"max": 1}')
    for given in ('{"max": 1}', f"@{file}"):
        found = command("evaluator test", "max-calls", "last~1", "--params", given).json
        assert found["sessions"][0]["verdicts"][0]["passed"] is False
        assert found["evaluator"].startswith("max-calls@1#")
    for bad in ("{", "[1]", "@nothere.json"):
        with pytest.raises(UsageError):
            command("evaluator test", "max-calls", "last", "--params", bad)
    with pytest.raises(UsageError, match="params/mx"):
        command("evaluator test", "max-calls", "last", "--params", '{"mx": 1}')


def test_agreement_with_people_is_measured(command: Command, here: Path, store: MemoryStore) -> None:
    ids = [store.sessions.resolve(text) for text in ("last", "last~1", "last~2")]
    labels = {ids[0]: "fail", ids[1]: "pass", ids[2]: False}
    found = command("evaluator test", check(here), *ids, "--labels", json.dumps(labels)).json
    assert found["agreement"] == {"labelled": 3, "undecided": 0, "agreement": 0.6667, "kappa": 0.4}
    with pytest.raises(UsageError, match="neither pass nor fail"):
        command("evaluator test", check(here), "last", "--labels", '{"last": "good"}')


def test_registering_twice_makes_one_version_and_a_change_another(command: Command, here: Path) -> None:
    target = check(here)
    first = command("evaluator register", target).json
    assert (first["name"], first["version"], first["description"]) == ("done-well", 1, "It completed.")
    assert command("evaluator register", target).json == first
    check(here, "return False")
    listed = {row["name"]: row for row in command("evaluator list").json["items"]}
    assert listed["done-well"]["current"] is False
    assert listed["fidelity"]["kind"] == "built-in"
    second = command("evaluator register", target, "--timeout", "5", "--env", "HOME").json
    assert (second["version"], second["timeout"], second["env"]) == (2, 5.0, ["HOME"])
    shown = command("evaluator show", "done-well@1").json
    assert (shown["version"], [v["version"] for v in shown["versions"]]) == (1, [1, 2])


def test_what_does_not_import_is_not_registered(command: Command, here: Path, store: MemoryStore) -> None:
    (here / "checks.py").write_text("import nothere\n\ndef done_well(ctx): ...\nvalue = 3\n")
    with pytest.raises(EntryPointError, match="ModuleNotFoundError"):
        command("evaluator register", "checks.py:done_well")
    (here / "checks.py").write_text("value = 3\n")
    with pytest.raises(EntryPointError, match="cannot be called"):
        command("evaluator register", "checks.py:value")
    assert store.evaluators.names() == []


def test_show_tells_the_parameters_of_a_built_in(command: Command) -> None:
    found = command("evaluator show", "named-facts")
    assert found.json["schema"]["properties"]["facts"]["type"] == "array"
    assert "facts" in found.text
    with pytest.raises(NotFoundError) as refused:
        command("evaluator show", "named-fact")
    assert "named-facts" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["last", "--evaluate-baselines"], "if_missing"),
        (["--evaluate-baselines", "last"], "if_missing"),
        (["last", "--evaluate-baselines", "force", "--label", "x"], "force"),
        (["last"], "none"),
    ],
)
def test_evaluate_baselines_may_stand_alone(words: list[str], wanted: str) -> None:
    from playhead.cli.run import find_command, parser

    found = find_command(["replay", "create", *words])
    assert not isinstance(found, str)
    name, function, rest = found
    _, bound, _ = parser(name, function).parse_args(rest, exit_on_error=False, print_error=False)
    bound.apply_defaults()
    assert bound.arguments["way"].evaluate_baselines == wanted
    assert bound.arguments["baseline"] == "last"


def test_evaluators_of_a_replay_take_their_parameters_in_order() -> None:
    from playhead.cli.creating import Change, Way, replay_request

    way = Way(evaluator=("max-calls", "fidelity"), evaluator_params=('{"max": 3}',))
    assert replay_request("s", Change(), way).evaluators == (
        EvaluatorConfig(evaluator="max-calls", params={"max": 3}),
        EvaluatorConfig(evaluator="fidelity"),
    )
    with pytest.raises(UsageError, match="given 1 times"):
        replay_request("s", Change(), Way(evaluator_params=("{}",)))
    with pytest.raises(UsageError, match="not a JSON object"):
        replay_request("s", Change(), Way(evaluator=("a",), evaluator_params=("3",)))
