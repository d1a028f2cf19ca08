"""Experiments and their runs as they are stored."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from playhead.core.canonical import canonical
from playhead.core.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A stored experiment; ``config`` is the JSON form of `ExperimentConfig` with evaluators named by version."""

    name: str
    created_at: int
    config: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRun:
    """A run: everything that decides it, frozen, and the jobs that do it.

    Attributes:
        experiment, arms: the experiment's JSON form as it was.
        config: the JSON form of `RunConfig`; its cohort is ``name@version``.
        members: the sessions of the cohort version that can be replayed, in order.
        refused: the others, with why not, by session id.
        job_ids: the first job, then one for each time failed replays were tried again.
        stopped: why the run was ended before it was done.
    """

    id: str
    experiment: str
    created_at: int
    cohort: str
    arms: JSON
    evaluators: JSON
    config: JSON
    members: tuple[str, ...]
    refused: dict[str, str] = field(default_factory=dict[str, str])
    job_ids: tuple[str, ...] = ()
    stopped: str | None = None

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms that are run, in order."""
        return tuple(arm["name"] for arm in self.arms)

    @property
    def repeats(self) -> int:
        return int(self.config["repeats"])

    @property
    def digest(self) -> str:
        """Tells whether two runs were set up alike: arms, evaluators, cohort members, settings."""
        told: dict[str, Any] = {
            "experiment": self.experiment,
            "cohort": self.cohort,
            "arms": self.arms,
            "evaluators": self.evaluators,
            "config": self.config,
            "members": list(self.members),
        }
        return hashlib.sha256(canonical(told)).hexdigest()
