"""The values that everything else is about: sessions, nodes, outcomes. Declared here and nowhere else.

Frozen, slotted and keyword-only; they are neither validated nor converted when constructed. `core.codec` reads and
writes their stored JSON form and validates at the edges over these same declarations.

JSON inside the values is in *stored form*: plain JSON in which typed values have the tagged forms of canonical JSON
(``{"$datetime": ...}``), so that every backend can keep it and every language can read it. `core.canonical` converts
in both directions. Times are integers: nanoseconds since the Unix epoch, UTC. Ids are UUIDv7 in lower-case text.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

JSON: TypeAlias = Any
"""Plain JSON (stored form): None, bool, int, float, str, list, dict with text keys; or `Encoded` while recording."""


class Encoded:
    """A JSON value that is already rendered, shared by everything that repeats it (a message in later requests).

    ``text`` is UTF-8 JSON; ``digest`` is the 32-byte sha256 of its canonical text. Only recorders make these; a store
    hands out plain JSON.
    """

    __slots__ = ("digest", "text")

    def __init__(self, text: bytes, digest: bytes) -> None:
        self.text = text
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoded) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class Origin(StrEnum):
    LIVE = "live"
    REPLAY = "replay"
    IMPORT = "import"
    PROBE = "probe"


class SessionStatus(StrEnum):
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"


class NodeKind(StrEnum):
    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    AGENT_CALL = "agent_call"
    SPAN = "span"


class NodeStatus(StrEnum):
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NEVER_RAN = "never_ran"


class OutcomeKind(StrEnum):
    VALUE = "value"
    ERROR = "error"
    RETRY = "retry"
    RESULT_ERROR = "result_error"
    INVALID_ARGS = "invalid_args"
    INTERRUPT = "interrupt"


class Effect(StrEnum):
    """Side-effect class of a tool."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"


class Mark(StrEnum):
    """How sure it is that a recorded result is what the tool returned. History serves the first four."""

    NATIVE = "native"
    EXACT = "exact"
    TEXT = "text"
    WRAPPED = "wrapped"
    REPR = "repr"
    REDACTED = "redacted"
    TRUNCATED = "truncated"
    MISSING = "missing"


