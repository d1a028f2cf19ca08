"""``playhead fuzz``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from playhead.cli.context import Context, Ctx
from playhead.cli.fuzz_text import plan_text, replay_text, report_text
from playhead.cli.output import Result
from playhead.cli.suite_runs import Teller, access_for, check_budget, estimate_text, price_of
from playhead.cli.suites import contents_at, home_of
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.fuzz.cases import FuzzSet
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.suite import Case
    from playhead.core.suites.trials import SuiteRun
    from playhead.engine.fuzz.runs import Stage
    from playhead.engine.fuzz.session import DirectOrder
    from playhead.engine.model_access import Access
    from playhead.engine.suites.run import Limits

FamilyName = Literal["type_confusion", "constraint", "oversized", "ambiguity", "interface"]
_FORMS = (".html", ".md", ".json")


def fuzz(
    suite: str | None = None,
    /,
    *,
    context: Ctx,
    model: tuple[str, ...] = (),
    families: tuple[FamilyName, ...] = (),
    per_tool: int = 5,
    tool: tuple[str, ...] = (),
    direct: str | None = None,
    tools: Path | None = None,
    seconds: float = 5.0,
    memory: int = 512,
    queries: str | None = None,
    random: bool = False,
    pair: tuple[str, ...] = (),
    queries_file: Path | None = None,
    context_tokens: Annotated[int, Parameter(name="--context-tokens")] = 128_000,
    runs: int = 1,
    case: tuple[str, ...] = (),
    intent: tuple[str, ...] = (),
    limit: int | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
    seed: int = 0,
    concurrency: int = 8,
    per_minute: float | None = None,
    max_cost: float | None = None,
    max_minutes: float | None = None,
    plan: bool = False,
    again: Annotated[str | None, Parameter(name="--set")] = None,
    resume: str | None = None,
    replay: str | None = None,
    to: tuple[Path, ...] = (),
) -> Result:
    """Make bad calls of a suite's tools, and see what a model or the tool does with them.

    With --model each bad call stands in the conversation as the model's own, its rejection follows, and what the model
    does next is counted. With --direct the tools themselves are called, in a process of their own; with both, the
    tools' own words are what the model is told. Exit code 3 when more than 2 % of the trials ended in an
    infrastructure error; with --replay, 1 while the finding still stands.

    Args:
        suite: Name of a suite, or its folder.
        model: Model to try, as provider:name, or its bare name with --base-url; scripted:NAME a model of
            playhead.testing.
        families: Only these families; may be given several times. All but ambiguity when left out, which is asked
            alone.
        per_tool: Cases of each tool and family, at most.
        tool: Only this tool; may be given several times.
        direct: Factory of the tools themselves, as module:name. Staging only: they are called for real.
        tools: JSON file with tool schemas, in place of a suite, for --direct.
        seconds: Time that a direct call has before it is killed.
        memory: Megabytes that a direct call may take.
        queries: Model that writes requests of users which lead into each bad argument (or that two tools could serve).
        random: Also try requests without a meaning, as a baseline of --queries.
        pair: Of family ambiguity, two tools as LEFT,RIGHT; may be given several times.
        queries_file: Of family ambiguity, a file with requests.
        context_tokens: Tokens that the model holds; one kind of result is grown to half as many more.
        runs: Trials of each case. What goes wrong is tried 5 times in any case.
        case: Only this case of the suite; may be given several times.
        intent: Only cases of this intent; may be given several times.
        limit: At most so many cases of the suite.
        base_url: Address of an OpenAI-compatible gateway.
        key_env: Environment variable with its key.
        seed: Draws the cases; the same seed gives the same set.
        concurrency: Trials at a time.
        per_minute: Requests a minute, at most.
        max_cost: Stop when so many USD are spent.
        max_minutes: Stop after so many minutes.
        plan: Only list the cases.
        again: Try the stored set of this run (id, or last) again, as it was.
        resume: Go on with this run (id, or last); its own settings hold.
        replay: Play this finding again.
        to: Also write the report to this file (.html, .md or .json); may be given several times.
    """
    from playhead.engine.suites.run import Limits

    _check(per_tool, runs, to, model, alone="ambiguity" in families and bool(to or direct or again))
    limits = Limits(concurrency=max(1, concurrency), per_minute=per_minute, max_cost=max_cost, max_minutes=max_minutes)
    _check_budget(model, limits, plan=plan)
    config: dict[str, Any] = {"base_url": base_url, "key_env": key_env}
    order = _order(direct, seconds, memory)
    if resume is not None:
        return _resumed(context, suite, resume, limits, to)
    if replay is not None:
        return _replayed(context, replay, order, model, config, limits)
    where: dict[str, Any] = {
        "suite": suite, "tools": tools and str(tools), "case": list(case), "intent": list(intent), "limit": limit,
    }  # fmt: skip
    made, where = _stored_set(context, again, where) if again is not None else (None, where)
    contents, cases = contents_at(context, where)
    if families == ("ambiguity",):
        asked = {"pairs": pair, "queries": queries, "queries_file": queries_file}
        return _ambiguity(context, contents, cases, model, limits, plan, config | {"suite": suite}, seed, asked)
    if made is None:
        fresh = _made(context, contents, cases, families, per_tool, seed, context_tokens, tool)
        made = _with_queries(context, contents, fresh, queries, config, random=random)
    if plan:
        return _planned(context, contents, cases, made, model, runs)
    return _run(context, contents, cases, made, where, model, order, runs, limits, config, to)


def _check(per_tool: int, runs: int, to: Sequence[Path], model: Sequence[str], *, alone: bool) -> None:
    if alone:
        raise UsageError("ambiguity takes no --to, --direct or --set", hint="--output json gives the whole result")
    if per_tool < 1 or runs < 1:
        raise UsageError("--per-tool and --runs are at least 1")
    if len(model) > 1:
        raise UsageError("one model at a time", hint="playhead fuzz once for each")
    for path in to:
        if path.suffix not in _FORMS:
            raise UsageError(
                f"no report has the form {str(path)!r}", hint=f"end the name with one of {', '.join(_FORMS)}"
            )


def _check_budget(model: Sequence[str], limits: "Limits", *, plan: bool) -> None:
    for name in () if plan else model:
        check_budget(name, limits)


def _order(direct: str | None, seconds: float, memory: int) -> "DirectOrder | None":
    if direct is None:
        return None
    from playhead.engine.fuzz.direct import check_seconds
    from playhead.engine.fuzz.session import DirectOrder

    if memory < 16:
        raise UsageError(f"a call cannot do with {memory} megabytes", hint="--memory is at least 16")
    return DirectOrder(entry_point=direct, seconds=check_seconds(seconds), memory=memory * 1024 * 1024)


def _made(
    context: Context, contents: "Contents", cases: "Sequence[Case]", families: Sequence[str], per_tool: int, seed: int,
    context_tokens: int, tool: Sequence[str],
) -> "FuzzSet":  # fmt: skip
    from playhead.core.fuzz.cases import FAMILIES
    from playhead.core.fuzz.sets import make_set

    if "ambiguity" in families:
        raise UsageError("ambiguity is asked alone", hint="playhead fuzz SUITE --families ambiguity")
    known = {one.name for one in contents.tools.values()}
    unknown = [name for name in tool if name not in known]
    if unknown:
        raise UsageError(f"there is no tool {unknown[0]!r}", hint=f"one of: {', '.join(sorted(known)[:10])}")
    chosen: Any = tuple(name for name in FAMILIES if name in families) if families else FAMILIES
    made = make_set(
        cases,
        contents.tools,
        families=chosen,
        per_tool=per_tool,
        seed=seed,
        context=context_tokens,
        only=tool,
        effects=contents.suite.effects,
    )
    if not made.cases:
        raise UsageError(
            "no bad call can be made of these tools", hint="they have no parameters, or no case is labelled"
        )
    return made


def _with_queries(
    context: Context, contents: "Contents", made: "FuzzSet", queries: str | None, config: Mapping[str, Any], *,
    random: bool,
) -> "FuzzSet":  # fmt: skip
    from playhead.engine.fuzz.runs import written
    from playhead.engine.model_access import LayerAccess

    if queries is None and not random:
        return made
    access = None
    if queries is not None:
        access = LayerAccess(name=queries, base_url=config["base_url"], key_env=config["key_env"])
        access.check()
        context.note(f"{queries} writes a request for each bad argument")
    return written(made, contents.tools, access, seed=made.seed, random=random)


def _stored_set(context: Context, text: str, where: dict[str, Any]) -> "tuple[FuzzSet, dict[str, Any]]":
    """The set of a run, with where its cases are unless something else is named."""
    from playhead.engine.fuzz.runs import set_of
    from playhead.engine.fuzz.session import going_on

    run = going_on(context.store, text)
    settings = cast("dict[str, Any]", run.config["fuzz"])
    named = where["suite"] is not None or where["tools"] is not None
    return set_of(context.store, run), where if named else dict(settings["where"])


def _run(
    context: Context, contents: "Contents", cases: "Sequence[Case]", made: "FuzzSet", where: Mapping[str, Any],
    model: Sequence[str], order: "DirectOrder | None", runs: int, limits: "Limits", config: Mapping[str, Any],
    to: Sequence[Path],
) -> Result:  # fmt: skip
    from playhead.engine.fuzz.session import fuzz_directly, model_run

    if not model and order is None:
        raise UsageError(
            "nothing was named to try the cases on", hint="--model PROVIDER:NAME, --direct MODULE:NAME, or --plan"
        )
    store = context.make_store()
    settings: dict[str, Any] = {"where": dict(where), "direct": None if order is None else order.json()}
    done_directly = None
    if order is not None:
        context.note(f"{order.entry_point} is called in a process of its own; nothing keeps it from what it reaches")
        teller = Teller(context, order.entry_point)
        done_directly = fuzz_directly(
            store, contents, made, order, settings=settings, max_minutes=limits.max_minutes, tell=teller
        )
        teller.end()
    done = None
    if model:
        run = model_run(
            store, contents, cases, made, model=model[0], runs=runs, settings=settings, direct=done_directly, **config
        )
        done = _fed(context, contents, cases, run, limits)
    return _result(context, contents, cases, done, done_directly, to)


def _planned(
    context: Context, contents: "Contents", cases: "Sequence[Case]", made: "FuzzSet", model: Sequence[str], runs: int
) -> Result:
    """The cases, and what the model that was named would be asked for."""
    from playhead.engine.fuzz.runs import stage
    from playhead.engine.suites.run import new_run

    for name in model:
        staged = stage(contents, cases, made)
        run = new_run(contents, list(staged.cases.values()), model=name, runs=runs, driver="loop")
        _tell_estimate(context, run, staged, len(run.cases) * runs)
    return plan_text(made)


def _tell_estimate(context: Context, run: "SuiteRun", staged: "Stage", left: int) -> None:
    from playhead.core.fuzz.findings import MODEL_RUNS
    from playhead.engine.suites.run import estimate

    tried = list(staged.cases.values())
    told = estimate(run, staged.contents, tried, left, price_of(run.model), chained=staged.chained, lead=staged.lead)
    context.note(f"{run.model}: {estimate_text(told)}; what goes wrong is tried {MODEL_RUNS} times")


def _fed(
    context: Context, contents: "Contents", cases: "Sequence[Case]", run: "SuiteRun", limits: "Limits"
) -> "SuiteRun":
    from playhead.engine.fuzz.session import fuzz_with_model
    from playhead.engine.suites.run import todo

    store = context.make_store()
    left = len(todo(store, run))
    context.note(f"{run.model}: run {run.id}, {len(run.cases)} cases, {left} trials to make")

    def access(staged: "Stage") -> "Access":
        found = access_for(context, run, list(staged.cases.values()))
        check_budget(run.model, limits, found)
        _tell_estimate(context, run, staged, left)
        return found

    teller = Teller(context, run.model)
    done = fuzz_with_model(store, contents, cases, run, access, limits=limits, tell=teller)
    teller.end()
    return done


def _result(
    context: Context, contents: "Contents", cases: "Sequence[Case]", run: "SuiteRun | None",
    direct: "SuiteRun | None", to: Sequence[Path],
) -> Result:  # fmt: skip
    from playhead.core.reporting.fuzz_pages import rendered
    from playhead.engine.fuzz.session import report
    from playhead.engine.report_files import write_text

    redactor = context.project.redactor()
    told: Any = redactor.redact(report(context.store, contents, cases, run=run, direct=direct))[0]
    for path in to:
        write_text(path, rendered(told, path.suffix))
    return Result(data=told, text=report_text(told), exit_code=3 if told["too_many_errors"] else 0)


def _resumed(context: Context, suite: str | None, resume: str, limits: "Limits", to: Sequence[Path]) -> Result:
    from playhead.engine.fuzz.runs import set_of
    from playhead.engine.fuzz.session import DIRECT_MODEL, fuzz_directly, going_on, read_order

    run = going_on(context.store, resume)
    if "probes" in run.config:
        from playhead.cli.probing import probed

        contents = home_of(context, suite or str(run.config["suite"])).contents()
        return probed(context, contents, replace(run, status="running", stopped_by=None, ended_at=None), limits)
    settings = cast("dict[str, Any]", run.config["fuzz"])
    where = {**settings["where"], **({"suite": suite} if suite is not None else {})}
    contents, cases = contents_at(context, where)
    if run.model.startswith(DIRECT_MODEL):
        order = read_order(settings)
        assert order is not None
        made = set_of(context.store, run)
        done = fuzz_directly(
            context.make_store(), contents, made, order, settings=settings, going=run, max_minutes=limits.max_minutes
        )
        return _result(context, contents, cases, None, done, to)
    earlier = settings.get("direct_run")
    direct = context.store.suites.run(str(earlier)) if earlier else None
    return _result(context, contents, cases, _fed(context, contents, cases, run, limits), direct, to)


def _replayed(
    context: Context, text: str, order: "DirectOrder | None", model: Sequence[str], config: Mapping[str, Any],
    limits: "Limits",
) -> Result:  # fmt: skip
    from playhead.core.fuzz.findings import MODEL_RUNS
    from playhead.engine.fuzz import session

    finding, run = session.find_finding(context.store, text)
    settings = cast("dict[str, Any]", run.config["fuzz"])
    if finding.source == "direct" and not model:
        stored = session.read_order(settings)
        assert stored is not None
        return replay_text(session.replay_direct(finding, order or stored))
    if not model and run.model.startswith(session.DIRECT_MODEL):
        raise UsageError("no model was named", hint="--model PROVIDER:NAME")
    contents, cases = contents_at(context, settings["where"])
    made = session.set_with_finding(context.store, finding, run)
    direct = context.store.suites.run(str(settings["direct_run"])) if settings.get("direct_run") else None
    kept = {**settings, "where": settings["where"]}
    named = {"base_url": run.config.get("base_url"), "key_env": run.config.get("key_env")}
    again = session.model_run(
        context.make_store(), contents, cases, made, model=model[0] if model else run.model, runs=MODEL_RUNS,
        settings=kept, direct=direct, **(dict(config) if model else named),
    )  # fmt: skip
    _fed(context, contents, cases, again, limits)
    return replay_text(session.replayed_by_model(finding, made.cases[0], context.store.suites.trials(again.id)))


def _ambiguity(
    context: Context, contents: "Contents", cases: "Sequence[Case]", model: Sequence[str], limits: "Limits",
    plan: bool, config: dict[str, Any], seed: int, asked: Mapping[str, Any],
) -> Result:  # fmt: skip
    """Asks a model to choose between tools that read alike."""
    from playhead.cli.probing import planned, probed, probes_for
    from playhead.engine.fuzz.probes import probe_run

    probes = probes_for(
        contents, cases, base_url=config["base_url"], key_env=config["key_env"], note=context.note, **asked
    )  # fmt: skip
    if plan:
        return planned(probes)
    if not model:
        raise UsageError("no model was named", hint="--model PROVIDER:NAME")
    scripted = model[0].startswith("scripted:")
    run = probe_run(contents, probes, model=model[0], seed=seed, config=config, scripted=scripted)
    return probed(context, contents, run, limits)
