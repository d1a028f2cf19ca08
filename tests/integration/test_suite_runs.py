"""Runs of suites against scripted model servers: what is asked, retried, stored, stopped, resumed and scored."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import ModelAsk, ModelSaid
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun
from playhead.engine.model_access import LayerAccess, Place, RecordedAnswers, StrictUse, TryAgainError, translated
from playhead.engine.suites.answers import earlier_answers
from playhead.engine.suites.run import Limits, Selection, chosen, estimate, execute, new_run, todo
from playhead.engine.suites.summary import run_summary, stored_scores
from playhead.errors import ModelAccessError, UsageError
from playhead.store.memory import MemoryStore
from playhead.testing.servers import Call, ModelServer, Reply

LOOK = ToolSchema(
    name="shop.look",
    description="Looks at an order.",
    parameters={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)
FREE = Limits(first_wait=0.0)


def a_case(id: str, **more: Any) -> Case:
    return Case.model_validate(
        {
            "id": id,
            "history": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Where is {id}?"}],
            "tools": ["shop.look"],
            "model_params": {"temperature": 0.7},
            "recorded": [
                {
                    "calls": [{"id": "c1", "tool": "shop.look", "arguments": {"order_id": id}}],
                    "outcomes": {"c1": {"kind": "value", "value": {"tracking": "T-5"}}},
                }
            ],
            "answer": "It is T-5.",
            "facts": [{"name": "tracking", "as": "id", "value": "T-5"}],
            "label": {"kind": "call", "calls": [{"tool": "shop.look", "arguments": {"order_id": id}}]},
            **more,
        }
    )


def contents_of(*cases: Case, **more: Any) -> Contents:
    return Contents(
        suite=Suite(name="shop"), cases=cases or (a_case("A1"), a_case("B2")), tools={LOOK.name: LOOK}, **more
    )


def good(step: int, body: dict[str, Any]) -> Reply:
    """Looks up the order that the user names; answers from the last result."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Reply("It is T-5.")
    return Reply(calls=[Call("shop_look", {"order_id": last["content"].split()[-1].rstrip("?")})])


def started(store: MemoryStore, contents: Contents, **fields: Any) -> tuple[SuiteRun, list[Case]]:
    store.suites.put(contents)
    cases = chosen(contents, Selection())
    return new_run(contents, cases, model="small", **{"runs": 3, **fields}), cases


def at(server: ModelServer, **more: Any) -> LayerAccess:
    return LayerAccess(name="small", base_url=server.openai_url, **more)


def test_a_run_asks_for_the_call_and_for_the_answer_after_what_was_recorded() -> None:
    store, contents = MemoryStore(), contents_of()
    run, cases = started(store, contents)
    with ModelServer(good) as server:
        done = execute(store, contents, run, cases, at(server))
        bodies = [r.body for r in server.model_requests]
    assert (done.status, done.stopped_by, len(bodies)) == ("completed", None, 12)
    first = next(b for b in bodies if len(b["messages"]) == 2)
    assert [t["function"]["name"] for t in first["tools"]] == ["shop_look"]
    assert (first["tool_choice"], first["temperature"]) == ("auto", 0.7)
    assert len({b["seed"] for b in bodies}) == 6
    last = next(b for b in bodies if len(b["messages"]) == 4)
    assert last["messages"][2]["tool_calls"][0]["function"]["name"] == "shop_look"
    assert "T-5" in last["messages"][3]["content"]
    summary = run_summary(store, done.id)
    trials = [t for case in summary.cases for t in case.trials]
    assert [(t.selection, t.arguments, t.outcome, t.reason) for t in trials] == [(True, True, True, "ok")] * 6
    assert all((t.input_tokens, t.output_tokens) == (40, 10) for t in trials)
    stored = store.suites.trials(done.id)[0]
    assert stored.steps[0].message["parts"][0]["name"] == "shop.look"
    assert stored.steps[0].raw["parts"][0]["tool_name"] == "shop_look"
    assert store.suites.request(stored.steps[0].request)["tools"][0]["name"] == "shop.look"


