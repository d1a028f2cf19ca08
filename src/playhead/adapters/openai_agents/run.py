"""One run of an agent: its boundary, and what its hooks share."""

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary, finalize

from agents import Agent, RunContextWrapper, RunState

from playhead.adapters.openai_agents import approvals, codec, messages
from playhead.adapters.openai_agents.messages import ToolForms
from playhead.core.canonical import NoKeyError, to_stored
from playhead.core.policy import HistoryModel
from playhead.core.protocol.shape import is_list
from playhead.engine import seam
from playhead.engine.frames import FRAME, leave
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import ReplayState
from playhead.engine.version import CodeVersion, of_object
from playhead.errors import PlayheadError, RecordingError, RefusedError

log = logging.getLogger("playhead")

RUN: ContextVar["Run | None"] = ContextVar("playhead_openai_agents_run", default=None)
"""The run that code belongs to: tools are offered through it, and runs inside it are seen."""

_root_agents: WeakKeyDictionary[seam.ActiveSession, Any] = WeakKeyDictionary()
"""The agent that ran first, directly in a session."""

_SERVER_STATE = ("conversation_id", "previous_response_id", "auto_previous_response_id")


class Run:
    """State of one run. ``turn`` is the model request under way, ``agent`` whose turn it is."""

    def __init__(self, agent: Agent[Any], given: Any, options: dict[str, Any]) -> None:
        self.starting = agent
        self.agent: Agent[Any] = agent
        self.given: Any = given
        self.state: Any = given if isinstance(given, RunState) else None  # where it goes on after a pause
        self.options = options
        self.scope: seam.SessionScope | None = None
        self.turn: Any = None
        self.tool_forms = ToolForms()
        self.gates: dict[int, Any] = {}
        self.cut: dict[str, Any] = {}  # steps of calls that were cancelled: a time limit shows its text later
        self.is_root = False
        self.over = False
        self.ending: BaseException | None = None  # what the boundary raised at its end
        self._handoff: seam.AgentStep | None = None
        self._memory_read = False

    @property
    def active(self) -> seam.ActiveSession | None:
        """The session that the run is recorded in; None when it is not."""
        active = self.scope.active if self.scope is not None else None
        return None if active is None or active.closed or active.detached else active

    @property
    def replay(self) -> ReplayState | None:
        """The replay that the run belongs to, also after its session has ended."""
        active = self.scope.active if self.scope is not None else None
        return active.replay if active is not None else None

    def inside(self) -> AbstractContextManager[None]:
        """Where calls of the agent whose turn it is belong: below its handoff, if it came by one."""
        return nullcontext() if self._handoff is None else self._handoff.inside()

    # --- boundary ---

    def open(self, name: str | None, recorder: Recorder | None) -> bool:
        """Opens the run's session, turn or agent call; False when it cannot be recorded.

        Raises:
            ReplayStop: in a replay.
        """
        try:
            self._open(name, recorder)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.trouble(error, "opening a run")
        return self.active is not None

    def _open(self, name: str | None, recorder: Recorder | None) -> None:
        frame = FRAME.get()
        direct = frame is None or isinstance(frame, seam.ActiveSession)
        inputs, refused = self._inputs(whole=frame is None)
        self.scope = seam.session(
            name or self.starting.name or "agent",
            inputs=inputs,
            recorder=recorder,
            version=_version_of(self.starting) if frame is None else None,
            not_replayable=refused,
            history=self._history(),
        )
        self.scope.asks_models = True
        active = self.scope.open()
        if active is None:
            return
        if direct:
            self.is_root = _root_agents.setdefault(active, self.starting) is self.starting
        state = active.replay
        held = [name for name in _SERVER_STATE if self.options.get(name)]
        if held and state is not None and not isinstance(state.model_policy, HistoryModel):
            raise RefusedError(
                f"the run goes on from state that the provider holds ({', '.join(held)}), which a live model would "
                "take up a second time",
                hint='answer the model from the recording: {"type": "history"}',
            )

    def _inputs(self, *, whole: bool) -> tuple[dict[str, Any], list[str]]:
        """Everything needed to start again, and the names of what has no stored form."""
        inputs: dict[str, Any] = {}
        refused: list[str] = []
        parts = {"input": self._given_input}
        if whole and self.options.get("context") is not None:
            parts["context"] = self._given_context
        for name, make in parts.items():
            try:
                inputs.update(make())
            except NoKeyError as error:
                refused.append(f"{name}: {error}")
            except Exception as error:  # noqa: BLE001 - inputs of the user, serialised by the framework
                refused.append(f"{name}: {type(error).__name__}: {error}")
        if whole and self.state is not None:
            refused.append("input: the run goes on from a paused one; open one session around both to replay them")
        inputs.update({name: self.options[name] for name in _SERVER_STATE if self.options.get(name)})
        return inputs, refused

    def _given_input(self) -> dict[str, Any]:
        if self.state is not None:
            return approvals.answers(self.state)
        return codec.encode_input(self.given)

    def _given_context(self) -> dict[str, Any]:
        context: Any = self.options["context"]
        if isinstance(context, RunContextWrapper):
            context = self.options["context"].context
        return {} if to_stored(context) is None else {"context": context}

    def _history(self) -> list[Any]:
        """What tells that the run goes on from an earlier one."""
        if self.state is not None:
            return [approvals.paused_at(self.state.get_interruptions())]
        memory = self.options.get("session")
        known = [] if memory is None else [_memory(memory)]
        return known if isinstance(self.given, str) else [*self.given, *known]

    # --- while it goes on ---

    def read_memory(self, given: Any) -> None:
        """Adds what the run read from its session memory to its inputs: it stands in the first model request only."""
        first, self._memory_read = not self._memory_read, True
        if not first or self.scope is None or self.options.get("session") is None or self.state is not None:
            return
        new = 1 if isinstance(self.given, str) else len(self.given)
        if is_list(given) and len(given) > new:
            self.scope.add_inputs(message_history=messages.items(given[:-new]))

    def handed_to(self, agent: Any) -> None:
        """The next agent goes on where the last one stopped: what it does stands below an agent call of its own."""
        active = self.active
        if active is not None:
            self._end_handoff()
            self._handoff = active.agent_call(agent.name, handoff_from=self.agent.name)

    def _end_handoff(self, output: Any = None, error: BaseException | None = None) -> None:
        step, self._handoff = self._handoff, None
        if step is not None and error is not None:
            step.fail(error)
        elif step is not None:
            step.returned(output)

    # --- the end ---

    def paused(self, interruptions: Iterable[Any]) -> None:
        """Records calls that wait for a person."""
        try:
            with self.inside():
                approvals.paused(self, interruptions)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.trouble(error, "recording calls that wait for approval")

    def finish(self, result: Any = None, error: BaseException | None = None) -> None:
        """Closes the run, once.

        Raises:
            MissError: (or another `PlayheadError`) a stop was latched in this replay and this is its root.
            ReplayStop: a stop was latched, and this is not the root.
        """
        if self.over or self.scope is None:
            return
        self.over = True
        try:
            try:
                self._settle(result, error)
            except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
                self.trouble(problem, "reading the result of a run")
            self.scope.close(error)
        except BaseException as ending:
            self.ending = ending
            raise

    def _settle(self, result: Any, error: BaseException | None) -> None:
        scope = self.scope
        assert scope is not None
        if self.turn is not None:
            self.turn.close()
        for step in self.cut.values():
            approvals.end_cut(step, error)
        output = result.final_output if result is not None else None
        self._end_handoff(output, error)
        self._guardrails(result, error)
        if result is None:
            return
        scope.output = output
        memory = self.options.get("session")
        if result.interruptions:
            scope.messages = [approvals.paused_at(result.interruptions)]
        else:
            scope.messages = [_memory(memory)] if memory is not None else result.to_input_list()

    def _guardrails(self, result: Any, error: BaseException | None) -> None:
        active, told = self.active, result if result is not None else getattr(error, "run_data", None)
        if active is None or told is None:
            return
        for each in (*told.input_guardrail_results, *told.output_guardrail_results):
            span = active.span(f"guardrail {each.guardrail.get_name()}")
            span.returned({"tripwire_triggered": each.output.tripwire_triggered, "info": each.output.output_info})

    # --- guards ---

    def trouble(self, error: Exception, doing: str) -> None:
        """A mistake of ours: counted outside a replay, a stop inside one.

        Raises:
            ReplayStop: in a replay.
        """
        state = self.replay or seam.replay_here()
        if state is not None:
            wrapped = error if isinstance(error, PlayheadError) else RecordingError(
                f"playhead failed while {doing}: {type(error).__name__}: {error}"
            )  # fmt: skip
            raise state.stop(wrapped) from error
        active = self.scope.active if self.scope is not None else None
        if active is not None:
            active.recorder.count("errors", error)
        else:
            log.warning("playhead failed while %s", doing, exc_info=error)


class Entered:
    """Makes a run current for the length of a ``with`` block."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tokens: list[Any] = []

    def __enter__(self) -> Run:
        assert self._run.scope is not None
        self._tokens = [RUN.set(self._run), self._run.scope.enter()]
        return self._run

    def __exit__(self, *_: object) -> None:
        for token in reversed(self._tokens):
            leave(token)


def _memory(memory: Any) -> tuple[str, Any]:
    return "session memory", getattr(memory, "session_id", id(memory))


_versions: dict[int, CodeVersion] = {}


def _version_of(agent: Any) -> CodeVersion:
    """What captures the version of an agent, the same object each time. Agents have no hash, so they go by identity."""
    known = _versions.get(id(agent))
    if known is None:
        known = _versions[id(agent)] = of_object(agent, depth=2, adapter="openai_agents")
        finalize(agent, _versions.pop, id(agent), None).atexit = False
    return known
