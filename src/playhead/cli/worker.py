"""``playhead worker start``."""

import signal
from types import FrameType
from typing import TYPE_CHECKING

from playhead.cli.context import Context, Ctx
from playhead.cli.jobs import line
from playhead.cli.output import Result
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.engine.worker import Worker


def start(
    *,
    context: Ctx,
    concurrency: int = 0,
    agent: tuple[str, ...] = (),
    label: tuple[str, ...] = (),
    drain: bool = False,
    lease: float = 15.0,
    cold: bool = False,
) -> Result:
    """Run jobs of this store until it is stopped.

    SIGTERM or Ctrl-C lets what runs come to its end and then stops; a second one gives it back, for another worker to
    start again.

    Args:
        concurrency: Tasks at a time; 0 means one for each processor.
        agent: Run only this agent, NAME or NAME@NUMBER; may be given several times.
        label: What this worker offers to tasks that ask for it; may be given several times.
        drain: Stop when nothing is left to run.
        lease: Seconds that this worker may be silent before others take its tasks.
        cold: Start a fresh process for each replay, rather than fork one that has imported the agent.
    """
    from playhead.engine.worker import Settings, Worker

    if concurrency < 0 or lease <= 0:
        raise UsageError("--concurrency and --lease must be positive", hint="leave them out")
    settings = Settings(
        concurrency=concurrency, versions=_versions(context, agent), labels=label, lease=lease, warm=not cold,
        tell=lambda task: context.note(line(task)),
    )  # fmt: skip
    worker = Worker(context.store, context.project, settings)
    _obey_signals(worker)
    context.note(f"worker {worker.name} runs {settings.slots} at a time from {context.store.url}")
    tally = worker.run(until_empty=drain)
    data = {"worker": worker.name, "ended": tally.ended, "refused": tally.refused, "errors": tally.errors}
    return Result(data=data, text=[f"{tally.ended} tasks ended"], exit_code=3 if tally.errors else 0)


def _obey_signals(worker: "Worker") -> None:
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            worker.release()
        else:
            worker.drain()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def _versions(context: Context, agents: tuple[str, ...]) -> tuple[str, ...] | None:
    if not agents:
        return None
    known = context.store.agents
    ids: list[str] = []
    for text in agents:
        name, at, number = text.rpartition("@")
        if not at:
            ids += [version.id for version in known.versions(text) or [known.find(text)]]
        elif number.isdecimal():
            ids.append(known.find(name, int(number)).id)
        else:
            raise UsageError(f"{text!r} is not an agent version", hint="write NAME or NAME@NUMBER")
    return tuple(ids)
