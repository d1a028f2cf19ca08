"""``playhead fixtures rekey | prune | diff``: a plan first, and ``--yes`` to carry it out."""

import fnmatch
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.fixtures import existing_folder
from playhead.cli.output import Block, Fields, Result, Table
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from playhead.core.fixtures.file import Fixture
    from playhead.engine.fixtures.diff import Place
    from playhead.engine.fixtures.rekey import Rekeyed
    from playhead.store.fixtures import FixtureFolder


def rekey(
    *files: str, context: Ctx, dir: str | None = None, set: str | None = None, yes: bool = False
) -> Result:  # fmt: skip
    """Make keys again from the arguments that fixtures hold.

    After arguments were edited on purpose, or when a release makes keys in another way. Without --yes the plan is
    printed and nothing is written. Exit code 1 when a file cannot be given a key: record it again.

    Args:
        files: Files, by path or name; left out, all whose key is another.
        dir: The fixture folder, if not the project's.
        set: Only this set; an empty name is the shared set.
        yes: Write the files.
    """
    from playhead.engine.fixtures.rekey import plan_rekey

    folder = existing_folder(context, dir)
    names = folder.sets() if set is None else [set]
    paths = [path for name in names for path in folder.files(name)]
    if files:
        paths = [path for file in files for path in _named(file, paths)]
    secrets = context.project.settings.secrets
    plan = plan_rekey(
        folder, paths, context.project.redactor(),
        lambda name: any(fnmatch.fnmatchcase(name, each) for each in secrets),
    )  # fmt: skip
    if yes:
        plan.apply(folder)
    rows = [{"set": each.set_name, "file": each.file, "becomes": each.fixture.name if each.fixture else None}
            for each in plan.changes]  # fmt: skip
    left: list[dict[str, Any]] = [_left(each, folder) for each in plan.impossible]
    text: list[Block] = [Table(("set", "file", "becomes"), rows, empty="every key fits its arguments")]
    if left:
        text.append(Table(("set", "file", "why", "record"), left))
    if rows:
        text.append(Fields([("fixtures", _done("written", folder, yes))]))
    return Result(
        data={"folder": str(folder.root), "written": yes, "changes": rows, "impossible": left},
        text=text,
        exit_code=1 if left else 0,
    )


def _left(each: "Rekeyed", folder: "FixtureFolder") -> dict[str, Any]:
    command = folder.report(each.set_name).get("command")
    return {"set": each.set_name, "file": each.file, "why": each.reason, "record": command}


def _named(file: str, paths: list[Path]) -> list[Path]:
    path = Path(file)
    below = f"/{path.as_posix()}"
    found = [each for each in paths if each == path.absolute() or (not path.exists() and str(each).endswith(below))]
    if not found:
        raise NotFoundError(f"no fixture {file!r} in the folder", hint="playhead fixtures list")
    return found


def _done(what: str, folder: "FixtureFolder", yes: bool) -> str:
    return f"{what} in {folder.root}" if yes else f"nothing is {what} yet; --yes does it in {folder.root}"


def prune(*, context: Ctx, dir: str | None = None, no_import: bool = False, yes: bool = False) -> Result:
    """Remove fixtures that nothing needs any more.

    Sets of tests that are gone, files of ops that are gone (by the modules in fixtures.ops of the settings), empty
    sets, bodies of no fixture, and what failed runs left for inspection an hour ago or more. Without --yes the plan is
    printed and nothing is removed.

    Args:
        dir: The fixture folder, if not the project's.
        no_import: Import no ops; then no file goes for its op.
        yes: Remove them.
    """
    from playhead.engine.fixtures.project_ops import load_ops, op_modules
    from playhead.engine.fixtures.prune import plan_prune
    from playhead.engine.fixtures.prune import prune as carry_out

    folder = existing_folder(context, dir)
    modules = () if no_import else op_modules(context.project)
    plan = plan_prune(
        folder, project=context.project.root, now=SYSTEM_CLOCK.now() / 1e9,
        ops=load_ops(context.project, modules) if modules else None,
    )  # fmt: skip
    if yes:
        carry_out(folder, plan)
    rows = [{"kind": each.kind, "path": str(each.path.relative_to(folder.root)), "why": each.reason} for each in plan]
    text: list[Block] = [Table(("kind", "path", "why"), rows, empty="nothing to remove")]
    if rows:
        text.append(Fields([("fixtures", _done("removed", folder, yes))]))
    return Result(data={"folder": str(folder.root), "removed": yes, "items": rows}, text=text)


