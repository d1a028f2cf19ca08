from types import SimpleNamespace
from typing import Any

import pytest

from playhead.core.policy import HistoryModel, LiveModel, LLMConfig, ToolPolicy
from playhead.engine.isolation.guard import Isolation, Level
from playhead.engine.isolation.hosts import parse_all
from playhead.engine.isolation.plan import isolation_for, model_endpoints


def plan(**fields: Any) -> Any:
    return SimpleNamespace(**{"live_tools": (), "model_policy": LiveModel(), "policy": ToolPolicy(), **fields})


def guard(made: Any) -> Isolation:
    return isolation_for(made, mode="best", endpoints=("llm.corp:8443",), environment={})


def test_with_models_from_history_nothing_is_allowed() -> None:
    assert guard(plan(model_policy=HistoryModel())).allow_hosts == frozenset()


@pytest.mark.parametrize(
    "made",
    [
        plan(),
        plan(model_policy=HistoryModel(on_miss="live")),
        plan(model_policy=HistoryModel(), policy=ToolPolicy(tools={"look": LLMConfig(model="openai:m")})),
    ],
    ids=["live", "live on a miss", "results written by a model"],
)
def test_where_a_model_may_be_asked_its_endpoints_are_allowed(made: Any) -> None:
    assert {"llm.corp:8443", "api.openai.com:443"} <= guard(made).allow_hosts


def test_with_live_tools_there_is_no_outer_guard() -> None:
    assert guard(plan(live_tools=("pay",))).mode == "off"


def test_base_urls_of_providers_are_endpoints_and_other_urls_are_not() -> None:
    environment = {
        "OPENAI_BASE_URL": "http://127.0.0.1:4000/v1", "OLLAMA_HOST": "127.0.0.1:11434", "DATABASE_URL": "http://db:1",
        "ANTHROPIC_BASE_URL": "",
    }  # fmt: skip
    found = parse_all(model_endpoints((), environment) - model_endpoints((), {}))
    assert [(e.host, e.port) for e in found] == [("127.0.0.1", 11434), ("127.0.0.1", 4000)]


def test_a_policy_survives_the_way_to_its_process() -> None:
    policy = Isolation(mode="require", allow_hosts=frozenset({"a", "b"}), tunnel=7)
    assert Isolation.from_json(policy.as_json()) == policy


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (Level(name="namespace"), "namespace + python"),
        (Level(name="python", detail="namespace: no"), "python (namespace: no)"),
        (Level(name="none"), "none"),
        (Level(name="bwrap", inner=False), "bwrap"),
    ],
)
def test_the_ledger_names_the_level_and_what_it_lacks(level: Level, text: str) -> None:
    assert str(level) == text
