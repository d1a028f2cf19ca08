"""What a store does with sessions, agents and replays that are there."""

from dataclasses import replace

import pytest

from playhead.core.session_filter import parse
from playhead.core.values import (
    FROM_SOURCE,
    AgentVersion,
    Conversation,
    ErrorInfo,
    Imported,
    NodeStatus,
    Origin,
    Outcome,
    OutcomeKind,
    Replay,
    ReplayStatus,
    RunSpec,
    SessionStatus,
    Verdict,
)
from playhead.errors import AmbiguousIdError, ConflictError, NotFoundError, UsageError
from playhead.store.ports import SessionQuery, Store
from playhead.testing.conformance.builders import START, a_session, message, model_call, schemas, session_id, tool_call


def asked(text: str) -> SessionQuery:
    return SessionQuery(where=parse(text, now=0))


class Putting:
    def test_a_whole_session_is_created_unchanged_and_updated(self, store: Store) -> None:
        session = a_session(origin=Origin.IMPORT, imported=Imported(format="f", instance="i", external_id="x"))
        nodes = [model_call(session.id, 0, [message("user", "hi")], tools=schemas()), tool_call(session.id, 1)]
        verdicts = [Verdict(name="ok", passed=True, evaluator="import")]
        assert store.sessions.put(session, nodes, verdicts).result == "created"
        assert store.sessions.nodes(session.id) == nodes
        assert store.sessions.verdicts(session.id) == verdicts
        assert store.sessions.put(session, nodes, verdicts).result == "unchanged"
        assert store.sessions.get(session.id).revision == 1
        assert store.sessions.put(session, nodes[:1], []).result == "updated"
        assert store.sessions.get(session.id).revision == 2
        assert store.sessions.nodes(session.id) == nodes[:1]
        assert store.sessions.verdicts(session.id) == []
        assert store.sessions.put(session, nodes[:1], []).result == "unchanged"
        assert list(store.check()) == []

    def test_the_same_content_over_a_recorded_session_is_unchanged(self, store: Store) -> None:
        store.sessions.begin(a_session(owner="me"))
        store.sessions.append(session_id(1), [tool_call(session_id(1), 0)])
        assert store.sessions.put(a_session(), [tool_call(session_id(1), 0)]).result == "unchanged"
        assert store.sessions.put(a_session(), [tool_call(session_id(1), 0, value=1)]).result == "updated"

    def test_what_others_added_survives_the_same_content_and_new_content(self, store: Store) -> None:
        own = Verdict(name="reward", score=1.0, evaluator=FROM_SOURCE)
        session = a_session(tags=("source",), metadata={"task": 1, "traces": ["a", "b"]})
        store.sessions.put(session, [tool_call(session.id, 0)], [own])
        store.sessions.update(session.id, add_tags=["mine"], metadata={"note": "good"})
        store.sessions.add_verdicts(session.id, [Verdict(name="judged", passed=True, evaluator="me@1")])
        assert store.sessions.put(session, [tool_call(session.id, 0)], [own]).result == "unchanged"
        newer = a_session(tags=("source", "new"), metadata={"task": 2})
        assert store.sessions.put(newer, [tool_call(session.id, 0, value="new")]).result == "updated"
        found = store.sessions.get(session.id)
        assert found.tags == ("source", "mine", "new")
        assert found.metadata == {"task": 2, "note": "good"}, "what the import said about itself went with it"
        assert [v.name for v in store.sessions.verdicts(session.id)] == ["judged"]
        assert store.sessions.count(SessionQuery(tags=("mine", "new"))) == 1

    @pytest.mark.parametrize("change", ["status", "member", "tag", "verdict", "node"])
    def test_a_change_of_what_was_put_is_seen_by_the_next_put(self, store: Store, change: str) -> None:
        own = Verdict(name="reward", score=1.0, evaluator=FROM_SOURCE)
        session = a_session(status=SessionStatus.COMPLETED, tags=("t",), metadata={"task": 1})
        nodes = [tool_call(session.id, 0)]
        store.sessions.put(session, nodes, [own])
        if change == "status":
            store.sessions.update(session.id, status=SessionStatus.ABANDONED)
        elif change == "member":
            store.sessions.update(session.id, metadata={"task": 7})
        elif change == "tag":
            store.sessions.update(session.id, remove_tags=["t"])
        elif change == "verdict":
            store.sessions.add_verdicts(session.id, [replace(own, score=0.0)])
        else:
            store.sessions.append(session.id, [tool_call(session.id, 0, value="changed")])
        assert store.sessions.put(session, nodes, [own]).result == "updated"
        assert store.sessions.get(session.id) == replace(session, revision=2)
        assert store.sessions.nodes(session.id) == nodes
        assert store.sessions.verdicts(session.id) == [own]
        assert store.sessions.put(session, nodes, [own]).result == "unchanged"

    def test_one_and_one_point_zero_are_other_content(self, store: Store) -> None:
        store.sessions.put(a_session(inputs=1), [])
        assert store.sessions.put(a_session(inputs=1.0), []).result == "updated"

    def test_what_happens_when_it_exists_is_chosen(self, store: Store) -> None:
        store.sessions.put(a_session(inputs="old"), [])
        assert store.sessions.put(a_session(inputs="new"), [], on_exists="skip").result == "unchanged"
        with pytest.raises(ConflictError):
            store.sessions.put(a_session(inputs="old"), [], on_exists="fail")
        with pytest.raises(UsageError):
            store.sessions.put(a_session(inputs="old"), [], on_exists="perhaps")
        assert store.sessions.get(session_id(1)).inputs == "old"

    def test_an_import_is_found_by_its_own_id(self, store: Store) -> None:
        imported = Imported(format="f", instance="i", external_id="x")
        store.sessions.put(a_session(imported=imported), [])
        found = store.sessions.by_external("f", "i", "x")
        assert found is not None
        assert found.id == session_id(1)
        assert store.sessions.by_external("f", "other", "x") is None
        store.sessions.put(a_session(2, imported=imported), [])
        newest = store.sessions.by_external("f", "i", "x")
        assert newest is not None
        assert newest.id == session_id(2)
        store.sessions.put(a_session(2, imported=replace(imported, external_id="y")), [])
        store.sessions.delete(session_id(1))
        assert store.sessions.by_external("f", "i", "x") is None


