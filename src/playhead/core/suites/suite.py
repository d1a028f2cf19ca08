"""Suites and cases: one captured turn, everything before it, and what should happen next.

A suite lives in a store or in a folder; both hold these values. The JSON form is the contract.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from playhead.core.canonical import canonical_stored
from playhead.core.effects import ToolEffect
from playhead.core.facts.named import Fact
from playhead.core.guards import Guard
from playhead.core.plain_values import plain_json
from playhead.core.suites.labels import Label
from playhead.core.values import JSON

FORMAT: Final = "playhead.suite/1"
HELD_BACK: Final = 20
"""Percent of sessions whose cases are held back."""

Slice: TypeAlias = Literal["tune", "held_back"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Intent(_Value):
    """What a suite says of an intent. ``required``: a gate may not do without power for it."""

    traffic: float | None = Field(default=None, ge=0, le=1)
    high_traffic: bool = False
    required: bool = False
    margin: float | None = Field(default=None, gt=0)


class Target(_Value):
    margin: float = Field(default=0.05, gt=0, lt=1)
    power: float = Field(default=0.8, gt=0, lt=1)


class Defaults(_Value):
    runs: int = Field(default=3, ge=1)
    max_steps: int = Field(default=5, ge=1)


def _no_parameters() -> JSON:
    return {"type": "object", "properties": {}}


class ToolSchema(_Value):
    """A tool as it was offered. ``parameters`` is its JSON Schema."""

    name: str
    description: str = ""
    parameters: Any = Field(default_factory=_no_parameters)
    strict: bool = False


class Call(_Value):
    """A call that the model asked for. Arguments whose text is no JSON stay as ``raw_arguments``."""

    id: str
    tool: str
    arguments: Any = None
    raw_arguments: str | None = None

    @property
    def emitted(self) -> JSON:
        """The arguments in stored form."""
        if self.raw_arguments is not None:
            return {"$invalid": self.raw_arguments}
        return {} if self.arguments is None else self.arguments


class Message(_Value):
    """One message of a case. ``content`` is text, or parts of the normal form; ``outcome`` what a call gave, with the
    text that the model saw as ``content`` where that differs."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Any = None
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
    outcome: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.role == "tool" and (self.call_id is None or self.outcome is None):
            raise ValueError("a message of role tool has a call_id and an outcome")
        if self.calls and self.role != "assistant":
            raise ValueError("only a message of role assistant has calls")
        return self


class Round(_Value):
    """One round of recorded calls, and what each gave."""

    calls: tuple[Call, ...] = Field(min_length=1)
    outcomes: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    text: str | None = None
    shown: dict[str, Any] = Field(default_factory=dict[str, Any])  # what the model saw, where it was not the outcome


class Source(_Value):
    """Where a case comes from."""

    session: str | None = None
    node: str | None = None
    captured_at: str | None = None
    agent_version: str | None = None
    agent: str | None = None
    external_id: str | None = None
    task: Any = None


class Case(_Value):
    """One captured turn. ``tools`` are names in the suite's tools, as they were offered at that turn."""

    id: str = Field(min_length=1)
    intent: str = "all"
    tags: tuple[str, ...] = ()
    slice: Slice = "tune"
    status: Literal["active", "retired"] = "active"
    retired_because: str | None = None
    source: Source = Field(default_factory=Source)
    history: tuple[Message, ...] = ()
    tools: tuple[str, ...] = ()
    tool_choice: Any = "auto"
    model_params: dict[str, Any] = Field(default_factory=dict[str, Any])
    recorded: tuple[Round, ...] = ()
    answer: str | None = None
    facts: tuple[Fact, ...] = ()
    alternatives: tuple[str, ...] = ()
    repeat_ok: int = Field(default=1, ge=1)
    within_turns: int = Field(default=1, ge=1)
    label: Label | None = None

    @field_validator("tools")
    @classmethod
    def _once(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(tools)) < len(tools):
            raise ValueError("a tool is offered twice")
        return tools


