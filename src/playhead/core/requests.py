"""What a caller asks for when creating a replay. The JSON form is the contract of the API and the command line."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from playhead.core.policy import ModelPolicy, ReplayOverride, ToolPolicy


class EvaluatorConfig(BaseModel):
    """An evaluator and its parameters; a name without a version means the newest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluator: str
    params: dict[str, Any] = Field(default_factory=dict)


class ReplayCreateRequest(BaseModel):
    """One replay of a recorded session. Left out: the recorded agent version, no change, ``history(baseline, fail)``
    for tools, a live model, the built-in ``fidelity`` evaluator."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    baseline_session_id: str
    agent_version: str | None = None
    override: ReplayOverride | None = None
    tool_policy: ToolPolicy | None = None
    model_policy: ModelPolicy | None = None
    evaluators: tuple[EvaluatorConfig, ...] = ()
    evaluate_baselines: bool | Literal["none", "if_missing", "force"] = "none"
    repeats: int = Field(default=1, ge=1, le=1000)
    label: str | None = None
    idempotency_key: str | None = None
    force: bool = False
    timeout: float | None = Field(default=None, gt=0)
    isolation: Literal["require", "best", "off"] = "best"
