"""What a store does with registered evaluators and with what they said."""

from typing import Any

import pytest

from playhead.core.evaluation import Evaluator
from playhead.core.values import ErrorInfo, Verdict
from playhead.errors import NotFoundError
from playhead.store.ports import Store
from playhead.testing.conformance.builders import START, a_session


def an_evaluator(name: str = "refund-check", digest: str = "d1", **changes: Any) -> Evaluator:
    values: dict[str, Any] = {
        "name": name,
        "version": 0,
        "digest": digest,
        "entry_point": "checks.py:refund_check",
        "source": "def refund_check(ctx): ...",
        "created_at": START,
    }
    return Evaluator(**{**values, **changes})


class Evaluators:
    def test_unchanged_code_is_the_version_that_is_there(self, store: Store) -> None:
        first = store.evaluators.register(an_evaluator())
        assert first == an_evaluator(version=1)
        assert store.evaluators.register(an_evaluator(created_at=START + 1)) == first
        assert store.evaluators.versions("refund-check") == [first]

    @pytest.mark.parametrize("change", [{"digest": "d2"}, {"env": ("KEY",)}, {"timeout": 5.0}])
    def test_changed_code_or_settings_are_the_next_version(self, store: Store, change: dict[str, Any]) -> None:
        store.evaluators.register(an_evaluator())
        second = store.evaluators.register(an_evaluator(**change))
        assert second.version == 2
        assert store.evaluators.find("refund-check") == second
        assert store.evaluators.find("refund-check", 1).version == 1

    def test_code_that_comes_back_is_the_newest_again(self, store: Store) -> None:
        for digest in ("d1", "d2", "d1"):
            store.evaluators.register(an_evaluator(digest=digest))
        assert [v.digest for v in store.evaluators.versions("refund-check")] == ["d1", "d2", "d1"]

    def test_names_number_apart(self, store: Store) -> None:
        store.evaluators.register(an_evaluator("b"))
        assert store.evaluators.register(an_evaluator("a")).version == 1
        assert store.evaluators.names() == ["a", "b"]

    def test_an_unknown_name_or_version_says_what_is_near(self, store: Store) -> None:
        store.evaluators.register(an_evaluator())
        with pytest.raises(NotFoundError) as name:
            store.evaluators.find("refund-chek")
        assert "refund-check" in (name.value.hint or "")
        with pytest.raises(NotFoundError) as version:
            store.evaluators.find("refund-check", 7)
        assert "it has 1" in (version.value.hint or "")
        assert store.evaluators.versions("nothing") == []

    def test_verdicts_keep_their_parameters_and_why_there_is_none(self, store: Store) -> None:
        store.sessions.put(a_session(), [])
        broken = Verdict(
            name="x", evaluator="x@1#12345678", params={"max": 1}, error=ErrorInfo(class_name="E", message="no")
        )
        store.sessions.add_verdicts(a_session().id, [broken])
        assert store.sessions.verdicts(a_session().id) == [broken]

    def test_verdicts_of_an_evaluator_that_ran_again_take_the_place_of_the_old(self, store: Store) -> None:
        id = a_session().id
        store.sessions.put(a_session(), [])
        store.sessions.add_verdicts(id, [Verdict(name=n, evaluator=e) for n, e in (("a", "x@1"), ("b", "y@1"))])
        new = Verdict(name="c", evaluator="x@1", passed=True)
        store.sessions.add_verdicts(id, [new], instead_of=["x@1"])
        assert store.sessions.verdicts(id) == [Verdict(name="b", evaluator="y@1"), new]