class Suite(_Value):
    """The head of a suite: what holds for all of its cases."""

    format: Literal["playhead.suite/1"] = FORMAT
    name: str = Field(min_length=1)
    intents: dict[str, Intent] = Field(default_factory=dict[str, Intent])
    effects: dict[str, ToolEffect] = Field(default_factory=dict[str, ToolEffect])
    guards: dict[str, Guard] = Field(default_factory=dict[str, Guard])  # of results, where a run turns them on
    target: Target = Target()
    defaults: Defaults = Defaults()
    tasks: dict[str, Any] = Field(default_factory=dict[str, Any])  # what benchmarks expect of whole tasks

    @field_validator("effects", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """A bare class (``"refund": "write"``) is short for ``{"class": "write"}``."""
        if not isinstance(given, dict):
            return given
        return {k: {"class": v} if isinstance(v, str) else v for k, v in given.items()}  # pyright: ignore[reportUnknownVariableType]


Tools: TypeAlias = Mapping[str, ToolSchema]
"""Tool schemas by the name under which cases refer to them."""


def to_json(value: BaseModel) -> dict[str, JSON]:
    """The JSON form of a suite, case or tool; members at their default are left out."""
    return plain_json(value.model_dump(by_alias=True, exclude_defaults=True))


def case_json(case: Case) -> dict[str, JSON]:
    """The JSON form of a case; its slice and status are always there."""
    found = to_json(case)
    if case.label is not None:
        found["label"] = {"kind": case.label.kind, **found.get("label", {})}
    return {"id": case.id, "intent": case.intent, "slice": case.slice, "status": case.status} | found


def suite_json(suite: Suite) -> dict[str, JSON]:
    return {"format": FORMAT, **to_json(suite)}


def offered(case: Case, tools: Tools) -> dict[str, ToolSchema]:
    """The tools of a case by the name that the model sees.

    Raises:
        KeyError: a tool that the suite does not have.
    """
    return {tools[name].name: tools[name] for name in case.tools}


def schemas(case: Case, tools: Tools) -> dict[str, JSON]:
    """The JSON Schemas of the parameters of a case's tools."""
    return {name: tool.parameters for name, tool in offered(case, tools).items()}


def _digest(value: JSON) -> str:
    return sha256(canonical_stored(plain_json(value))).hexdigest()


def tools_digest(case: Case, tools: Tools) -> str:
    return _digest([to_json(tool) for tool in offered(case, tools).values()])[:32]


def case_digest(case: Case, tools: Tools, texts: dict[str, bytes] | None = None) -> str:
    """What changes when the history, tools, recorded calls, label or facts of a case do.

    Args:
        texts: canonical texts of these tools; filled, and to be given again for the next case of the same suite.
    """
    whole = case_json(case)
    kept = {name: whole.get(name) for name in ("history", "recorded", "answer", "label", "facts")}
    known = {} if texts is None else texts
    for name in case.tools:
        if name not in known:
            known[name] = canonical_stored(plain_json(to_json(tools[name])))
    by_seen = {tools[name].name: known[name] for name in case.tools}
    listed = b",".join(by_seen.values())  # "tools" is the last member in canonical order
    return sha256(canonical_stored(plain_json(kept))[:-1] + b',"tools":[' + listed + b"]}").hexdigest()[:32]


def suite_digest(suite: Suite, cases: Iterable[Case], tools: Tools) -> str:
    """What changes when any case that is run, or what is declared of the tools, does."""
    texts: dict[str, bytes] = {}
    digests = sorted([case.id, case_digest(case, tools, texts)] for case in cases if case.status == "active")
    return _digest({"effects": to_json(suite).get("effects"), "cases": digests})[:32]


def slice_of(session: str) -> Slice:
    """The slice of everything captured from a session: decided by its id, never by hand."""
    number = int.from_bytes(sha256(f"playhead.slice/1:{session}".encode()).digest()[:8])
    return "held_back" if number % 100 < HELD_BACK else "tune"


def trial_seed(seed: int, case: str, run: int) -> int:
    """The seed of one trial."""
    text = canonical_stored(["playhead.trial/1", seed, case, run])
    return int.from_bytes(sha256(text).digest()[:4])


def add_tool(tools: dict[str, ToolSchema], tool: ToolSchema) -> str:
    """Keeps a tool under its name; another schema of the same name is kept beside it. Gives the name to refer to."""
    name = tool.name
    if name in tools and tools[name] != tool:
        name = f"{tool.name}#{_digest(to_json(tool))[:8]}"
    tools.setdefault(name, tool)
    return name


def unknown_tools(cases: Sequence[Case], tools: Tools) -> dict[str, list[str]]:
    """Tools that cases offer and the suite does not have, with the ids of those cases."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for name in case.tools:
            if name not in tools:
                found.setdefault(name, []).append(case.id)
    return found