class Finding:
    @pytest.fixture
    def many(self, store: Store) -> Store:
        for number in range(1, 8):
            store.sessions.put(
                a_session(
                    number,
                    agent="support" if number % 2 else "sales",
                    origin=Origin.REPLAY if number == 7 else Origin.LIVE,
                    status=SessionStatus.FAILED if number == 3 else SessionStatus.COMPLETED,
                    tags=("odd", "small") if number in (1, 3) else ("odd",) if number % 2 else (),
                    metadata={"n": number, "flag": number == 1},
                    conversation=Conversation(id="c") if number < 3 else None,
                    baseline_id="b" if number == 7 else None,
                    agent_version="v1" if number == 2 else None,
                ),
                [],
            )
        return store

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (SessionQuery(), [7, 6, 5, 4, 3, 2, 1]),
            (SessionQuery(oldest_first=True), [1, 2, 3, 4, 5, 6, 7]),
            (SessionQuery(agents=("sales",)), [6, 4, 2]),
            (SessionQuery(agents=("sales", "support")), [7, 6, 5, 4, 3, 2, 1]),
            (SessionQuery(agents=()), []),
            (SessionQuery(origins=(Origin.REPLAY,)), [7]),
            (SessionQuery(statuses=(SessionStatus.FAILED, SessionStatus.OPEN)), [3]),
            (SessionQuery(tags=("odd",)), [7, 5, 3, 1]),
            (SessionQuery(tags=("odd", "small")), [3, 1]),
            (SessionQuery(conversation="c"), [2, 1]),
            (SessionQuery(baseline_id="b"), [7]),
            (SessionQuery(agent_version="v1"), [2]),
            (SessionQuery(since=START + 5), [7, 6, 5]),
            (SessionQuery(since=START + 2, until=START + 4), [3, 2]),
            (SessionQuery(ids=(session_id(4), session_id(1), "nobody")), [4, 1]),
            (SessionQuery(metadata={"n": 1}), [1]),
            (SessionQuery(metadata={"flag": True}), [1]),
            (SessionQuery(metadata={"flag": 1}), []),
            (SessionQuery(metadata={"n": 1.0}), []),
            (SessionQuery(metadata={"other": None}), []),
            (SessionQuery(agents=("support",), tags=("small",), statuses=(SessionStatus.COMPLETED,)), [1]),
            (asked("agent = sales or status = failed"), [6, 4, 3, 2]),
            (asked("agent = sales and not agent_version = v1"), [6, 4]),
            (asked("agent_version != v1 and conversation = c"), [1]),
            (asked("not conversation = c"), [7, 6, 5, 4, 3]),  # also where there is none
            (asked("tag in (small) or origin = replay"), [7, 3, 1]),
            (asked("tag not in (odd, small)"), [6, 4, 2]),
            (asked("tag ~ mal and agent ~ up"), [3, 1]),
            (asked("agent ~ UP"), []),  # letters count as they are
            (asked("metadata.n >= 3 and metadata.n < 5.5"), [5, 4, 3]),
            (asked("metadata.flag = true"), [1]),
            (asked("metadata.flag = 1 or metadata.n = 1.0"), []),
            (asked("not metadata.other = 1"), [7, 6, 5, 4, 3, 2, 1]),
            (asked("metadata.other = null or metadata.flag < 1"), []),
            (asked(f"started < {START + 3} or baseline = b"), [7, 2, 1]),
            (asked(f"id in ({session_id(2)}, nobody)"), [2]),
            (SessionQuery(agents=("support",), where=parse("tag = odd and not status = failed", now=0)), [7, 5, 1]),
        ],
    )
    def test_a_query_finds_and_counts(self, many: Store, query: SessionQuery, expected: list[int]) -> None:
        assert [session.id for session in many.sessions.find(query).items] == [session_id(n) for n in expected]
        assert many.sessions.count(query) == len(expected)

    @pytest.mark.parametrize("oldest_first", [False, True])
    def test_pages_cover_all_once_while_others_insert(self, many: Store, oldest_first: bool) -> None:
        query = SessionQuery(oldest_first=oldest_first)
        before = [session.id for session in many.sessions.find(query).items]
        seen: list[str] = []
        cursor: str | None = None
        for step in range(10):
            page = many.sessions.find(query, limit=3, cursor=cursor)
            seen += [session.id for session in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
            many.sessions.begin(a_session(100 + step, started_at=START + (0 if oldest_first else 1000) - step))
        assert seen == before

    def test_sessions_of_one_instant_are_not_lost_between_pages(self, store: Store) -> None:
        for number in range(5):
            store.sessions.begin(a_session(number, started_at=START))
        first = store.sessions.find(SessionQuery(), limit=2)
        second = store.sessions.find(SessionQuery(), limit=2, cursor=first.next_cursor)
        third = store.sessions.find(SessionQuery(), limit=2, cursor=second.next_cursor)
        assert third.next_cursor is None
        assert len({session.id for page in (first, second, third) for session in page.items}) == 5

    def test_a_cursor_of_something_else_is_refused(self, store: Store) -> None:
        with pytest.raises(UsageError):
            store.sessions.find(SessionQuery(), cursor="nonsense")

    def test_shortened_ids_and_last(self, many: Store) -> None:
        resolve = many.sessions.resolve
        assert resolve(session_id(3)) == session_id(3)
        assert resolve("000000000003") == session_id(3)
        assert resolve("last") == session_id(6)
        assert resolve("last~2") == session_id(4)
        assert resolve("last", agent="support") == session_id(5)
        with pytest.raises(AmbiguousIdError):
            resolve(session_id(3)[:12])
        for text in ("003", "nowhere", "last~99", "", "%", "____"):
            with pytest.raises(NotFoundError):
                resolve(text)
        with pytest.raises(NotFoundError):
            resolve("000000000003", agent="sales")

    def test_a_full_id_wins_over_being_a_part_of_others(self, store: Store) -> None:
        for id in ("abcd", "abcd1", "2abcd"):
            store.sessions.begin(a_session(id=id))
        assert store.sessions.resolve("abcd") == "abcd"


class Changing:
    def test_an_update_changes_what_it_names(self, store: Store) -> None:
        store.sessions.begin(a_session(tags=("a", "b"), metadata={"x": 1}))
        found = store.sessions.update(
            session_id(1),
            status=SessionStatus.ABANDONED,
            add_tags=["c", "a"],
            remove_tags=["b"],
            metadata={"y": {"z": 2}},
        )
        assert (found.status, found.tags) == (SessionStatus.ABANDONED, ("a", "c"))
        assert found.metadata == {"x": 1, "y": {"z": 2}}
        assert store.sessions.get(session_id(1)) == found
        assert store.sessions.count(SessionQuery(tags=("b",))) == 0
        assert store.sessions.count(SessionQuery(tags=("c",), statuses=(SessionStatus.ABANDONED,))) == 1
        with pytest.raises(NotFoundError):
            store.sessions.update("nobody", add_tags=["a"])

    def test_a_verdict_replaces_the_one_of_the_same_evaluator_and_name(self, store: Store) -> None:
        store.sessions.begin(a_session())
        store.sessions.add_verdicts(session_id(1), [Verdict(name="a", score=0.0, evaluator="e@1"), Verdict(name="b")])
        store.sessions.add_verdicts(
            session_id(1), [Verdict(name="a", passed=False, evaluator="e@1"), Verdict(name="a", evaluator="e@2")]
        )
        assert store.sessions.verdicts(session_id(1)) == [
            Verdict(name="a", passed=False, evaluator="e@1"),
            Verdict(name="b"),
            Verdict(name="a", evaluator="e@2"),
        ]
        with pytest.raises(NotFoundError):
            store.sessions.add_verdicts("nobody", [Verdict(name="a")])
        with pytest.raises(NotFoundError):
            store.sessions.verdicts("nobody")


class History:
    def test_the_newest_answer_of_each_key(self, store: Store) -> None:
        key_a, key_b = "1:" + "a" * 64, "1:odd key"
        for number, value in ((1, "old"), (2, "new")):
            calls = [
                tool_call(session_id(number), 0, key=key_a, value=value, ended_at=START + number * 100),
                tool_call(session_id(number), 1, key=key_a, value="before", ended_at=START + number * 100 - 50),
                tool_call(session_id(number), 2, key=None),
                tool_call(session_id(number), 3, key=key_a, tool="other"),
                tool_call(
                    session_id(number),
                    4,
                    key=key_b,
                    ended_at=START + 900,
                    outcome=Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="E")),
                ),
                tool_call(session_id(number), 5, key=key_b, status=NodeStatus.CANCELLED),
            ]
            store.sessions.begin(a_session(number))
            store.sessions.append(session_id(number), calls)
        store.sessions.append(session_id(1), [tool_call(session_id(1), 6, key=key_b, value="b")])
        store.sessions.finish(a_session(1))
        found = store.sessions.newest_calls("lookup", agent="support")
        assert [node.outcome and node.outcome.value for node in found] == ["new", "b"]
        assert [node.call and node.call.arguments for node in found] == [{"q": 0}, {"q": 6}]
        among = store.sessions.newest_calls("lookup", session_ids=[session_id(1), "nobody"])
        assert [node.outcome and node.outcome.value for node in among] == ["old", "b"]
        assert store.sessions.newest_calls("lookup", agent="nobody") == []
        assert store.sessions.newest_calls("nothing") == []
        store.sessions.delete(session_id(2))
        assert [n.outcome and n.outcome.value for n in store.sessions.newest_calls("lookup")] == ["old", "b"]

    def test_history_is_taken_from_live_and_imported_sessions_only(self, store: Store) -> None:
        for number, origin in enumerate(Origin):
            store.sessions.put(a_session(number, origin=origin), [tool_call(session_id(number), 0, key=f"1:{origin}")])
        found = store.sessions.newest_calls("lookup")
        assert [node.call and node.call.key for node in found] == ["1:import", "1:live"]
        replayed = store.sessions.newest_calls("lookup", session_ids=[session_id(1)])
        assert [node.call and node.call.key for node in replayed] == ["1:replay"]

    def test_an_answer_that_was_taken_back_gives_way_to_the_next(self, store: Store) -> None:
        for number in (1, 2):
            store.sessions.begin(a_session(number))
            call = tool_call(session_id(number), 0, key="1:k", value=number, ended_at=START + number * 10)
            store.sessions.append(session_id(number), [call])
        failed = tool_call(session_id(2), 0, key="1:k", status=NodeStatus.FAILED, ended_at=START + 20)
        store.sessions.append(session_id(2), [failed])
        (found,) = store.sessions.newest_calls("lookup")
        assert found.session_id == session_id(1)


