"""What the recordings in scope can still answer.

A tape is made once per replay from the baseline's nodes. A call *claims* the recorded occurrence that is its own: when
the response that asks for it is announced, in the response's order, else when it starts. The claim does not depend on
what answers the call, so a call answered by a static case leaves no leftover. `decide` only reads claims.

Which occurrence: equal calls are counted per (path of enclosing calls, key). The path of a replayed call is first
translated into the recorded one: below a call that claimed recording R lie the calls recorded below R. In a path that
is recorded, the first unclaimed call of that path and key answers, or none; in one that is not, the first unclaimed
call of that key anywhere, and the answer is loose.

A tape is plain data without a lock; whoever shares it between threads holds one around each method.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from playhead.core.canonical import NoKeyError
from playhead.core.claim import Announced, Claim, InjectionStep, Rejection
from playhead.core.injection import Surroundings
from playhead.core.keys import KEY_VERSION, KeyView, call_key
from playhead.core.occurrence import Occurrences, Slot, call_ref, slot_ids, slot_of
from playhead.core.overlay import Overlay
from playhead.core.policy import CallView, HistoryConfig, InjectConfig, StaticConfig, ToolConfig, ToolPolicy
from playhead.core.recording import Group, Occurrence, Recording, recordings, same_outcome, unservable
from playhead.core.static import fits
from playhead.core.values import JSON, Node, NodeStatus, Outcome, OutcomeKind, path_step

_VERSION = f"{KEY_VERSION}:"


class _Matching(NamedTuple):
    """How a tool's calls find their recordings."""

    ignore: tuple[str, ...]
    recorded_order: bool
    repeat: str


def base_config(config: ToolConfig) -> ToolConfig:
    """What answers when no injection does."""
    while isinstance(config, InjectConfig):
        config = config.then or HistoryConfig()
    return config


def _matching(config: ToolConfig) -> _Matching:
    config = base_config(config)
    if isinstance(config, HistoryConfig):
        return _Matching(config.ignore, config.order == "recorded", config.repeat)
    return _Matching(config.ignore if isinstance(config, StaticConfig) else (), False, "error")


@dataclass(slots=True)
class _Slot:
    """A call of the replay: where it stands, what it claimed."""

    first: Claim
    occurrence: Occurrence | None


