"""A run of a suite as the gate and the reports read it, and as it is committed to a repository (`suite run --export`).

Per trial it holds what was scored, not what was said, so a file of 1,200 trials stays small and holds no conversation;
``response`` is what scoring needs to score a trial again with later labels, and may be left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from playhead.core.codec import dump, load
from playhead.core.values import JSON
from playhead.errors import FormatError

FORMAT: Final = "playhead.run_summary/1"

Dimension: TypeAlias = Literal["selection", "arguments", "outcome"]
DIMENSIONS: Final[tuple[Dimension, ...]] = ("selection", "arguments", "outcome")

Bin: TypeAlias = Literal["json", "required", "type", "enum", "format", "unknown_parameter", "range"]
BINS: Final[tuple[Bin, ...]] = ("json", "required", "type", "enum", "format", "unknown_parameter", "range")

RecoveryClass: TypeAlias = Literal[
    "corrected_retry", "alternative_tool", "give_up_tool", "clear_message",
    "loop", "silent_wrong_answer", "blind_repeat", "unclear_end",
]  # fmt: skip
RECOVERY_CLASSES: Final[tuple[RecoveryClass, ...]] = (
    "corrected_retry", "alternative_tool", "give_up_tool", "clear_message",
    "loop", "silent_wrong_answer", "blind_repeat", "unclear_end",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMismatch:
    """A call that its tool's schema refuses. ``coercible``: a lenient reader would have taken the value."""

    bin: Bin
    tool: str
    pointer: str = ""
    coercible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueMismatch:
    """A named argument that is missing or differs from its label. ``expected`` and ``seen`` are left out of a file."""

    reason: Literal["missing_value", "wrong_value", "extra_value"]
    tool: str
    pointer: str = ""
    expected: JSON = None
    seen: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One attempt at a case. A dimension is None where it does not apply, and then it is no pass and no failure.

    ``arguments`` is ``schema`` and ``values`` together. ``flags`` name what happened beside the scores, each once:
    ``loop``, ``double_side_effect`` (a standing one), or a name of the user's own.
    """

    run: int
    status: Literal["scored", "error"] = "scored"
    error: str | None = None
    selection: bool | None = None
    reason: str | None = None  # of the selection: ok, wrong_tool, called_none ...
    schema: bool | None = None
    values: bool | None = None
    arguments: bool | None = None
    outcome: bool | None = None
    schema_errors: tuple[SchemaMismatch, ...] = ()
    value_errors: tuple[ValueMismatch, ...] = ()
    missing_facts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    strict: bool = False
    cost_usd: float | None = None
    latency_ms: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    response: JSON = None

    @property
    def passed(self) -> bool | None:
        """Whether every dimension that applies is true; None for an error and where none applies."""
        scored = (self.selection, self.arguments, self.outcome)
        if self.status == "error" or scored == (None, None, None):
            return None
        return False not in scored


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """A case of the run with its trials. ``active``: its label counts (see the label states); a retired case or one
    with an inactive label is carried along and never counted. ``label_digest`` tells a label that was changed since.
    """

    id: str
    intent: str
    slice: Literal["tune", "held_back"] = "tune"
    status: Literal["active", "retired"] = "active"
    label_state: str = "reviewed"  # proposed, weak, mined, reviewed
    label_kind: Literal["call", "any_of", "no_tool", "fail_safely"] | None = None
    label_digest: str | None = None
    active: bool = True
    tags: tuple[str, ...] = ()
    digest: str | None = None
    session: str | None = None
    captured_at: str | None = None  # ISO 8601
    findings: tuple[str, ...] = ()  # of the label check
    forced_choice: bool = False  # the recording forced a tool; the trial was sent with auto
    trials: tuple[TrialResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """One injected failure. Results are clustered by ``case``; ``status`` error is never a failure to recover."""

    case: str
    kind: str  # validation_error, not_found, rate_limit, timeout, partial, empty, malformed
    tool: str = ""
    message: str = "prescriptive"
    run: int = 0
    status: Literal["scored", "error"] = "scored"
    outcome: RecoveryClass | None = None  # None only for an error
    recovered: bool = False
    double: Literal["standing", "compensated", "touched", "undeclared"] | None = None
    next_action: str | None = None
    steps: int | None = None
    tokens: int | None = None
    flags: tuple[str, ...] = ()
    slice: Literal["tune", "held_back"] = "tune"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentInfo:
    """What a suite says of an intent: its share of traffic, and whether a gate may do without power for it."""

    name: str
    traffic: float | None = None
    high_traffic: bool = False
    required: bool = False
    margin: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelQuality:
    """How far the labels can be trusted. ``residual_upper``: one-sided 95 % bound on the share of wrong ones."""

    residual_upper: float | None = None
    residual_rate: float | None = None
    audited: int = 0
    audit_errors: int = 0
    queue: int = 0  # labels that wait for a review
    agreements: tuple[Mapping[str, JSON], ...] = ()  # per pair of sources: names, n, raw, kappa, calls


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run: what was run, and what came of every case.

    Two runs are of one configuration when model, params, system_prompt_digest, tools_digest and agent_version agree.
    """

    run: str
    suite: str
    suite_digest: str
    model: str
    cases: tuple[CaseResult, ...] = ()
    recovery: tuple[RecoveryResult, ...] = ()
    params: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    driver: Literal["turn", "agent", "loop"] = "turn"
    slice: Literal["tune", "held_back", "all"] = "tune"
    runs: int = 3
    seed: int = 0
    strict: Literal["auto", "on", "off"] = "auto"
    scripted: bool = False  # a scripted model measures the harness, never a model
    system_prompt_digest: str | None = None
    tools_digest: str | None = None
    agent_version: str | None = None
    created_at: str | None = None  # ISO 8601
    intents: tuple[IntentInfo, ...] = ()
    labels: LabelQuality | None = None
    target: Mapping[str, JSON] = field(default_factory=dict[str, JSON])  # the suite's margin and power
    held_back_accesses: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def trials(self) -> int:
        return sum(len(case.trials) for case in self.cases) + len(self.recovery)

    @property
    def errors(self) -> int:
        """Trials that infrastructure ended."""
        tried = sum(trial.status == "error" for case in self.cases for trial in case.trials)
        return tried + sum(result.status == "error" for result in self.recovery)


