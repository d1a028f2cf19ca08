"""A store in memory with a recorder, and runs recorded into it and replayed from it, all in this process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from playhead.core.policy import LiveModel, ModelPolicy, ReplayOverride, ToolPolicy
from playhead.core.requests import ReplayCreateRequest
from playhead.core.values import FidelityKind, LedgerRow, Node, NodeKind, Replay, Session
from playhead.engine import seam
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.engine.preflight import plan_replay
from playhead.engine.recorder import Recorder
from playhead.engine.replay import execute
from playhead.store.memory import MemoryStore
from playhead.store.ports import Store


class NotApplicable(Exception):  # noqa: N818 - a signal
    """Raised by a harness: the framework has no such thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded run: what it gave or raised, and its session with nodes."""

    session: Session
    nodes: tuple[Node, ...]
    output: Any = None
    error: BaseException | None = None

    @property
    def calls(self) -> list[Node]:
        return [node for node in self.nodes if node.kind is NodeKind.TOOL_CALL]

    @property
    def model_calls(self) -> list[Node]:
        return [node for node in self.nodes if node.kind is NodeKind.MODEL_CALL]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(Recorded):
    """A settled replay and the session that it recorded."""

    replay: Replay

    @property
    def rows(self) -> list[LedgerRow]:
        """The ledger rows of tool calls."""
        return [row for row in self.replay.ledger if row.kind == "tool"]

    @property
    def by(self) -> list[str]:
        return [row.by for row in self.rows]

    @property
    def faithful(self) -> bool:
        return self.replay.fidelity is not None and self.replay.fidelity.kind is FidelityKind.FAITHFUL

    @property
    def message(self) -> str:
        """Why the replay failed."""
        return self.replay.error.message if self.replay.error is not None else ""


class Bench:
    """Records and replays. Close it at the end."""

    def __init__(self, store: Store | None = None, recorder: Recorder | None = None) -> None:
        self.store = store or MemoryStore()
        self.recorder = recorder or Recorder(self.store, interval=0.001)

    def close(self) -> None:
        self.recorder.close()

    def record(self, run: Callable[..., Any], inputs: Mapping[str, Any], name: str = "conformance") -> Recorded:
        """Runs ``run(**inputs)`` as a recorded agent."""
        scope = seam.session(name, inputs=dict(inputs), recorder=self.recorder, function=True)
        error: BaseException | None = None
        session_id = ""
        try:
            with scope as active:
                assert active is not None
                session_id = active.session_id
                scope.output = run(**inputs)
        except NotApplicable:
            raise
        except Exception as raised:  # noqa: BLE001 - the run's own
            error = raised
        return self.read(session_id, output=scope.output, error=error)

    def read(self, session_id: str, *, output: Any = None, error: BaseException | None = None) -> Recorded:
        self.recorder.flush()
        nodes = tuple(self.store.sessions.nodes(session_id))
        return Recorded(session=self.store.sessions.get(session_id), nodes=nodes, output=output, error=error)

    def replay(
        self, baseline: Recorded, run: Any, *, tool_policy: ToolPolicy | Mapping[str, Any] | None = None,
        model_policy: ModelPolicy | None = None, override: ReplayOverride | None = None, writer: Any = None,
        force: bool = False,
    ) -> Replayed:  # fmt: skip
        """Replays a recorded run with the same callable, or any other entry point."""
        policy = ToolPolicy.model_validate(tool_policy) if isinstance(tool_policy, Mapping) else tool_policy
        request = ReplayCreateRequest(
            baseline_session_id=baseline.session.id,
            tool_policy=policy,
            model_policy=model_policy or LiveModel(),
            override=override,
            force=force,
        )
        plan = plan_replay(self.store, request, inline=True, writer=writer)
        stored = self.store.replays.create(plan.replays(SYSTEM_CLOCK, SYSTEM_IDS)[0])
        settled, session = execute(plan, stored, run, store=self.store, recorder=self.recorder, writer=writer)
        read = self.read(session.id, output=session.output)
        return Replayed(session=session, nodes=read.nodes, output=session.output, replay=settled.replay)
