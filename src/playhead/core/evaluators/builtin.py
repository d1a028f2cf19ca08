"""How a built-in evaluator is declared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from playhead.core.evaluation import EvaluationContext
from playhead.core.values import JSON, Verdict
from playhead.errors import UsageError

Judged: TypeAlias = Verdict | list[Verdict]

VERSION: Final = 1


class Params(BaseModel):
    """Parameters of a built-in; unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """``needs_replay``: has nothing to say about a session that is not the result of a replay. ``run`` None: it asks a
    model, which the engine does."""

    name: str
    summary: str
    run: Callable[[EvaluationContext, Any], Judged] | None
    params: type[Params] = Params
    needs_replay: bool = False


def parsed(builtin: Builtin, params: Mapping[str, JSON]) -> Params:
    """The parameters as the built-in takes them.

    Raises:
        UsageError: with the place and what is allowed there.
    """
    try:
        return builtin.params.model_validate(dict(params))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = "".join(f"/{part}" for part in problem["loc"])
        told = "there is no such parameter" if problem["type"] == "extra_forbidden" else problem["msg"]
        raise UsageError(
            f"evaluator {builtin.name}@{VERSION}: params{place}: {told}",
            hint=f"its parameters are: {', '.join(names(builtin)) or 'none'}",
        ) from None


def names(builtin: Builtin) -> list[str]:
    """The parameters that a built-in takes, as they are written in JSON."""
    return [field.alias or name for name, field in builtin.params.model_fields.items()]


def listed(items: Sequence[object], *, most: int = 5) -> str:
    """The first items in a row of text."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
