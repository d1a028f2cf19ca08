"""What goes wrong elsewhere when agents are recorded and replayed, tried on PydanticAI agents."""

import asyncio
import http.server
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

import playhead
from playhead.core.values import FidelityKind, NodeStatus, OutcomeKind, ReplayStatus, SessionStatus
from playhead.testing.conformance.bench import Bench, Recorded, Replayed


class Desk:
    """An agent whose script and tools can be changed between recording and replay."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.live: list[Any] = []
        self.turns: list[list[tuple[str, dict[str, Any]]]] = []
        self.tools: list[Callable[..., Any]] = []

    def run(self, prompt: str) -> str:
        return asyncio.run(self.agent().run(prompt)).output

    def agent(self) -> Agent[None, str]:
        def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
            turn = sum(isinstance(m, ModelResponse) for m in messages)
            if turn < len(self.turns):
                calls = enumerate(self.turns[turn])
                return ModelResponse(parts=[ToolCallPart(t, a, tool_call_id=f"c{turn}-{i}") for i, (t, a) in calls])
            seen = [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
            return ModelResponse(parts=[TextPart(f"saw {seen}")])

        return Agent(FunctionModel(answer, model_name="scripted"), tools=self.tools, name="desk")

    def record(self, run: Callable[..., Any] | None = None) -> Recorded:
        return self.bench.record(run or self.run, {"prompt": "go"})

    def replay(self, baseline: Recorded, run: Callable[..., Any] | None = None, **options: Any) -> Replayed:
        self.live.clear()
        return self.bench.replay(baseline, run or self.run, **options)


@pytest.fixture
def desk() -> Iterator[Desk]:
    playhead.install(sessions=False)
    made = Desk()
    yield made
    made.bench.close()
    playhead.uninstall()


@pytest.fixture
def polling(desk: Desk) -> Desk:
    def poll(q: str) -> dict[str, int]:
        desk.live.append(q)
        return {"n": len(desk.live)}

    desk.tools = [poll]
    desk.turns = [[("poll", {"q": "q"})]] * 3
    return desk


def answers(read: Recorded) -> list[Any]:
    return [n.outcome.value for n in read.calls if n.outcome is not None]


def test_a_poll_gets_its_answers_in_order(polling: Desk) -> None:
    baseline = polling.record()
    result = polling.replay(baseline)

    assert answers(baseline) == answers(result) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert polling.live == []
    assert result.faithful


def test_one_poll_too_many_is_told_apart_from_one_never_recorded(polling: Desk) -> None:
    baseline = polling.record()
    polling.turns = polling.turns[:1] * 4

    result = polling.replay(baseline)

    assert polling.live == []
    assert result.replay.status is ReplayStatus.FAILED
    assert "all 3 recorded answers" in result.message


def test_one_poll_too_many_as_an_error_result_still_counts_as_a_miss(polling: Desk) -> None:
    baseline = polling.record()
    polling.turns = polling.turns[:1] * 4

    result = polling.replay(baseline, tool_policy={"default": {"type": "history", "on_miss": "error_result"}})

    assert polling.live == []
    assert result.replay.status is ReplayStatus.COMPLETED
    assert result.by == ["served", "served", "served", "missed"]
    assert not result.faithful


@pytest.mark.parametrize(("repeat", "expected"), [("last", [1, 2, 3, 3, 3]), ("first", [1, 2, 3, 1, 1])])
def test_repeats_on_purpose(polling: Desk, repeat: str, expected: list[int]) -> None:
    baseline = polling.record()
    polling.turns = polling.turns[:1] * 5

    result = polling.replay(baseline, tool_policy={"default": {"type": "history", "repeat": repeat}})

    assert [a["n"] for a in answers(result)] == expected
    assert ["repeat" in str(row.marks) for row in result.rows] == [False] * 3 + [True] * 2


def searching(desk: Desk) -> Desk:
    def search(what: str) -> str:
        desk.live.append(what)
        return what.upper()

    def book(what: str) -> str:
        desk.live.append(what)
        return f"booked {what}"

    desk.tools = [search, book]
    return desk


def test_the_model_asks_in_another_order(desk: Desk) -> None:
    searching(desk).turns = [[("search", {"what": "flights"})], [("search", {"what": "hotels"})]]
    baseline = desk.record()
    desk.turns.reverse()

    result = desk.replay(baseline)

    assert answers(result) == ["HOTELS", "FLIGHTS"]
    assert result.replay.fidelity is not None
    assert result.replay.fidelity.kind is FidelityKind.DIVERGED


def test_two_tools_of_one_response_swap_places(desk: Desk) -> None:
    searching(desk).turns = [[("search", {"what": "a"}), ("book", {"what": "b"})]]
    baseline = desk.record()
    desk.turns = [list(reversed(desk.turns[0]))]

    result = desk.replay(baseline)

    assert sorted(answers(result)) == ["A", "booked b"]
    assert desk.live == []
    assert result.replay.fidelity is not None
    assert result.replay.fidelity.divergence is not None
    assert result.replay.fidelity.divergence.what in ("order", "tool")


def test_a_call_that_fails_and_then_succeeds(desk: Desk) -> None:
    def pay(x: str) -> str:
        desk.live.append(x)
        if len(desk.live) == 1:
            raise TimeoutError("too slow")
        return "ok"

    desk.tools, desk.turns = [pay], [[("pay", {"x": "x"})]]

    def run(prompt: str) -> str:
        try:
            return desk.run(prompt)
        except TimeoutError as error:
            return f"{error}; then {desk.run(prompt)}"

    baseline = desk.record(run)
    result = desk.replay(baseline, run)

    assert baseline.output == "too slow; then saw ['ok']"
    assert result.output == baseline.output
    assert desk.live == []
    assert result.faithful


@pytest.fixture
def counted() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"42")

        def log_message(self, format: str, *args: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_miss_never_reaches_the_network(desk: Desk, counted: tuple[str, list[str]]) -> None:
    url, asked = counted

    def fetch(path: str) -> str:
        with urllib.request.urlopen(url + path) as response:
            return response.read().decode()

    desk.tools = [fetch]
    nothing = desk.record()
    desk.turns = [[("fetch", {"path": "/a"})]]
    one = desk.record()
    assert asked == ["/a"]
    asked.clear()

    added = desk.replay(nothing)
    desk.turns = [[("fetch", {"path": "/b"})]]
    changed = desk.replay(one)

    assert asked == []
    assert [added.replay.status, changed.replay.status] == [ReplayStatus.FAILED] * 2


def test_a_tool_hook_of_the_user_that_connects_is_blocked(desk: Desk, counted: tuple[str, list[str]]) -> None:
    url, asked = counted
    searching(desk).turns = [[("search", {"what": "a"})]]
    baseline = desk.record()

    def run(prompt: str) -> str:
        said = desk.run(prompt)
        try:
            urllib.request.urlopen(url + "/telemetry")
        except OSError as error:
            return f"{said}, blocked: {type(error).__name__}"
        return said

    result = desk.replay(baseline, run)

    assert asked == []
    assert any(row.kind == "egress" and "127.0.0.1" in str(row.detail) for row in result.replay.ledger)


@pytest.mark.parametrize("changed", [1, 2], ids=["one-call", "all-calls"])
def test_a_swallowed_miss_fails_the_replay(desk: Desk, changed: int) -> None:
    searching(desk).turns = [[("search", {"what": "a"})], [("search", {"what": "b"})]]

    def run(prompt: str) -> str:
        try:
            return desk.run(prompt)
        except Exception:
            return "sorry"

    baseline = desk.record(run)
    for turn in range(changed):
        desk.turns[1 - turn] = [("search", {"what": f"other {turn}"})]

    result = desk.replay(baseline, run)

    assert desk.live == []
    assert result.replay.status is ReplayStatus.FAILED
    assert "missed" in result.by


def test_calls_that_were_recorded_but_not_asked_for_are_listed(desk: Desk) -> None:
    searching(desk).turns = [[("search", {"what": w})] for w in ("a", "b", "a")]
    baseline = desk.record()
    desk.turns = desk.turns[:1]

    result = desk.replay(baseline)

    unused = [(r.tool, r.arguments, r.occurrence) for r in result.replay.ledger if r.kind == "leftover"]
    assert unused == [("search", {"what": "b"}, 1), ("search", {"what": "a"}, 2)]
    assert result.replay.fidelity is not None
    assert result.replay.fidelity.kind is FidelityKind.DIVERGED


class ApiError(Exception):
    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def caused() -> Exception:
    error = ValueError("outer")
    error.__cause__ = ApiError("inner", status=409, code="dup")
    return error


@pytest.mark.parametrize(
    ("make", "same_class"),
    [
        (lambda: KeyError("missing"), True),
        (lambda: TimeoutError("slow"), True),
        (lambda: ApiError("conflict", status=409, code="dup"), False),
        (lambda: ExceptionGroup("several", [KeyError("a"), ValueError("b")]), True),
        (caused, True),
    ],
    ids=["KeyError", "TimeoutError", "custom", "group", "cause"],
)
def test_errors_come_back_as_they_were(desk: Desk, make: Callable[[], Exception], same_class: bool) -> None:
    def fail() -> str:
        desk.live.append("fail")
        raise make()

    desk.tools, desk.turns = [fail], [[("fail", {})]]
    caught: list[BaseException] = []

    def run(prompt: str) -> str:
        try:
            return desk.run(prompt)
        except Exception as error:
            caught.append(error)
            raise

    baseline = desk.record(run)
    result = desk.replay(baseline, run)

    was, now = caught
    assert desk.live == []
    assert str(now) == str(was)
    assert (type(now) is type(was)) == same_class
    if isinstance(was, ApiError):
        assert isinstance(now, playhead.ReplayedToolError)
        assert (now.status, now.error_code, now.original_class) == (409, "dup", "ApiError")
    if was.__cause__ is not None:
        assert (str(now.__cause__), getattr(now.__cause__, "status", None)) == ("inner", 409)
    assert result.session.status is baseline.session.status is SessionStatus.FAILED


def test_an_interrupt_is_never_raised_from_a_recording(desk: Desk) -> None:
    def fail() -> str:
        raise KeyboardInterrupt

    desk.tools, desk.turns = [fail], [[("fail", {})]]

    def run(prompt: str) -> str:
        try:
            return desk.run(prompt)
        except KeyboardInterrupt:
            return "interrupted"

    baseline = desk.record(run)
    (call,) = baseline.calls
    result = desk.replay(baseline, run)

    assert baseline.output == "interrupted"
    assert (call.status, call.outcome) == (NodeStatus.CANCELLED, None)
    assert result.replay.status is ReplayStatus.FAILED
    assert result.session.output != "interrupted"


def test_an_outcome_of_its_own_kind_for_each_signal(desk: Desk) -> None:
    from pydantic_ai import ModelRetry
    from pydantic_ai.exceptions import ToolFailed

    def picky(n: int) -> str:
        desk.live.append(n)
        if n == 1:
            raise ModelRetry("again")
        if n == 2:
            raise ToolFailed("gone")
        return "fine"

    desk.tools, desk.turns = [picky], [[("picky", {"n": n})] for n in (1, 2, 3)]
    baseline = desk.record()
    result = desk.replay(baseline)

    for read in (baseline, result):
        kinds = [n.outcome.kind for n in read.calls if n.outcome is not None]
        assert kinds == [OutcomeKind.RETRY, OutcomeKind.RESULT_ERROR, OutcomeKind.VALUE]
    assert result.faithful
