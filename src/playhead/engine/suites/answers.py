"""The answers of an earlier run, for a run that asks no model."""

from playhead.core.suites.drive import ModelAsk, ModelSaid
from playhead.engine.model_access import EarlierAnswers
from playhead.engine.suites.run import stored_request
from playhead.store.ports import Store


def earlier_answers(store: Store, run: str) -> EarlierAnswers:
    """
    Args:
        run: id, part of one, ``last`` or ``last~N``.
    """
    found = store.suites.run(store.suites.resolve_run(run))
    answers: dict[tuple[str, int], dict[str, ModelSaid]] = {}
    for trial in store.suites.trials(found.id):
        answers[trial.case, trial.n] = {
            step.request: ModelSaid(message=step.message, usage=step.usage, served=step.served, raw=step.raw)
            for step in trial.steps
        }
    return EarlierAnswers(f"earlier:{found.id}", answers, _digest)


def _digest(ask: ModelAsk) -> str:
    return stored_request(ask)[0]
