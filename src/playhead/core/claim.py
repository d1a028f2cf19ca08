"""What a call has of the tape: the recorded occurrence that is its own, or why there is none."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from playhead.core.recording import Recording
from playhead.core.values import JSON, NoKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """One tool call of a model response. ``parameters`` is the schema that was offered for it, for injections."""

    call_id: str | None
    tool: str
    arguments: JSON
    key: str | None
    no_key: NoKey | None = None
    parameters: JSON = None
    scope: JSON = None


class OverlayStep(NamedTuple):
    """What an injection does with a call; ``of`` is the slot of the earlier injected call that this one reacts to."""

    what: Literal["inject", "corrected", "then"]
    of: str | None = None


class InjectionStep(NamedTuple):
    """The step of the inject config at ``depth`` (an inject config may stand in the ``then`` of another)."""

    depth: int
    step: OverlayStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one attempt of a call has of the tape.

    Attributes:
        ref: of the call, for `CallView.ref`.
        step: the name of this call in the paths of the calls below it.
        occurrence: among the replay's calls of one (path, key); ``number`` among all its calls of the tool. 1-based.
        recording: what was recorded for it.
        reason: why history has no answer: ``no_key``, ``never_recorded``, ``other_args``, ``other_path``, ``used_up``
            or ``attempts``. There is no recording then, but for calls without a key, which claim each other.
        recorded: how many recorded calls equal it.
        loose: why the recording is not exactly this call's: the ignored pointers, "path", "repeat".
        ambiguous: equal calls overlapped, their answers differ and nothing tells their order.
        cases: for each static case with an ``occurrence`` that fits: (its index, the how-many-th such call this is).
        injection: what an inject config does with the call, None when it leaves it alone.
    """

    ref: str
    step: str
    occurrence: int
    number: int
    recording: Recording | None = None
    reason: str | None = None
    recorded: int = 0
    loose: tuple[str, ...] = ()
    ambiguous: bool = False
    cases: tuple[tuple[int, int], ...] = ()
    injection: InjectionStep | None = None


class Rejection(NamedTuple):
    """A call that the live framework refused before any tool ran. ``same``: the recorded one was refused alike."""

    recording: Recording | None
    same: bool
