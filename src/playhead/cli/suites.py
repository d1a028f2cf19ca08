"""``playhead suite build | list | show | export``."""

import getpass
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.filters import EVERYTHING, Filter, FilterOptions
from playhead.cli.output import Block, Fields, Result, Table, shortened
from playhead.core.values import JSON
from playhead.errors import ConflictError, UsageError
from playhead.store.ports import SessionQuery

if TYPE_CHECKING:
    from playhead.core.capture import Captured
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.suite import Case, ToolSchema
    from playhead.engine.suites.location import SuiteHome

_SOURCES = Literal["bfcl", "tau-bench", "tau2", "swe-agent", "folder"]


def home_of(context: Context, suite: str) -> "SuiteHome":
    """The suite that a command names: of the store, or a folder."""
    from playhead.engine.suites.location import find_suite

    return find_suite(lambda: context.store, suite, redact=_redact(context))


def contents_at(context: Context, where: Mapping[str, Any]) -> "tuple[Contents, list[Case]]":
    """What a fuzz run is about: the suite and its cases, or the tools of a file and no case."""
    from playhead.engine.fuzz.session import tools_only
    from playhead.engine.suites.run import Selection, chosen
    from playhead.engine.suites.tool_sets import read_tools

    if where["tools"] is not None:
        if where["suite"] is not None:
            raise UsageError("a suite and a file of tools are given at once", hint="keep one of them")
        return tools_only(read_tools(Path(where["tools"])), Path(where["tools"]).stem), []
    if where["suite"] is None:
        raise UsageError(
            "no suite was named", hint="playhead fuzz SUITE --model PROVIDER:NAME, or --tools FILE --direct MODULE:NAME"
        )
    contents = home_of(context, where["suite"]).contents()
    selection = Selection(
        ids=tuple(where["case"]), intents=tuple(where["intent"]), limit=where["limit"], unlabelled=True
    )
    return contents, chosen(contents, selection)


def _redact(context: Context) -> Any:
    redactor = context.project.redactor()

    def redacted(value: JSON) -> JSON:
        return redactor.redact(value)[0]

    return redacted


