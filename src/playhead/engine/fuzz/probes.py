"""Asks probes of tools that read alike, and has requests written that either tool could serve."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from playhead.core.effects import Effects
from playhead.core.evaluation import as_text
from playhead.core.probes import EXTENDED, RUNS, Probe, ProbeResult, ToolPair, judged, probe_json, read_probe
from playhead.core.protocol import parts
from playhead.core.protocol.shape import is_list, objects
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import Drive, ModelAsk, turn
from playhead.core.suites.suite import Case, ToolSchema, offered, to_json
from playhead.core.suites.trials import SuiteRun, Trial
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.engine.model_access import Access, Place, TrialFailedError, TryAgainError
from playhead.engine.suites.run import Limits, Progress, execute, in_a_loop, new_run
from playhead.errors import PlayheadError
from playhead.store.ports import Store

__all__ = ["Written", "probe", "probe_results", "probe_run", "probes_of_run", "write_queries"]

PER_PAIR: Final = 3
"""Requests that a model writes for each pair."""
_TRIES: Final = 2


def probe_run(contents: Contents, probes: Sequence[Probe], *, model: str, **fields: Any) -> SuiteRun:
    """A run that is about to ask probes; it keeps them, so that it can go on and be read later."""
    config: dict[str, JSON] = {**fields.pop("config", {}), "probes": [probe_json(one) for one in probes]}
    return new_run(contents, [one.case for one in probes], model=model, runs=RUNS, config=config, **fields)


def probes_of_run(run: SuiteRun) -> list[Probe]:
    """The probes that a run asks."""
    return [read_probe(one) for one in objects(run.config.get("probes"))]


def probe(
    store: Store, contents: Contents, run: SuiteRun, access: Access, *, limits: Limits | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> SuiteRun:  # fmt: skip
    """Asks every probe of a run `RUNS` times, and those that stay undecided `EXTENDED` times.

    Trials that are done are not made again: a run that was stopped goes on where it was.
    """
    whole = tuple(one.id for one in probes_of_run(run))
    asked = {one.id: one.case for one in probes_of_run(run)}
    left = _Left(limits or Limits(), tell)

    def drive(case: Case) -> Drive:
        return turn(case, contents.tools)

    def stage(ids: Sequence[str], runs: int) -> SuiteRun:
        part = replace(run, cases=tuple(ids), runs=runs)
        cases = [asked[id] for id in ids]
        return execute(store, contents, part, cases, access, limits=left.now(), tell=left.told, drive=drive)

    done = stage(whole, RUNS)
    open_ones = [r.id for r in probe_results(store, run, contents.suite.effects) if r.first == "undecided"]
    if done.stopped_by is None and open_ones:
        done = stage(open_ones, EXTENDED)
    done = replace(done, cases=whole, runs=RUNS)
    store.suites.save_run(done)
    return done


class _Left:
    """What is left of the limits of a run that is made in stages."""

    def __init__(self, limits: Limits, tell: Callable[[Progress], None]) -> None:
        self._limits, self._tell = limits, tell
        self._started = SYSTEM_CLOCK.tick()
        self._spent = self._now = Decimal(0)

    def told(self, progress: Progress) -> None:
        self._now = progress.cost
        self._tell(progress)

    def now(self) -> Limits:
        self._spent, self._now = self._spent + self._now, Decimal(0)
        minutes = (SYSTEM_CLOCK.tick() - self._started) / 60_000_000_000
        most, longest = self._limits.max_cost, self._limits.max_minutes
        return replace(
            self._limits,
            max_cost=None if most is None else max(0.0, most - float(self._spent)),
            max_minutes=None if longest is None else max(0.0, longest - minutes),
        )


def probe_results(store: Store, run: SuiteRun, effects: Effects) -> list[ProbeResult]:
    """What the stored answers of a run say, probe by probe."""
    trials: dict[str, list[Trial]] = {}
    for trial in store.suites.trials(run.id):
        if trial.status == "scored":
            trials.setdefault(trial.case, []).append(trial)
    return [
        judged(one, [called(trial, effects) for trial in sorted(trials.get(one.id, ()), key=lambda t: t.n)])
        for one in probes_of_run(run)
    ]


def called(trial: Trial, effects: Effects) -> list[str]:
    """The tools that the first response of a trial called, without bookkeeping."""
    if not trial.steps:
        return []
    message: Any = trial.steps[0].message
    names = [str(part["name"]) for part in parts.calls_of(message)]
    return [name for name in names if not (name in effects and effects[name].bookkeeping)]


# --- requests that a model writes -----------------------------------------------------------------------------------

_SYSTEM: Final = """\
You write requests that users could make of an assistant. You are shown two tools. Write requests that somebody who
knows neither tool would plausibly make, and that either tool could serve: nothing in a request decides between them.
Do not name a tool or a parameter. Give every value that a call needs. Answer with one JSON list of strings and nothing
else.
"""


@dataclass(slots=True, kw_only=True)
class Written:
    """Requests by pair, and for which pairs a model gave none, with the reason."""

    queries: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])
    failed: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


def write_queries(
    contents: Contents, pairs: Sequence[ToolPair], access: Access, *, per_pair: int = PER_PAIR, concurrency: int = 8
) -> Written:
    """Asks a model for requests that could be served by either tool of each pair. What is held back is not shown."""
    found = Written()
    schemas = _schemas(contents)
    waiting = list(reversed(pairs))

    async def work() -> None:
        while waiting:
            pair = waiting.pop()
            answer = await _queries(pair, schemas, access, per_pair)
            if isinstance(answer, str):
                found.failed[pair.left, pair.right] = answer
            else:
                found.queries[pair.left, pair.right] = answer

    async def every() -> None:
        try:
            await asyncio.gather(*(work() for _ in range(max(1, concurrency))))
        finally:
            await access.close()

    in_a_loop(every())
    return found


def _schemas(contents: Contents) -> dict[str, ToolSchema]:
    shown = {tool.name: tool for tool in contents.tools.values()}
    for case in contents.cases:
        if case.slice == "tune":
            shown |= offered(case, contents.tools)
    return shown


async def _queries(pair: ToolPair, schemas: Mapping[str, ToolSchema], access: Access, per_pair: int) -> list[str] | str:
    tools = [to_json(schemas[name]) for name in (pair.left, pair.right)]
    text = f"Tools: {json.dumps(tools, ensure_ascii=False)}\nWrite {per_pair} requests."
    asked = [parts.message("system", [parts.text(_SYSTEM)]), parts.message("user", [parts.text(text)])]
    problem = ""
    for _ in range(_TRIES):
        try:
            said = await access.ask(ModelAsk(messages=asked), Place(f"{pair.left}~{pair.right}", 0))
        except (TryAgainError, TrialFailedError, PlayheadError) as error:
            return str(error)
        queries = read_queries(parts.text_of(said.message))
        if queries:
            return queries[:per_pair]
        problem = "the model gave no JSON list of requests"
        again = "That is no JSON list of strings. Write it again, as one JSON list."
        asked = [*asked, said.message, parts.message("user", [parts.text(again)])]
    return problem


def read_queries(text: str) -> list[str]:
    """The requests in a model's text, each once; none where it holds no list of texts."""
    try:
        held: Any = json.loads(text[text.find("[") : text.rfind("]") + 1])
    except ValueError:
        return []
    listed = [as_text(one).strip() for one in held if isinstance(one, str)] if is_list(held) else []
    return list(dict.fromkeys(one for one in listed if one))
