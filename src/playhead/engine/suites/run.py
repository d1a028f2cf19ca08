"""Runs trials: so many at a time, within a budget, each stored when it is done, so that a run can go on later."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from playhead.core.canonical import canonical_stored
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import Drive, ModelAsk, ModelSaid, Trace, loop, turn
from playhead.core.suites.flags import conduct_flags
from playhead.core.suites.label_log import by_case, settle
from playhead.core.suites.scoring import needs_final
from playhead.core.suites.suite import Case, case_digest, tools_digest, trial_seed
from playhead.core.suites.trials import SuiteRun, Trial, TrialStep
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS, Clock, IdSource
from playhead.engine.model_access import Access, Place, TrialFailedError, TryAgainError, request_json
from playhead.errors import ModelAccessError, PlayheadError, UsageError
from playhead.store.ports import Store

TRIES: Final = 5
"""Retries of a request that the provider could not take for now."""
_LONGEST_WAIT: Final = 60.0

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use: trials at a time, requests a minute, USD, minutes, retries of a request."""

    concurrency: int = 8
    per_minute: float | None = None
    max_cost: float | None = None
    max_minutes: float | None = None
    tries: int = TRIES
    first_wait: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Before a run: trials left, requests, tokens (guessed from the length of texts) and USD, None when unknown."""

    trials: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None = None


@dataclass(slots=True, kw_only=True)
class Progress:
    """While a run goes on."""

    done: int = 0
    of: int = 0
    errors: int = 0
    cost: Decimal = Decimal(0)
    retries: int = 0
    since: int | None = None  # the clock's tick when the first trial was begun


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which cases a run tries."""

    slice: Any = "tune"
    ids: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    limit: int | None = None
    unlabelled: bool = False


def chosen(contents: Contents, selection: Selection) -> list[Case]:
    """The cases to try, each with the label that counts for it: active ones of the slice that something can be scored
    of.

    Raises:
        UsageError: a case that is not there, or none is left.
    """
    own = by_case(contents.labels)
    known = {case.id for case in contents.cases}
    missing = [id for id in selection.ids if id not in known]
    if missing:
        raise UsageError(f"the suite has no case {missing[0]!r}", hint="playhead suite show lists them")
    found: list[Case] = []
    for case in contents.cases:
        if case.status == "retired" or selection.slice not in ("all", case.slice):
            continue
        if (selection.ids and case.id not in selection.ids) or (
            selection.intents and case.intent not in selection.intents
        ):
            continue
        labelled = case.model_copy(update={"label": settle(case, own.get(case.id, ())).label})
        if labelled.label is not None or labelled.facts or selection.unlabelled:
            found.append(labelled)
    if not found:
        raise UsageError("no case is left to run", hint="playhead suite show says which are active and labelled")
    return found[: selection.limit]


def new_run(
    contents: Contents, cases: Sequence[Case], *, model: str, ids: IdSource = SYSTEM_IDS, clock: Clock = SYSTEM_CLOCK,
    **fields: Any,
) -> SuiteRun:  # fmt: skip
    """A run that is about to start."""
    forced = sum(case.tool_choice not in ("auto", "none", None) for case in cases)
    notes = [f"{forced} cases were recorded with a forced tool and are run with auto"] if forced else []
    return SuiteRun(
        id=ids(),
        suite=contents.suite.name,
        suite_digest=contents.digest,
        created_at=clock.now(),
        model=model,
        cases=tuple(case.id for case in cases),
        identity=identity(contents, cases),
        notes=(*notes, *fields.pop("notes", ())),
        **fields,
    )


def identity(contents: Contents, cases: Sequence[Case]) -> dict[str, JSON]:
    """What of the cases tells two runs of one configuration: system prompts, tools, parameters, agent version."""
    from hashlib import sha256

    def digest(values: list[JSON]) -> str:
        return sha256(canonical_stored(values)).hexdigest()[:16]

    prompts = sorted({str(m.content) for case in cases for m in case.history if m.role == "system"})
    tools = sorted({tools_digest(case, contents.tools) for case in cases})
    params = sorted({canonical_stored(case.model_params).decode() for case in cases})
    versions = sorted({case.source.agent_version for case in cases if case.source.agent_version})
    return {
        "system_prompt_digest": digest(list(prompts)),
        "tools_digest": digest(list(tools)),
        "params_digest": digest(list(params)),
        "agent_version": versions[0] if len(versions) == 1 else None,
    }


def drivers(run: SuiteRun, contents: Contents) -> Callable[[Case], Drive]:
    """The driver that a run asks for, as a function of the case."""
    if run.outcome == "chained" or run.driver == "loop":
        effects = contents.suite.effects
        steps = int(run.config.get("max_steps") or contents.suite.defaults.max_steps)
        guards = contents.suite.guards if run.config.get("guards") else {}
        return lambda case: loop(case, contents.tools, effects=effects, max_turns=steps + 1, guards=guards)
    return lambda case: turn(case, contents.tools)


