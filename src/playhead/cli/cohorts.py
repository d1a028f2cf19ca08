"""``playhead cohort create | change | freeze | list | show``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.filters import EVERYTHING, FilterOptions
from playhead.cli.output import Fields, Result, Table
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.cohorts import Cohort
    from playhead.engine.cohorts import CohortClient

_COLUMNS = ("cohort", "sessions", "made", "from")


def create(
    name: str,
    /,
    *,
    context: Ctx,
    chosen: FilterOptions = EVERYTHING,
    session: tuple[str, ...] = (),
    from_file: Path | None = None,
    sample: int | None = None,
    seed: str = "0",
    by: str | None = None,
) -> Result:
    """Name a population of sessions, from a query or a list.

    Without --origin a query takes live and imported sessions. A cohort of that name gets a new version, unless its
    newest one has the same members.

    Args:
        name: Name of the cohort.
        session: Exactly this session: id, shortened id, last or last~N; may be given several times.
        from_file: Exactly the sessions whose ids stand in this file, one a line; - is standard input.
        sample: Keep only so many of them.
        seed: Another seed draws another sample.
        by: Draw from each value of this in proportion: agent, origin, tag, or a metadata member such as intent.
    """
    from playhead.engine.cohorts import Sampling

    listed = [*session, *(_lines(from_file) if from_file is not None else ())]
    if listed and chosen.is_given:
        raise UsageError("filters and a list of sessions are given at once", hint="keep one of them")
    if (by is not None or seed != "0") and sample is None:
        raise UsageError("--seed and --by are about a sample", hint="say how many: --sample 50")
    if from_file is not None and not listed:
        raise UsageError(f"--from-file: {str(from_file)!r} holds no session id")
    made = _client(context).create(
        name,
        query=None if listed else chosen.query(context.store),
        sessions=listed,
        sampling=None if sample is None else Sampling(size=sample, seed=seed, by=by),
    )
    return _shown(made)


def freeze(name: str, /, *, context: Ctx) -> Result:
    """Ask a cohort's query again and freeze a new version.

    Args:
        name: Name of a cohort that was made from a query.
    """
    from playhead.engine.cohorts import Sampling, asked

    client = _client(context)
    newest = client.find(name)
    with_query = next((c for c in reversed(client.versions(newest.name)) if "query" in c.source), None)
    if with_query is None:
        raise UsageError(f"cohort {newest.name!r} was made from a list", hint="playhead cohort change adds to it")
    sample: dict[str, Any] | None = with_query.source.get("sample")
    made = client.create(
        newest.name,
        query=asked(with_query.source["query"]),
        sampling=None if sample is None else Sampling(**sample),
    )
    return _shown(made)


def change(cohort: str, /, *, context: Ctx, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> Result:
    """Make a new version of a cohort with sessions added or removed.

    Args:
        cohort: NAME or NAME@VERSION to start from.
        add: Session to add; may be given several times.
        remove: Session to leave out; may be given several times.
    """
    if not add and not remove:
        raise UsageError("nothing to change was named", hint="--add SESSION or --remove SESSION")
    return _shown(_client(context).change(cohort, add=add, remove=remove))


def list_cohorts(*, context: Ctx) -> Result:
    """List cohorts and their newest version."""
    found = _client(context).list()
    return Result(
        data=[_members(cohort) for cohort in found],
        items=True,
        text=[Table(_COLUMNS, [_row(c) for c in found], empty="no cohorts; playhead cohort create makes one")],
    )


def show(cohort: str, /, *, context: Ctx) -> Result:
    """Show what a cohort holds.

    Size, agents, intents, tools, time range, age, and which sessions cannot be replayed.

    Args:
        cohort: NAME or NAME@VERSION.
    """
    from playhead.engine.clock import SYSTEM_CLOCK

    client = _client(context)
    held = client.summary(client.find(cohort))
    data = {**_members(held.cohort), **{k: v for k, v in shown.members(held).items() if k != "cohort"}}
    newest = None if held.last is None else shown.lasted(held.last, SYSTEM_CLOCK.now())
    pairs = [
        *_row(held.cohort).items(),
        ("agents", _counts(held.agents)),
        ("statuses", _counts(held.statuses)),
        ("intents", _counts(held.intents)),
        ("tools", _counts(held.tools)),
        ("recorded", None if held.first is None else f"{shown.when(held.first)} to {shown.when(held.last)}"),
        ("newest is", None if newest is None else f"{newest} old"),
        ("erased", "\n".join(held.erased) or None),
        ("not replayable", "\n".join(f"{id}: {why}" for id, why in held.not_replayable.items()) or None),
    ]
    return Result(data=data, text=[Fields(pairs)])


def _client(context: Context) -> "CohortClient":
    from playhead.engine.cohorts import CohortClient

    return CohortClient(context.store)


def _lines(path: Path) -> list[str]:
    import sys

    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--from-file: {str(path)!r} cannot be read: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _shown(cohort: "Cohort") -> Result:
    return Result(data=_members(cohort), text=[Fields(list(_row(cohort).items()))])


def _members(cohort: "Cohort") -> dict[str, Any]:
    return {"ref": cohort.ref, **shown.members(cohort)}


def _row(cohort: "Cohort") -> dict[str, object]:
    source = {**cohort.source}
    if "sessions" in source:
        source["sessions"] = len(source["sessions"])
    return {
        "cohort": cohort.ref,
        "sessions": len(cohort.members),
        "made": shown.when(cohort.created_at),
        "from": shown.brief(source, 100),
    }


def _counts(counts: dict[str, int]) -> str | None:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or None
