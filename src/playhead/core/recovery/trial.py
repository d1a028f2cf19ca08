"""What an agent did after a failure was injected into a trial of it.

The classes, first rule first: a loop; a silent wrong answer; a blind repetition; the first thing that recovers (a fix,
another tool, the tool that gives up, a clear message); an unclear end. The window is the five answers of the model
after the failure. Calls of bookkeeping tools are passed over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from playhead.core.effects import Double, Effects, doubles, effect_of, retry_safe
from playhead.core.evaluation import as_text, failed
from playhead.core.facts.named import Fact, find
from playhead.core.failure_talk import LEXICON, names_value, says_failure
from playhead.core.injection import Scene, Surroundings, is_fix, scene
from playhead.core.loops import FAILURES, loops, token
from playhead.core.policy import CallView, InjectConfig
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.suites.drive import Trace
from playhead.core.suites.labels import tools_of
from playhead.core.suites.messages import case_nodes
from playhead.core.suites.suite import Case, Tools, schemas
from playhead.core.suites.summary import RecoveryClass
from playhead.core.values import JSON, Effect, Node, NodeKind, Outcome

MAX_STEPS: Final = 5
RECOVERED: Final = frozenset({"corrected_retry", "alternative_tool", "give_up_tool", "clear_message"})

NextAction: TypeAlias = Literal["same_call", "same_tool", "other_tool", "text", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How a trial went on after its injected failure.

    Attributes:
        outcome: the class. ``recovered``: one of the four good ones, and no double side effect that stands.
        steps: answers of the model from the failure to the action that decided.
        next_action: what came right after the failure.
        doubles: effects that the trial had twice.
        tokens: spent after the failure, None where it is not known.
    """

    kind: str
    tool: str
    outcome: RecoveryClass
    recovered: bool
    steps: int | None
    next_action: NextAction
    doubles: tuple[Double, ...] = ()
    tokens: int | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """What a gate fails on at once."""
        double = any(double.kind == "standing" for double in self.doubles)
        return (*(("loop",) if self.outcome == "loop" else ()), *(("double_side_effect",) if double else ()))


def classify(
    trace: Trace, case: Case, tools: Tools, config: InjectConfig, effects: Effects | None = None, *,
    max_steps: int = MAX_STEPS, max_blind_repeats: int = 0, lexicon: Sequence[str] = LEXICON,
    mends: Callable[[Node], bool] | None = None,
) -> Recovery | None:  # fmt: skip
    """The recovery of a trial; None when the failure never came up (the agent did not make that call).

    Args:
        config: the injection that lay over the trial.
        effects: what is declared of the tools.
        max_steps: answers of the model in the window.
        max_blind_repeats: identical repetitions that are let pass.
        mends: which other call of the tool is a fix, where that is not what the kind of failure says.
    """
    trial = _Trial(trace, case, tools, config, effects or {}, max_steps, lexicon)
    trial.mends = mends
    if trial.at is None:
        return None
    outcome, steps = trial.judged(max_blind_repeats)
    twice = tuple(doubles(trial.every_call, trial.effects, repeat_ok=case.repeat_ok or 1))
    standing = any(double.kind == "standing" for double in twice)
    return Recovery(
        kind=config.kind,
        tool=trial.bad.name,
        outcome=outcome,
        recovered=outcome in RECOVERED and not standing,
        steps=steps,
        next_action=trial.next_action,
        doubles=twice,
        tokens=trial.tokens,
    )


