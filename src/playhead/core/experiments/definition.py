"""Experiments: a change (its arms) and its evaluators; a run applies them to a cohort version.

Two arms are special. ``baseline`` is the recorded sessions themselves; it is always there and never run.
``unchanged`` re-runs the agent with no change: it shows how much of a difference is noise.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from playhead.core.names import checked_name
from playhead.core.policy import ModelPolicy, ReplayOverride, ToolPolicy
from playhead.core.requests import EvaluatorConfig

BASELINE, UNCHANGED = "baseline", "unchanged"


class Arm(BaseModel):
    """One change. What is left out is as in the recording."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str
    agent_version: str | None = None
    override: ReplayOverride | None = None
    tool_policy: ToolPolicy | None = None
    model_policy: ModelPolicy | None = None

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if name == BASELINE:
            raise ValueError(f"{BASELINE!r} is the recorded sessions themselves; choose another name")
        return checked_name(name)

    @property
    def changes(self) -> bool:
        """Whether anything differs from the recording."""
        return any(v is not None for v in (self.agent_version, self.override, self.tool_policy, self.model_policy))

    @model_validator(mode="after")
    def _is_a_change(self) -> "Arm":
        if self.name != UNCHANGED and not self.changes:
            raise ValueError(f"arm {self.name!r} changes nothing; an arm without a change is named {UNCHANGED!r}")
        return self


class Budget(BaseModel):
    """Where a run stops. Money in US dollars as costs of model calls are counted; minutes of wall time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    money: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)

    @property
    def limits(self) -> bool:
        return any(v is not None for v in (self.money, self.tokens, self.minutes))


class ExperimentConfig(BaseModel):
    """Arms and evaluators under a name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arms: tuple[Arm, ...] = Field(min_length=1)
    evaluators: tuple[EvaluatorConfig, ...] = ()

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return checked_name(name)

    @field_validator("arms")
    @classmethod
    def _arms(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        names = [arm.name for arm in arms]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two arms are named {twice!r}")
        return arms


class RunConfig(BaseModel):
    """How an experiment is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cohort: str
    repeats: int = Field(default=1, ge=1, le=100)
    evaluate_baselines: Literal["none", "if_missing", "force"] = "if_missing"
    budget: Budget = Budget()
    timeout: float | None = Field(default=None, gt=0)
    isolation: Literal["require", "best", "off"] = "best"
