"""A replay's override in requests on the wire: the model of every request, and its parameters."""

from typing import Any

from playhead.core.override import override_model
from playhead.core.policy import ReplayOverride
from playhead.core.protocol import anthropic_messages as form
from playhead.core.protocol.shape import obj
from playhead.core.values import LedgerRow
from playhead.engine.replaying import ReplayState
from playhead.engine.seam import ActiveSession

_PREFIXES = ("anthropic:", "anthropic/")
_SAMPLING = ("temperature", "top_p", "top_k")
_DROPPED = ("thinking", "context_management")
_NOTE = "thinking is switched off in the requests: the API takes no sampling parameters beside it"


def tuned(active: ActiveSession, body: dict[str, Any]) -> dict[str, Any]:
    """The request as it is to be sent; the one given is not changed. Counts what the override changed."""
    state = active.replay
    if state is None or state.override is None:
        return body
    made, changed = body, list[str]()
    wanted = _model(state.override, str(body.get("model") or ""))
    if wanted != body.get("model"):
        made, changed = form.with_model(made, wanted), ["model"]
    if state.override.model_params is not None:
        merged = _with_params(state, made, state.override.model_params)
        if merged != made:
            made, changed = merged, [*changed, "model_params"]
    if changed:
        with state.lock:
            state.override_hits.update(changed)
    return made


def _model(override: ReplayOverride, requested: str) -> str:
    for name in (f"anthropic:{requested}", f"anthropic/{requested}"):
        wanted = override_model(override, name)
        if wanted is not None and wanted != name:
            return next((wanted.removeprefix(p) for p in _PREFIXES if wanted.startswith(p)), wanted)
    return requested


def _with_params(state: ReplayState, body: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    made = form.with_params(body, params)
    sampled = any(params.get(name) is not None for name in _SAMPLING)
    if not sampled or "thinking" in params or obj(made.get("thinking")).get("type") in (None, "disabled"):
        return made
    if not any(row.detail == _NOTE for row in state.ledger):
        state.note(LedgerRow(kind="note", by="note", detail=_NOTE))
    return {k: v for k, v in made.items() if k not in _DROPPED}