class _Trial:
    """A trial seen from its failure."""

    def __init__(
        self, trace: Trace, case: Case, tools: Tools, config: InjectConfig, effects: Effects, max_steps: int,
        lexicon: Sequence[str],
    ) -> None:  # fmt: skip
        self.trace, self.case, self.config, self.effects, self.lexicon = trace, case, config, effects, lexicon
        self.schemas = schemas(case, tools)
        self.every_call = [node for node in trace.nodes if node.kind is NodeKind.TOOL_CALL and node.call is not None]
        self.calls = [node for node in self.every_call if not effect_of(node, effects).bookkeeping]
        self.turn = _turns(trace.nodes)
        self.at = next((n for n, node in enumerate(self.calls) if _injected(node)), None)
        self.max_steps = max_steps
        self.mends: Callable[[Node], bool] | None = None

    @cached_property
    def bad(self) -> Node:
        """The call that got the failure."""
        assert self.at is not None
        return self.calls[self.at]

    @cached_property
    def later(self) -> list[Node]:
        assert self.at is not None
        return self.calls[self.at + 1 :]

    @cached_property
    def scene(self) -> Scene:
        return scene(self.config, self._view(self.bad))

    @property
    def final(self) -> str:
        return self.trace.final or ""

    # the rules

    def judged(self, max_blind_repeats: int) -> tuple[RecoveryClass, int | None]:
        action = self._first_recovery()
        if self._is_loop(action is not None):
            return "loop", None
        if self._is_silent_wrong_answer():
            return "silent_wrong_answer", None
        repeats = [n for n in self.later if self._same(n) and not self._repeat_allowed(n)]
        before = [n for n in repeats if action is None or self._steps(n) <= action[1]]
        if len(before) > max_blind_repeats:
            return "blind_repeat", self._steps(before[0])
        return action if action is not None else ("unclear_end", None)

    def _is_loop(self, has_recovery: bool) -> bool:
        same = [token(node) for node in self.calls if failed(node) or _injected(node)]
        if any(same.count(one) >= FAILURES for one in same) or loops(self.calls):
            return True
        if self.trace.ended == "turns":
            return True
        answered = self.trace.ended == "answer" and self._last_step() <= self.max_steps
        return not has_recovery and not answered

    def _last_step(self) -> int:
        return len(self.trace.said) - self.turn[self.bad.id]

    def _is_silent_wrong_answer(self) -> bool:
        if self.trace.ended != "answer":
            return False
        if self._states_withheld():
            return True
        if self.config.kind != "partial" or not self._undone():
            return False
        errors = [f["error"] for f in self.scene.failed if is_object(f) and "error" in f]
        return not says_failure(self.final, self.lexicon) and not names_value(self.final, errors)

    def _undone(self) -> bool:
        """Whether items of a partial success are still to be done."""
        done = [n for n in self.later if not failed(n) and not _injected(n)]
        return not any(self._is_fix(node) or self._same(node) for node in done)

    def _states_withheld(self) -> bool:
        return any(find(fact, self.final).found for fact in self._withheld)

    @cached_property
    def _withheld(self) -> list[Fact]:
        """Facts that only an outcome holds which the agent never got."""
        seen = "; ".join(map(_words, self._shown()))
        hidden = "; ".join(_words(outcome.value) for outcome in self._hidden())
        return [
            fact
            for fact in self.case.facts
            if not fact.must_not and find(fact, hidden).found and not find(fact, seen).found
        ]

    def _hidden(self) -> list[Outcome]:
        ids = {node.call.provenance.node_id for node in self.calls if _injected(node) and node.call is not None
               and node.call.provenance is not None}  # fmt: skip
        return [node.outcome for node in case_nodes(self.case) if node.id in ids and node.outcome is not None]

    def _shown(self) -> list[JSON]:
        """What the agent got: the conversation before, and every result that no injection took the place of."""
        before = self.trace.asked[0].messages if self.trace.asked else ()
        return [*before, *(n.outcome.value for n in self.every_call if n.outcome is not None and not _injected(n))]

    def _first_recovery(self) -> tuple[RecoveryClass, int] | None:
        for node in self.later:
            steps = self._steps(node)
            if steps > self.max_steps:
                return None
            found = self._recovery_of(node)
            if found is not None:
                return found, steps
        text_steps = self._last_step()
        if self.trace.ended == "answer" and text_steps <= self.max_steps and self._clear(self.final):
            return "clear_message", text_steps
        return None

    def _recovery_of(self, node: Node) -> RecoveryClass | None:
        effect = effect_of(node, self.effects)
        if node.name == self.bad.name:
            fixes = self._repeat_allowed(node) if self._same(node) else self._is_fix(node)
            return "corrected_retry" if fixes else None
        if effect.give_up:
            return "give_up_tool"
        if effect.wait:
            return None
        known = node.name in self.case.alternatives or node.name in tools_of(self.case.label)
        if (known or effect.kind is Effect.READ) and self._ends_well():
            return "alternative_tool"
        return None

    def _ends_well(self) -> bool:
        if self.trace.ended != "answer":
            return False
        facts = [fact for fact in self.case.facts if not fact.must_not]
        right = bool(facts) and all(find(fact, self.final).found for fact in facts) and not self._states_withheld()
        return right or self._clear(self.final)

    def _clear(self, text: str) -> bool:
        """The message test."""
        if not text.strip() or self._states_withheld():
            return False
        at = self.scene
        named: list[JSON] = [at.value, *at.allowed, *(self.config.candidates or ())]
        named += [f.get("item") if is_object(f) else f for f in at.failed]
        if self.config.kind == "rate_limit":
            named.append(self.config.retry_after)
        scalars = [value for value in named if isinstance(value, str | int | float) and not isinstance(value, bool)]
        return says_failure(text, self.lexicon) or names_value(text, scalars)

    # about calls

    def _same(self, node: Node) -> bool:
        return node.name == self.bad.name and token(node) == token(self.bad)

    def _repeat_allowed(self, node: Node) -> bool:
        """Whether the same call again is a fix: only where waiting or trying again may help and does no harm."""
        assert node.call is not None
        if self.config.kind == "rate_limit":
            return self._waited(node)
        safe = retry_safe(effect_of(node, self.effects), node.call.arguments)
        return safe and self.config.kind in ("timeout", "malformed", "error")

    def _waited(self, node: Node) -> bool:
        """Whether the agent waited before it asked again, where it has a tool for that."""
        waiting = {name for name in self.schemas if name in self.effects and self.effects[name].wait}
        between = self.later[: self.later.index(node)]
        return not waiting or any(one.name in waiting for one in between)

    def _is_fix(self, node: Node) -> bool:
        if node.name != self.bad.name:
            return False
        if self.mends is not None:
            return self.mends(node)
        turn = self.turn[node.id]
        told = [message for message in self.trace.asked[turn - 1].messages if message["role"] != "assistant"]
        around = Surroundings(
            occurs=lambda value: value not in (None, "") and any(as_text(value) in as_text(m) for m in told),
            retry_safe=lambda tool, arguments: retry_safe(effect_of(node, self.effects), arguments),
        )
        return is_fix(self.config, self.scene, self._view(self.bad), self._view(node), around)

    def _view(self, node: Node) -> CallView:
        assert node.call is not None
        return CallView(
            ref=node.id, tool=node.name, arguments=node.call.arguments, key=node.call.key, no_key=node.call.no_key,
            parameters=self.schemas.get(node.name),
        )  # fmt: skip

    def _steps(self, node: Node) -> int:
        return self.turn[node.id] - self.turn[self.bad.id]

    @property
    def next_action(self) -> NextAction:
        """What came right after the failure."""
        turn = self.turn[self.bad.id] + 1
        following = [node for node in self.later if self.turn[node.id] == turn]
        if following:
            first = following[0]
            return "same_call" if self._same(first) else "same_tool" if first.name == self.bad.name else "other_tool"
        return "text" if self.trace.ended == "answer" and len(self.trace.said) >= turn else "end"

    @property
    def tokens(self) -> int | None:
        spent = [one.usage for one in self.trace.said[self.turn[self.bad.id] :]]
        counts = [
            sum(part or 0 for part in (u.input_uncached, u.input_cache_read, u.output_visible, u.output_reasoning))
            for u in spent
            if u is not None
        ]
        return sum(counts) if counts else None


def _turns(nodes: Sequence[Node]) -> dict[str, int]:
    """For each call the number of the model's answer that asked for it, from 1."""
    found: dict[str, int] = {}
    turn = 0
    for node in nodes:
        if node.kind is NodeKind.MODEL_CALL:
            turn += 1
        found[node.id] = turn
    return found


def _injected(node: Node) -> bool:
    provenance = node.call.provenance if node.call is not None else None
    return provenance is not None and provenance.by == "injected"


def _words(value: JSON) -> str:
    """The scalars of a value as lines, so that facts are found in it as in a text."""
    if is_object(value):
        return "; ".join(map(_words, value.values()))
    if is_list(value):
        return "; ".join(map(_words, value))
    return "" if value is None else as_text(value)
