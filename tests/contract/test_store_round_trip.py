"""Whatever values a recorder makes, every backend gives the same values back."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.core.codec import dump, encode, plain
from playhead.core.values import (
    Cost,
    Effect,
    Encoded,
    ErrorInfo,
    Imported,
    ModelCall,
    Native,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Origin,
    Outcome,
    OutcomeKind,
    Provenance,
    Session,
    SessionStatus,
    ToolCall,
    Truncated,
    Turn,
    Usage,
    Verdict,
)
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery, Store
from playhead.store.segments import builder
from playhead.store.sqlite import SqliteStore

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=6)  # lone surrogates too
numbers = st.one_of(st.integers(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False))
json = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
encoded = json.filter(lambda value: value is not None).map(
    lambda value: Encoded(encode(value), hashlib.sha256(encode(value)).digest())
)
anything = st.one_of(json, encoded, st.lists(encoded, max_size=2), st.dictionaries(texts, encoded, max_size=2))
times = st.integers(0, 2**62)
short = st.one_of(st.none(), texts)
errors = st.builds(
    ErrorInfo, class_name=texts, message=texts, args=json, status=st.one_of(st.none(), st.integers(0, 999)), code=json
)
outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(OutcomeKind),
    value=anything,
    error=st.one_of(st.none(), errors),
    native=st.one_of(st.none(), st.builds(Native, codec=texts, version=st.integers(0, 9), data=anything)),
    truncated=st.one_of(st.none(), st.builds(Truncated, bytes=times, sha256=texts)),
    error_hint=st.booleans(),
)
provenances = st.builds(Provenance, by=st.sampled_from(["served", "live", "missed"]), loose=st.tuples(texts))
tool_calls = st.builds(
    ToolCall,
    tool=texts,
    arguments=anything,
    call_id=short,
    key=st.one_of(st.none(), texts, st.binary(min_size=32, max_size=32).map(lambda digest: f"1:{digest.hex()}")),
    no_key=st.one_of(st.none(), st.builds(NoKey, reason=texts, at=texts)),
    path=st.lists(texts, max_size=2).map(tuple),
    occurrence=st.integers(1, 3),
    effect=st.sampled_from(Effect),
    overlapped=st.booleans(),
    provenance=st.one_of(st.none(), provenances),
)
model_calls = st.builds(
    ModelCall,
    requested=short,
    usage=st.one_of(st.none(), st.builds(Usage, input_uncached=times, raw=anything)),
    cost=st.one_of(st.none(), st.builds(Cost, amount=texts)),
    missing=st.lists(texts, max_size=2).map(tuple),
)


@st.composite
def nodes_of(draw: st.DrawFn, session_id: str) -> list[Node]:
    """Nodes whose requests share messages and schemas in every way: grown, cut, mixed and repeated."""
    messages = draw(st.lists(st.one_of(json, encoded), min_size=1, max_size=6))
    tools = draw(st.lists(anything, min_size=1, max_size=2))
    nodes: list[Node] = []
    for seq in range(draw(st.integers(0, 4))):
        inputs: Any = draw(anything)
        if draw(st.booleans()):
            inputs = {"messages": draw(st.lists(st.sampled_from(messages), max_size=8)), "params": draw(json)}
            if draw(st.booleans()):
                inputs["tools"] = draw(st.sampled_from(tools))
        node = Node(
            id=f"n{draw(st.integers(0, seq))}",  # now and then one that is there
            session_id=session_id,
            seq=draw(st.integers(0, 9)),
            kind=draw(st.sampled_from(NodeKind)),
            name=draw(texts),
            started_at=draw(times),
            ended_at=draw(st.one_of(st.none(), times)),
            parent_id=draw(short),
            status=draw(st.sampled_from(NodeStatus)),
            inputs=inputs,
            outcome=draw(st.one_of(st.none(), outcomes)),
            attributes=draw(st.dictionaries(texts, anything, max_size=2)),
            call=draw(st.one_of(st.none(), tool_calls)),
            model=draw(st.one_of(st.none(), model_calls)),
            imported=draw(st.one_of(st.none(), st.builds(Imported, format=texts, external_id=texts, raw=anything))),
        )
        nodes.append(node)
    return nodes


sessions = st.builds(
    Session,
    id=st.just("s"),
    agent=texts,
    started_at=times,
    origin=st.sampled_from(Origin),
    status=st.sampled_from(SessionStatus),
    inputs=anything,
    output=anything,
    turns=st.lists(st.builds(Turn, input=json, output=json), max_size=2).map(tuple),
    tags=st.lists(texts, max_size=3, unique=True).map(tuple),
    metadata=st.dictionaries(texts, anything, max_size=2),
    error=st.one_of(st.none(), errors),
    imported=st.one_of(st.none(), st.builds(Imported, format=texts, external_id=texts)),
)
verdict_lists = st.lists(
    st.builds(Verdict, name=texts, score=st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False))),
    max_size=3,
    unique_by=lambda verdict: verdict.name,
)


def expected(given_nodes: list[Node]) -> list[str]:
    last = {node.id: node for node in given_nodes}
    return [shown(node) for node in sorted(last.values(), key=lambda node: (node.seq, node.id))]


def shown(value: Any) -> str:
    """Values compared so that 1, 1.0 and true differ, and every `Encoded` counts as what it says."""
    return repr(plain(dump(value)))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    yield opened
    opened.close()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(session=sessions, nodes=nodes_of("s"), verdicts=verdict_lists, cut=st.integers(0, 6), data=st.data())
def test_values_come_back_recorded_or_put(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    session: Session,
    nodes: list[Node],
    verdicts: list[Verdict],
    cut: int,
    data: st.DataObject,
) -> None:
    with monkeypatch.context() as patched:
        # Small values count as large, so that what only large ones go through is tried on every kind of value.
        large = data.draw(st.sampled_from([4, 60, 32 * 1024]))
        patched.setattr(builder, "LARGE", large)
        patched.setattr(builder, "SCHEMAS", large)
        store.sessions.begin(replace(session, tags=(), metadata={}))
        store.sessions.append("s", nodes[:cut])
        store.sessions.append("s", nodes[cut:])
        assert [shown(node) for node in store.sessions.nodes("s")] == expected(nodes)
        store.sessions.add_verdicts("s", verdicts)
        store.sessions.finish(session)
        check(store, session, nodes, verdicts)
        store.sessions.append("s", nodes[cut:])
        store.sessions.finish(session)
        check(store, session, nodes, verdicts)
        store.sessions.delete("s")
        last = list({node.id: node for node in nodes}.values())
        assert store.sessions.put(session, last, verdicts).result == "created"
        check(store, session, nodes, verdicts)
        assert store.sessions.put(session, last, verdicts).result == "unchanged"
        store.sessions.delete("s")
        assert list(store.check()) == []


def check(store: Store, session: Session, nodes: list[Node], verdicts: list[Verdict]) -> None:
    assert [shown(node) for node in store.sessions.nodes("s")] == expected(nodes)
    assert shown(store.sessions.get("s")) == shown(session)
    assert list(map(shown, store.sessions.verdicts("s"))) == list(map(shown, verdicts))
    heads = store.sessions.nodes("s", payloads=False)
    assert [(node.id, node.status, node.name) for node in heads] == [
        (node.id, node.status, node.name) for node in store.sessions.nodes("s")
    ]
    query = SessionQuery(agents=(session.agent,), tags=session.tags, metadata=plain(session.metadata))
    assert store.sessions.count(query) == 1
