"""The lint on tool sets and recordings of others (T17, T18), and from the command line."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run
from playhead.core.lint.errors import judge_all
from playhead.core.lint.interface import Finding, alike, lint
from playhead.engine.suites.tool_sets import failures, read_tools
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery


def found(path: Path, rule: str) -> list[tuple[str, str]]:
    return [(f.tool, f.pointer) for f in lint(read_tools(path)) if f.rule == rule]


def overlaps(path: Path) -> list[Finding]:
    return [f for f in lint(read_tools(path)) if f.rule == "overlap"]


def test_t17_error_texts_of_the_airline(shared_data: Path):
    store = MemoryStore()
    import_paths(store, [shared_data / "tau-bench" / "gpt-4o-airline.json"])
    ids = [session.id for session in store.sessions.find(SessionQuery(), limit=200).items]
    tools = {tool.name: tool for tool in read_tools(shared_data / "tau-bench" / "tools-airline.json")}
    texts = judge_all(failures(store, ids), tools)
    assert sum(text.count for text in texts) == 67
    levels = Counter({level: 0 for level in ("prescriptive", "partial", "opaque")})
    for text in texts:
        levels[text.level] += text.count
    assert levels == {"prescriptive": 0, "partial": 47, "opaque": 20}

    def count(part: str) -> int:
        return sum(text.count for text in texts if part in text.text)

    parts = ("does not add up", "not available on date", "not enough seats", "certificate_", "not enough balance in",
             "gift card balance is not enough", "certificate cannot be used to update reservation")  # fmt: skip
    assert [count(part) for part in parts] == [21, 14, 8, 3, 1, 12, 4]


def test_t18_interfaces_of_the_airline(shared_data: Path):
    path = shared_data / "tau-bench" / "tools-airline.json"
    assert found(path, "vague_name") == []
    assert found(path, "date_without_format") == [
        ("book_reservation", "/flights/*/date"),
        ("book_reservation", "/passengers/*/dob"),
        ("search_direct_flight", "/date"),
        ("search_onestop_flight", "/date"),
        ("update_reservation_flights", "/flights/*/date"),
        ("update_reservation_passengers", "/passengers/*/dob"),
    ]
    assert [tool for tool, _ in found(path, "unbounded_list")] == [
        "list_all_airports", "search_direct_flight", "search_onestop_flight",
    ]  # fmt: skip
    assert [(f.tool, f.details["other"]) for f in overlaps(path)] == [("search_direct_flight", "search_onestop_flight")]
    first, second = alike(read_tools(path))[:2]
    assert (first.similarity, second.similarity) == (pytest.approx(0.93, abs=0.006), pytest.approx(0.55, abs=0.006))


def test_t18_interfaces_of_agentdojo(shared_data: Path):
    folder = shared_data / "agentdojo-groundtruth"
    assert [tool for tool, _ in found(folder / "slack.tools.json", "vague_name")] == [
        "add_user_to_channel", "read_inbox", "invite_user_to_slack", "remove_user_from_slack",
    ]  # fmt: skip
    assert found(folder / "banking.tools.json", "vague_name") == [("update_scheduled_transaction", "/id")]
    assert [tool for tool, _ in found(folder / "banking.tools.json", "path_base")] == ["read_file"]
    dates = {name: len(found(folder / f"{name}.tools.json", "date_without_format")) for name in
             ("slack", "banking", "travel", "workspace")}  # fmt: skip
    assert dates == {"slack": 0, "banking": 3, "travel": 9, "workspace": 6}
    pairs = [f for name in dates for f in overlaps(folder / f"{name}.tools.json")]
    assert [(f.tool, f.details["other"]) for f in pairs] == [("get_all_hotels_in_city", "get_all_restaurants_in_city")]
    assert pairs[0].details["similarity"] == pytest.approx(0.86, abs=0.005)


def test_t18_values_in_prose(shared_data: Path):
    tools = found(shared_data / "bfcl-executed" / "tools.json", "values_in_prose")
    assert set(tools) >= {
        ("activateParkingBrake", "/mode"), ("adjustClimateControl", "/unit"), ("adjustClimateControl", "/mode"),
        ("displayCarStatus", "/option"), ("lockDoors", "/door"), ("setHeadlights", "/mode"),
        ("startEngine", "/ignitionMode"), ("compute_exchange_rate", "/base_currency"),
        ("compute_exchange_rate", "/target_currency"), ("get_nearest_airport_by_city", "/location"),
    }  # fmt: skip


def test_t18_changes_of_a_version(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    old = shared_data / "tau-bench" / "tools-airline.json"
    held: list[Any] = json.loads(old.read_text())
    tools = {one["function"]["name"]: one["function"] for one in held}
    del tools["book_reservation"]["parameters"]["properties"]["flight_type"]["enum"]
    members = tools["get_user_details"]["parameters"]["properties"]
    members["user"] = members.pop("user_id")
    tools["get_user_details"]["parameters"]["required"] = ["user"]
    tools["update_reservation_baggages"]["parameters"]["properties"]["total_baggages"]["type"] = "string"
    left, right = tools["list_all_airports"], tools["think"]
    left["description"], right["description"] = right["description"], left["description"]
    (tmp_path / "new.json").write_text(json.dumps(held))
    assert run(["lint", "new.json", "--against", str(old), "--output", "json"]) == 1
    changed = json.loads(capsys.readouterr().out)["changes"]
    assert sorted((c["kind"], c["tool"], c["pointer"]) for c in changed) == [
        ("descriptions_swapped", "list_all_airports", ""),
        ("descriptions_swapped", "think", ""),
        ("enum_dropped", "book_reservation", "/flight_type"),
        ("parameter_renamed", "get_user_details", "/user_id"),
        ("type_loosened", "update_reservation_baggages", "/total_baggages"),
    ]
    swapped = [(c["old"], c["new"]) for c in changed if c["kind"] == "descriptions_swapped"]
    assert swapped == [("list_all_airports", "think"), ("think", "list_all_airports")]


@pytest.mark.parametrize(
    ("text", "part"), [("", "cannot be read"), ("[]", "holds no tools"), ('[{"x": 1}]', "tool 0"), ("7", "no tools")]
)
def test_what_is_no_tool_set_is_named(
    text: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text(text)
    assert run(["lint", "t.json", "--output", "json"]) == 2
    assert part in json.loads(capsys.readouterr().err)["error"]["message"]


def test_the_forms_that_are_around_are_read(tmp_path: Path):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    forms: list[Any] = [
        [{"type": "function", "function": {"name": "a", "description": "d", "parameters": schema}}],
        [{"name": "a", "description": "d", "input_schema": schema}],
        {"tools": [{"name": "a", "description": "d", "inputSchema": schema}]},
        {"a": {"description": "d", "parameters": schema}},
    ]
    for number, form in enumerate(forms):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(form))
        (tool,) = read_tools(path)
        assert (tool.name, tool.description, tool.parameters) == ("a", "d", schema)
