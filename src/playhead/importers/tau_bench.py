"""tau-bench result files: a list of simulated conversations, each with its task, trial and reward."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from playhead.core.assemble.records import RecordError, Trace
from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.assemble.transcript import read_messages, transcript_records
from playhead.core.canonical import render
from playhead.core.protocol.parts import stored
from playhead.core.values import FROM_SOURCE, JSON, Verdict
from playhead.engine.documents import Document
from playhead.engine.imports import PlainReader, Plan, Planned

NAME = "tau_bench"


class TauBenchReader(PlainReader):
    """Every simulation is a session, named by file, task and trial.

    Where a file names several different ones alike (runs put together, trials left out), the later ones are numbered.
    """

    def __init__(self, *, tools: Sequence[JSON] | None = None, instance: str = "", depth: int = 200) -> None:
        self._tools, self._instance, self._depth = tools, instance, depth
        self._known: dict[str, dict[bytes, str]] = {}  # names by what they were given to, for each name in the file

    def end_of_file(self, file: str) -> Iterator[Planned]:
        self._known.clear()
        return iter(())

    def add(self, document: Document) -> Iterator[Planned]:
        run: Any = document.value
        name = f"{PurePath(document.file).stem}/{run.get('task_id')}/{run.get('trial', 0)}"
        if run.get("task_id") is None:
            raise RecordError("missing_id", "a simulation without task_id")
        if not is_list(run.get("traj")) or not run["traj"]:
            raise RecordError("undecodable", "no message list in traj", name)
        messages = read_messages(run["traj"], name, self._depth)
        name = self._own(name, sha256(render(messages)).digest())
        yield Plan(runs=((
            Trace(
                format=NAME,
                instance=self._instance,
                external_id=name,
                name=name,
                metadata=_metadata(run),
                verdicts=_verdicts(run),
                transcript=messages,
                whole=True,
                file=PurePath(document.file).name,
                position=document.position or None,
            ),
            transcript_records(messages, tools=self._tools, protocol="openai_chat"),
        ),))  # fmt: skip

    def _own(self, name: str, content: bytes) -> str:
        """The name, with a number when another conversation has it already."""
        known = self._known.setdefault(name, {})
        return known.setdefault(content, f"{name}/{len(known) + 1}" if known else name)


def _metadata(run: Mapping[str, Any]) -> dict[str, JSON]:
    """Task, trial, reward, and what the task expects, from which labels can be proposed."""
    info = run.get("info")
    task = info.get("task") if is_object(info) else None
    shown = task if is_object(task) else {}
    found: dict[str, JSON] = {
        "task_id": run.get("task_id"),
        "trial": run.get("trial"),
        "reward": run.get("reward"),
        "instruction": shown.get("instruction"),
        "expected_actions": shown.get("actions"),
        "expected_outputs": shown.get("outputs"),
        "user_cost": info.get("user_cost") if is_object(info) else None,
    }
    return {k: stored(v) for k, v in found.items() if v is not None}


def _verdicts(run: Mapping[str, Any]) -> tuple[Verdict, ...]:
    reward = run.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        return ()
    return (Verdict(name="reward", score=float(reward), passed=reward >= 1, evaluator=FROM_SOURCE),)