def estimate(
    run: SuiteRun, contents: Contents, cases: Sequence[Case], left: int, price_of: Any = None, *,
    chained: Callable[[Case], bool] | None = None, lead: Callable[[Case], int] | None = None,
) -> Estimate:  # fmt: skip
    """What is left of a run, before it starts; tokens are a quarter of the characters.

    Args:
        chained: whether a case goes on from the model's own calls, where it is not the run that says so.
        lead: characters that each request of a case has beside its history and tools.
    """
    from playhead.core.suites.messages import history, recorded_rounds
    from playhead.core.suites.suite import offered, to_json

    requests = characters = 0
    for case in cases:
        tools = sum(len(canonical_stored(to_json(t))) for t in offered(case, contents.tools).values())
        first = sum(len(canonical_stored(m)) for m in history(case)) + tools + (lead(case) if lead else 0)
        requests += 1
        characters += first
        if chained(case) if chained else run.outcome == "chained" or run.driver == "loop":
            requests += len(case.recorded)
            characters += first * len(case.recorded)
        elif needs_final(case):
            requests += 1
            characters += first + sum(len(canonical_stored(m)) for m in recorded_rounds(case))
    share = left / max(1, len(cases) * run.runs)
    asked = round(requests * run.runs * share)
    tokens = round(characters / 4 * run.runs * share)
    cost = price_of(tokens, asked * 120) if price_of is not None else None
    return Estimate(trials=left, requests=asked, input_tokens=tokens, output_tokens=asked * 120, cost=cost)


def todo(store: Store, run: SuiteRun) -> list[tuple[str, int]]:
    """The trials that are not done: those that ended in an infrastructure error are tried again."""
    done = {(t.case, t.n) for t in store.suites.trials(run.id) if t.status == "scored"}
    return [(case, n) for n in range(run.runs) for case in run.cases if (case, n) not in done]


