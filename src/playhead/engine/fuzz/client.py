"""`playhead.fuzz`: as the command, with functions for models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playhead.core.fuzz.cases import FAMILIES, Family, FuzzCase, FuzzSet
from playhead.core.fuzz.findings import Finding
from playhead.core.fuzz.sets import CONTEXT, make_set
from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Case, ToolSchema
from playhead.core.suites.trials import SuiteRun
from playhead.engine.fuzz.direct import MEMORY, SECONDS, check_seconds
from playhead.engine.fuzz.runs import findings_of, written
from playhead.engine.fuzz.session import (
    DirectOrder,
    fuzz_directly,
    fuzz_with_model,
    model_run,
    report,
    tools_only,
)
from playhead.engine.model_access import Access, LayerAccess, RecordedAnswers
from playhead.engine.suites.client import FunctionAccess, ModelFunction, SuiteClient, open_suite
from playhead.engine.suites.run import Limits, Selection, chosen
from playhead.errors import UsageError

__all__ = ["Finding", "FuzzCase", "FuzzResult", "fuzz"]

FuzzFamily = Literal["type_confusion", "constraint", "oversized", "interface"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzResult:
    """What a fuzz run came to. ``report`` is the JSON that `playhead fuzz --output json` prints."""

    set: FuzzSet
    report: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    runs: tuple[str, ...] = field(default=())

    @property
    def confirmed(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.confirmed)


def fuzz(
    suite: "SuiteClient | str | Path | None" = None,
    *,
    model: str | ModelFunction | None = None,
    direct: str | None = None,
    tools: Sequence[ToolSchema | Mapping[str, Any]] = (),
    families: Sequence[FuzzFamily] = FAMILIES,  # type: ignore[assignment]
    per_tool: int = 5,
    only: Sequence[str] = (),
    queries: str | ModelFunction | None = None,
    random: bool = False,
    context_tokens: int = CONTEXT,
    runs: int = 1,
    cases: Sequence[str] = (),
    seed: int = 0,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    folder: str | Path | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
    limits: Limits | None = None,
    url: str | None = None,
) -> FuzzResult:
    """Makes bad calls of a suite's tools, and says what a model, or the tools themselves, do with them.

    Args:
        suite: as `playhead.suite` opens it, or its name or folder; None with ``tools``.
        model: ``provider:name``, ``recorded``, or a function of the request.
        direct: factory of the tools themselves, ``module:name``. Staging only: they are called for real.
        tools: schemas in place of a suite, for ``direct``.
        only: tools of these names.
        queries: model that writes requests of users; a name or a function.
        folder: where the factory's module is found; the working directory when left out.
        url: the store, where ``suite`` is none that is open.

    Raises:
        UsageError: nothing to try, or nothing to try it on.
    """
    if model is None and direct is None:
        raise UsageError("nothing was named to try the cases on", hint='fuzz(suite, model="provider:name")')
    client = _client(suite, tools, url)
    contents, selected = _what(client, suite, tools, cases)
    chosen_families: tuple[Family, ...] = tuple(name for name in FAMILIES if name in families)
    made = make_set(
        selected, contents.tools, families=chosen_families, per_tool=per_tool, seed=seed, context=context_tokens,
        only=only, effects=contents.suite.effects,
    )  # fmt: skip
    if not made.cases:
        raise UsageError("no bad call can be made of these tools", hint="they have no parameters")
    writer = None if queries is None else _access(queries, {}, base_url, key_env)
    if writer is not None or random:
        made = written(made, contents.tools, writer, seed=seed, random=random)
    where = {"suite": None if client.home is None else client.home.where.removeprefix("suite "), "tools": None,
             "case": list(cases), "intent": [], "limit": None}  # fmt: skip
    order = None if direct is None else _order(direct, seconds, memory, folder)
    settings: dict[str, Any] = {"where": where, "direct": None if order is None else order.json()}
    called = None if order is None else fuzz_directly(client.store, contents, made, order, settings=settings)
    fed = None
    if model is not None:
        name = model if isinstance(model, str) else getattr(model, "__name__", "function")
        config: dict[str, Any] = {"base_url": base_url, "key_env": key_env}
        run = model_run(
            client.store, contents, selected, made, model=name, runs=runs, settings=settings, direct=called, **config
        )
        fed = fuzz_with_model(
            client.store, contents, selected, run,
            lambda staged: _access(model, staged.cases, base_url, key_env), limits=limits,
        )  # fmt: skip
    told = report(client.store, contents, selected, run=fed, direct=called)
    done: list[SuiteRun] = [one for one in (called, fed) if one is not None]
    return FuzzResult(
        set=made, report=told, findings=tuple(one for run in done for one in findings_of(run)),
        runs=tuple(run.id for run in done),
    )  # fmt: skip


def _order(direct: str, seconds: float, memory: int, folder: str | Path | None) -> DirectOrder:
    return DirectOrder(
        entry_point=direct, seconds=check_seconds(seconds), memory=memory, folder=Path(folder or ".").resolve()
    )


@dataclass(frozen=True, slots=True)
class _Where:
    store: Any
    home: Any = None


def _client(suite: "SuiteClient | str | Path | None", tools: Sequence[Any], url: str | None) -> _Where:
    if isinstance(suite, SuiteClient):
        return _Where(suite.store, suite.home)
    if suite is not None:
        opened = open_suite(suite, url=url)
        return _Where(opened.store, opened.home)
    if not tools:
        raise UsageError("no suite was named", hint='fuzz("suite", model=...), or fuzz(tools=[...], direct=...)')
    from playhead.engine.project import find_project

    return _Where(find_project(url=url).open_store())


def _what(
    client: _Where, suite: object, tools: Sequence[ToolSchema | Mapping[str, Any]], cases: Sequence[str]
) -> tuple[Contents, list[Case]]:
    if suite is None:
        given = [one if isinstance(one, ToolSchema) else ToolSchema.model_validate(dict(one)) for one in tools]
        return tools_only(given, "tools"), []
    contents: Contents = client.home.contents()
    return contents, chosen(contents, Selection(ids=tuple(cases), unlabelled=True))


def _access(model: str | ModelFunction, cases: Mapping[str, Case], base_url: str | None, key_env: str | None) -> Access:
    if not isinstance(model, str):
        return FunctionAccess(getattr(model, "__name__", "function"), model)
    if model == "recorded":
        return RecordedAnswers(cases)
    access = LayerAccess(name=model, base_url=base_url, key_env=key_env)
    access.check()
    return access