def test_selection_and_outcome_are_apart() -> None:
    store, contents = MemoryStore(), contents_of()
    run, cases = started(store, contents, runs=1)
    with ModelServer(lambda step, body: Reply("It is T-5.")) as server:
        done = execute(store, contents, run, cases, at(server))
    trial = run_summary(store, done.id).cases[0].trials[0]
    assert (trial.selection, trial.reason, trial.arguments, trial.outcome) == (False, "called_none", None, True)


def test_what_the_provider_cannot_take_for_now_is_tried_again_and_honours_retry_after() -> None:
    store, contents = MemoryStore(), contents_of(a_case("A1"))
    run, cases = started(store, contents, runs=1)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def plan(step: int, body: dict[str, Any]) -> Reply:
        if step == 0:
            return Reply(status=429, headers={"retry-after": "7"})
        return Reply(status=503) if step == 1 else good(step, body)

    with ModelServer(plan) as server:
        done = execute(store, contents, run, cases, at(server), limits=Limits(first_wait=0.5), sleep=sleep)
    assert waits == [7, 1.0]
    (trial,) = store.suites.trials(done.id)
    assert (trial.status, trial.retries) == ("scored", 2)


def test_a_provider_that_never_recovers_is_infrastructure() -> None:
    store, contents = MemoryStore(), contents_of(a_case("A1"))
    run, cases = started(store, contents, runs=1)
    with ModelServer([Reply(status=500)]) as server:
        done = execute(store, contents, run, cases, at(server), limits=FREE)
        assert len(server.model_requests) == 6
    summary = run_summary(store, done.id)
    assert (summary.errors, summary.trials) == (1, 1)
    assert summary.cases[0].trials[0].selection is None


def test_a_request_that_is_refused_is_the_trials_own_failure() -> None:
    store, contents = MemoryStore(), contents_of(a_case("A1"))
    run, cases = started(store, contents, runs=1)
    with ModelServer([Reply(status=400, body={"error": {"message": "context too long"}})]) as server:
        done = execute(store, contents, run, cases, at(server), limits=FREE)
        assert len(server.model_requests) == 1
    trial = run_summary(store, done.id).cases[0].trials[0]
    assert (trial.status, trial.selection, trial.reason, trial.flags) == (
        "scored", False, "empty_response", ("refused",),
    )  # fmt: skip


def test_a_model_that_is_not_there_stops_the_run() -> None:
    store, contents = MemoryStore(), contents_of(*(a_case(f"X{n}") for n in range(40)))
    run, cases = started(store, contents)
    with ModelServer([Reply(status=401)]) as server:
        done = execute(store, contents, run, cases, at(server), limits=replace(FREE, concurrency=4))
        assert len(server.model_requests) <= 8
    assert done.status == "stopped"
    assert "401" in (done.stopped_by or "")


def test_an_address_where_nobody_listens_stops_the_run() -> None:
    store, contents = MemoryStore(), contents_of(*(a_case(f"X{n}") for n in range(40)))
    run, cases = started(store, contents)
    with ModelServer(good) as server:
        address = server.openai_url
    access = LayerAccess(name="small", base_url=address)
    done = execute(store, contents, run, cases, access, limits=Limits(concurrency=2, tries=1, first_wait=0.0))
    assert done.status == "stopped"
    assert len(store.suites.trials(done.id)) < 10