@dataclass(slots=True)
class _Running:
    """One run while it goes on."""

    store: Store
    contents: Contents
    run: SuiteRun
    access: Access
    limits: Limits
    cases: Mapping[str, Case]
    drive: Callable[[Case], Drive]
    clock: Clock
    sleep: Sleep
    tell: Callable[[Progress], None]
    judge: "Callable[[Trace, Case, int], JSON] | None" = None
    progress: Progress = field(default_factory=Progress)
    stopped_by: str | None = None
    unreachable: str | None = None
    next_at: int = 0

    async def all(self, places: Sequence[tuple[str, int]]) -> None:
        waiting = list(reversed(places))
        self.progress.of = len(places)
        if self.progress.since is None:
            self.progress.since = self.clock.tick()
        started = self.progress.since

        async def work() -> None:
            while waiting and not self._over(started):
                case, n = waiting.pop()
                await self._trial(self.cases[case], n)

        workers = [asyncio.create_task(work()) for _ in range(min(self.limits.concurrency, max(1, len(places))))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await self.access.close()

    def _over(self, started: int) -> bool:
        minutes = (self.clock.tick() - started) / 60_000_000_000
        if self.limits.max_cost is not None and self.progress.cost >= Decimal(str(self.limits.max_cost)):
            self.stopped_by = f"the budget of {self.limits.max_cost:g} USD"
        elif self.limits.max_minutes is not None and minutes >= self.limits.max_minutes:
            self.stopped_by = f"the limit of {self.limits.max_minutes:g} minutes"
        elif self.unreachable is not None:
            self.stopped_by = self.unreachable
        return self.stopped_by is not None

    async def _trial(self, case: Case, n: int) -> None:
        seed = trial_seed(self.run.seed, case.id, n)
        base = Trial(
            run=self.run.id, case=case.id, n=n, seed=seed, case_digest=case_digest(case, self.contents.tools),
            started_at=self.clock.now(),
        )  # fmt: skip
        made, requests = await self._made(base, case)
        made = replace(made, ended_at=self.clock.now())
        self.store.suites.add_trial(made, requests)
        self.progress.done += 1
        self.progress.errors += made.status == "error"
        if made.status == "error" and self.progress.errors == self.progress.done >= self.limits.concurrency:
            self.unreachable = f"no trial could be made: {made.error}"
        self.tell(self.progress)

    async def _made(self, base: Trial, case: Case) -> tuple[Trial, dict[str, JSON]]:
        steps: list[TrialStep] = []
        requests: dict[str, JSON] = {}
        driver = self.drive(case)
        retries = self.progress.retries
        strict = self.access.strict(tuple(self.contents.tools[name] for name in case.tools)).on
        try:
            request = next(driver)
            while True:
                request = replace(request, seed=base.seed)
                said = await self._ask(request, Place(base.case, base.n))
                name, body = stored_request(request)
                requests[name] = body
                steps.append(_step(name, request, said))
                self.progress.cost += Decimal(said.cost or 0)
                request = driver.send(said)
        except StopIteration as end:
            trace: Trace = end.value
            done = replace(base, steps=tuple(steps), final=trace.final, ended=trace.ended, strict=strict)
            done = replace(done, extra=self._extra(trace, case, base.n))
            return replace(done, error=trace.stopped, retries=self.progress.retries - retries), requests
        except TrialFailedError as error:
            failed = replace(base, steps=tuple(steps), ended="refused", failure=str(error)[:1000], strict=strict)
            return failed, requests
        except (TryAgainError, PlayheadError) as error:
            if isinstance(error, ModelAccessError) and not steps and self.progress.done == 0:
                self.unreachable = str(error)
            return replace(base, steps=tuple(steps), status="error", error=str(error)[:1000]), requests

    def _extra(self, trace: Trace, case: Case, n: int) -> JSON:
        """What the trial's own calls came to; none of it where they were only asked for and never answered."""
        if self.judge is not None:
            return self.judge(trace, case, n)
        calls = [node for node in trace.nodes if node.call is not None]
        flags = conduct_flags(
            calls, self.contents.suite.effects, repeat_ok=case.repeat_ok, endless=trace.ended == "turns"
        )
        found: dict[str, JSON] = {"flags": list(flags)} if flags else {}
        guarded = sum("guard" in node.attributes for node in calls)
        return {**found, **({"guards": guarded} if guarded else {})} or None

    async def _ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        for tried in range(self.limits.tries + 1):
            await self._turn()
            try:
                return await self.access.ask(ask, at)
            except TryAgainError as error:
                if tried == self.limits.tries:
                    raise
                self.progress.retries += 1
                wait = error.after if error.after is not None else self.limits.first_wait * 2**tried
                await self.sleep(min(wait, _LONGEST_WAIT))
        raise AssertionError  # the loop returns or raises

    async def _turn(self) -> None:
        """Waits until the rate limit lets another request go."""
        if not self.limits.per_minute:
            return
        gap = round(60_000_000_000 / self.limits.per_minute)
        now = self.clock.tick()
        start = max(now, self.next_at)
        self.next_at = start + gap
        if start > now:
            await self.sleep((start - now) / 1_000_000_000)


def stored_request(ask: ModelAsk) -> tuple[str, JSON]:
    """A request as it is stored, and its digest."""
    from hashlib import sha256

    from playhead.core.canonical import NoKeyError, render

    body = request_json(ask)
    try:
        text = canonical_stored(body)
    except NoKeyError:
        text = render(body)
    return sha256(text).hexdigest()[:32], body


def _step(name: str, ask: ModelAsk, said: ModelSaid) -> TrialStep:
    return TrialStep(
        request=name, message=said.message, purpose=ask.purpose, raw=said.raw, usage=said.usage, cost=said.cost,
        latency_ms=said.latency_ms, served=said.served,
    )  # fmt: skip


def execute(
    store: Store,
    contents: Contents,
    run: SuiteRun,
    cases: Sequence[Case],
    access: Access,
    *,
    limits: Limits | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
    clock: Clock = SYSTEM_CLOCK,
    sleep: Sleep = asyncio.sleep,
    drive: Callable[[Case], Drive] | None = None,
    judge: "Callable[[Trace, Case, int], JSON] | None" = None,
    after: Progress | None = None,
) -> SuiteRun:
    """Makes the trials of a run that are not done, and stores each; gives the run as it ended.

    Args:
        drive: the driver of a case, where it is not the one that the run names.
        judge: what is kept with a trial beside its scores, of how it went.
        after: an earlier part of the run, whose cost and time count against the limits.
    """
    store.suites.save_run(run)
    running = _Running(
        store, contents, run, access, limits or Limits(), {case.id: case for case in cases},
        drive or drivers(run, contents), clock, sleep, tell, judge=judge,
        progress=Progress() if after is None else Progress(cost=after.cost, since=after.since),
    )  # fmt: skip
    done = False
    try:
        in_a_loop(running.all(todo(store, run)))
        done = running.stopped_by is None
    finally:
        ended = replace(
            run,
            status="completed" if done else "stopped",
            stopped_by=None if done else running.stopped_by or "an interruption",
            ended_at=clock.now(),
        )
        store.suites.save_run(ended)
    return ended


def in_a_loop(work: Any) -> None:
    """Runs asynchronous work to its end, also where the caller is inside a loop of its own (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    failed: list[BaseException] = []
    context = contextvars.copy_context()

    def apart() -> None:
        try:
            context.run(asyncio.run, work)
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=apart, name="playhead-suite")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