def to_text(summary: RunSummary, *, responses: bool = False) -> str:
    """The committed form: JSON with a line per case and per injected failure, so that a change of one reads as one.

    Args:
        responses: keep what the model answered, which lets later labels be applied to this run.
    """
    body: dict[str, Any] = dump(summary)
    cases: list[dict[str, Any]] = body.pop("cases", [])
    if not responses:
        cases = [{**case, "trials": [_without_response(trial) for trial in case.get("trials", ())]} for case in cases]
    recovery: list[dict[str, Any]] = body.pop("recovery", [])
    head = json.dumps({"format": FORMAT, **body}, ensure_ascii=False, indent=1).removesuffix("\n}")
    return f'{head},\n "cases": {_lines(cases)},\n "recovery": {_lines(recovery)}\n}}\n'


def _without_response(trial: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in trial.items() if name != "response"}


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ",".join(f"\n  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    return f"[{lines}]"


def from_text(text: str | bytes, *, name: str = "run summary") -> RunSummary:
    """Reads the committed form.

    Raises:
        FormatError: not such a file; the message names it and the place.
    """
    try:
        data: object = json.loads(text)
    except ValueError as error:
        raise FormatError(f"{name} is not JSON: {error}", at="") from error
    members = cast("dict[str, JSON]", data) if isinstance(data, dict) else {}
    said = members.get("format")
    if said != FORMAT:
        raise FormatError(
            f"{name} is not a run summary: its format is {said!r}, not {FORMAT!r}",
            hint="write one with `playhead suite run SUITE --export FILE`",
            at="/format",
        )
    try:
        summary = load(RunSummary, {key: value for key, value in members.items() if key != "format"})
    except FormatError as error:
        raise FormatError(f"{name}: {error.message}", hint=error.hint, **error.details) from error
    _unique(summary, name)
    return summary


def _unique(summary: RunSummary, name: str) -> None:
    seen: set[str] = set()
    for index, case in enumerate(summary.cases):
        if case.id in seen:
            raise FormatError(f"{name}: two cases have the id {case.id!r}", at=f"/cases/{index}/id")
        seen.add(case.id)
