"""``playhead fixtures doctor``."""

from dataclasses import asdict

from playhead.cli.context import Ctx
from playhead.cli.fixtures import all_sets
from playhead.cli.output import Result, Table
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import UsageError


def doctor(
    *, context: Ctx, dir: str | None = None, set: str | None = None, strict: bool = False, max_age: str | None = None
) -> Result:
    """Look for damaged, incomplete, old and unsafe fixtures.

    Reads only. Exit code 1 when a check fails; with --strict also when one warns.

    Args:
        dir: The fixture folder, if not the project's.
        set: Only this set; an empty name is the shared set.
        strict: Warnings count as failures.
        max_age: Warn about recordings that are older, such as 90d.
    """
    from playhead.engine.fixture_doctor import FixtureCheck, examine
    from playhead.engine.fixture_scope import folder_of

    days = None if max_age is None else max_age.removesuffix("d")
    if days is not None and not days.isdigit():
        raise UsageError(f"max-age is {max_age!r}", hint="a number of days, such as 90d")
    folder = folder_of(context.project, dir)
    sets = sorted(all_sets(folder)) if set is None else [set]
    found = examine(
        folder, sets, context.project.redactor(), now=SYSTEM_CLOCK.now() / 1e9,
        max_age_days=None if days is None else int(days),
    )  # fmt: skip
    if not found:
        message, fix = f"no fixtures in {folder.root}", "record with playhead.fixtures('record')"
        found = [FixtureCheck(check="set.missing", level="fail", subject=str(folder.root), message=message, fix=fix)]
    bad = {"fail", "warn"} if strict else {"fail"}
    rows = [asdict(each) for each in found]
    return Result(
        data=rows,
        items=True,
        text=[Table(("level", "check", "subject", "message", "fix"), rows)],
        exit_code=1 if any(each.level in bad for each in found) else 0,
    )
