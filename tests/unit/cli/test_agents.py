"""``playhead agent ...``."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from playhead.errors import NotFoundError, UsageError
from playhead.store.memory import MemoryStore

from .conftest import Shown

Run = Callable[..., Shown]


def test_list_shows_how_each_agent_starts_and_how_often_it_ran(command: Run) -> None:
    listed = command("agent list")
    item = listed.json["items"][0]
    assert (item["agent"], item["version"], item["sessions"]) == ("desk", 1, 2)
    assert "desk.main:handle" in listed.text
    assert "0123456789" in listed.text


def test_show_tells_run_spec_and_capabilities(command: Run) -> None:
    shown = command("agent show", "desk")
    for part in ("desk.main:handle", "DESK_REGION", "overrides"):
        assert part in shown.text
    assert [version["number"] for version in shown.json["versions"]] == [1]


def test_show_takes_one_version(command: Run, store: MemoryStore) -> None:
    first = store.agents.find("desk")
    store.agents.register(replace(first, id=first.id.replace("0001", "0002"), fingerprint={"commit": "f" * 40}))
    assert [version["number"] for version in command("agent show", "desk").json["versions"]] == [1, 2]
    assert [version["number"] for version in command("agent show", "desk@1").json["versions"]] == [1]


def test_a_version_that_is_no_number_is_refused(command: Run) -> None:
    with pytest.raises(UsageError):
        command("agent show", "desk@new")


def test_an_unknown_agent_is_not_found(command: Run) -> None:
    with pytest.raises(NotFoundError):
        command("agent show", "nobody")


def test_an_agent_without_a_run_spec_is_shown(command: Run, store: MemoryStore) -> None:
    first = store.agents.find("desk")
    store.agents.register(replace(first, id=first.id.replace("0001", "0003"), agent="bare", run_spec=None))
    assert "no entry point" in command("agent show", "bare").text
    assert "bare" in command("agent list").text
