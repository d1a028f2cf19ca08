"""Scripted failures of model requests: what tests an agent's own retries. They lie over whatever else answers.

A request that failed and comes again is no new request: it fails as often as ``times`` says, and is answered then.
"""

from hashlib import sha256
from typing import Final

from playhead.core.policy import ModelFailure
from playhead.core.values import ErrorInfo, Outcome, OutcomeKind

_STATUS: Final = {"rate_limit": ("RateLimitError", 429), "error": ("ServerError", 500)}
_TEXT: Final = {"rate_limit": "rate limit exceeded", "timeout": "timed out", "error": "internal error"}


class ModelFailures:
    """Decides, request by request, which ones of a replay fail."""

    def __init__(self, config: ModelFailure) -> None:
        self._config = config
        self._asked = 0
        self._failed: dict[str, int] = {}

    def answer(self, identity: str) -> Outcome | None:
        """The failure that a request gets, None for one that goes on.

        Args:
            identity: equal for equal requests.
        """
        before = self._failed.get(identity)
        if before is None:
            self._asked += 1
            if not self._chosen():
                return None
        elif before >= self._config.times:
            return None
        self._failed[identity] = (before or 0) + 1
        return Outcome(kind=OutcomeKind.ERROR, error=_failure(self._config))

    def _chosen(self) -> bool:
        config = self._config
        if config.probability is None:
            return self._asked == (config.nth or 1)
        drawn = sha256(f"playhead.model_failure/1 {config.seed} {self._asked}".encode()).digest()
        return int.from_bytes(drawn[:8], "big") < config.probability * 2**64


def _failure(config: ModelFailure) -> ErrorInfo:
    text = config.text if config.text is not None else _TEXT[config.kind]
    if config.kind == "timeout":
        return ErrorInfo(class_name="TimeoutError", module="builtins", message=text, args=[text])
    name, status = _STATUS[config.kind]
    return ErrorInfo(
        class_name=name, message=text, status=config.status or status, retryable=True, retry_after=config.retry_after
    )
