"""What an importer's reader hands to the assembler, the same for every source.

A reader turns bytes into `Record`s, one per observation of the source (span, run, row, event, message list), and one
`Trace` per session that they belong to. It decides nothing that another source also has to decide: kinds are
candidates, results are as stored, with what is known about their type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from playhead.core.values import JSON, Cost, ErrorInfo, NodeKind, OutcomeKind, Usage, Verdict

How: TypeAlias = Literal["typed", "text", "untyped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A value as the source stored it.

    ``how`` says what a string in it means: ``typed`` fields hold JSON structure (or its encoding, already decoded),
    ``text`` fields are text by construction, and in an ``untyped`` field a string may be text or JSON.
    """

    value: JSON
    how: How = "typed"
    cut: bool = False  # its recorded size is larger than what is here


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a source shows of one model call. None is "not captured", which is not the same as empty."""

    messages: Sequence[JSON] | None = None  # normal form, system text first
    response: JSON = None  # assistant message in normal form
    tools: Sequence[JSON] | None = None
    tool_choice: JSON = None
    params: dict[str, JSON] | None = None
    requested: str | None = None
    served: str | None = None
    provider: str | None = None
    protocol: str | None = None
    response_id: str | None = None
    placeholders: bool = False  # messages hold stand-ins for content
    streamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """What a source shows of one executed tool call."""

    tool: str
    arguments: Captured | None = None
    call_id: JSON = None
    result: Captured | None = None
    executor: Literal["agent", "provider"] = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One observation. ``kind`` is the source's own claim; None leaves it to the assembler (a span).

    ``failure`` is given only where the source itself tells a retry, an error result, a refusal or a pause from an
    error. ``partial`` records only add to another record with the same id (log records, updates): on their own they
    prove no step.
    """

    external_id: str
    parent: str | None = None
    kind: NodeKind | None = None
    word: str | None = None
    name: str = ""
    started_at: int | None = None
    ended_at: int | None = None
    seen_at: int | None = None  # when something about it was written; orders what has no start
    failed: bool = False
    failure: OutcomeKind | None = None
    error: ErrorInfo | None = None
    redacted: bool = False  # the source says that it hides the error or result
    model: ModelFacts | None = None
    tool: ToolFacts | None = None
    input: Captured | None = None
    output: Captured | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    agent: str | None = None
    conversation: str | None = None
    scope: str | None = None
    dialect: str | None = None
    merged: tuple[str, ...] = ()
    hint: str | None = None  # setting of the source that would capture the content
    partial: bool = False
    raw: dict[str, JSON] = field(default_factory=dict[str, JSON])
    found: dict[str, JSON] = field(default_factory=dict[str, JSON])  # attributes that an earlier assembly noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one session's records have in common.

    ``transcript`` holds the dialogue where the source is one message list: its turns are told from it. ``whole`` says
    that the records are everything there is, so a later import replaces instead of adding. ``metadata["service"]``
    names the agent when nothing else does.
    """

    format: str
    external_id: str
    instance: str = ""
    name: str | None = None
    agent: str | None = None
    input: JSON = None
    output: JSON = None
    conversation: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JSON] = field(default_factory=dict[str, JSON])
    verdicts: tuple[Verdict, ...] = ()
    transcript: Sequence[JSON] | None = None
    system_prompt: str | None = None
    status: Literal["completed", "failed", "abandoned"] | None = None
    whole: bool = False
    warnings: tuple[str, ...] = ()  # of an earlier assembly
    raw: dict[str, JSON] = field(default_factory=dict[str, JSON])
    file: str | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the person who imports decides."""

    agent: str | None = None
    decode_json: frozenset[str] = frozenset()
    keep_raw: Literal["none", "small", "all"] = "small"
    node_depth: int = 256
    payload_depth: int = 200
    nodes: int = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A warning or error with a stable code. ``external_id`` says about what."""

    code: str
    message: str
    external_id: str = ""
    file: str | None = None
    position: str | None = None


class RecordError(Exception):
    """A record or session that cannot be used; it never stops the rest of an import."""

    def __init__(self, code: str, message: str, external_id: str = "", position: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.external_id = external_id
        self.position = position