class Counting:
    """A model without a network; ``fail`` says which request, counted from 1, is not answered."""

    name = "counting"

    def __init__(self, *, cost: str | None = None, fail: set[int] | None = None, stop_at: int | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.running = self.most = 0
        self.cost, self.fail, self.stop_at = cost, fail or set(), stop_at

    def strict(self, tools: Any) -> StrictUse:
        return StrictUse()

    async def close(self) -> None:
        pass

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        self.asked.append((at.case, at.n))
        number = len(self.asked)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if number == self.stop_at:
            raise KeyboardInterrupt
        if number in self.fail:
            raise TryAgainError("no")
        return ModelSaid(message={"role": "assistant", "parts": [{"type": "text", "text": "T-5"}]}, cost=self.cost)


def many(count: int) -> Contents:
    return contents_of(*(a_case(f"X{n:02}", facts=[]) for n in range(count)))


def test_an_interrupted_run_goes_on_without_repeating_what_is_done() -> None:
    store, contents = MemoryStore(), many(20)
    run, cases = started(store, contents, runs=2)
    first = Counting(stop_at=15)
    with pytest.raises(KeyboardInterrupt):
        execute(store, contents, run, cases, first, limits=replace(FREE, concurrency=3))
    halted = store.suites.run(run.id)
    assert (halted.status, halted.stopped_by) == ("stopped", "an interruption")
    done = {(t.case, t.n) for t in store.suites.trials(run.id)}
    assert 11 <= len(done) <= 14
    second = Counting()
    ended = execute(store, contents, halted, cases, second)
    assert ended.status == "completed"
    assert set(second.asked).isdisjoint(done)
    assert len(store.suites.trials(run.id)) == 40
    assert todo(store, ended) == []


def test_trials_that_infrastructure_ended_are_made_again() -> None:
    store, contents = MemoryStore(), many(10)
    run, cases = started(store, contents, runs=1)
    execute(store, contents, run, cases, Counting(fail={3}), limits=replace(FREE, tries=0, concurrency=1))
    assert len(todo(store, run)) == 1
    execute(store, contents, run, cases, Counting())
    assert [t.status for t in store.suites.trials(run.id)] == ["scored"] * 10


def test_a_budget_stops_a_run() -> None:
    store, contents = MemoryStore(), many(20)
    run, cases = started(store, contents, runs=1)
    model = Counting(cost="0.1")
    done = execute(store, contents, run, cases, model, limits=Limits(max_cost=0.5, concurrency=1))
    assert (done.status, done.stopped_by, len(model.asked)) == ("stopped", "the budget of 0.5 USD", 5)
    costs = [step.cost for trial in store.suites.trials(run.id) for step in trial.steps]
    assert sum(Decimal(cost) for cost in costs if cost) == Decimal("0.5")


class Ticking:
    """A clock that goes a minute on every time somebody looks."""

    def __init__(self) -> None:
        self.minutes = 0

    def now(self) -> int:
        return 0

    def tick(self) -> int:
        self.minutes += 1
        return self.minutes * 60_000_000_000


def test_a_time_limit_stops_a_run() -> None:
    store, contents = MemoryStore(), many(20)
    run, cases = started(store, contents, runs=1)
    done = execute(store, contents, run, cases, Counting(), limits=Limits(max_minutes=5), clock=Ticking())
    assert (done.status, done.stopped_by) == ("stopped", "the limit of 5 minutes")


def test_no_more_trials_at_a_time_than_asked_for_and_the_same_results_at_any_number() -> None:
    results: list[Any] = []
    for concurrency in (1, 8):
        store, contents = MemoryStore(), many(20)
        run, cases = started(store, contents, runs=2)
        model = Counting()
        execute(store, contents, run, cases, model, limits=replace(FREE, concurrency=concurrency))
        assert model.most <= concurrency
        results.append([(t.case, t.n, t.seed, t.steps[0].message) for t in store.suites.trials(run.id)])
    assert results[0] == results[1]


def test_a_rate_limit_spaces_requests() -> None:
    store, contents = MemoryStore(), many(5)
    run, cases = started(store, contents, runs=1)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    execute(store, contents, run, cases, Counting(), limits=Limits(per_minute=60, concurrency=1), sleep=sleep)
    assert len(waits) == 4
    assert max(waits) <= 4.0
    assert waits == sorted(waits)


def test_a_run_may_be_repeated_from_its_own_answers_offline() -> None:
    store, contents = MemoryStore(), contents_of()
    run, cases = started(store, contents)
    with ModelServer(good) as server:
        first = execute(store, contents, run, cases, at(server))
    again = new_run(contents, cases, model="small", runs=3)
    second = execute(store, contents, again, cases, earlier_answers(store, first.id))
    one, other = run_summary(store, first.id), run_summary(store, second.id)
    assert [[t.passed for t in c.trials] for c in one.cases] == [[t.passed for t in c.trials] for c in other.cases]
    changed = a_case("A1", history=[{"role": "user", "content": "Other words."}])
    asked = new_run(contents, [changed], model="small", runs=1)
    third = execute(store, contents, asked, [changed], earlier_answers(store, first.id))
    (trial,) = store.suites.trials(third.id)
    assert trial.status == "error"
    assert "no recorded answer" in (trial.error or "")


def test_what_was_recorded_can_be_the_model() -> None:
    store, contents = MemoryStore(), contents_of()
    run, cases = started(store, contents, runs=1)
    done = execute(store, contents, run, cases, RecordedAnswers({case.id: case for case in cases}))
    assert [t.passed for c in run_summary(store, done.id).cases for t in c.trials] == [True, True]


def test_cases_of_which_nothing_is_recorded_are_no_failures_of_the_recording() -> None:
    store, contents = MemoryStore(), contents_of(a_case("A1"), a_case("B2", recorded=[], answer=None, facts=[]))
    run, cases = started(store, contents, runs=1)
    execute(store, contents, run, cases, RecordedAnswers({case.id: case for case in cases}))
    found = {trial.case: (trial.status, trial.error) for trial in store.suites.trials(run.id)}
    assert found == {"A1": ("scored", None), "B2": ("error", "of case B2 nothing is recorded")}


def test_a_key_in_a_providers_words_is_in_no_trial() -> None:
    key = "sk-" + "Zx81" * 9
    told = translated(ModelHTTPError(401, "small", {"message": f"Incorrect API key provided: {key}"}), "small")
    assert key not in str(told)
    assert "Incorrect API key provided" in str(told)


def test_an_answer_without_choices_is_called_unreadable() -> None:
    assert str(translated(IndexError("list index out of range"), "small")) == (
        "model 'small': its answer could not be read (IndexError)"
    )


def test_chained_trials_go_on_from_the_models_own_calls() -> None:
    store, contents = MemoryStore(), contents_of(a_case("A1"))
    run, cases = started(store, contents, runs=1, outcome="chained")
    with ModelServer(good) as server:
        done = execute(store, contents, run, cases, at(server))
    (trial,) = store.suites.trials(done.id)
    assert ([s.purpose for s in trial.steps], trial.final) == (["loop", "loop"], "It is T-5.")
    assert run_summary(store, done.id).cases[0].trials[0].passed is True


def test_trials_that_go_in_circles_or_have_an_effect_twice_are_flagged() -> None:
    store = MemoryStore()
    refund = {"calls": [{"id": "c1", "tool": "shop.look", "arguments": {"order_id": "A1"}}]}
    outcome = {"outcomes": {"c1": {"kind": "value", "value": "done"}}}
    twice = a_case("A1", recorded=[{**refund, **outcome}, {**refund, **outcome}])
    known = contents_of(twice)
    writes = known.suite.model_validate({"name": "shop", "effects": {"shop.look": "write"}})
    contents = Contents(suite=writes, cases=known.cases, tools=known.tools)
    run, cases = started(store, contents, runs=1, driver="loop")
    plans: list[Any] = [
        lambda step, body: Reply(calls=[Call("shop_look", {"order_id": "A1"})]) if step < 2 else Reply("T-5"),
        [Reply(calls=[Call("shop_look", {"order_id": "Z"})])],
    ]
    found: list[Any] = []
    for plan in plans:
        again = replace(run, id=f"{run.id}-{len(found)}")
        with ModelServer(plan) as server:
            done = execute(store, contents, again, cases, at(server))
        found.append(run_summary(store, done.id).cases[0].trials[0].flags)
    assert found == [("double_side_effect",), ("loop",)]


@pytest.mark.parametrize(
    ("mode", "tools", "on", "told"),
    [
        ("auto", [LOOK], False, "unknown"),
        ("on", [LOOK], True, None),
        ("off", [LOOK], False, None),
        (
            "on",
            [LOOK.model_copy(update={"parameters": {"type": "object", "properties": {"a": {}}}})],
            False,
            "required at the top: 'a' may be absent",
        ),
        (
            "on",
            [LOOK.model_copy(update={"parameters": {"type": "object", "oneOf": []}})],
            False,
            "oneOf",
        ),
    ],
)
def test_strict_mode_says_what_prevents_it(mode: Any, tools: list[ToolSchema], on: bool, told: str | None) -> None:
    use = LayerAccess(name="small", base_url="http://127.0.0.1:1", strict_mode=mode).strict(tools)
    assert use.on is on
    assert (told or "") in "".join(use.reasons)


def test_strict_schemas_are_sent_closed_and_the_trial_says_so() -> None:
    store, contents = MemoryStore(), contents_of(a_case("A1"))
    run, cases = started(store, contents, runs=1, strict="on")
    with ModelServer(good) as server:
        done = execute(store, contents, run, cases, at(server, strict_mode="on"))
        sent = server.model_requests[0].body["tools"][0]["function"]
    assert (sent["strict"], sent["parameters"]["additionalProperties"]) == (True, False)
    assert store.suites.trials(done.id)[0].strict


def test_t25_a_label_that_is_corrected_later_changes_the_stored_run() -> None:
    wrong = {"kind": "no_tool"}
    right = {"kind": "call", "calls": [{"tool": "shop.look"}]}
    contents = contents_of(
        a_case("A1", label=wrong), labels=(LabelEntry(case="A1", state="reviewed", label=wrong, who="kim"),)
    )
    store = MemoryStore()
    run, cases = started(store, contents, runs=2)
    with ModelServer(good) as server:
        done = execute(store, contents, run, cases, at(server))
    before = run_summary(store, done.id)
    assert [t.selection for t in before.cases[0].trials] == [False, False]
    assert stored_scores(store, before, now=1) == []
    store.suites.change("shop", labels=[LabelEntry(case="A1", state="reviewed", label=right, who="kim")])
    after = run_summary(store, done.id)
    assert [t.selection for t in after.cases[0].trials] == [True, True]
    changed = stored_scores(store, after, now=2)
    assert [(one["run"], one["before"]["selection"], one["now"]["selection"]) for one in changed] == [
        (0, False, True), (1, False, True),
    ]  # fmt: skip
    assert before.cases[0].label_digest != after.cases[0].label_digest


def test_labels_that_do_not_count_are_run_and_marked() -> None:
    weak = {"kind": "call", "calls": [{"tool": "shop.look"}]}
    entries = (LabelEntry(case="A1", state="weak", label=weak, confirmed_by="reward"),)
    contents = contents_of(a_case("A1"), labels=entries)
    store = MemoryStore()
    run, cases = started(store, contents, runs=1)
    done = execute(store, contents, run, cases, Counting())
    assert [(c.active, c.label_state) for c in run_summary(store, done.id).cases] == [(False, "weak")]
    trusted = run_summary(store, done.id, trust=["weak"])
    assert [c.active for c in trusted.cases] == [True]
    assert trusted.labels is not None
    assert trusted.labels.residual_upper == 1.0


def test_only_what_can_be_scored_and_is_active_is_run() -> None:
    cases = (
        a_case("A1"),
        a_case("B2", label=None, facts=[]),
        a_case("C3", status="retired"),
        a_case("D4", slice="held_back"),
    )
    contents = contents_of(*cases)
    assert [c.id for c in chosen(contents, Selection())] == ["A1"]
    assert [c.id for c in chosen(contents, Selection(unlabelled=True))] == ["A1", "B2"]
    assert [c.id for c in chosen(contents, Selection(slice="held_back"))] == ["D4"]
    with pytest.raises(UsageError, match="no case 'Z'"):
        chosen(contents, Selection(ids=("Z",)))
    with pytest.raises(UsageError, match="no case is left"):
        chosen(contents, Selection(intents=("nothing",)))


def test_an_estimate_comes_before_the_run() -> None:
    contents = contents_of()
    cases = chosen(contents, Selection())
    run = new_run(contents, cases, model="small", runs=3)
    told = estimate(run, contents, cases, 6, lambda given, made: given / 1000)
    assert (told.trials, told.requests) == (6, 12)
    assert told.cost == told.input_tokens / 1000
    assert estimate(run, contents, cases, 3).requests == 6


def test_a_key_that_is_not_set_is_refused_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    with pytest.raises(UsageError, match="GATEWAY_KEY"):
        LayerAccess(name="small", base_url="http://127.0.0.1:1", key_env="GATEWAY_KEY").check()
    with pytest.raises(UsageError, match="nothere"):
        LayerAccess(name="nothere:model").check()
    assert ModelAccessError("x").exit_code == 3
