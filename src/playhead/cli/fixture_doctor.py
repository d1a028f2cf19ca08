"""``playhead fixtures doctor``."""

from dataclasses import asdict

from playhead.cli.context import Context, Ctx
from playhead.cli.output import Result, Table
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import UsageError


def doctor(
    *, context: Ctx, dir: str | None = None, set: str | None = None, strict: bool = False, max_age: str | None = None,
    no_import: bool = False,
) -> Result:  # fmt: skip
    """Look for damaged, incomplete, old and unsafe fixtures.

    Reads only. The modules in fixtures.ops of the settings are imported, without network, to see whether the recordings
    fit their ops. Exit code 1 when a check fails, with --strict also when one warns; 3 when the folder cannot be read
    or a module cannot be imported.

    Args:
        dir: The fixture folder, if not the project's.
        set: Only this set; an empty name is the shared set.
        strict: Warnings count as failures.
        max_age: Warn about recordings that are older, such as 90d.
        no_import: Look at the files alone.
    """
    from playhead.engine.fixtures.doctor import examine
    from playhead.engine.fixtures.file_checks import Looking
    from playhead.engine.fixtures.project_ops import load_ops, op_modules
    from playhead.engine.fixtures.scope import folder_of

    days = None if max_age is None else max_age.removesuffix("d")
    if days is not None and not days.isdigit():
        raise UsageError(f"max-age is {max_age!r}", hint="a number of days, such as 90d")
    modules = op_modules(context.project)
    looking = Looking(
        redactor=context.project.redactor(),
        now=SYSTEM_CLOCK.now() / 1e9,
        max_age_days=None if days is None else int(days),
        configured=context.project.settings.secrets,
        ops=load_ops(context.project, modules) if modules and not no_import else None,
    )
    sets = None if set is None else [set]
    found = examine(folder_of(context.project, dir), sets, looking, project=context.project.root)
    bad = {"fail", "warn"} if strict else {"fail"}
    rows = [asdict(each) for each in found]
    return Result(
        data=rows,
        items=True,
        text=[Table(("level", "check", "subject", "message", "fix"), rows)],
        exit_code=1 if any(each.level in bad for each in found) else 0,
    )


def summary(context: Context) -> tuple[int, int, int]:
    """Of the project's fixtures, without importing anything: files, failures, warnings."""
    from playhead.engine.fixtures.doctor import examine
    from playhead.engine.fixtures.file_checks import Looking
    from playhead.engine.fixtures.scope import folder_of

    folder = folder_of(context.project)
    if not folder.root.exists():
        return 0, 0, 0
    looking = Looking(
        redactor=context.project.redactor(), now=SYSTEM_CLOCK.now() / 1e9, configured=context.project.settings.secrets
    )
    levels = [each.level for each in examine(folder, None, looking, project=context.project.root)]
    count = sum(1 for name in folder.sets() for _ in folder.files(name))
    return count, levels.count("fail"), levels.count("warn")
