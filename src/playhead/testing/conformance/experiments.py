"""What a store does with cohorts, experiments and runs."""

from typing import Any

import pytest

from playhead.core.cohorts import Cohort
from playhead.core.experiments.runs import Experiment, ExperimentRun
from playhead.errors import ConflictError, NotFoundError
from playhead.store.ports import Store
from playhead.testing.conformance.builders import START, a_session, session_id


def a_cohort(*members: str, name: str = "refunds") -> Cohort:
    return Cohort(name=name, version=0, created_at=START, members=members, source={"sessions": list(members)})


def a_run(number: int, experiment: str = "terse") -> ExperimentRun:
    values: dict[str, Any] = {
        "id": f"0197a1b2-0000-7000-8000-{number:012d}",
        "experiment": experiment,
        "created_at": START + number,
        "cohort": "refunds@1",
        "arms": [{"name": "unchanged"}],
        "evaluators": [],
        "config": {"repeats": 1},
        "members": ("a",),
    }
    return ExperimentRun(**values)


class Cohorts:
    def test_versions_are_frozen_and_ordered(self, store: Store) -> None:
        first = store.cohorts.create(a_cohort("b", "a"))
        assert (first.version, first.members) == (1, ("b", "a"))
        second = store.cohorts.create(a_cohort("a", "b"))
        assert second.version == 2
        assert store.cohorts.find("refunds") == second
        assert store.cohorts.find("refunds", 1) == first
        assert store.cohorts.versions("refunds") == [first, second]
        assert store.cohorts.names() == ["refunds"]

    def test_the_same_members_are_the_version_that_is_there(self, store: Store) -> None:
        first = store.cohorts.create(a_cohort("a"))
        assert store.cohorts.create(a_cohort("a")) == first
        assert len(store.cohorts.versions("refunds")) == 1

    def test_an_unknown_cohort_or_version_says_what_is_near(self, store: Store) -> None:
        store.cohorts.create(a_cohort("a"))
        with pytest.raises(NotFoundError) as name:
            store.cohorts.find("refund")
        assert "refunds" in (name.value.hint or "")
        with pytest.raises(NotFoundError) as version:
            store.cohorts.find("refunds", 3)
        assert "it has 1" in (version.value.hint or "")

    def test_a_session_that_a_cohort_needs_is_not_deleted(self, store: Store) -> None:
        store.sessions.put(a_session(), [])
        store.cohorts.create(a_cohort(session_id(1)))
        store.cohorts.create(a_cohort(session_id(1), "b"))
        assert store.cohorts.holding(session_id(1)) == ["refunds@1", "refunds@2"]
        with pytest.raises(ConflictError, match="refunds@1, refunds@2"):
            store.sessions.delete(session_id(1))
        assert store.sessions.get(session_id(1)).id == session_id(1)

    def test_an_erased_session_leaves_its_place_in_the_cohort(self, store: Store) -> None:
        store.sessions.put(a_session(), [])
        cohort = store.cohorts.create(a_cohort(session_id(1)))
        store.sessions.delete(session_id(1), erase=True)
        with pytest.raises(NotFoundError):
            store.sessions.get(session_id(1))
        assert store.cohorts.find("refunds") == cohort


class Experiments:
    def test_an_experiment_is_stored_once(self, store: Store) -> None:
        made = Experiment(name="terse", created_at=START, config={"arms": [{"name": "unchanged"}]})
        assert store.experiments.create(made) == made
        again = Experiment(name="terse", created_at=START + 1, config={"arms": [{"name": "unchanged"}]})
        assert store.experiments.create(again) == made
        assert store.experiments.get("terse") == made
        assert store.experiments.names() == ["terse"]

    def test_a_name_stands_for_one_configuration(self, store: Store) -> None:
        store.experiments.create(Experiment(name="terse", created_at=START, config={"arms": [{"name": "a"}]}))
        with pytest.raises(ConflictError, match="terse"):
            store.experiments.create(Experiment(name="terse", created_at=START, config={"arms": [{"name": "b"}]}))

    def test_an_unknown_experiment_says_what_is_near(self, store: Store) -> None:
        store.experiments.create(Experiment(name="terse", created_at=START, config={}))
        with pytest.raises(NotFoundError) as caught:
            store.experiments.get("tersr")
        assert "terse" in (caught.value.hint or "")

    def test_runs_are_listed_newest_first_and_change(self, store: Store) -> None:
        for number in (1, 2):
            store.experiments.save_run(a_run(number))
        store.experiments.save_run(a_run(3, "other"))
        assert [run.id for run in store.experiments.runs("terse")] == [a_run(2).id, a_run(1).id]
        assert store.experiments.resolve_run("last") == a_run(3).id
        assert store.experiments.resolve_run(a_run(1).id[-6:]) == a_run(1).id
        run = store.experiments.run(a_run(1).id)
        assert run == a_run(1)
        with pytest.raises(NotFoundError):
            store.experiments.run("nothing")
