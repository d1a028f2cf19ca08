"""What scenarios are written with: agents by specification, a harness for the framework, a laboratory."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from playhead.core.policy import HistoryModel, ModelPolicy, ReplayOverride, ToolPolicy
from playhead.core.totals import BUCKETS
from playhead.core.values import JSON
from playhead.engine.recorder import Recorder
from playhead.testing.conformance.bench import Bench, NotApplicable, Recorded, Replayed

Entry: TypeAlias = Literal["sync", "async", "stream", "events", "iter"]
Verdict: TypeAlias = Literal["supported", "unsupported", "not_applicable"]


# --- what a scenario builds agents from -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the scripted model; ``arguments`` is an object, or JSON text as a model may write it."""

    tool: str
    arguments: Any = None
    id: str | None = None


Turn: TypeAlias = Sequence[Call]


class Retry(Exception):  # noqa: N818 - a signal
    """Raised by a tool body: the framework's own way to ask the model to try again."""


class Refused(Exception):  # noqa: N818 - a signal
    """Raised by a tool body: the framework's own error result that the model can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """An agent: a model that plays ``turns`` and then says what results it saw, its tools, its system text."""

    turns: Sequence[Turn] = ()
    tools: Sequence[Callable[..., Any]] = ()
    name: str = "desk"
    system: str | None = None
    model: str = "scripted"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    says: Callable[[Sequence[JSON]], str] | None = None  # the final text, from the results seen
    retries: int = 3


class AdapterHarness(ABC):
    """A framework with its adapter. Methods that raise `NotApplicable` by default are for what not all have."""

    name: str
    distribution: str | None = None  # of the framework, whose version is kept with what was measured
    entries: Sequence[Entry] = ("sync", "async")
    other_model: str = ""  # a model that the framework can make from its name, without a network
    has_models: bool = True  # whether the adapter sees model calls
    has_settings: bool = True  # whether an agent has settings of its model
    tells_refusals: bool = True  # whether a refused call has a result with its id, from which its outcome is known
    tells_mcp_errors: bool = True  # whether an error of an MCP server's tool looks otherwise than a value
    pauses: bool = True  # whether a run ends to ask a person, and goes on in another
    buckets: Sequence[str] = BUCKETS  # of usage, which a model of the framework reports
    rounds: int = 20  # how often is repeated what luck could hide; fewer where a run is dear
    many: int = 10  # sessions side by side
    reasons: Mapping[str, str] = {}  # by scenario, why it fails: told in place of what was raised
    luck: Mapping[str, str] = {}  # by scenario, why it does not hold although it may pass: not supported, and not run
    never: Mapping[str, str] = {}  # by scenario, why the framework has no such thing: not applicable, and not run

    def start(self) -> None:  # noqa: B027 - may do nothing
        """Before the first scenario."""

    def stop(self) -> None:  # noqa: B027 - may do nothing
        """After the last one; undoes `start`."""

    @abstractmethod
    def build(self, spec: Spec) -> Any:
        """An agent of the framework, seen by the adapter once it runs inside a session."""

    @abstractmethod
    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        """Runs an agent to its end in one of the ``entries`` other than ``sync``; gives its text."""

    @abstractmethod
    def run_sync(self, agent: Any, prompt: str) -> str:
        """Runs an agent from code without a running loop."""

    @abstractmethod
    def requests(self, agent: Any) -> list[bytes]:
        """What the agent's scripted model was asked so far, each request as bytes."""

    def identity(self, tool: str) -> str:
        """The name under which a model, and so a policy, knows a tool."""
        return tool

    def shown(self, value: Any) -> Any:
        """What a recording holds of a tool's value: the value itself, unless a tool can only give text."""
        return value

    def history(self, agent: Any) -> Any:
        """The messages of the agent's last run, for its next turn."""
        raise NotApplicable("no message history")

    async def conversation(self, agent: Any, prompts: Sequence[str]) -> str:
        """One run after the other, each from the messages of the one before; gives the last one's text."""
        said, history = "", None
        for prompt in prompts:
            said = await self.run(agent, prompt, history=history)
            history = self.history(agent)
        return said

    def activate(self) -> None:
        """Turns on the global form of the adapter, where it has one. Doing it twice changes nothing."""
        raise NotApplicable("no global form")

    def deactivate(self) -> None:
        """Undoes `activate`."""
        raise NotApplicable("no global form")

    def explicit(self, agent: Any) -> Any:
        """The same agent with the adapter's explicit form."""
        raise NotApplicable("no explicit form")

    def agent_tool(self, name: str, child: Any) -> Callable[..., Any]:
        """A tool (of one text parameter ``q``) that runs ``child`` and gives its text."""
        raise NotApplicable("no agents inside tools")

    def approval_tool(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """The tool, with a person asked before it runs."""
        raise NotApplicable("no approvals")

    async def run_with_approval(self, agent: Any, prompt: str, answer: Callable[[str], bool]) -> str:
        """Runs an agent, asks ``answer`` (by tool name) at each pause, goes on with what it says."""
        raise NotApplicable("no approvals")

    def handoff(self, spec: Spec, to: Any) -> Any:
        """An agent that hands over to another one at its first turn, instead of playing its own."""
        raise NotApplicable("no handoffs")

    def timed_tool(self, body: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        """An async tool that the framework gives up after a while."""
        raise NotApplicable("no timeouts of tools")

    def retrying(self, spec: Spec, times: int) -> Any:
        """An agent whose framework runs a tool that raised again, up to so many times in all."""
        raise NotApplicable("no retries of tools by the framework")

    def deferred_tool(self, name: str) -> Callable[..., Any]:
        """A tool (of one text parameter ``q``) that runs elsewhere: a run ends to wait for its result."""
        raise NotApplicable("no deferred tools")

    async def run_deferred(self, agent: Any, prompt: str, result: Callable[[str], Any]) -> str:
        """Runs an agent, gets ``result`` (by tool name) at each pause for a deferred tool, goes on with it."""
        raise NotApplicable("no deferred tools")

    def structured(self, spec: Spec) -> Any:
        """An agent whose answer comes through the framework's output tool."""
        raise NotApplicable("no output tools")

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Any:
        """The agent with the tools of an MCP server that talks over stdio."""
        raise NotApplicable("no MCP")

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Any:
        """An agent whose model reports usage in the exclusive buckets of `core.values.Usage`, each time the same."""
        raise NotApplicable("the model reports no usage")

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Any:
        """An agent whose model streams ``after`` and then raises."""
        raise NotApplicable("no streams")

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Any:
        """An agent whose model calls ``asked``, from any thread, and then never answers."""
        raise NotApplicable("a model call cannot be held")

    async def stop_early(self, agent: Any, prompt: str) -> None:
        """Streams a run and leaves after the first piece of the answer."""
        raise NotApplicable("no streams")


# --- the laboratory of one scenario ---------------------------------------------------------------------------------


class Lab:
    """What a scenario works with: the harness, a bench, and a list in which live tools leave a trace."""

    def __init__(self, harness: AdapterHarness, recorder: Recorder | None = None) -> None:
        self.harness = harness
        self.bench = Bench(recorder.store, recorder) if recorder is not None else Bench()
        self.live: list[Any] = []

    def entered(self, what: Any) -> int:
        """Called by live tools; gives how many calls ran live so far."""
        self.live.append(what)
        return len(self.live)

    def needs_models(self) -> None:
        """Ends a scenario that is about model calls, where the adapter sees none."""
        if not self.harness.has_models:
            raise NotApplicable("model calls are not seen")

    def tool(self, name: str) -> str:
        """The identity of a tool in this framework."""
        return self.harness.identity(name)

    def shown(self, *values: Any) -> list[Any]:
        """What a recording holds of tools' values."""
        return [self.harness.shown(value) for value in values]

    def runner(self, make: Callable[[], Any], entry: Entry = "async") -> Callable[..., str]:
        """A callable that builds the agent anew and runs it, as a fresh process would."""

        def run(prompt: str) -> str:
            agent = make()
            if entry == "sync":
                return self.harness.run_sync(agent, prompt)
            return finish(self.harness.run(agent, prompt, entry=entry))

        return run

    def record(self, run: Callable[..., Any], **inputs: Any) -> Recorded:
        return self.bench.record(run, inputs or {"prompt": "go"})

    def replay(
        self, baseline: Recorded, run: Callable[..., Any], *, policy: Mapping[str, Any] | ToolPolicy | None = None,
        model: ModelPolicy | None = None, override: ReplayOverride | None = None, writer: Any = None,
    ) -> Replayed:  # fmt: skip
        self.live.clear()
        return self.bench.replay(
            baseline, run, tool_policy=policy, model_policy=model, override=override, writer=writer
        )

    def unchanged(self, run: Callable[..., Any], **inputs: Any) -> tuple[Recorded, Replayed]:
        """Records, replays unchanged under a live and a recorded model, and checks that both are faithful."""
        baseline = self.record(run, **inputs)
        if baseline.error is not None:
            raise baseline.error
        result = self.replay(baseline, run)
        self.check_faithful(baseline, result)
        self.check_faithful(baseline, self.replay(baseline, run, model=HistoryModel()))
        return baseline, result

    def check_faithful(self, baseline: Recorded, result: Replayed) -> None:
        assert self.live == [], f"live tools were entered: {self.live}"
        assert result.faithful, f"not faithful: {result.replay.fidelity}, {result.message}"
        assert result.session.output == baseline.session.output
        assert result.session.status is baseline.session.status


def finish(running: Awaitable[Any]) -> Any:
    """Drives a coroutine to its end in a loop of its own."""
    import asyncio

    async def awaited() -> Any:
        return await running

    return asyncio.run(awaited())


# --- scenarios and their results ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. ``id`` is the family (``S2``) with the part that it is about."""

    id: str
    run: Callable[[Lab], None]

    @property
    def title(self) -> str:
        return (self.run.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True, slots=True)
class Finding:
    scenario: str
    verdict: Verdict
    reason: str = ""
