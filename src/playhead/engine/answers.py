"""Model history in a replay: the recorded model calls, behind the door that the seam asks."""

from collections.abc import Sequence
from typing import Literal

from playhead.core.model_tape import End, ModelAsked, ModelTape, RecordedModelCall, decide_model
from playhead.core.tape import Tape
from playhead.core.values import Node, Session
from playhead.engine.replaying import Ended, ModelDecision, ModelView


class RecordedAnswers:
    """Answers model requests from a baseline; called under the replay's lock.

    Args:
        nodes: all nodes of the baseline.
        tape: the tool side, which knows where calls are in the words of the recording, and whether it is used up.
        baseline: whose status and output the replay takes over where the recording ends.
    """

    def __init__(
        self, nodes: Sequence[Node], tape: Tape, baseline: Session, *, on_miss: Literal["fail", "live"]
    ) -> None:
        self._models = ModelTape(nodes)
        self._tape = tape
        self._baseline = baseline
        self._on_miss = on_miss

    def decide(self, view: ModelView) -> ModelDecision:
        """What answers a request; see `core.model_tape.decide_model`."""
        asked = self._asked(view)
        decision = decide_model(asked, self._models, self._tape, on_miss=self._on_miss)
        if isinstance(decision, End):
            return Ended(status=self._baseline.status, output=self._baseline.output, detail=decision.detail)
        return decision

    def hides(self, view: ModelView) -> Node | None:
        """The recorded call that a scripted failure of this request hides; it stays free for a repetition."""
        found = self._models.hidden(self._asked(view))
        return None if found is None else found.node

    def twin_of(self, view: ModelView) -> str | None:
        """The recorded model call that asked the same, for a model that answers by itself; each is given once."""
        found = self._models.claim(self._asked(view)).call
        return None if found is None else found.node.id

    def _asked(self, view: ModelView) -> ModelAsked:
        return ModelAsked(
            ref=view.ref,
            requested=view.requested,
            request=view.request,
            key=view.key,
            no_key=view.no_key,
            path=self._tape.recorded_path(view.path),
        )

    def cover(self, path: tuple[str, ...]) -> list[RecordedModelCall]:
        """Marks the model calls recorded below a tool call (its ``child_path``) as covered; gives those newly so."""
        return self._models.cover(path)

    def leftovers(self) -> list[RecordedModelCall]:
        """Recorded model calls that nothing asked for."""
        return self._models.leftovers()
