"""Asks a model to judge a session, several times."""

from collections.abc import Callable

from playhead.core.evaluation import EvaluationContext
from playhead.core.evaluators.builtin import Params
from playhead.core.evaluators.judging import Judge, question, read, verdict
from playhead.core.values import Verdict
from playhead.engine.models import ask
from playhead.errors import EvaluatorError


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
