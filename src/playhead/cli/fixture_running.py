"""``playhead fixtures run | check``."""

import os
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table, plain
from playhead.cli.run import INTERRUPTED
from playhead.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from playhead.core.fixtures.modes import Mode
    from playhead.engine.fixtures.command import Ended

_START = Path(__file__).parent / "fixture_start"
_SHOWN = ("refused", "not_recorded", "changed", "new", "gone")


@dataclass(frozen=True, kw_only=True)
class Way:
    """How the command is run.

    Args:
        set: The set; left out, PLAYHEAD_SET, else the shared set.
        dir: The fixture folder, if not the project's.
        http: Requests too, from the command's start on; in Python programs.
        host: Only requests to this host; may be given several times.
        effects: The most that may run for real.
        save: Put in use what a run recorded that failed, and mark the set as incomplete.
        allow_live: Run for real without asking.
        allow_empty: A replay in which nothing is asked for is fine.
        strict: Recordings that nothing asked for, and outdated ones, fail the run.
    """

    set: str | None = None
    dir: str | None = None
    http: bool = False
    host: tuple[str, ...] = ()
    effects: Literal["read", "write", "destructive"] | None = None
    save: Literal["success", "always"] = "success"
    allow_live: bool = False
    allow_empty: bool = False
    strict: bool = False


_Flat = Parameter(name="*")


def run(
    *command: str, context: Ctx, mode: str | None = None, way: Annotated[Way, _Flat] = Way()
) -> Result:  # fmt: skip
    """Run a command whose ops and requests are recorded, or served.

    Ops of the command's Python processes are at the fixtures without a change in the code, requests with --http or
    --host; a block with playhead.fixtures() and a test keep their own set. What was recorded is put in use when the
    command has succeeded. Exit code 1 when the command failed, a call had no recording, or a check found a difference.

    Args:
        command: The command and its arguments, after --.
        mode: live, record, replay, auto or check; left out, PLAYHEAD_MODE, else the setting.
    """
    from playhead.engine.fixtures.scope import chosen_mode

    return _run(command, context, chosen_mode(mode, context.project, os.environ), way)


def check(*command: str, context: Ctx, way: Annotated[Way, _Flat] = Way()) -> Result:
    """Run a command and compare what the world says now with its fixtures.

    What only reads runs for real, the rest is served; nothing is written. Exit code 1 when an answer has changed or was
    never recorded.

    Args:
        command: The command and its arguments, after --.
    """
    return _run(command, context, "check", way)


def _run(words: tuple[str, ...], context: Context, mode: "Mode", way: Way) -> Result:
    from playhead.engine.fixtures.command import Command, run_command
    from playhead.engine.fixtures.report import RunOptions
    from playhead.engine.fixtures.scope import folder_of

    if not words:
        raise UsageError("no command was given", hint="playhead fixtures run --mode record -- python app.py")
    if mode != "replay":
        _allow_live(mode, way, context)
    folder = folder_of(context.project, way.dir)
    set_name = os.environ.get("PLAYHEAD_SET", "") if way.set is None else way.set
    options = RunOptions(
        http=way.host if way.http or way.host else None, effects=way.effects, save=way.save, strict=way.strict,
        command=_recording(words, way),
    )  # fmt: skip
    ended = run_command(
        Command(
            words=words, mode=mode, folder=folder, set_name=set_name, options=options, allow_empty=way.allow_empty,
            start=_START,
        ),
        output_to_stderr=context.mode != "text",
    )  # fmt: skip
    return _result(ended, mode, str(folder.place(set_name)))


def _recording(words: tuple[str, ...], way: Way) -> str:
    """The command that records what is missing."""
    options = ["--http"] if way.http else []
    options += [f"--host {shlex.quote(host)}" for host in way.host]
    options += [f"--set {shlex.quote(way.set)}"] if way.set else []
    options += [f"--dir {shlex.quote(str(way.dir))}"] if way.dir else []
    return " ".join(["playhead fixtures run --mode record", *options, "--", shlex.join(words)])


def _allow_live(mode: "Mode", way: Way, context: Context) -> None:
    """Says what will run for real; asks a person, refuses where nobody can be asked."""
    from playhead.core.fixtures.modes import most_effect

    what = "everything" if mode == "live" else f"ops and requests that {most_effect(mode, way.effects)}"
    context.note(f"mode {mode} runs {what} for real")
    if way.allow_live:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise RefusedError(
            f"mode {mode} runs {what} for real, and nobody can be asked",
            hint="add --allow-live when that is safe; --mode replay runs nothing for real",
        )
    sys.stderr.write(plain("go on? [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise RefusedError("nothing was run")


def _result(ended: "Ended", mode: str, place: str) -> Result:
    rows: list[dict[str, Any]] = [asdict(row) for row in ended.rows]
    data: dict[str, Any] = {
        "mode": mode, "folder": place, "command_exit": ended.exit_code, "runs": len(ended.reports),
        "counts": ended.counts, "recorded": ended.recorded, "reasons": ended.reasons, "leftovers": ended.leftovers,
        "rows": rows,
    }  # fmt: skip
    said = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(ended.counts.items()))
    shown = [{**row, "note": row["note"] or ", ".join(row["pointers"])} for row in rows if row["status"] in _SHOWN]
    text: list[Block] = [
        Fields([
            ("fixtures", f"{mode}, {place}"), ("calls", said or "none"), ("put in use", ended.recorded or None),
            ("leftovers", ", ".join(ended.leftovers) or None),
        ]),
    ]  # fmt: skip
    if shown:
        text.append(Table(("status", "tool", "file", "note"), shown))
    if ended.reasons:
        text.append("\n".join(["failed:", *(f"  {reason}" for reason in ended.reasons)]))
    code = INTERRUPTED if ended.interrupted else int(bool(ended.reasons))
    return Result(data=data, text=text, exit_code=code)
