"""``playhead fixtures import | list | show``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Fields, Result, Table
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.errors import FixtureFormatError, NotFoundError, UsageError

if TYPE_CHECKING:
    from playhead.engine.fixtures.imported import ImportPlan
    from playhead.store.fixtures import FixtureFolder

_CASSETTES = (".yaml", ".yml", ".json")
_MOST_SHOWN = 10_000


def import_cassettes(
    *cassettes: str,
    context: Ctx,
    dir: str | None = None,
    set: str | None = None,
    host: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    match_header: tuple[str, ...] = (),
    keep_header: tuple[str, ...] = (),
    sort_query: bool = False,
    yes: bool = False,
) -> Result:
    """Make HTTP fixtures of cassettes of vcrpy and its family.

    Cassettes of vcrpy, pytest-recording, betamax and VCR for Ruby are read.
    Without --yes the plan is printed and nothing is written. A cassette becomes a set of its name; below a folder, of
    its path there. Give the options with which the fixtures will be used: they are part of the keys.

    Args:
        cassettes: Files, or folders with files that end in .yaml, .yml or .json.
        dir: The fixture folder, if not the project's.
        set: One set for all of them.
        host: Only requests to this host; may be given several times.
        ignore: JSON pointer that does not count in requests, such as /body/json/ts or /url/query/nonce.
        match_header: Request header that counts.
        keep_header: Response header to store beside the usual ones.
        sort_query: The order of the query does not count.
        yes: Write the fixtures.
    """
    from playhead.core.http.request import HttpRules
    from playhead.engine.fixtures.imported import plan_import
    from playhead.engine.fixtures.scope import folder_of
    from playhead.importers.vcr import read_cassette

    rules = HttpRules(
        hosts=host or None, ignore=ignore, match_headers=match_header, keep_headers=keep_header, sort_query=sort_query
    )
    folder = folder_of(context.project, dir)
    found = _sets(cassettes, set)
    redactor = context.project.redactor()
    now = SYSTEM_CLOCK.now()
    plans = [plan_import(str(path), name, read_cassette(path), rules, redactor, now=now) for path, name in found]
    clashing = [name for name in {plan.set_name for plan in plans} if [p.set_name for p in plans].count(name) > 1]
    if clashing and set is None:
        raise UsageError(f"several cassettes are named {clashing[0]!r}", hint="name their folder, or one --set")
    if yes:
        for plan in _merged(plans):
            folder.place(plan.set_name)
            plan.write(folder, SYSTEM_IDS())
    return _imported(plans, folder, written=yes)


def _sets(cassettes: tuple[str, ...], set_name: str | None) -> list[tuple[Path, str]]:
    """Each cassette and the set that it becomes."""
    if not cassettes:
        raise UsageError("no cassette was named", hint="playhead fixtures import tests/cassettes")
    found: list[tuple[Path, str]] = []
    for text in cassettes:
        path = Path(text)
        if path.is_dir():
            below = sorted(each for each in path.rglob("*") if each.suffix in _CASSETTES and each.is_file())
            found += [(each, _set_of(each.relative_to(path))) for each in below]
        else:
            found.append((path, _set_of(Path(path.name))))
    return found if set_name is None else [(path, set_name) for path, _ in found]


def _set_of(path: Path) -> str:
    from playhead.store.fixtures import set_part

    parts = [*path.parent.parts, path.name.removesuffix(path.suffix)]
    return "/".join(map(set_part, parts))


def _merged(plans: "list[ImportPlan]") -> "list[ImportPlan]":
    """One plan per set: what is written later would replace what is equal and was written before."""
    sets: dict[str, ImportPlan] = {}
    for plan in plans:
        first = sets.setdefault(plan.set_name, plan)
        if first is not plan:
            first.fixtures.extend(plan.fixtures)
            first.skipped.extend(plan.skipped)
    return list(sets.values())


def _imported(plans: "list[ImportPlan]", folder: "FixtureFolder", *, written: bool) -> Result:
    rows: list[dict[str, Any]] = [
        {"cassette": plan.cassette, "set": plan.set_name, "fixtures": len(plan.fixtures), "skipped": plan.skipped}
        for plan in plans
    ]
    shown_rows = [{**row, "skipped": len(row["skipped"])} for row in rows]
    done = f"written to {folder.root}" if written else f"nothing is written yet; --yes writes them to {folder.root}"
    notes = [Table(("request", "why"), [{"request": s["tool"], "why": s["reason"]} for row in rows
                                        for s in row["skipped"]])]  # fmt: skip
    return Result(
        data={"folder": str(folder.root), "written": written, "cassettes": rows},
        text=[
            Table(("cassette", "set", "fixtures", "skipped"), shown_rows, empty="no cassettes there"),
            *(notes if any(row["skipped"] for row in rows) else []),
            Fields([("fixtures", done)]),
        ],
        exit_code=1 if any(row["skipped"] for row in rows) else 0,
    )


def list_fixtures(*, context: Ctx, dir: str | None = None, set: str | None = None) -> Result:
    """List fixtures, set by set.

    Args:
        dir: The fixture folder, if not the project's.
        set: Only this set; an empty name is the shared set.
    """
    folder = existing_folder(context, dir)
    rows: list[dict[str, Any]] = []
    for name in folder.sets() if set is None else [set]:
        for path in folder.files(name):
            row: dict[str, Any] = {"set": name, "file": path.name, "tool": None, "status": None, "at": None}
            try:
                fixture = folder.read(path)
            except FixtureFormatError as error:
                rows.append({**row, "problem": error.message})
                continue
            value: Any = fixture.outcome.get("value")
            row |= {
                "tool": fixture.tool,
                "occurrence": fixture.occurrence,
                "status": value["status"] if fixture.kind == "http" and value else None,
                "at": fixture.recorded.get("at"),
                "problem": None,
            }
            rows.append(row)
    columns = ("set", "tool", "occurrence", "status", "at", "file", "problem")
    bad = any(row["problem"] for row in rows)
    return Result(
        data=rows, items=True, text=[Table(columns, rows, empty="no fixtures there")], exit_code=1 if bad else 0
    )


def show_fixture(file: str, /, *, context: Ctx, dir: str | None = None) -> Result:
    """Show one fixture: what was asked, what came, when it was recorded.

    Args:
        file: Path of the file, or its name, with the set where several have it.
        dir: The fixture folder, if not the project's.
    """
    folder = existing_folder(context, dir)
    path = Path(file)
    if not path.exists():
        all_files = [each for name in folder.sets() for each in folder.files(name)]
        found = [each for each in all_files if each.as_posix().endswith(f"/{path.as_posix()}")]
        if not found:
            raise NotFoundError(f"no fixture {file!r} in {folder.root}", hint="playhead fixtures list")
        if len(found) > 1:
            raise UsageError(f"{file!r} is in several sets", hint=f"give a path: {', '.join(map(str, found[:3]))}")
        path = found[0]
    fixture = folder.read(path)
    below = path.absolute().parent
    set_name = "/".join(below.relative_to(folder.root).parts) if below.is_relative_to(folder.root) else ""
    outcome = fixture.outcome
    if "body" in outcome:
        outcome = {"kind": "value", "value": folder.value(fixture, set_name)}
    held: dict[str, Any] = {
        "file": str(path), "kind": fixture.kind, "tool": fixture.tool, "key": fixture.key, "args": fixture.args,
        "occurrence": fixture.occurrence, "redacted": list(fixture.redacted), "recorded": fixture.recorded,
        "outcome": outcome,
    }  # fmt: skip
    data: dict[str, Any] = context.project.redactor().redact(held).value  # a file may have been edited by hand
    pairs: list[tuple[str, object]] = [
        (name, value if isinstance(value, str) else shown.brief(value)) for name, value in data.items()
        if name not in ("args", "outcome")
    ]  # fmt: skip
    return Result(data=data, text=[Fields(pairs), _whole("args", data["args"]), _whole("outcome", data["outcome"])])


def _whole(name: str, value: Any) -> str:
    """A value as the file has it."""
    text = json.dumps(value, indent=2, sort_keys=True)
    more = f"\n… {len(text) - _MOST_SHOWN:,} characters more: --output json" if len(text) > _MOST_SHOWN else ""
    return f"{name}: {text[:_MOST_SHOWN]}{more}"


def existing_folder(context: Context, directory: str | None) -> "FixtureFolder":
    """The fixture folder.

    Raises:
        NotFoundError: there is none.
    """
    from playhead.engine.fixtures.scope import folder_of

    folder = folder_of(context.project, directory)
    if not folder.root.is_dir():
        raise NotFoundError(f"there is no fixture folder {folder.root}", hint="record with playhead.fixtures('record')")
    return folder
