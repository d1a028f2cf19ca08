"""`playhead.inject`: as the command, with functions for models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.core.recovery.plan import KINDS, Kind, MessageForm, variants
from playhead.core.recovery.report import checklist, report
from playhead.core.suites.suite import Case
from playhead.core.suites.summary import RecoveryResult, RunSummary
from playhead.engine.model_access import Access, LayerAccess, RecordedAnswers
from playhead.engine.suites.client import FunctionAccess, ModelFunction, SuiteClient, open_suite
from playhead.engine.suites.inject import inject as run_failures
from playhead.engine.suites.inject import variant_cases
from playhead.engine.suites.run import Limits, Progress, Selection, chosen, new_run
from playhead.engine.suites.summary import run_summary
from playhead.errors import UsageError

__all__ = ["InjectResult", "inject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectResult:
    """What a model did after each injected failure.

    Attributes:
        summary: the run, as `playhead gate --recovery` takes it.
        report: rate, groups and checklist, as `playhead inject --output json` prints them.
    """

    summary: RunSummary
    report: Mapping[str, Any]

    @property
    def results(self) -> tuple[RecoveryResult, ...]:
        """One for each trial in which the failure came up."""
        return self.summary.recovery

    @property
    def rate(self) -> float | None:
        """Recovered of injected; None where no failure came up."""
        return self.report["rate"]


def inject(
    suite: SuiteClient | str | Path,
    *,
    model: str | ModelFunction,
    kinds: Sequence[Kind] = KINDS,
    messages: Sequence[MessageForm] = ("prescriptive",),
    per_tool: int | None = None,
    runs: int = 1,
    add_exit: bool = False,
    guards: bool = False,
    cases: Sequence[str] = (),
    intents: Sequence[str] = (),
    seed: int = 0,
    base_url: str | None = None,
    key_env: str | None = None,
    limits: Limits | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> InjectResult:
    """Lets recorded calls of a suite's cases fail, one in each trial, and says how a model recovers.

    Args:
        suite: as `playhead.suite` opens it, or its name or folder.
        model: ``provider:name``, a bare name with ``base_url``, ``recorded``, or a function of the request.
        messages: forms of the error texts; with two the report says what the better one is worth.
        per_tool: failures of each tool and kind, at most.
        add_exit: offer the tool ``report_failure`` beside those of each case.
        guards: check results as the suite's guards say before the model gets them.

    Raises:
        UsageError: no failure applies, or no case is left.
    """
    client = suite if isinstance(suite, SuiteClient) else open_suite(suite)
    contents = client.contents
    if guards and not contents.suite.guards:
        raise UsageError(f"suite {contents.suite.name!r} declares no guards", hint="under guards in suite.json")
    selected = chosen(contents, Selection(ids=tuple(cases), intents=tuple(intents), unlabelled=True))
    found = variants(selected, contents.tools, kinds=kinds, per_tool=per_tool, seed=seed, messages=messages)
    if not found:
        raise UsageError("no failure applies to the recorded calls of these cases")
    made = variant_cases(selected, found)
    settings = {
        "kinds": list(kinds), "messages": list(messages), "per_tool": per_tool, "seed": seed, "add_exit": add_exit,
        "guards": guards,
    }  # fmt: skip
    name = model if isinstance(model, str) else getattr(model, "__name__", "function")
    config = {"suite": client.home.where.removeprefix("suite "), "base_url": base_url, "key_env": key_env,
              "cases": [one.id for one in selected], "inject": settings}  # fmt: skip
    run = new_run(contents, made, model=name, runs=runs, seed=seed, driver="loop", config=config)
    access = _access(model, made, base_url, key_env)
    done = run_failures(
        client.store, contents, run, made, found, access, add_exit=add_exit, guards=guards, limits=limits, tell=tell
    )
    summary = run_summary(client.store, done.id, contents=contents)
    return InjectResult(
        summary=summary, report=report(summary.recovery, checklist(summary.recovery, contents, selected))
    )


def _access(model: str | ModelFunction, cases: Sequence[Case], base_url: str | None, key_env: str | None) -> Access:
    if not isinstance(model, str):
        return FunctionAccess(getattr(model, "__name__", "function"), model)
    if model == "recorded":
        return RecordedAnswers({case.id: case for case in cases})
    access = LayerAccess(name=model, base_url=base_url, key_env=key_env)
    access.check()
    return access
