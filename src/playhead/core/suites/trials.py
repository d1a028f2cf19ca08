"""A run of a suite and its trials, as they are stored."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from playhead.core.values import JSON, Usage

RunStatus: TypeAlias = Literal["running", "stopped", "completed"]
ERROR_LIMIT: Final = 0.02
"""The share of trials that infrastructure may end; above it a run says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One run of one model over a suite.

    ``cases`` are the ids that it set out to try, each ``runs`` times. ``config`` is what it was asked for, so that it
    can go on after an interruption; ``identity`` what makes two runs one configuration.
    """

    id: str
    suite: str
    suite_digest: str
    created_at: int
    model: str
    status: RunStatus = "running"
    driver: Literal["turn", "agent", "loop"] = "turn"
    slice: Literal["tune", "held_back", "all"] = "tune"
    runs: int = 3
    seed: int = 0
    strict: Literal["auto", "on", "off"] = "auto"
    outcome: Literal["spliced", "chained"] = "spliced"
    cases: tuple[str, ...] = ()
    config: dict[str, JSON] = field(default_factory=dict[str, JSON])
    identity: dict[str, JSON] = field(default_factory=dict[str, JSON])
    notes: tuple[str, ...] = ()
    scripted: bool = False
    reason: str | None = None  # why the held-back slice was read
    stopped_by: str | None = None
    ended_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStep:
    """One request and its response. ``request`` names the stored request; ``raw`` is the provider's own object."""

    request: str
    message: JSON
    purpose: Literal["turn", "outcome", "loop"] = "turn"
    raw: JSON = None
    usage: Usage | None = None
    cost: str | None = None
    latency_ms: float | None = None
    served: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt at a case. ``error`` with status ``error``: infrastructure, which never passes or fails."""

    run: str
    case: str
    n: int
    seed: int
    case_digest: str
    status: Literal["scored", "error"] = "scored"
    steps: tuple[TrialStep, ...] = ()
    final: str | None = None
    ended: str = "answer"
    error: str | None = None
    failure: str | None = None  # the trial's own: a context overflow, a refused request
    strict: bool = False
    session: str | None = None  # of driver agent
    extra: JSON = None  # what fuzzing and injection found
    scores: JSON = None  # as it was scored when it was made; reports score again
    started_at: int | None = None
    ended_at: int | None = None
    retries: int = 0
