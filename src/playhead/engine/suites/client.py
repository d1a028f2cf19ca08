"""Suites in Python: open one, run it, read its scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import ModelAsk, ModelSaid, answer_of
from playhead.core.suites.labels import read_label
from playhead.core.suites.scoring import Answer, Attempt, Score, score
from playhead.core.suites.suite import Case, ToolSchema, schemas
from playhead.core.suites.summary import CaseResult, RunSummary, TrialResult
from playhead.core.suites.trials import SuiteRun
from playhead.engine.model_access import Access, LayerAccess, Place, RecordedAnswers, Strict, StrictUse
from playhead.engine.project import find_project
from playhead.engine.suites.answers import earlier_answers
from playhead.engine.suites.labels import add_entries, decision
from playhead.engine.suites.location import SuiteHome, find_suite, note_access
from playhead.engine.suites.run import Limits, Progress, Selection, chosen, execute, new_run
from playhead.engine.suites.summary import run_summary
from playhead.errors import NotFoundError, UsageError
from playhead.store.ports import Store

__all__ = ["CaseResult", "ModelAsk", "ModelFunction", "RunSummary", "SuiteClient", "TrialResult", "open_suite"]

ModelFunction = Callable[[ModelAsk], Any]
"""A model as a function: it gets the request, and gives a `ModelSaid` or an assistant message in normal form."""


class FunctionAccess:
    """A function as a model."""

    def __init__(self, name: str, function: ModelFunction) -> None:
        self.name = name
        self._function = function

    def strict(self, tools: Sequence[ToolSchema]) -> StrictUse:
        return StrictUse()

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        said = self._function(ask)
        return said if isinstance(said, ModelSaid) else ModelSaid(message=said)

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class SuiteClient:
    """A suite of a store or a folder, as `playhead.suite` opens it. Runs are kept in the store."""

    home: SuiteHome
    store: Store

    @property
    def contents(self) -> Contents:
        """The suite as it is now."""
        return self.home.contents()

    @property
    def name(self) -> str:
        return self.contents.suite.name

    def case(self, id: str) -> Case:
        """
        Raises:
            NotFoundError: no such case.
        """
        found = next((case for case in self.contents.cases if case.id == id), None)
        if found is None:
            raise NotFoundError(f"suite {self.name!r} has no case {id!r}")
        return found

    def label(self, id: str, label: Any, *, who: str, reason: str | None = None) -> None:
        """Decides on the label of a case; None rejects what it has.

        Raises:
            UsageError: it is no label.
        """
        contents = self.contents
        add_entries(self.home, contents, [decision(self.case(id), label=label, who=who, reason=reason)])

    def score(self, id: str, answer: Any, *, final: str | None = None, label: Any = None) -> Score:
        """Scores one answer (an `Answer`, or an assistant message in normal form) to a case.

        Args:
            final: the text after the recorded results, for the outcome.
            label: in place of the case's own.
        """
        contents, case = self.contents, self.case(id)
        if label is not None:
            case = case.model_copy(update={"label": read_label(label)})
        first = answer if isinstance(answer, Answer) else answer_of(answer)
        attempt = Attempt(answers=(first,), final=final)
        return score(case, schemas(case, contents.tools), attempt, contents.suite.effects)

    def run(
        self,
        *,
        model: str | ModelFunction | None = None,
        runs: int | None = None,
        driver: Literal["turn", "loop"] = "turn",
        outcome: Literal["spliced", "chained"] = "spliced",
        slice: Literal["tune", "held_back", "all"] = "tune",
        reason: str | None = None,
        cases: Sequence[str] = (),
        intents: Sequence[str] = (),
        base_url: str | None = None,
        key_env: str | None = None,
        strict: Strict = "auto",
        seed: int = 0,
        answers: str | None = None,
        limits: Limits | None = None,
        trust: Sequence[str] = (),
        tell: Callable[[Progress], None] = lambda progress: None,
    ) -> RunSummary:
        """Tries the cases and scores what the model does; as `playhead suite run`.

        Args:
            model: ``provider:name``, a bare name with ``base_url``, ``recorded``, or a function of the request.
            answers: take them from this earlier run.
        """
        contents = self.contents
        selected = chosen(contents, Selection(slice=slice, ids=tuple(cases), intents=tuple(intents)))
        name = model if isinstance(model, str) else getattr(model, "__name__", "function") if model else "earlier"
        run = new_run(
            contents, selected, model=name, runs=runs or contents.suite.defaults.runs, driver=driver, outcome=outcome,
            slice=slice, seed=seed, strict=strict, reason=reason,
            config={"suite": self.home.where.removeprefix("suite "), "base_url": base_url, "key_env": key_env},
        )  # fmt: skip
        access = self._access(model, selected, base_url, key_env, strict, answers)
        if slice != "tune":
            note_access(self.home, contents, who="python", command="suite run", reason=reason or "", run=run.id)
            contents = self.contents
        execute(self.store, contents, run, selected, access, limits=limits, tell=tell)
        return run_summary(self.store, run.id, contents=contents, trust=trust)

    def _access(
        self, model: str | ModelFunction | None, cases: Sequence[Case], base_url: str | None, key_env: str | None,
        strict: Strict, answers: str | None,
    ) -> Access:  # fmt: skip
        if answers is not None:
            return earlier_answers(self.store, answers)
        if model is None:
            raise UsageError("no model is named", hint='run(model="provider:name")')
        if not isinstance(model, str):
            return FunctionAccess(getattr(model, "__name__", "function"), model)
        if model == "recorded":
            return RecordedAnswers({case.id: case for case in cases})
        access = LayerAccess(name=model, base_url=base_url, key_env=key_env, strict_mode=strict)
        access.check()
        return access

    def runs(self) -> list[SuiteRun]:
        """Its runs, newest first."""
        return self.store.suites.runs(self.name)

    def summary(self, run: str = "last", *, trust: Sequence[str] = ()) -> RunSummary:
        """A stored run, scored with today's labels."""
        return run_summary(self.store, run, contents=self.contents, trust=trust)


def open_suite(suite: str | Path, *, url: str | None = None) -> SuiteClient:
    """Opens a suite by the name that it has in the store, or by its folder.

    Args:
        url: the store, in place of the project's own; it is made when it is not there, for the runs.

    Raises:
        NotFoundError: there is no such suite.
    """
    project = find_project(url=url)
    store = project.open_store()
    redactor = project.redactor()
    home = find_suite(lambda: store, str(suite), redact=lambda value: redactor.redact(value)[0])
    return SuiteClient(home, store)
