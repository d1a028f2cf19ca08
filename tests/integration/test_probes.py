"""Probes of tools that read alike, asked and stored as a run: how often, what goes on, what a model writes."""

import asyncio
from typing import Any

import pytest

from playhead.core.probes import EXTENDED, RUNS, Probe, ToolPair, written_probe
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import ModelAsk, ModelSaid
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.engine.fuzz.probes import probe, probe_results, probe_run, read_queries, write_queries
from playhead.engine.model_access import Place, StrictUse, TryAgainError
from playhead.engine.suites.run import Limits
from playhead.engine.suites.summary import run_summary
from playhead.store.memory import MemoryStore
from playhead.testing.scripted_models import CoinAccess

PAIR = ToolPair("find_docs", "search_docs")
TOOLS = {name: ToolSchema(name=name, description=f"{name} of the help centre") for name in (*PAIR[:2], "note")}
CASES = (Case.model_validate({"id": "one", "tools": list(TOOLS), "history": [{"role": "user", "content": "Hi"}]}),)


def contents() -> Contents:
    return Contents(suite=Suite.model_validate({
        "name": "help", "effects": {"note": {"class": "read", "bookkeeping": True}},
    }), cases=CASES, tools=TOOLS)  # fmt: skip


def a_probe(query: str = "Where is it?") -> Probe:
    return written_probe(PAIR, query, CASES, TOOLS)


class Chooser:
    """Calls the first tool of the pair in so many of the first twenty runs, and in so many of the later ones."""

    name = "chooser"

    def __init__(self, early: int, late: int = 0, **more: Any) -> None:
        self.early, self.late, self.asked, self.fail_at = early, late, 0, more.get("fail_at")

    def strict(self, tools: Any) -> StrictUse:
        return StrictUse()

    async def close(self) -> None:
        pass

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        await asyncio.sleep(0)
        self.asked += 1
        if self.asked == self.fail_at:
            raise TryAgainError("overloaded")
        first = at.n < self.early or RUNS <= at.n < RUNS + self.late
        names = ["note", PAIR.left if first else PAIR.right]
        calls = [{"type": "tool_call", "id": f"c{n}", "name": name, "arguments": {}} for n, name in enumerate(names)]
        return ModelSaid(message={"role": "assistant", "parts": calls}, cost="0.01")


def asked(access: Any, *probes: Probe, limits: Limits | None = None) -> tuple[Any, Any, MemoryStore]:
    store, whole = MemoryStore(), contents()
    store.suites.put(whole)
    run = probe_run(whole, probes or (a_probe(),), model="chooser")
    done = probe(store, whole, run, access, limits=limits or Limits(tries=0))
    return done, probe_results(store, done, whole.suite.effects), store


@pytest.mark.parametrize(
    ("early", "late", "verdict", "runs"),
    [
        (0, 0, "clear", RUNS), (10, 0, "ambiguous", RUNS), (3, 0, "clear", EXTENDED), (3, 15, "ambiguous", EXTENDED),
        (3, 9, "undecided", EXTENDED),
    ],
)  # fmt: skip
def test_a_query_is_asked_twenty_times_and_once_more_where_that_decides_nothing(
    early: int, late: int, verdict: str, runs: int
):
    access = Chooser(early, late)
    done, (found,), _ = asked(access)
    assert (access.asked, found.runs, found.verdict) == (runs, runs, verdict)
    assert (done.status, found.extended) == ("completed", runs == EXTENDED)
    assert found.n == runs  # the bookkeeping call beside it hides no choice


def test_only_undecided_queries_are_extended_and_a_run_that_is_done_asks_nothing():
    probes = [a_probe("Where?"), a_probe("How?")]
    access = Chooser(3)
    done, results, store = asked(access, *probes)
    assert access.asked == 2 * EXTENDED
    again = Chooser(3)
    assert probe(store, contents(), done, again).id == done.id
    assert again.asked == 0
    assert [r.verdict for r in results] == ["clear", "clear"]
    assert (done.cases, done.runs) == (tuple(p.id for p in probes), RUNS)


def test_a_trial_that_infrastructure_ended_is_no_choice_and_is_made_again():
    access = Chooser(0, fail_at=5)
    done, (found,), store = asked(access)
    assert (found.runs, found.n) == (RUNS - 1, RUNS - 1)
    probe(store, contents(), done, Chooser(0))
    assert probe_results(store, done, {})[0].runs == RUNS


def test_the_budget_holds_over_both_stages():
    access = Chooser(3)
    done, _, _ = asked(access, limits=Limits(concurrency=1, max_cost=0.3))
    assert (access.asked, done.status, done.stopped_by) == (30, "stopped", "the budget of 0.1 USD")


def test_t20_a_coin_is_ambiguous_and_one_that_rarely_slips_is_not():
    probes = [a_probe(f"Where is page {n}?") for n in range(25)]
    for share, wanted in ((0.5, "ambiguous"), (0.0, "clear")):
        access = CoinAccess({one.id: (one.left, one.right) for one in probes}, share)
        _, results, _ = asked(access, *probes)
        assert sum(r.verdict == wanted for r in results) >= 24
    rare = CoinAccess({one.id: (one.left, one.right) for one in probes}, 0.03)
    assert all(r.verdict != "ambiguous" for r in asked(rare, *probes)[1])


def test_a_run_of_probes_is_no_run_of_the_suites_cases():
    done, _, store = asked(Chooser(0))
    summary = run_summary(store, done.id)
    assert summary.cases == ()
    assert not any("no longer in the suite" in note for note in summary.notes)


class Writer(Chooser):
    def __init__(self, *texts: str) -> None:
        super().__init__(0)
        self.texts, self.prompts = list(texts), list[str]()

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        self.prompts.append(str(ask.messages))
        return ModelSaid(message={"role": "assistant", "parts": [{"type": "text", "text": self.texts.pop(0)}]})


def test_a_model_writes_requests_from_the_two_schemas_and_is_asked_again_when_it_wrote_none():
    writer = Writer("Sure! Here they are.", 'Here: ["Where is it?", "How?", "Where is it?", "Why?", "When?"]')
    written = write_queries(contents(), [PAIR], writer)
    assert written.queries == {("find_docs", "search_docs"): ["Where is it?", "How?", "Why?"]}
    assert "find_docs of the help centre" in writer.prompts[0]
    assert "note of the help centre" not in writer.prompts[0]
    failed = write_queries(contents(), [PAIR], Writer("no", "[1, 2]"))
    assert failed.queries == {}
    assert failed.failed == {("find_docs", "search_docs"): "the model gave no JSON list of requests"}


def test_texts_that_hold_no_list_of_requests():
    assert read_queries('["a", 3, " b "]') == ["a", "b"]
    for text in ("", "[", "{}", '{"a": []}', "null"):
        assert read_queries(text) == []