SERVED_MARKS = frozenset({Mark.NATIVE, Mark.EXACT, Mark.TEXT, Mark.WRAPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens in exclusive buckets; None is unknown, not 0. ``raw`` is the provider's own object."""

    input_uncached: int | None = None
    input_cache_read: int | None = None
    input_cache_write: int | None = None
    output_visible: int | None = None
    output_reasoning: int | None = None
    raw: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Money for a call or session. ``amount`` is decimal text, never a float sum."""

    amount: str
    currency: str = "USD"
    source: Literal["reported", "estimated", "replayed"] = "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """What is kept of an exception. ``args`` is None when they have no stored form."""

    class_name: str
    module: str | None = None
    message: str = ""
    repr: str | None = None
    args: JSON = None
    status: int | None = None
    code: JSON = None
    retryable: bool | None = None
    retry_after: float | None = None
    attributes: dict[str, JSON] | None = None
    cause: "ErrorInfo | None" = None
    members: tuple["ErrorInfo", ...] = ()  # of an exception group


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A framework's own object beside the JSON value; decoded only by the codec that wrote it."""

    codec: str
    version: int
    data: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """A value above the size limit, which is never served. ``bytes`` is the full size of its JSON text."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call gave.

    ``value`` carries: the result (value), the model-visible text or structure (retry, result_error, invalid_args),
    the interrupt's payload (interrupt), the normal-form assistant message (a model call's value).
    """

    kind: OutcomeKind
    value: JSON = None
    error: ErrorInfo | None = None
    native: Native | None = None
    truncated: Truncated | None = None
    error_hint: bool = False  # a text result that reads like an error, from a source without an error flag


@dataclass(frozen=True, slots=True, kw_only=True)
class NoKey:
    """Why a call has no key: ``reason`` is a stable word, ``at`` the JSON pointer of the offending value."""

    reason: str
    at: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """In a replay: what answered a call."""

    by: Literal["served", "static", "live", "generated", "injected", "covered", "rejected", "missed", "stopped"]
    session_id: str | None = None
    node_id: str | None = None
    detail: str | None = None  # static case index, injected kind, fixture file ...
    loose: tuple[str, ...] = ()  # why a served answer is loose: ignored pointers, "path", "repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The part of a node that only tool calls have.

    ``arguments`` are those the model emitted, in stored form (``{"$invalid": text}`` when they did not parse).
    ``path`` names the enclosing tool calls, outermost first, each by `path_step`. ``occurrence`` is 1-based among
    calls of one (path, key); ``attempt`` is 1-based under one call id.
    """

    tool: str
    arguments: JSON
    call_id: str | None = None
    key: str | None = None
    no_key: NoKey | None = None
    path: tuple[str, ...] = ()
    occurrence: int = 1
    attempt: int = 1
    model_call: str | None = None  # id of the model call node that asked for it
    index: int | None = None  # place in that model call's response
    effect: Effect = Effect.UNKNOWN
    source: Literal["seam", "transcript", "provider"] = "seam"
    mark: Mark = Mark.NATIVE
    joined: str | None = None  # imports: id, args, name, position, unjoined
    overlapped: bool = False  # ran beside an equal call, and nothing tells their order
    provenance: Provenance | None = None


def path_step(tool: str, key: str | None, occurrence: int) -> str:
    """The name of one enclosing tool call inside a path."""
    return f"{key or '-' + tool}#{occurrence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """The part of a node that only model calls have.

    The request is the node's ``inputs``: ``{"messages": [...], "tools": [...], "tool_choice": ..., "params": {...}}``
    in the normal form of `core.protocol`; ``missing`` names the parts that the source did not capture.
    """

    requested: str | None = None
    served: str | None = None
    provider: str | None = None
    protocol: str | None = None
    response_id: str | None = None
    key: str | None = None
    no_key: NoKey | None = None
    occurrence: int = 1
    usage: Usage | None = None
    cost: Cost | None = None
    streamed: bool = False
    partial: bool = False
    first_chunk_at: int | None = None
    capture: Literal["full", "partial", "none"] = "full"
    missing: tuple[str, ...] = ()
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Where an imported session or node came from."""

    format: str
    instance: str = ""
    external_id: str = ""
    external_parent: str | None = None
    kind: str | None = None
    scope: str | None = None
    dialect: str | None = None
    file: str | None = None
    position: str | None = None  # line number or JSON pointer
    merged: tuple[str, ...] = ()
    raw: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step inside a session. ``seq`` orders nodes by when they started."""

    id: str
    session_id: str
    seq: int
    kind: NodeKind
    name: str
    started_at: int
    parent_id: str | None = None
    ended_at: int | None = None
    status: NodeStatus = NodeStatus.COMPLETED
    inputs: JSON = None
    outcome: Outcome | None = None
    attributes: dict[str, JSON] = field(default_factory=dict[str, JSON])
    call: ToolCall | None = None
    model: ModelCall | None = None
    imported: Imported | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of several: its input, its output (None when it ends with a tool call), its first and last node."""

    input: JSON
    output: JSON = None
    first_node: str | None = None
    last_node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: str
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One recorded run. ``inputs`` is everything needed to start it again."""

    id: str
    agent: str
    started_at: int
    origin: Origin = Origin.LIVE
    status: SessionStatus = SessionStatus.OPEN
    ended_at: int | None = None
    name: str | None = None
    agent_version: str | None = None
    inputs: JSON = None
    system_prompt: str | None = None  # imports: the system text that the source shows; part of the inputs
    output: JSON = None
    error: ErrorInfo | None = None
    turns: tuple[Turn, ...] = ()
    trailing_input: JSON = None
    conversation: Conversation | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JSON] = field(default_factory=dict[str, JSON])
    not_replayable: tuple[str, ...] = ()
    effective_prompt: JSON = None
    effective_system_prompt: JSON = None
    baseline_id: str | None = None  # origin replay
    replay_id: str | None = None
    revision: int = 1
    imported: Imported | None = None
    warnings: tuple[str, ...] = ()
    owner: str | None = None  # host:pid:start of the writing process while open
    project: str = "default"


OUTPUT_NOT_STORED = "the output is not stored"
"""How the warning of a session begins whose output has no stored form."""

FROM_SOURCE = "import"
"""The evaluator of verdicts that came with an imported record; they change with it."""

SOURCE_METADATA = frozenset({"inputs_derived", "traces"})
"""Metadata that says how an import read its record; it changes with it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One finding of an evaluator about a session. ``passed`` None means unknown.

    ``evidence`` names places: ``{"node": id, "pointer": "/call/arguments/amount"}``, a JSON pointer into the node's
    stored form.
    """

    name: str
    score: float | bool | None = None
    label: str | None = None
    passed: bool | None = None
    explanation: str | None = None
    evidence: tuple[JSON, ...] = ()
    evaluator: str | None = None  # name@version, with #digest of its parameters where it has some; or "import"
    params: JSON = None
    error: ErrorInfo | None = None  # why the evaluator came to no verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """How to start an agent: an entry point ``module:qualname`` or a command, and what it needs around it."""

    entry_point: str | None = None
    command: tuple[str, ...] = ()
    working_dir: str | None = None
    env: tuple[str, ...] = ()  # names passed on from the worker's environment
    secrets: tuple[str, ...] = ()
    timeout: float | None = None  # seconds
    memory: int | None = None  # bytes that its process tree may hold
    output: int | None = None  # bytes that it may print


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentVersion:
    """One runnable state of an agent's code. Immutable: a changed run spec or fingerprint is a new version."""

    id: str
    agent: str
    number: int
    created_at: int
    run_spec: RunSpec | None = None
    fingerprint: dict[str, JSON] = field(default_factory=dict[str, JSON])  # commit, dirty, python, frameworks
    capabilities: dict[str, JSON] = field(default_factory=dict[str, JSON])


class ReplayStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    EVALUATING = "evaluating"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class FidelityKind(StrEnum):
    FAITHFUL = "faithful"
    DIVERGED = "diverged"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first difference between a baseline and a result."""

    what: Literal["tool", "arguments", "order", "extra", "missing", "model_request", "output", "status", "outcome"]
    where: str  # readable node path, such as "model call 1" or "tool call 3 refund_payment"
    baseline_node: str | None = None
    result_node: str | None = None
    pointers: tuple[str, ...] = ()
    expected: JSON = None
    seen: JSON = None
    diff: str | None = None  # unified text diff where texts differ
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    kind: FidelityKind
    reasons: tuple[str, ...] = ()
    divergence: Divergence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What answered one call of a replay."""

    kind: Literal["tool", "model", "egress", "leftover", "note"]
    by: Literal[
        "served", "static", "live", "generated", "injected", "covered", "rejected", "missed", "stopped", "stale",
        "ambiguous", "unused", "blocked", "note",
    ]  # fmt: skip
    tool: str | None = None
    arguments: JSON = None
    key: str | None = None
    path: tuple[str, ...] = ()
    occurrence: int | None = None
    node_id: str | None = None  # node of the result session
    from_session: str | None = None
    from_node: str | None = None
    marks: tuple[str, ...] = ()  # loose, text, outdated, decided inside, rejected again, ended with the recording ...
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One re-run of a baseline: what was asked for, and once settled what came of it."""

    id: str
    baseline_session_id: str
    created_at: int
    status: ReplayStatus = ReplayStatus.PENDING
    agent_version: str | None = None
    tool_policy: JSON = None
    model_policy: JSON = None
    override: JSON = None
    evaluators: tuple[JSON, ...] = ()
    evaluate_baselines: str = "none"
    label: str | None = None
    idempotency_key: str | None = None
    group_id: str | None = None  # replays made by one request with repeats
    job_id: str | None = None
    cohort: str | None = None  # name@version of the experiment run that it is part of
    arm: str | None = None
    repeat: int | None = None
    result_session_id: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    error: ErrorInfo | None = None
    ledger: tuple[LedgerRow, ...] = ()
    fidelity: Fidelity | None = None
    guard: str | None = None  # level of the egress guard: none, python, process
    verdicts: tuple[Verdict, ...] = ()
    baseline_revision: int | None = None