def whoever() -> str:
    """The name of the user, for logs."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def build(
    *paths: str,
    context: Ctx,
    source: Annotated[_SOURCES | None, Parameter(name="--from")] = None,
    name: str | None = None,
    into: str | None = None,
    add: bool = False,
    category: tuple[str, ...] = (),
    tools: str | None = None,
    effects: str | None = None,
    intent: str | None = None,
    confirm: tuple[str, ...] = (),
    chosen: FilterOptions = EVERYTHING,
    session: tuple[str, ...] = (),
    cohort: str | None = None,
    finding: tuple[str, ...] = (),
    limit: int | None = None,
) -> Result:
    """Make a suite of cases from sessions, or from files of a benchmark.

    Every answer of a model becomes a case: what came before it, the tools that were offered, and what the recording did
    next. Sessions that a verdict or reward confirms give weak labels, failures that were corrected give mined ones.

    Args:
        paths: Files or folders of the source that --from names.
        source: bfcl, tau-bench, tau2 or swe-agent files, or a folder of a suite; sessions of the store when left out.
        name: Name of the suite.
        into: Write it to this folder, in place of the store.
        add: Add cases to the suite of that name; those it has stay as they are.
        category: Of bfcl, only this category; may be given several times.
        tools: File with tool schemas (form of OpenAI, Anthropic or MCP), for recordings that do not show them.
        effects: What the tools do, as JSON or @FILE: {"refund": {"class": "write", "financial": true}}.
        intent: Intent of every case; left out, what a session names in its metadata or a tag intent:NAME.
        confirm: Name of a verdict that confirms a session; all but fidelity when left out.
        session: This session; may be given several times.
        cohort: Sessions of this cohort: NAME or NAME@VERSION.
        finding: This finding of playhead fuzz, in place of sessions; may be given several times.
        limit: At most so many sessions.
    """
    if source is not None and not paths:
        raise UsageError(f"--from {source} needs a file or folder", hint=f"playhead suite build --from {source} PATH")
    if source is None and paths:
        raise UsageError(f"what is {paths[0]!r}?", hint="say what the files are: --from bfcl|tau-bench|folder")
    called = name or (Path(into).name if into else None) or source
    if called is None:
        raise UsageError("the suite has no name", hint="--name NAME")
    declared = _json(effects, "--effects")
    captured: Captured | None = None
    if source == "bfcl":
        from playhead.importers import bfcl

        contents = bfcl.read(Path(paths[0]), name=called, categories=category)
    elif source == "folder":
        contents = _folder(paths, name)
    elif finding:
        contents = _of_findings(context, called, finding, add=add)
    else:
        ids = [] if source is not None else _sessions(context, chosen, session, cohort)
        contents, captured = _captured(
            context, source, paths, called, ids, limit=limit, tools=_tools(tools), effects=declared, intent=intent,
            confirm=confirm, add=add,
        )  # fmt: skip
    if not contents.cases:
        raise UsageError(
            f"no case came of it: {_why_none(contents)}", hint="--tools FILE gives schemas that are missing"
        )
    where = _keep(context, contents, into, add=add)
    return _report(contents, where, captured)


def _why_none(contents: "Contents") -> str:
    from collections import Counter

    found = Counter(one.why for one in contents.skipped)
    return (
        ", ".join(f"{count} times {why}" for why, count in found.most_common(3)) or "no answer of a model was recorded"
    )


def _of_findings(context: Context, name: str, ids: Sequence[str], *, add: bool) -> "Contents":
    from playhead.engine.fuzz.cases import build_from_findings

    suites = context.make_store().suites
    known = suites.get(name) if add and name in suites.names() else None
    return build_from_findings(
        context.store, ids, name=name, contents_of=lambda where: contents_at(context, where), known=known
    )


def _folder(paths: Sequence[str], name: str | None) -> "Contents":
    from dataclasses import replace

    from playhead.engine.suites.folder import read_folder

    contents = read_folder(Path(paths[0]))
    return contents if name is None else replace(contents, suite=contents.suite.model_copy(update={"name": name}))


def _sessions(context: Context, chosen: Filter, ids: Sequence[str], cohort: str | None) -> list[str]:
    """The sessions that were asked for: these, those of a cohort, or what the filters find: by default live and
    imported ones that have ended."""
    from dataclasses import replace

    from playhead.engine.exports import find_ids

    store = context.store
    if sum((bool(ids), cohort is not None, chosen.is_given)) > 1:
        raise UsageError("sessions, a cohort and filters are given at once", hint="keep one of them")
    if ids:
        return [store.sessions.resolve(one) for one in ids]
    if cohort is not None:
        from playhead.engine.cohorts import CohortClient

        return list(CohortClient(store).find(cohort).members)
    asked = replace(chosen, origin=chosen.origin or ("live", "import"), status=chosen.status or ("completed", "failed"))
    return find_ids(store, asked.query(store))


def _captured(
    context: Context, source: str | None, paths: Sequence[str], name: str, ids: Sequence[str], *, limit: int | None,
    tools: "list[ToolSchema]", effects: Any, intent: str | None, confirm: Sequence[str], add: bool,
) -> "tuple[Contents, Captured]":  # fmt: skip
    from playhead.engine.exports import find_ids
    from playhead.engine.suites.build import build as build_suite

    store = context.store if source is None else _imported(source, paths, tools)
    sessions = ids or ([] if source is None else find_ids(store, SessionQuery()))
    if not sessions:
        raise UsageError("no session fits", hint="see playhead session list with the same options")
    known = context.make_store().suites.get(name) if add and name in context.make_store().suites.names() else None
    return build_suite(
        store, sessions[:limit], name=name, tools=tools, effects=effects, intent=intent or source,
        confirming=frozenset(confirm) or None, known_effects=source is not None, known=known,
    )  # fmt: skip


def _imported(source: str, paths: Sequence[str], tools: "list[ToolSchema]") -> Any:
    from playhead.importers import import_paths
    from playhead.store.memory import MemoryStore

    store = MemoryStore()
    formats = {"tau-bench": "tau_bench", "tau2": "tau2", "swe-agent": "swe_agent"}
    report = import_paths(store, paths)
    counts = report.formats.get(formats[source])
    if counts is None or not counts.sessions or counts.failed:
        problems = [note.message for note in report.errors][:3] or ["nothing in them shows that format"]
        raise UsageError(f"the files cannot be read whole as {source}: {'; '.join(problems)}")
    return store


def _tools(path: str | None) -> "list[ToolSchema]":
    from playhead.engine.suites.tool_sets import read_tools

    return [] if path is None else read_tools(Path(path))


def _json(given: str | None, option: str) -> Any:
    from playhead.core.protocol.shape import is_object

    if given is None:
        return {}
    try:
        found: Any = json.loads(Path(given[1:]).read_text("utf-8") if given.startswith("@") else given)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: {given!r} is not JSON: {error}") from None
    if not is_object(found):
        raise UsageError(f"{option}: {given!r} is not a JSON object")
    return {k: {"class": v} if isinstance(v, str) else v for k, v in found.items()}


def _keep(context: Context, contents: "Contents", into: str | None, *, add: bool) -> str:
    from playhead.engine.suites.folder import is_suite_folder, write_folder

    if into is not None:
        if is_suite_folder(Path(into)):
            raise ConflictError(f"{into} holds a suite", hint="choose another folder with --into")
        write_folder(contents, Path(into), _redact(context))
        return into
    suites = context.make_store().suites
    if contents.suite.name in suites.names() and not add:
        raise ConflictError(
            f"there is a suite {contents.suite.name!r}", hint="add to it with --add, or choose another --name"
        )
    suites.put(contents)
    return f"suite {contents.suite.name}"


def _report(contents: "Contents", where: str, captured: "Captured | None") -> Result:
    from playhead.core.suites.contents import counted

    data: dict[str, Any] = {"name": contents.suite.name, "where": where, **counted(contents)}
    if captured is not None:
        data |= {"confirmed_sessions": len(captured.confirmed), "failed_calls": captured.mining}
    findings = contents.findings()
    data["label_findings"] = [{"case": id, "finding": str(f)} for id, fs in findings.items() for f in fs]
    return Result(data=data, text=[f"made {where}", Fields(_counts(data)), *_warnings(data)])


def _counts(data: dict[str, Any]) -> list[tuple[str, object]]:
    def listed(held: dict[str, int]) -> str | None:
        return ", ".join(f"{count} {name}" for name, count in held.items()) or None

    return [
        ("cases", f"{data['cases']} ({listed(data['slices'])})"),
        ("labels", listed(data["labels"])),
        ("label states", listed({str(k or "unlabelled"): v for k, v in data["states"].items()})),
        ("labelled calls", data["calls"] or None),
        ("labelled arguments", data["arguments"] or None),
        ("may be absent", data["optional"] or None),
        ("several values", data["several_values"] or None),
        ("tools", data["tools"]),
        ("confirmed sessions", data.get("confirmed_sessions")),
        ("failed calls", listed(data.get("failed_calls") or {})),
        ("skipped", listed(data["skipped"])),
    ]


def _warnings(data: dict[str, Any]) -> list[str]:
    return [f"label check: {one['case']}: {one['finding']}" for one in data["label_findings"]]


def list_suites(*, context: Ctx) -> Result:
    """List the suites of the store."""
    rows: list[dict[str, Any]] = []
    for name in context.store.suites.names():
        contents = context.store.suites.get(name)
        runs = context.store.suites.runs(name)
        active = [case for case in contents.cases if case.status == "active"]
        rows.append(
            {
                "suite": name,
                "cases": len(active),
                "labelled": sum(case.label is not None for case in active),
                "intents": len(contents.suite.intents),
                "runs": len(runs),
                "last_run": shown.when(runs[0].created_at) if runs else None,
            }
        )
    columns = ("suite", "cases", "labelled", "intents", "runs", "last_run")
    empty = "no suites; playhead suite build makes one"
    return Result(data=rows, items=True, text=[Table(columns, rows, empty=empty)])


def show(
    suite: str,
    /,
    *,
    context: Ctx,
    case: str | None = None,
    intent: str | None = None,
    state: Literal["reviewed", "mined", "weak", "proposed", "rejected", "unlabelled"] | None = None,
    limit: int = 50,
) -> Result:
    """Show a suite's cases with label state and slice.

    What is held back is counted and not shown.

    Args:
        suite: Name of a suite, or its folder.
        case: Show this case whole.
        intent: Only cases of this intent.
        state: Only cases whose label is in this state.
        limit: At most so many cases.
    """
    from playhead.core.suites.label_log import by_case, settle

    contents = home_of(context, suite).contents()
    own = by_case(contents.labels)
    found = {c.id: settle(c, own.get(c.id, ())) for c in contents.cases}
    if case is not None:
        return _one(contents, case, found)
    tune = [c for c in contents.cases if c.slice == "tune"]
    rows = [_case_row(c, found[c.id], contents) for c in tune]
    rows = [r for r in rows if intent in (None, r["intent"]) and state in (None, r["state"] or "unlabelled")]
    from playhead.core.suites.contents import counted

    data = {
        "name": contents.suite.name,
        "digest": contents.digest,
        **counted(contents),
        "accesses": len(contents.accesses),
        "items": rows[:limit],
        "total": len(rows),
    }
    columns = ("case", "intent", "status", "state", "kind", "calls", "disputed", "last_message")
    text: list[Block] = [Fields([("suite", contents.suite.name), *_counts(data)]), Table(columns, rows[:limit])]
    if len(rows) > limit:
        text.append(f"{len(rows) - limit} more: --limit {len(rows)}")
    return Result(data=data, text=text)


def _case_row(case: Any, settled: Any, contents: "Contents") -> dict[str, Any]:
    from playhead.core.protocol.shape import obj
    from playhead.core.suites.labels import options_of

    label = settled.label
    calls = [call.tool for option in options_of(label) for call in option.calls] if label is not None else []
    last: Any = case.history[-1] if case.history else None
    said: Any = (
        "" if last is None else last.content if isinstance(last.content, str) else obj(last.outcome).get("value")
    )
    return {
        "case": case.id,
        "intent": case.intent,
        "status": case.status,
        "state": settled.state,
        "kind": None if label is None else label.kind,
        "calls": ", ".join(calls) or None,
        "disputed": "yes" if settled.disputed and settled.decided is None else None,
        "last_message": shortened(str(said or ""), 60),
    }


def _one(contents: "Contents", id: str, found: dict[str, Any]) -> Result:
    from playhead.core.suites.suite import case_digest, case_json

    case = next((c for c in contents.cases if c.id == id), None)
    if case is None:
        raise UsageError(f"the suite has no case {id!r}", hint="playhead suite show lists them")
    if case.slice == "held_back":
        raise UsageError(f"case {id} is held back", hint="read it with playhead suite export --reason TEXT")
    data = case_json(case)
    log = [shown.members(entry) for entry in contents.labels if entry.case == id]
    data |= {"state": found[id].state, "digest": case_digest(case, contents.tools), "label_log": log}
    return Result(data=data, text=[json.dumps(data, ensure_ascii=False, indent=1)])


def export(suite: str, folder: str, /, *, context: Ctx, reason: str | None = None, replace: bool = False) -> Result:
    """Write a suite to a folder that is fit for git.

    Cases that are held back stand in a file of their own; without --reason they are left out.

    Args:
        suite: Name of a suite, or its folder.
        folder: Where to write it.
        reason: Why what is held back is read; it goes to the access log.
        replace: Replace the suite that the folder holds.
    """
    from dataclasses import replace as changed

    from playhead.engine.suites.folder import is_suite_folder, write_folder
    from playhead.engine.suites.location import note_access

    home = home_of(context, suite)
    contents = home.contents()
    if is_suite_folder(Path(folder)) and not replace:
        raise ConflictError(f"{folder} holds a suite", hint="--replace writes over it")
    left_out = 0
    if reason is None:
        held = {case.id for case in contents.cases if case.slice == "held_back"}
        left_out = len(held)
        contents = changed(
            contents,
            cases=tuple(case for case in contents.cases if case.id not in held),
            labels=tuple(entry for entry in contents.labels if entry.case not in held),
        )
    else:
        note_access(home, contents, who=whoever(), command="suite export", reason=reason)
        contents = home.contents()
    write_folder(contents, Path(folder), _redact(context))
    data = {"folder": folder, "cases": len(contents.cases), "held_back_left_out": left_out}
    text = [f"wrote {len(contents.cases)} cases to {folder}"]
    if left_out:
        text.append(f"{left_out} held-back cases were left out; --reason TEXT writes them too")
    return Result(data=data, text=text)