class Records:
    def test_versions_are_numbered_and_known_ones_given_back(self, store: Store) -> None:
        def version(id: str, commit: str, agent: str = "a") -> AgentVersion:
            return AgentVersion(
                id=id,
                agent=agent,
                number=77,
                created_at=START,
                run_spec=RunSpec(entry_point="m:f"),
                fingerprint={"commit": commit},
            )

        first = store.agents.register(version("v1", "x"))
        second = store.agents.register(version("v2", "y"))
        assert (first.number, second.number) == (1, 2)
        assert store.agents.register(version("v3", "x")) == first
        assert store.agents.register(version("w1", "x", agent="b")).number == 1
        assert store.agents.names() == ["a", "b"]
        assert store.agents.versions("a") == [first, second]
        assert store.agents.find("a") == second
        assert store.agents.find("a", 1) == first
        assert store.agents.get("v2") == second
        for lost in (lambda: store.agents.get("v3"), lambda: store.agents.find("a", 9), lambda: store.agents.find("z")):
            with pytest.raises(NotFoundError):
                lost()
        with pytest.raises(ConflictError):
            store.agents.register(version("v1", "z"))
        capable = store.agents.set_capabilities("v1", {"streams": True})
        assert capable == replace(first, capabilities={"streams": True})
        assert store.agents.get("v1") == capable
        assert store.agents.register(version("v4", "x")) == capable
        with pytest.raises(NotFoundError):
            store.agents.set_capabilities("nobody", {})

    def test_replays_are_stored_saved_and_found(self, store: Store) -> None:
        ids = [f"0197c0de-1111-7000-8000-{number:012x}" for number in range(4)]
        made = [
            store.replays.create(Replay(id=id, baseline_session_id="b" if n else "other", created_at=START + n))
            for n, id in enumerate(ids)
        ]
        changed = replace(made[1], status=ReplayStatus.COMPLETED, verdicts=(Verdict(name="v", score=0.5),))
        store.replays.save(changed)
        assert store.replays.get(ids[1]) == changed
        assert [r.id for r in store.replays.find().items] == ids[::-1]
        assert [r.id for r in store.replays.find(baseline_session_id="b").items] == ids[:0:-1]
        assert [r.id for r in store.replays.find(status="completed").items] == [ids[1]]
        page = store.replays.find(limit=3)
        assert [r.id for r in store.replays.find(cursor=page.next_cursor).items] == ids[:1]
        assert store.replays.resolve("last") == ids[3]
        assert store.replays.resolve("last~3") == ids[0]
        assert store.replays.resolve(ids[2][-6:]) == ids[2]
        with pytest.raises(AmbiguousIdError):
            store.replays.resolve(ids[0][:8])
        with pytest.raises(NotFoundError):
            store.replays.get("nobody")
        with pytest.raises(NotFoundError):
            store.replays.save(replace(changed, id="nobody"))
        with pytest.raises(ConflictError):
            store.replays.create(made[0])

    def test_a_replay_with_a_known_idempotency_key_is_given_back(self, store: Store) -> None:
        first = store.replays.create(Replay(id="r1", baseline_session_id="b", created_at=1, idempotency_key="k"))
        assert store.replays.create(replace(first, id="r2", created_at=2)) == first
        assert len(store.replays.find().items) == 1
