"""What a store does with suites, runs and trials."""

from collections.abc import Callable
from typing import Any

import pytest

from playhead.core.access_log import broken
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Intent, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun, Trial, TrialStep
from playhead.core.values import Usage
from playhead.errors import AmbiguousIdError, NotFoundError
from playhead.store.ports import Store

LABEL = {"kind": "call", "calls": [{"tool": "look", "arguments": {"n": {"$any_of": [1, {"$any": True}]}}}]}


def a_suite(name: str = "desk") -> Contents:
    cases = [
        Case.model_validate(
            {
                "id": id,
                "intent": "refund",
                "slice": slice,
                "history": [{"role": "user", "content": "hello \ud800 \u2028"}],
                "tools": ["look"],
                "facts": [{"name": "f", "as": "id", "value": "R-77"}],
                "label": LABEL,
            }
        )
        for id, slice in (("b", "tune"), ("a", "held_back"), ("c", "tune"))
    ]
    return Contents(
        suite=Suite.model_validate(
            {"name": name, "effects": {"look": "read"}, "intents": {"refund": {"traffic": 0.3}}}
        ),
        cases=tuple(cases),
        tools={
            "look": ToolSchema(name="look", parameters={"type": "object", "properties": {"n": {"type": "integer"}}})
        },
        labels=(LabelEntry(case="b", state="weak", label=LABEL, confirmed_by="import:reward"),),
        accesses=({"who": "kim", "previous": None},),
    )


def a_run(id: str, created_at: int, suite: str = "desk", **more: Any) -> SuiteRun:
    return SuiteRun(id=id, suite=suite, suite_digest="d", created_at=created_at, model="m", **more)


class Suites:
    """Suites and their logs."""

    def test_a_suite_comes_back_as_it_was_stored(self, store: Store) -> None:
        store.suites.put(a_suite())
        assert store.suites.get("desk") == a_suite()
        assert store.suites.names() == ["desk"]

    def test_storing_a_suite_again_replaces_it_whole(self, store: Store) -> None:
        store.suites.put(a_suite())
        store.suites.put(a_suite("other"))
        smaller = Contents(suite=Suite(name="desk"))
        store.suites.put(smaller)
        assert store.suites.get("desk") == smaller
        assert store.suites.get("other") == a_suite("other")

    def test_changes_keep_the_rest_and_the_order(self, store: Store) -> None:
        store.suites.put(a_suite())
        known = a_suite()
        changed = known.cases[0].model_copy(update={"status": "retired"})
        new = known.cases[0].model_copy(update={"id": "z", "tools": ("look", "find")})
        entry = LabelEntry(case="b", state="reviewed", label=LABEL, who="kim")
        store.suites.change(
            "desk",
            suite=known.suite.model_copy(update={"intents": {"x": Intent()}}),
            cases=[changed, new],
            tools={"find": ToolSchema(name="find")},
            labels=[entry],
        )
        found = store.suites.get("desk")
        assert [(c.id, c.status) for c in found.cases] == [
            ("b", "retired"), ("a", "active"), ("c", "active"), ("z", "active"),
        ]  # fmt: skip
        assert set(found.tools) == {"look", "find"}
        assert found.labels == (*known.labels, entry)
        assert (list(found.suite.intents), found.accesses) == (["x"], known.accesses)

    def test_accesses_are_chained(self, store: Store) -> None:
        store.suites.put(Contents(suite=Suite(name="desk")))
        for number in range(3):
            store.suites.add_access("desk", {"who": "kim", "number": number})
        lines = store.suites.get("desk").accesses
        assert [line["number"] for line in lines] == [0, 1, 2]
        assert broken(lines) is None
        assert broken([lines[0], lines[2]]) == 2
        assert broken([{**lines[0], "who": "lee"}, *lines[1:]]) == 2

    def test_a_suite_that_is_not_there_is_named_with_near_ones(self, store: Store) -> None:
        store.suites.put(a_suite("support-desk"))
        acts: list[Callable[[str], object]] = [store.suites.get, store.suites.remove, store.suites.change]
        for act in acts:
            with pytest.raises(NotFoundError) as refused:
                act("suport-desk")
            assert "support-desk" in (refused.value.hint or "")

    def test_a_removed_suite_is_gone_and_its_runs_stay(self, store: Store) -> None:
        store.suites.put(a_suite())
        store.suites.save_run(a_run("r-0001", 1))
        store.suites.remove("desk")
        assert store.suites.names() == []
        assert [run.id for run in store.suites.runs("desk")] == ["r-0001"]


class SuiteRuns:
    """Runs and trials."""

    def test_runs_are_found_newest_first_and_by_part_of_their_id(self, store: Store) -> None:
        for id, at, suite in (("r-0001", 1, "desk"), ("r-0002", 3, "desk"), ("r-0003", 2, "other")):
            store.suites.save_run(a_run(id, at, suite))
        assert [run.id for run in store.suites.runs()] == ["r-0002", "r-0003", "r-0001"]
        assert [run.id for run in store.suites.runs("desk")] == ["r-0002", "r-0001"]
        assert [store.suites.resolve_run(text) for text in ("last", "last~2", "0003")] == ["r-0002", "r-0001", "r-0003"]
        with pytest.raises(AmbiguousIdError):
            store.suites.resolve_run("r-000")
        with pytest.raises(NotFoundError):
            store.suites.run("r-0009")

    def test_a_run_is_replaced_by_its_later_state(self, store: Store) -> None:
        store.suites.save_run(a_run("r-0001", 1, cases=("a", "b"), config={"max_cost": 1.5}))
        store.suites.save_run(a_run("r-0001", 1, status="completed", notes=("done",)))
        assert store.suites.run("r-0001").status == "completed"
        assert len(store.suites.runs()) == 1

    def test_trials_come_back_by_case_and_number_and_share_their_requests(self, store: Store) -> None:
        step = TrialStep(request="q1", message={"role": "assistant", "parts": []}, usage=Usage(output_visible=3))
        made = [
            Trial(run="r", case=case, n=n, seed=n, case_digest="d", steps=(step,), extra={"kind": "timeout"})
            for case, n in (("b", 0), ("a", 1), ("a", 0))
        ]
        for trial in made:
            store.suites.add_trial(trial, {"q1": {"messages": ["hello"]}})
        assert [(t.case, t.n) for t in store.suites.trials("r")] == [("a", 0), ("a", 1), ("b", 0)]
        assert store.suites.trials("r")[2] == made[0]
        assert store.suites.trials("other") == []
        assert store.suites.request("q1") == {"messages": ["hello"]}
        with pytest.raises(NotFoundError):
            store.suites.request("q2")

    def test_a_document_is_kept_under_its_digest_and_never_changed(self, store: Store) -> None:
        store.suites.add_request("set", {"cases": ["\ud800", 2**70]})
        store.suites.add_request("set", {"cases": []})
        assert store.suites.request("set") == {"cases": ["\ud800", 2**70]}

    def test_a_trial_that_is_made_again_replaces_the_first(self, store: Store) -> None:
        for status in ("error", "scored"):
            store.suites.add_trial(Trial(run="r", case="a", n=0, seed=0, case_digest="d", status=status))
        assert [t.status for t in store.suites.trials("r")] == ["scored"]
