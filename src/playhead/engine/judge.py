"""Asks a model to judge a session, several times."""

from collections.abc import Callable, Sequence

from playhead.core.evaluation import EvaluationContext
from playhead.core.evaluators.builtin import VERSION, Params, parsed
from playhead.core.evaluators.catalog import BUILTINS
from playhead.core.evaluators.judging import Judge, question, read, verdict
from playhead.core.protocol.shape import obj
from playhead.core.values import JSON, Verdict
from playhead.engine.models import ask, usable
from playhead.errors import EvaluatorError, RefusedError


def judge(
    context: EvaluationContext, params: Params, *, default_model: str | None, ask: Callable[..., str] = ask
) -> list[Verdict]:
    """The majority verdict of a model.

    Raises:
        EvaluatorError: none of its answers was a verdict. RefusedError, ModelAccessError: as `models.ask`.
    """
    assert isinstance(params, Judge)
    model = params.model or default_model
    asked = question(context, params)
    votes = [read(ask(model, system=asked.system, prompt=asked.prompt)) for _ in range(params.repeats)]
    if not any(vote.word for vote in votes):
        raise EvaluatorError(f"model {model!r} gave no readable verdict in {len(votes)} answers")
    return verdict(votes, params, session_id=context.session.id, model=str(model))


def unusable(evaluators: Sequence[JSON], *, default_model: str | None) -> list[str]:
    """Why judges among the evaluators of a replay cannot ask their model from here, as far as that shows without
    asking it."""
    reasons: list[str] = []
    for one in map(obj, evaluators):
        builtin = BUILTINS.get(str(one.get("evaluator")).partition("@")[0])
        if builtin is None or builtin.run is not None:
            continue
        judge = parsed(builtin, obj(one.get("params")))
        assert isinstance(judge, Judge)
        try:
            usable(judge.model or default_model)
        except RefusedError as error:
            hint = f" ({error.hint})" if error.hint else ""
            reasons.append(f"evaluator {builtin.name}@{VERSION}: {error.message}{hint}")
    return reasons
