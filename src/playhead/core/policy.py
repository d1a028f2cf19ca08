"""Tool policy, model policy, override, and the closed set of decisions.

The JSON form is the contract; these classes mirror it. Unknown fields and values are refused; `core.policy_json` says
where and what is allowed. Patterns and results are in stored form; Python values in them are converted.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from playhead.core.protocol.shape import is_list, is_object
from playhead.core.stored import to_stored
from playhead.core.values import JSON, NoKey, Outcome, Provenance

OnMiss: TypeAlias = Literal["fail", "error_result", "passthrough"]
Scope: TypeAlias = Literal["baseline", "cohort_version", "agent"]


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _stored(value: Any) -> JSON:
    """JSON as it is; anything else in it in stored form."""
    if is_object(value) and not any(type(k) is not str for k in value):
        return {k: _stored(v) for k, v in value.items()}
    if is_list(value):
        return [_stored(v) for v in value]
    return value if value is None or isinstance(value, str | int | bool) else to_stored(value)


def _pointer(text: str) -> str:
    if text and not text.startswith("/"):
        raise ValueError(f"is no JSON pointer: write '/{text}'")
    return text


Stored: TypeAlias = Annotated[Any, BeforeValidator(_stored)]
Pointer: TypeAlias = Annotated[str, AfterValidator(_pointer)]


class HistoryConfig(_Config):
    """The recorded outcome of the same call."""

    type: Literal["history"] = "history"
    scope: Scope = "baseline"
    on_miss: OnMiss = "fail"
    ignore: tuple[Pointer, ...] = ()
    order: Literal["recorded"] | None = None
    repeat: Literal["error", "last", "first"] = "error"


class ErrorCase(_Config):
    """A failure that a static case gives. ``class`` in JSON is ``error_class`` here."""

    message: str
    error_class: str | None = Field(
        default=None, validation_alias=AliasChoices("class", "error_class"), serialization_alias="class"
    )
    status: int | None = None
    code: str | int | None = None
    retry_after: float | None = None


class StaticCase(_Config):
    """One canned answer. Exactly one of ``result`` (null counts) and ``error`` is given; no ``match`` fits any call."""

    match: Annotated[dict[str, Any] | None, BeforeValidator(_stored)] = None
    match_mode: Literal["exact", "subset"] = "exact"
    result: Stored = None
    error: ErrorCase | None = None
    occurrence: int | None = Field(default=None, ge=1)
    delay_ms: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _answers_once(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise ValueError('gives either "result" (null counts) or "error"')
        return self

    @model_serializer(mode="wrap")
    def _without_the_other(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        written.pop("error" if self.error is None else "result", None)
        return written


class StaticConfig(_Config):
    """The first case that fits the call."""

    type: Literal["static"] = "static"
    cases: tuple[StaticCase, ...] = ()
    on_miss: OnMiss = "fail"
    ignore: tuple[Pointer, ...] = ()


class PassthroughConfig(_Config):
    """The live tool."""

    type: Literal["passthrough"] = "passthrough"


class LLMConfig(_Config):
    """A model writes the result."""

    type: Literal["llm"] = "llm"
    model: str | None = None
    instructions: str | None = None


class ScriptedOutcome(_Config):
    """An outcome that answers the corrected call after an injection."""

    kind: Literal["value", "error", "result_error"] = "value"
    value: Stored = None
    error: ErrorCase | None = None


InjectKind: TypeAlias = Literal[
    "validation_error", "not_found", "rate_limit", "timeout", "partial", "empty", "malformed", "error"
]


class InjectConfig(_Config):
    """A scripted failure on chosen calls, otherwise ``then`` (left out: ``history(baseline, fail)``).

    Chosen is the ``nth`` call of the tool, or each call with ``probability``; the first one where neither is given.
    ``times`` is how often an identical repetition fails too; left out, it is the default of the kind.
    """

    type: Literal["inject"] = "inject"
    kind: InjectKind
    nth: int | None = Field(default=None, ge=1)
    probability: float | None = Field(default=None, ge=0, le=1)
    seed: int = 0
    times: int | None = Field(default=None, ge=1)
    pointer: Pointer | None = None
    allowed: tuple[Any, ...] | None = None
    candidates: tuple[Any, ...] | None = None
    message: Literal["prescriptive", "plain", "production"] = "prescriptive"
    text: str | None = None
    retry_after: float = 30.0
    status: int | None = None  # of kind "error"
    mode: Literal["truncated_json", "wrong_type", "out_of_range"] = "truncated_json"
    done: tuple[Any, ...] | None = None
    failed: tuple[Any, ...] | None = None
    corrected: Literal["recorded"] | ScriptedOutcome = "recorded"
    then: "ToolConfig | None" = None

    @model_validator(mode="after")
    def _chosen_once(self) -> Self:
        if self.nth is not None and self.probability is not None:
            raise ValueError('gives either "nth" or "probability"')
        return self


ToolConfig: TypeAlias = Annotated[
    HistoryConfig | StaticConfig | PassthroughConfig | LLMConfig | InjectConfig, Field(discriminator="type")
]


class ToolPolicy(_Config):
    """What answers each tool call of a replay. Without anything said: ``history(baseline, fail)``."""

    default: ToolConfig = HistoryConfig()
    tools: dict[str, ToolConfig] = Field(default_factory=dict)

    def config_for(self, tool: str) -> "ToolConfig":
        """The config that answers for ``tool``."""
        return self.tools.get(tool, self.default)


class ModelFailure(_Config):
    """A scripted failure of chosen model requests: the ``nth`` one, or each with ``probability``; else the first.

    ``times`` is how often the same request fails, repetitions included; then it is answered as without the failure.
    """

    kind: Literal["rate_limit", "timeout", "error"]
    nth: int | None = Field(default=None, ge=1)
    probability: float | None = Field(default=None, ge=0, le=1)
    seed: int = 0
    times: int = Field(default=1, ge=1)
    status: int | None = Field(default=None, ge=400, le=599)
    retry_after: float | None = Field(default=None, ge=0)  # seconds that the agent is told to wait
    text: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.nth is not None and self.probability is not None:
            raise ValueError('gives either "nth" or "probability"')
        if self.kind == "timeout" and (self.status is not None or self.retry_after is not None):
            raise ValueError("a timeout has no status and no time to wait")
        return self


class LiveModel(_Config):
    """The real model, but for requests that are made to fail."""

    type: Literal["live"] = "live"
    inject: ModelFailure | None = None


class HistoryModel(_Config):
    """The recorded response to the same request, but for requests that are made to fail."""

    type: Literal["history"] = "history"
    on_miss: Literal["fail", "live"] = "fail"
    inject: ModelFailure | None = None


ModelPolicy: TypeAlias = Annotated[LiveModel | HistoryModel, Field(discriminator="type")]


class ReplayOverride(_Config):
    """The one thing that a fork changes; at least one field."""

    model: str | dict[str, str] | None = None
    system_prompt: str | None = None
    prompt: str | dict[str, str] | None = None
    model_params: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if all(value is None for value in (self.model, self.system_prompt, self.prompt, self.model_params)):
            raise ValueError("changes nothing: give at least one of model, system_prompt, prompt, model_params")
        return self


# --- decisions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """Give the call this outcome (stored form; decode a fresh copy each time)."""

    outcome: Outcome
    provenance: Provenance
    marks: tuple[str, ...] = ()
    delay_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLive:
    """Run the real tool. ``missed`` is the miss text when a miss under passthrough led here."""

    missed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the replay. ``reason`` is a stable word (never_recorded, other_args, used_up, no_key, ambiguous, stale,
    mark, invalid_args, ...); ``message`` the whole miss text, redacted."""

    reason: str
    message: str
    closest: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResult:
    """Give the agent a tool error and go on. The miss still counts.

    ``message`` is for the agent and shows nothing of the recording; ``missed`` is the whole miss text, for the ledger.
    """

    reason: str
    message: str
    missed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    config: LLMConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Inject:
    """Give the call this scripted outcome in place of the one it hides."""

    outcome: Outcome
    kind: str
    hides: Provenance | None = None


Decision: TypeAlias = Serve | RunLive | Stop | ErrorResult | Generate | Inject


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """What `decide` knows of a call: never more than the model emitted.

    ``ref`` identifies the call inside its session for the tape: (model call, call id) and attempt, or a number given
    at start when nobody announced it.
    """

    ref: str
    tool: str
    arguments: JSON  # stored form
    key: str | None
    no_key: NoKey | None = None
    path: tuple[str, ...] = ()
    output_schema: JSON = None
    parameters: JSON = None  # JSON Schema of the arguments, for inject
    scope: JSON = None  # of an op: the part of its key that is not arguments
    asked_by: str | None = None  # the recorded model call that the asking one stands for: its calls come first