def diff(
    before: str | None = None, after: str | None = None, /, *, context: Ctx, dir: str | None = None,
    git: str | None = None, all: bool = False,
) -> Result:  # fmt: skip
    """Compare recordings: what they answer now and before.

    Two folders, two sets, or two files; or the fixture folder with what git has of it. Recordings are the same call
    when set, key and occurrence are; when they were recorded does not count. Exit code 1 when anything differs.

    Args:
        before: A folder, a set or a file; left out, the fixture folder at --git.
        after: What it is compared with; left out, the fixture folder as it is, or the shared set for a set.
        dir: The fixture folder, if not the project's.
        git: The revision to compare with, when nothing else is named; HEAD when left out.
        all: Show what is the same too.
    """
    from playhead.engine.fixtures import diff as fixture_diff
    from playhead.engine.fixtures.scope import folder_of

    folder = folder_of(context.project, dir)
    if git is not None and before is not None:
        raise UsageError("--git compares the whole folder: name nothing beside it")
    old = fixture_diff.of_revision(git or "HEAD", folder) if before is None else _side(before, folder)
    new = _side(after, folder) if after is not None else _side("" if _is_set(before, folder) else folder.root, folder)
    found = fixture_diff.diff(old, new)
    differing = [each for each in found if each.status != "same"]
    rows: list[dict[str, Any]] = [
        {
            "status": each.status, "set": each.set_name, "tool": each.tool, "occurrence": each.occurrence,
            "file": each.file, "args": each.args,
            "differences": [{"pointer": d.pointer, "before": shown.brief(d.left), "after": shown.brief(d.right)}
                            for d in each.differences],
        }
        for each in (found if all else differing)
    ]  # fmt: skip
    rows = context.project.redactor().redact(rows).value  # files may have been edited by hand
    counts = {
        status: sum(1 for each in found if each.status == status) for status in ("same", "changed", "new", "gone")
    }
    table = [{**row, "args": shown.brief(row["args"]), "differs": _places(row["differences"])} for row in rows]
    text: list[Block] = [
        Table(("status", "set", "tool", "occurrence", "args", "differs"), table, empty="no difference"),
        Fields([("fixtures", ", ".join(f"{count} {status}" for status, count in counts.items()))]),
    ]
    return Result(data={"counts": counts, "items": rows}, text=text, exit_code=1 if differing else 0)


def _places(found: list[dict[str, Any]]) -> str:
    return "; ".join(f"{each['pointer'] or '(all)'}: {each['before']} -> {each['after']}" for each in found)


def _is_set(text: str | None, folder: "FixtureFolder") -> bool:
    return text is not None and not Path(text).exists() and text in folder.sets()


def _side(said: "str | os.PathLike[str]", folder: "FixtureFolder") -> "dict[Place, Fixture]":
    """A folder, a set of the fixture folder (an empty name is the shared one) or a file.

    Raises:
        NotFoundError: it is none of these.
    """
    from playhead.engine.fixtures import diff as fixture_diff
    from playhead.store.fixtures import FixtureFolder

    path = Path(said)
    if said == "" or (isinstance(said, str) and _is_set(said, folder)):
        return fixture_diff.of_folder(folder, str(said))
    if path.is_file():
        return fixture_diff.of_file(path)
    if path.is_dir():
        return fixture_diff.of_folder(FixtureFolder(path.absolute()))
    raise NotFoundError(f"there is no folder, set or file {str(said)!r}", hint="playhead fixtures list")
