"""What a release has to meet, as a user writes it down."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from playhead.core.suites.summary import BINS, RECOVERY_CLASSES
from playhead.errors import ConfigError

CriterionName: TypeAlias = Literal["selection", "intents", "arguments", "recovery", "stability"]
CRITERIA: Final[tuple[CriterionName, ...]] = ("selection", "intents", "arguments", "recovery", "stability")
Form: TypeAlias = Literal["statistical", "literal", "sequential"]
"""By exact tests of one look; by bare numbers; by evidence that may be looked at as often as one likes."""
ExtraName: TypeAlias = Literal["outcome", "values", "cost", "latency"]

REASONS: Final = (
    "called_none", "called_when_none", "wrong_tool", "missing_call", "extra_call", "wrong_order", "unknown_tool",
    "forbidden_call", "empty_response",
)  # fmt: skip
ZERO: Final = ("loop", "double_side_effect", *REASONS, *BINS, *(c for c in RECOVERY_CLASSES if c != "loop"))
"""What a zero-tolerance rule may name; ``flag:NAME`` names a flag of the user's own."""


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"a number is needed, not {str(value).lower()}")
    return value


Share: TypeAlias = Annotated[float, BeforeValidator(_no_truth_value), Field(ge=0, le=1)]
Margin: TypeAlias = Annotated[float, BeforeValidator(_no_truth_value), Field(gt=0, le=1)]


class Extra(BaseModel):
    """A criterion beyond the four. ``margin``: points for a rate; a share of the baseline's mean for cost, latency."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    margin: Margin = 0.05


class Criteria(BaseModel):
    """Release criteria; the defaults are the recommended ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    criteria: tuple[CriterionName, ...] = CRITERIA
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    margin: Margin = 0.05
    intent_margin: Margin = 0.10
    high_traffic: Share = 0.10
    recovery_floor: Share = 0.80
    recovery_floors: dict[str, Share] = Field(default_factory=dict[str, float])
    stability_margin: Margin = 0.10
    min_runs: Annotated[int, Field(ge=1)] = 3
    zero_tolerance: tuple[str, ...] = ("loop", "double_side_effect")
    unpowered: Literal["pool", "inconclusive"] = "pool"
    form: dict[CriterionName, Form] = Field(default_factory=dict[CriterionName, Form])
    extra: dict[ExtraName, Extra] = Field(default_factory=dict[ExtraName, Extra])
    looks: Annotated[int, Field(ge=1)] = 1
    error_limit: Share = 0.02
    label_bound: Share = 0.10
    shared: Share = 0.90

    @model_validator(mode="after")
    def _judges_something(self) -> "Criteria":
        if not self.criteria and not self.extra:
            raise ValueError("no criterion is left: a gate that judges nothing cannot pass a release")
        return self

    def form_of(self, name: CriterionName) -> Form:
        return self.form.get(name, "statistical")

    def all_in(self, form: Form) -> "Criteria":
        """The same with every criterion in one form.

        Raises:
            ConfigError: cost or latency is asked for sequentially: a mean of unbounded values has no such bound here.
        """
        spent = [name for name in self.extra if name in ("cost", "latency")]
        if form == "sequential" and spent:
            raise ConfigError(f"{spent[0]} has no sequential form", hint="leave it out of extra, or plan the looks")
        return self.model_copy(update={"form": dict.fromkeys(CRITERIA, form)})

    @property
    def is_sequential(self) -> bool:
        """Whether every look has the whole alpha, because nothing here depends on how often one looks."""
        return all(self.form_of(name) == "sequential" for name in self.criteria) and bool(self.criteria)


def criteria_of(data: object, *, name: str = "criteria") -> Criteria:
    """Criteria from plain values.

    Raises:
        ConfigError: an unknown member, criterion or zero-tolerance item, or a value out of range; says what is allowed.
    """
    try:
        criteria = Criteria.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"] if part != "[key]") or "the whole"
        known = f"members: {', '.join(Criteria.model_fields)}; criteria: {', '.join(CRITERIA)}"
        hint = f"{known}; extra: outcome, values, cost, latency"
        raise ConfigError(f"{name}: {where}: {problem['msg']}", hint=hint, at=where) from error
    for item in criteria.zero_tolerance:
        if item not in ZERO and not item.startswith("flag:"):
            hint = f"one of: {', '.join(ZERO)}; or flag:NAME"
            raise ConfigError(f"{name}: zero_tolerance: {item!r} is not known", hint=hint, at="zero_tolerance")
    return criteria
