"""The query language: what it reads, what it refuses and where, and that SQL means what `holds` means."""

from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.core.session_filter import FIELDS, Both, Compare, Either, Filter, Not, fields, holds, parse, text_of
from playhead.core.values import Conversation, Origin, Session, SessionStatus
from playhead.errors import UsageError
from playhead.store.ports import SessionQuery, Store
from playhead.store.sqlite import SqliteStore

NOW = 1_780_000_000_000_000_000
DAY = 86_400_000_000_000
fast = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("agent = desk", Compare("agent", "=", "desk")),
        ("agent='my desk'", Compare("agent", "=", "my desk")),
        (r'agent = "a \"b\" \\"', Compare("agent", "=", 'a "b" \\')),
        ("agent = 'and'", Compare("agent", "=", "and")),
        ("agent != desk", Not(Compare("agent", "=", "desk"))),
        ("NOT agent = desk", Not(Compare("agent", "=", "desk"))),
        ("tag in (a, 'b c')", Either((Compare("tag", "=", "a"), Compare("tag", "=", "b c")))),
        ("tag not in (a)", Not(Compare("tag", "=", "a"))),
        (
            "agent = a or agent = b and tag = c",
            Either((Compare("agent", "=", "a"), Both((Compare("agent", "=", "b"), Compare("tag", "=", "c"))))),
        ),
        ("metadata.n = 3", Compare("metadata.n", "=", 3)),
        ("metadata.n = '3'", Compare("metadata.n", "=", "3")),
        ('metadata."a b" = false', Compare("metadata.a b", "=", False)),
        ("metadata.x >= -0.5", Compare("metadata.x", ">=", -0.5)),
        ("started >= 7d", Compare("started", ">=", NOW - 7 * DAY)),
        ("started < 1780000000000000000", Compare("started", "<", NOW)),
        (
            "started >= 2026-05-01T12:30+02:00",
            Compare("started", ">=", int(datetime.fromisoformat("2026-05-01T12:30+02:00").timestamp()) * 10**9),
        ),
        ("agent ~ esk", Compare("agent", "~", "esk")),
    ],
)
def test_a_query_is_read(text: str, read: Filter) -> None:
    assert parse(text, now=NOW) == read


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        ("agnt = desk", 1, "'agnt' is no field"),
        ("agent = desk and", 17, "a field should stand here"),
        ("agent = desk and or tag = x", 18, "a field should stand here"),
        ("agent == desk", 8, "a value for agent is missing"),
        ("agent desk", 7, "'desk' compares nothing"),
        ("agent", 6, "after 'agent'"),
        ("agent = ", 9, "a value for agent is missing"),
        ("(agent = desk", 1, "this bracket is not closed"),
        ("agent = desk) or tag = x", 13, "the query should end here"),
        ("agent = desk tag = x", 14, "the query should end here"),
        ("status = broken", 10, "no status is called 'broken'"),
        ("agent < desk", 7, "agent has no order"),
        ("started ~ 2026", 9, "started is no text"),
        ("started > yesterday", 11, "'yesterday' is not a time"),
        ("metadata. = 3", 11, "the name of the metadata member is missing"),
        ("metadata.n < many", 14, "'many' is no number"),
        ("tag in a", 8, "a list should stand here"),
        ("tag in (a, b", 8, "this bracket is not closed"),
        ("tag in (a,)", 11, "a value for tag is missing"),
        ("tag not a", 9, "after 'tag' not"),
        ("tag = 'open", 7, "this text has no end"),
        ("agent = desk ! x", 14, "this means nothing here"),
    ],
)
def test_a_mistake_is_pointed_at(text: str, at: int, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, now=NOW)
    assert why in caught.value.message
    assert f"at character {at}:" in caught.value.message
    assert f"{text[max(0, at - 41) : at - 1]} >>> {text[at - 1 :] or 'end'}" in caught.value.message
    assert caught.value.details["at"] == at


@pytest.mark.parametrize("text", ["", "   ", "(" * 10_000, "not " * 10_000, "agent = a or " * 300 + "agent = a"])
def test_what_is_empty_or_endless_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="query: it is"):
        parse(text, now=NOW)


@fast
@given(st.text(alphabet="ant gesd=!<>~()',\"\\.metadata 0123 orin", max_size=60))
def test_whatever_is_typed_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text, now=NOW)
    except UsageError:
        return
    assert parse(text_of(found), now=0, kept=True) == found


texts = st.sampled_from(["desk", "sales", "d", "", "a b", 'q"\\', "eval", "v1", "é"])
comparisons = st.one_of(
    st.builds(Compare, st.sampled_from(["agent", "agent_version", "tag", "conversation", "baseline"]),
              st.sampled_from(["=", "~"]), texts),
    st.builds(Compare, st.just("origin"), st.just("="), st.sampled_from(["live", "replay"])),
    st.builds(Compare, st.just("started"), st.sampled_from(["=", "<", ">="]), st.integers(0, 6)),
    st.builds(Compare, st.sampled_from(["metadata.n", "metadata.a b"]), st.sampled_from(["=", "<", ">="]),
              st.sampled_from([0, 1, 2.5, -1])),
    st.builds(Compare, st.just("metadata.n"), st.just("="), st.sampled_from([True, None, "desk", 1.0])),
)  # fmt: skip
filters = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(Both, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Either, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
SESSIONS = [
    Session(
        id=f"{n:032x}",
        agent=("desk", "sales", "d")[n % 3],
        started_at=n,
        origin=Origin.REPLAY if n == 4 else Origin.LIVE,
        status=SessionStatus.COMPLETED,
        agent_version="v1" if n == 2 else None,
        tags=(("eval", "a b"), (), ('q"\\',))[n % 3],
        metadata=({"n": 1}, {"n": True, "a b": 2.5}, {"n": None}, {}, {"n": "desk", "a b": -1}, {"n": 1.0})[n],
        conversation=Conversation(id="d") if n == 5 else None,
        baseline_id="é" if n == 4 else None,
    )
    for n in range(6)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = SqliteStore(tmp_path_factory.mktemp("filters") / "store.db")
    for session in SESSIONS:
        made.sessions.put(session, [])
    return made


@fast
@given(filters)
def test_sql_finds_what_the_query_means(store: Store, where: Filter) -> None:
    found = store.sessions.find(SessionQuery(where=where, oldest_first=True)).items
    assert [session.id for session in found] == [session.id for session in SESSIONS if holds(where, session)]


@fast
@given(filters)
def test_a_kept_query_is_the_same_query(where: Filter) -> None:
    again = parse(text_of(where), now=0, kept=True)
    assert [holds(again, session) for session in SESSIONS] == [holds(where, session) for session in SESSIONS]
    assert set(fields(again)) == set(fields(where))


def test_every_field_can_be_asked_for() -> None:
    session = SESSIONS[4]
    for name in FIELDS:
        value = {"started": "9999-01-01", "status": "completed", "origin": "live"}.get(name, "x")
        sign = "<" if name == "started" else "="
        assert isinstance(holds(parse(f"{name} {sign} {value}", now=NOW), session), bool)