class Tape:
    """Recorded occurrences, claims and leftovers of one replay."""

    def __init__(
        self,
        recorded: Iterable[Recording] = (),
        policy: ToolPolicy | None = None,
        *,
        secrets: KeyView | None = None,
        redact: Callable[[JSON], JSON] | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.policy = policy or ToolPolicy()
        self._secrets = secrets
        self.redact: Callable[[JSON], JSON] = redact or _as_it_is
        self._surroundings = surroundings or Surroundings()
        self._matchings: dict[str, _Matching] = {}
        self._order: list[Occurrence] = []
        self._groups: dict[tuple[tuple[str, ...], str], Group] = {}
        self._anywhere: dict[str, Group] = {}
        self._tools: dict[str, list[Occurrence]] = {}
        self._below: dict[tuple[str, ...], list[Occurrence]] = {}
        self._paths: set[tuple[str, ...]] = {()}
        self._wide: dict[str, dict[str, Recording]] = {}
        self._slots: dict[str, _Slot] = {}
        self._claims: dict[Slot, Claim] = {}
        self._translated: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._counts = Occurrences()
        self._numbers: dict[str, int] = {}
        self._case_counts: dict[tuple[str, int], int] = {}
        self._overlays: dict[tuple[str, int], Overlay] = {}
        self._load(recorded)

    @classmethod
    def build(
        cls,
        nodes: Sequence[Node],
        policy: ToolPolicy | None = None,
        *,
        secrets: KeyView | None = None,
        redact: Callable[[JSON], JSON] | None = None,
        surroundings: Surroundings | None = None,
    ) -> "Tape":
        """The tape of a baseline.

        Args:
            nodes: all nodes of the session, in any order, with payloads.
            policy: whose ``ignore``, ``order`` and ``repeat`` say how calls find their recordings.
            secrets: takes configured secrets out of keys that are made again.
            redact: turns asked arguments into what a recorder would have stored; for the texts of misses, and where
                ``ignore`` makes keys again from stored arguments.
            surroundings: what injections need to know beyond the call.
        """
        return cls(recordings(nodes), policy, secrets=secrets, redact=redact, surroundings=surroundings)

    # --- loading ---

    def _load(self, recorded: Iterable[Recording]) -> None:
        attempts: dict[tuple[object, ...], Occurrence] = {}
        for one in sorted(recorded, key=lambda r: r.position):
            key = self._recorded_key(one)
            slot = (one.path, key, one.model_call, one.call_id)
            joined = attempts.get(slot) if one.attempt > 1 else None
            if joined is not None:
                joined.attempts.append(one)
                continue
            occurrence = attempts[slot] = Occurrence(one, key)
            self._order.append(occurrence)
            self._tools.setdefault(one.tool, []).append(occurrence)
            self._groups.setdefault((one.path, occurrence.key), Group()).members.append(occurrence)
            self._anywhere.setdefault(occurrence.key, Group()).members.append(occurrence)
            self._paths.update((one.path, one.child_path))
            for depth in range(1, len(one.path) + 1):
                self._below.setdefault(one.path[:depth], []).append(occurrence)
        for group in self._groups.values():
            group.settle()

    def _recorded_key(self, one: Recording) -> str:
        ignore = self._matching(one.tool).ignore
        if not ignore and one.key is not None and one.key.startswith(_VERSION):
            return one.key
        if one.key is None and one.arguments is None:
            return _keyless(one.tool)
        return self._made_key(one.tool, one.arguments, one.scope, ignore)

    def _made_key(self, tool: str, arguments: JSON, scope: JSON, ignore: tuple[str, ...]) -> str:
        try:
            return call_key(tool, arguments, scope=scope, ignore=ignore, secrets=self._secrets)
        except NoKeyError:
            return _keyless(tool)

    def _matching(self, tool: str) -> _Matching:
        found = self._matchings.get(tool)
        if found is None:
            found = self._matchings[tool] = _matching(self.policy.config_for(tool))
        return found

    def add_wide(self, tool: str, nodes: Sequence[Node]) -> None:
        """The newest completed calls of ``tool`` for a wide scope; with several of one key, the last to end counts."""
        newest = self._wide.setdefault(tool, {})
        usable = [r for r in recordings(nodes) if r.tool == tool and _completed(r)]
        for one in sorted(usable, key=lambda r: (r.ended_at or r.started_at, r.started_at)):
            newest[self._recorded_key(one)] = one
        newest.pop(_keyless(tool), None)

    # --- claiming ---

    def announce(self, model_call: str, calls: Sequence[Announced], *, path: tuple[str, ...] = ()) -> tuple[Claim, ...]:
        """Reserves the calls of a model response in its order; gives a claim for each.

        Args:
            model_call: what names the model call inside the replay; without a colon.
            path: the enclosing tool calls of that model call, by their `Claim.step`.
        """
        ids = slot_ids([c.call_id for c in calls])
        return tuple(
            self.claim(
                CallView(
                    ref=call_ref(model_call, call_id),
                    tool=call.tool,
                    arguments=call.arguments,
                    key=call.key,
                    no_key=call.no_key,
                    path=path,
                    parameters=call.parameters,
                    scope=call.scope,
                )
            )
            for call_id, call in zip(ids, calls, strict=True)
        )

    def claim(self, call: CallView) -> Claim:
        """The claim of a call: the one that it has, else a new one. Never two for one ref."""
        place = slot, attempt = slot_of(call.ref)
        known = self._claims.get(place)
        if known is not None:
            return known
        state = self._slots.get(slot)
        if state is None:
            state = self._slots[slot] = self._first_claim(slot, call)
        claim = replace(state.first, ref=call.ref) if attempt == 1 else self._later_claim(slot, state, call, attempt)
        self._claims[place] = claim
        return claim

    def _later_claim(self, slot: str, state: "_Slot", call: CallView, attempt: int) -> Claim:
        """An attempt after the first: the recorded attempt of that number, unless an injection goes on."""
        first = replace(state.first, ref=call.ref)
        if first.injection is not None:
            injection, owner = self._inject(slot, call, first.number)
            if injection is not None:
                recording = owner.first if owner is not None else first.recording
                return replace(first, injection=injection, recording=recording)
            first = replace(first, injection=None)
        if state.occurrence is None:
            return first
        recorded = state.occurrence.attempts
        if attempt <= len(recorded):
            return replace(first, recording=recorded[attempt - 1])
        return replace(first, recording=None, reason="attempts", recorded=len(recorded))

    def claim_of(self, ref: str) -> Claim | None:
        """The claim that was made for ``ref``, None when there is none. Changes nothing."""
        return self._claims.get(slot_of(ref))

    def _first_claim(self, slot: str, call: CallView) -> _Slot:
        number = self._numbers[call.tool] = self._numbers.get(call.tool, 0) + 1
        occurrence = self._counts.reserve(slot, tool=call.tool, key=call.key, path=call.path)
        step = path_step(call.tool, call.key, occurrence)
        injection, owner = self._inject(slot, call, number)
        found = _Found(owner) if owner is not None else self._find(call)
        taken = found.occurrence
        if taken is not None:
            taken.claimed = taken.claimed or slot
            self._translated.setdefault((*call.path, step), taken.first.child_path)
        matching = self._matching(call.tool)
        claim = Claim(
            ref=call.ref,
            step=step,
            occurrence=occurrence,
            number=number,
            recording=taken.first if taken else None,
            reason=found.reason,
            recorded=found.recorded,
            loose=found.loose if taken is None else found.loose + self._ignored(call, taken.first, matching.ignore),
            ambiguous=taken is not None and taken.ambiguous and not matching.recorded_order,
            cases=self._cases(call),
            injection=injection,
        )
        return _Slot(claim, taken)

    def _find(self, call: CallView) -> "_Found":
        matching = self._matching(call.tool)
        key = self._asked_key(call, matching.ignore)
        path = self.recorded_path(call.path)
        known = path in self._paths
        group = self._groups.get((path, key)) if known else self._anywhere.get(key)
        if group is None or not group.members:
            return _Found(None, self._why_nothing(call, key))
        loose = () if known else ("path",)
        taken = group.first_free(call.asked_by)
        if taken is None and matching.repeat != "error":
            taken = group.members[0 if matching.repeat == "first" else -1]
            loose = (*loose, "repeat")
        reason = "no_key" if key == _keyless(call.tool) else None if taken is not None else "used_up"
        return _Found(taken, reason, len(group.members), loose)

    def _why_nothing(self, call: CallView, key: str) -> str:
        if call.key is None:
            return "no_key"
        if key in self._anywhere:
            return "other_path"
        return "other_args" if call.tool in self._tools else "never_recorded"

    def _asked_key(self, call: CallView, ignore: tuple[str, ...]) -> str:
        if not ignore or (call.key is None and call.arguments is None):  # nothing of it is known: all such look equal
            return call.key or _keyless(call.tool)
        return self._made_key(call.tool, self.redact(call.arguments), call.scope, ignore)

    def _ignored(self, call: CallView, taken: Recording, ignore: tuple[str, ...]) -> tuple[str, ...]:
        return ignore if ignore and (call.key is None or call.key != taken.key) else ()

    def recorded_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """A path of this replay in the words of the recording, as far as its calls have claimed recordings."""
        for depth in range(len(path), 0, -1):
            known = self._translated.get(path[:depth])
            if known is not None:
                return known + path[depth:]
        return path

    # --- static cases and injections ---

    def _cases(self, call: CallView) -> tuple[tuple[int, int], ...]:
        config = base_config(self.policy.config_for(call.tool))
        if not isinstance(config, StaticConfig):
            return ()
        counted: list[tuple[int, int]] = []
        for index, case in enumerate(config.cases):
            if case.occurrence is None or not fits(config, case, call.arguments):
                continue
            number = self._case_counts.get((call.tool, index), 0) + 1
            self._case_counts[(call.tool, index)] = number
            counted.append((index, number))
        return tuple(counted)

    def _inject(self, slot: str, call: CallView, number: int) -> tuple[InjectionStep | None, Occurrence | None]:
        """What the inject configs of the tool do with a call, and the recorded call that it is a repetition of."""
        config = self.policy.config_for(call.tool)
        depth = 0
        while isinstance(config, InjectConfig):
            overlay = self._overlays.setdefault((call.tool, depth), Overlay(config, self._surroundings))
            step = overlay.step(slot, call, number)
            earlier = self._slots.get(step.of) if step.of is not None else None
            owner = earlier.occurrence if earlier else None
            if step.what == "inject" or (step.what == "corrected" and (owner or config.corrected != "recorded")):
                return InjectionStep(depth, step), owner
            config = config.then or HistoryConfig()
            depth += 1
        return None, None

    # --- what became of the recordings ---

    def cover(self, ref: str) -> tuple[Recording, ...]:
        """Marks everything recorded below the call's recording as covered; gives what was newly covered.

        For every call whose inside does not happen: served, static, generated, injected, or answered by an error.
        """
        claim = self._claims.get(slot_of(ref))
        if claim is None or claim.recording is None:
            return ()
        covered: list[Recording] = []
        for occurrence in self._below.get(claim.recording.child_path, ()):
            if occurrence.free:
                occurrence.covered = True
                covered += occurrence.attempts
        return tuple(covered)

    def reject(self, ref: str, outcome: Outcome | None = None) -> Rejection:
        """A claimed call that the live framework refused: unknown tool, arguments that do not parse or validate.

        ``same`` is true when the recording was refused too and with an equal outcome (any, where none is given):
        such a call is served by being rejected again.
        """
        claim = self._claims.get(slot_of(ref))
        recording = claim.recording if claim else None
        if recording is None or recording.outcome is None:
            return Rejection(recording, False)
        refused = recording.outcome.kind is OutcomeKind.INVALID_ARGS or recording.source == "transcript"
        return Rejection(recording, refused and (outcome is None or same_outcome(recording.outcome, outcome)))

    def leftovers(self) -> list[Recording]:
        """Recorded calls that nothing asked for, in recorded order.

        Later attempts of a claimed call count too, where history answers the tool.
        """
        left: list[Recording] = []
        for occurrence in self._order:
            if occurrence.free:
                left += occurrence.attempts
            elif occurrence.claimed is not None and isinstance(
                base_config(self.policy.config_for(occurrence.first.tool)), HistoryConfig
            ):
                slot = occurrence.claimed
                left += [r for n, r in enumerate(occurrence.attempts[1:], 2) if Slot(slot, n) not in self._claims]
        return left

    def exhausted(self) -> bool:
        """Whether everything recorded is claimed or covered."""
        return not self.leftovers()

    def wide_answer(self, call: CallView) -> Recording | None:
        """The newest completed recording that equals the call, of those given by `add_wide`."""
        newest = self._wide.get(call.tool)
        return newest.get(self._asked_key(call, self._matching(call.tool).ignore)) if newest else None

    def wide(self, tool: str) -> list[Recording]:
        """Every recording given by `add_wide` for ``tool``."""
        return list(self._wide.get(tool, {}).values())

    def recorded(self, tool: str) -> list[Occurrence]:
        """The recorded calls of ``tool`` in recorded order, to show; not to be changed."""
        return self._tools.get(tool, [])


def _keyless(tool: str) -> str:
    """Stands for the key of calls that have none. They claim each other, so that nothing is left over, and miss."""
    return "-" + tool


class _Found(NamedTuple):
    occurrence: Occurrence | None
    reason: str | None = None
    recorded: int = 1
    loose: tuple[str, ...] = ()


def _as_it_is(value: JSON) -> JSON:
    return value


def _completed(one: Recording) -> bool:
    outcome = one.outcome
    return (
        one.status is NodeStatus.COMPLETED
        and outcome is not None
        and outcome.kind is OutcomeKind.VALUE
        and unservable(one) is None
    )
