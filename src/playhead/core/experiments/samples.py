"""What an experiment's replays gave, by case: the input of its report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from playhead.core.values import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One replay of a case, or its baseline: how it ended and what it took.

    ``cost`` in US dollars, ``latency`` in milliseconds, None where it is not known.
    """

    status: str
    replay_id: str | None = None
    session_id: str | None = None
    error: str | None = None
    fidelity: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    cost: float | None = None
    tokens: int | None = None
    latency: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSamples:
    """What is known of one case; ``baseline`` None when its session was erased."""

    session_id: str
    baseline: Sample | None
    arms: Mapping[str, Sequence[Sample]] = field(default_factory=dict[str, Sequence[Sample]])
