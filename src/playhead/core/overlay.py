"""The course of an injection over the calls of a tool: which one fails, and what later calls are to it.

For each inject config of a tool the tape keeps an `Overlay`, which says of each call in turn: inject, answer as the
corrected call, or leave it to what comes next.
"""

from dataclasses import dataclass
from hashlib import sha256

from playhead.core.claim import OverlayStep
from playhead.core.injection import Scene, Surroundings, is_fix, scene
from playhead.core.match import equal
from playhead.core.occurrence import response_of
from playhead.core.policy import CallView, InjectConfig, InjectKind

DEFAULT_TIMES: dict[InjectKind, int | None] = {
    "validation_error": None,
    "not_found": None,
    "rate_limit": 1,
    "timeout": 1,
    "partial": 1,
    "empty": None,
    "malformed": 1,
    "error": 1,
}
"""How often an identical repetition of the failed call fails, the first failure included; None is always."""


THEN = OverlayStep("then")


@dataclass(slots=True)
class _Placed:
    slot: str
    response: str | None
    call: CallView
    scene: Scene
    given: int = 1
    fixed: bool = False


class Overlay:
    """The course of one inject config over the calls of one tool."""

    def __init__(self, config: InjectConfig, surroundings: Surroundings) -> None:
        self._config = config
        self._surroundings = surroundings
        self._times = config.times if config.times is not None else DEFAULT_TIMES[config.kind]
        self._placed: list[_Placed] = []

    def step(self, slot: str, call: CallView, number: int) -> OverlayStep:
        """What happens to the ``number``-th call of the tool. Calls of one response do not react to each other."""
        response = response_of(slot)
        for placed in reversed(self._placed):
            if response is not None and placed.response == response and placed.slot != slot:
                continue
            reaction = self._reaction(placed, call)
            if reaction is not None:
                return reaction
        if any(placed.slot == slot for placed in self._placed) or not chosen(self._config, call, number):
            return THEN
        self._placed.append(_Placed(slot, response, call, scene(self._config, call)))
        return OverlayStep("inject")

    def _reaction(self, placed: _Placed, call: CallView) -> OverlayStep | None:
        if same_call(placed.call, call):
            if self._times is None or placed.given < self._times:
                placed.given += 1
                return OverlayStep("inject", placed.slot)
            fix = True
        else:
            fix = is_fix(self._config, placed.scene, placed.call, call, self._surroundings)
        if not fix or placed.fixed:
            return None
        placed.fixed = True
        return OverlayStep("corrected", placed.slot)


def chosen(config: InjectConfig, call: CallView, number: int) -> bool:
    """Whether the config makes the ``number``-th call of a tool fail. The same for the same seed and call."""
    if config.probability is None:
        return number == (config.nth or 1)
    text = f"{config.seed}\n{call.tool}\n{call.key or ''}\n{number}"
    drawn = int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return drawn < config.probability * 2**64


def same_call(a: CallView, b: CallView) -> bool:
    """Whether two calls of a tool are identical."""
    return a.key == b.key if a.key is not None or b.key is not None else equal(a.arguments, b.arguments)
