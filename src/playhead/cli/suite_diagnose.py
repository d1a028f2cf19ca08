"""``playhead suite diagnose``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli import shown
from playhead.cli.context import Ctx
from playhead.cli.output import Block, Result
from playhead.cli.suites import home_of
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.proposals import Proposal
    from playhead.core.suites.contents import Contents


def diagnose(
    suite: str,
    /,
    *,
    context: Ctx,
    model: str,
    run: str | None = None,
    into: Path | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
) -> Result:
    """Have a model propose changes of a suite's tools, as diffs.

    It sees the tools, what the lint says, and how tuning cases failed; nothing that is held back. Nothing is applied:
    playhead suite run --interface FILE tries the proposals beside the tools as they are. Exit code 1 when no proposal
    can be used.

    Args:
        suite: Name of a suite, or its folder.
        model: Model that proposes, as provider:name, or its bare name with --base-url.
        run: Run whose failures are shown: id, last, last~1, or a file; without one only the tools are.
        into: Write the proposals to this file, for suite run --interface.
        base_url: Address of an OpenAI-compatible gateway.
        key_env: Environment variable with its key.
    """
    import json

    from playhead.core.proposals import interface_json
    from playhead.engine.exports import written_whole
    from playhead.engine.model_access import LayerAccess
    from playhead.engine.suites.diagnose import diagnose as ask
    from playhead.engine.suites.releases import read_run

    contents = home_of(context, suite).contents()
    summary = None
    if run is not None:
        summary = read_run(run, lambda: context.store, releases=context.project.folder / "releases")
    access = LayerAccess(name=model, base_url=base_url, key_env=key_env)
    access.check()
    found = ask(contents, summary, access)
    if into is not None and found.proposals:
        with written_whole(str(into)) as file:
            file.write(json.dumps(interface_json(found.proposals), indent=1, ensure_ascii=True).encode() + b"\n")
    rows = [_row(one, contents) for one in found.proposals]
    data = {"proposals": rows, "refused": list(found.refused), "into": str(into) if into and rows else None}
    text: list[Block] = [block for row in rows for block in _blocks(row)]
    text += [f"not usable: {why}" for why in found.refused]
    if into is not None and rows:
        text.append(
            f"tried beside the tools as they are by: playhead suite run {suite} --interface {into} --model MODEL"
        )
    return Result(
        data=data, text=text or ["the model proposes nothing"], exit_code=0 if rows or not found.refused else 1
    )


def _row(one: "Proposal", contents: "Contents") -> dict[str, Any]:
    from playhead.core.proposals import interface_json, proposed_contents

    held = interface_json([one])
    before = {str(finding) for findings in contents.findings().values() for finding in findings}
    after = proposed_contents(contents, {"tools": held["tools"], "renamed": held["renamed"]}).findings()
    new = sorted({str(finding) for findings in after.values() for finding in findings} - before)
    return {
        "tool": one.before.name, "why": one.why, "changes": [shown.members(change) for change in one.changes],
        "diff": one.diff, "label_findings": new,
    }  # fmt: skip


def _blocks(row: dict[str, Any]) -> list[Block]:
    warned = [f"labels: {finding}" for finding in row["label_findings"][:5]]
    return [f"{row['tool']}: {row['why']}", row["diff"], *warned, ""]


def read_interface(path: Path, contents: "Contents") -> dict[str, Any]:
    """The proposals of a file, as a run keeps them.

    Raises:
        UsageError: the file cannot be read, or cannot be tried on this suite.
    """
    import json

    from playhead.core.proposals import check_interface

    try:
        return check_interface(json.loads(path.read_bytes()), contents)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--interface {str(path)!r}: {error}", hint="playhead suite diagnose --into FILE writes one"
        ) from None
