"""`decide` for any policy, call and recording: total, deterministic, and no occurrence answers twice."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.core.canonical import NoKeyError
from playhead.core.decide import decide, policy_warnings
from playhead.core.keys import call_key
from playhead.core.occurrence import start_ref
from playhead.core.policy import (
    CallView,
    ErrorCase,
    ErrorResult,
    Generate,
    HistoryConfig,
    Inject,
    InjectConfig,
    LLMConfig,
    PassthroughConfig,
    RunLive,
    Serve,
    StaticCase,
    StaticConfig,
    Stop,
    ToolConfig,
    ToolPolicy,
)
from playhead.core.policy_json import parse_policy
from playhead.core.tape import Tape
from playhead.core.values import (
    ErrorInfo,
    Mark,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Outcome,
    OutcomeKind,
    ToolCall,
    Truncated,
)

DECISIONS = (Serve, RunLive, Stop, ErrorResult, Generate, Inject)

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, 2**60]),
    st.sampled_from(["", "x", " x\n", "\ud800", "é"]),
    st.sampled_from([{"$float": "nan"}, {"$datetime": "2026-01-02T03:04:05Z"}, {"$$int": "1"}, {"$invalid": "{"}]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b/c", "items"]), inner, max_size=3),
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "items"]), VALUES, max_size=3)
TOOLS = st.sampled_from(["f", "g"])
ON_MISS = st.sampled_from(["fail", "error_result", "passthrough"])
POINTERS = st.lists(st.sampled_from(["/a", "/b", "/items/*", "/*", ""]), max_size=2).map(tuple)

CASES = st.one_of(
    st.builds(
        StaticCase,
        match=st.one_of(st.none(), ARGUMENTS),
        match_mode=st.sampled_from(["exact", "subset"]),
        result=VALUES,
        occurrence=st.one_of(st.none(), st.integers(1, 3)),
        delay_ms=st.integers(0, 5),
    ),
    st.builds(StaticCase, error=st.builds(ErrorCase, message=st.text(max_size=3), status=st.none() | st.just(429))),
)
SIMPLE = st.one_of(
    st.builds(
        HistoryConfig,
        scope=st.sampled_from(["baseline", "agent", "cohort_version"]),
        on_miss=ON_MISS,
        ignore=POINTERS,
        order=st.sampled_from([None, "recorded"]),
        repeat=st.sampled_from(["error", "last", "first"]),
    ),
    st.builds(StaticConfig, cases=st.lists(CASES, max_size=3).map(tuple), on_miss=ON_MISS, ignore=POINTERS),
    st.just(PassthroughConfig()),
    st.builds(LLMConfig),
)


def injecting(then: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    chosen = st.one_of(
        st.fixed_dictionaries({"nth": st.integers(1, 3)}),
        st.fixed_dictionaries({"probability": st.floats(0, 1), "seed": st.integers(0, 9)}),
    )
    kinds = ["validation_error", "not_found", "rate_limit", "timeout", "partial", "empty", "malformed", "error"]
    return st.builds(
        lambda kind, when, message, mode, times, pointer, then: InjectConfig(
            kind=kind, message=message, mode=mode, times=times, pointer=pointer, then=then, **when
        ),
        st.sampled_from(kinds),
        chosen,
        st.sampled_from(["prescriptive", "plain", "production"]),
        st.sampled_from(["truncated_json", "wrong_type", "out_of_range"]),
        st.one_of(st.none(), st.integers(1, 2)),
        st.one_of(st.none(), st.sampled_from(["/a", "/items"])),
        st.one_of(st.none(), then),
    )


CONFIGS: st.SearchStrategy[ToolConfig] = st.one_of(SIMPLE, injecting(st.one_of(SIMPLE, injecting(SIMPLE))))
POLICIES = st.builds(ToolPolicy, default=CONFIGS, tools=st.dictionaries(TOOLS, CONFIGS, max_size=2))

OUTCOMES = st.one_of(
    st.none(),
    st.builds(Outcome, kind=st.sampled_from(OutcomeKind), value=VALUES),
    st.builds(lambda text: Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="E", message=text)), st.text()),
    st.just(Outcome(kind=OutcomeKind.VALUE, truncated=Truncated(bytes=9, sha256=""))),
)
SCHEMAS = st.sampled_from(
    [
        None,
        {"type": "integer"},
        {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a", "b"]},
        {"type": "nonsense"},
        True,
        7,
    ]
)


def keyed(tool: str, arguments: Any) -> tuple[str | None, NoKey | None]:
    try:
        return call_key(tool, arguments), None
    except NoKeyError as error:
        return None, error.no_key


@st.composite
def recorded(draw: st.DrawFn) -> Node:
    tool, arguments = draw(TOOLS), draw(ARGUMENTS)
    seq = draw(st.integers(1, 1000))
    key, no_key = keyed(tool, arguments)
    return Node(
        id=f"n{seq}",
        session_id="s",
        seq=seq,
        kind=NodeKind.TOOL_CALL,
        name=tool,
        started_at=seq,
        ended_at=draw(st.one_of(st.none(), st.just(seq + 5))),
        status=draw(st.sampled_from(NodeStatus)),
        outcome=draw(OUTCOMES),
        call=ToolCall(
            tool=tool,
            arguments=arguments,
            key=key,
            no_key=no_key,
            overlapped=draw(st.booleans()),
            mark=draw(st.sampled_from(Mark)),
            occurrence=draw(st.integers(1, 3)),
            attempt=draw(st.integers(1, 2)),
        ),
    )


RECORDED = st.lists(recorded(), max_size=6, unique_by=lambda n: n.id)
ASKED = st.lists(st.tuples(TOOLS, ARGUMENTS, SCHEMAS, SCHEMAS, st.integers(1, 2)), max_size=6)


@settings(deadline=None, max_examples=60)
@given(policy=POLICIES, nodes=RECORDED, wide=RECORDED, asked=ASKED, again=st.booleans())
def test_every_call_gets_one_decision_and_no_occurrence_answers_twice(
    policy: ToolPolicy, nodes: list[Node], wide: list[Node], asked: list[Any], again: bool
) -> None:
    tape = Tape.build(nodes, policy)
    tape.add_wide("f", wide)
    calls = [(t, n.call.arguments) for n in nodes if n.call for t in [n.call.tool]] if again else []
    views: list[CallView] = []
    for number, (tool, arguments, output, parameters, attempt) in enumerate(
        [*((t, a, None, None, 1) for t, a in calls), *asked]
    ):
        key, no_key = keyed(tool, arguments)
        ref = start_ref(number, attempt)
        views.append(
            CallView(
                ref=ref,
                tool=tool,
                arguments=arguments,
                key=key,
                no_key=no_key,
                output_schema=output,
                parameters=parameters,
            )
        )
    answered: list[str] = []
    for view in views:
        claim = tape.claim(view)
        decision = decide(policy, view, tape)
        assert isinstance(decision, DECISIONS)
        assert decide(policy, view, tape) == decision
        assert tape.claim_of(view.ref) == claim
        if isinstance(decision, Serve) and decision.provenance.by == "served" and claim.recording is not None:
            shared = claim.injection is not None or "repeat" in claim.loose
            if decision.provenance.node_id == claim.recording.node_id and not shared:
                answered.append(claim.recording.node_id)
    scoped = all(getattr(c, "scope", "baseline") == "baseline" for c in [policy.default, *policy.tools.values()])
    if scoped and not any(isinstance(c, InjectConfig) for c in [policy.default, *policy.tools.values()]):
        assert len(set(answered)) == len(answered)


@settings(deadline=None, max_examples=40)
@given(policy=POLICIES, view=st.tuples(TOOLS, ARGUMENTS))
def test_a_call_that_the_tape_does_not_know_gets_a_decision_too(policy: ToolPolicy, view: tuple[str, Any]) -> None:
    key, no_key = keyed(*view)
    call = CallView(ref="nobody", tool=view[0], arguments=view[1], key=key, no_key=no_key)
    assert isinstance(decide(policy, call, Tape.build([], policy)), Stop | RunLive | Generate)


@settings(deadline=None, max_examples=40)
@given(policy=POLICIES, schema=SCHEMAS)
def test_a_policy_survives_its_json_and_is_checked_without_failing(policy: ToolPolicy, schema: Any) -> None:
    assert parse_policy(policy.model_dump(mode="json", by_alias=True)) == policy
    assert all(isinstance(w, str) for w in policy_warnings(policy, {"f"}, {"f": schema}))
