"""@agent, session, @tool and gate on plain functions of every colour."""

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead.adapters.functions import agent, gate, session, tool
from playhead.core.policy import ToolPolicy
from playhead.core.tape import Tape
from playhead.core.values import Effect, NodeKind, NodeStatus, Session, SessionStatus
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import ReplayState
from playhead.store.ports import SessionQuery

pytestmark = pytest.mark.usefixtures("recorder")
RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@dataclass
class Order:
    id: str
    total: float


@tool
def add(a: int, b: int = 2) -> int:
    RAN.append("add")
    return a + b


@tool("look-up", effect="read")
async def look_up(n: int) -> Order:
    RAN.append("look-up")
    await asyncio.sleep(0)
    return Order(id=str(n), total=1.5)


@tool
def count(n: int) -> Iterator[int]:
    RAN.append("count")
    yield from range(n)


@tool
async def acount(n: int) -> AsyncIterator[int]:
    RAN.append("acount")
    for number in range(n):
        yield number


def sessions(recorder: Recorder) -> list[Session]:
    assert recorder.flush()
    return list(recorder.store.sessions.find(SessionQuery(oldest_first=True)).items)


def nodes(recorder: Recorder) -> list[Any]:
    return recorder.store.sessions.nodes(sessions(recorder)[-1].id)


def replay(recorder: Recorder, run: Any, policy: ToolPolicy | None = None) -> ReplayState:
    baseline = recorder.store.sessions.nodes(sessions(recorder)[0].id)
    state = ReplayState(tape=Tape.build(baseline, policy), policy=policy or ToolPolicy())
    RAN.clear()
    with seam.replaying(state):
        state.parameters["result"] = run()
    return state


def test_a_function_records_its_arguments_defaults_included_and_its_output(recorder: Recorder):
    @agent("desk")
    def desk(prompt: str, *rest: int, limit: int = 5, **more: Any) -> list[int]:
        return [add(1), add(1, b=2), add(a=1, b=3)]

    assert desk("hi", 1, 2, flag=True) == [3, 3, 4]
    (only,) = sessions(recorder)
    assert only.agent == "desk"
    assert only.inputs == {"prompt": "hi", "rest": [1, 2], "limit": 5, "flag": True}
    assert (only.output, only.status) == ([3, 3, 4], SessionStatus.COMPLETED)
    assert [(n.call.arguments, n.call.occurrence) for n in nodes(recorder)] == [
        ({"a": 1}, 1), ({"a": 1}, 2), ({"a": 1, "b": 3}, 1)
    ]  # fmt: skip


def test_the_agent_version_says_how_to_start_the_function(recorder: Recorder):
    traced = agent("traced")(plain_agent)
    traced()
    version = recorder.store.agents.get(str(sessions(recorder)[0].agent_version))
    assert version.run_spec is not None
    assert str(version.run_spec.entry_point).endswith(":plain_agent")


def plain_agent() -> None: ...


def test_inputs_that_cannot_start_a_run_again_are_named(recorder: Recorder):
    @agent
    def desk(order: Any, stream: Any, fine: Any) -> str:
        return "ok"

    assert desk(Order("1", 2.0), open, Path("x")) == "ok"
    (only,) = sessions(recorder)
    assert only.agent == "desk"
    assert [reason.split("'")[1] for reason in only.not_replayable] == ["order", "stream"]
    assert only.inputs["fine"] == {"$path": "x"}


def test_an_output_that_cannot_be_stored_is_given_back_and_marked(recorder: Recorder):
    thing = object()

    @agent
    def desk() -> object:
        return thing

    assert desk() is thing
    (only,) = sessions(recorder)
    assert (only.status, only.output) == (SessionStatus.COMPLETED, None)
    assert "object" in only.warnings[0]


def test_a_value_nested_thousands_deep_is_named_in_a_short_text(recorder: Recorder):
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": deep}

    @agent
    def desk() -> Any:
        return deep

    assert desk() is deep
    (only,) = sessions(recorder)
    assert "too_deep" in only.warnings[0]
    assert len(only.warnings[0]) < 300


def test_an_argument_without_a_stored_form_is_named_by_its_parameter(recorder: Recorder):
    @tool
    def ship(order: Order, to: object) -> str:
        return "shipped"

    with session("desk"):
        ship(Order("1", 2.0), object())
        ship(Order("1", object()), "x")  # type: ignore[arg-type]
    assert [node.call.no_key.at for node in nodes(recorder)] == ["/to", "/order/total"]


def test_coroutines_and_gathered_tools(recorder: Recorder):
    @agent
    async def desk() -> list[Order]:
        return list(await asyncio.gather(look_up(2), look_up(1)))

    assert inspect.iscoroutinefunction(desk)
    assert [order.id for order in asyncio.run(desk())] == ["2", "1"]
    found = nodes(recorder)
    assert [(n.call.tool, n.call.arguments, n.outcome.value, n.call.effect) for n in found] == [
        ("look-up", {"n": 2}, {"id": "2", "total": 1.5}, Effect.READ),
        ("look-up", {"n": 1}, {"id": "1", "total": 1.5}, Effect.READ),
    ]


def test_generators_record_what_they_yield(recorder: Recorder):
    @agent
    def desk(n: int) -> Iterator[int]:
        for number in range(n):
            assert seam.current() is not None
            yield add(number)

    assert list(desk(3)) == [2, 3, 4]
    assert sessions(recorder)[0].output == [2, 3, 4]


def test_the_consumer_of_a_generator_is_outside_its_session(recorder: Recorder):
    @agent
    def one() -> Iterator[int]:
        yield add(1)
        yield add(2)

    @agent
    def two() -> Iterator[int]:
        yield add(3)

    for _ in one():
        list(two())
    found = sessions(recorder)
    assert sorted(s.agent for s in found) == ["one", "two", "two"]


@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_generator_that_is_left_early_is_abandoned(recorder: Recorder, how: str):
    closed: list[bool] = []

    @agent
    def desk() -> Iterator[int]:
        try:
            yield add(1)
            yield add(2)
        finally:
            closed.append(True)

    running = desk()
    next(running)
    if how == "close":
        running.close()  # type: ignore[attr-defined]
    del running
    gc.collect()
    (only,) = sessions(recorder)
    assert (only.status, only.output, closed) == (SessionStatus.ABANDONED, [3], [True])


def test_an_async_generator_that_is_left_early_is_abandoned(recorder: Recorder):
    @agent
    async def desk() -> AsyncIterator[int]:
        yield add(1)
        yield add(2)

    async def main() -> None:
        running = desk()
        assert await anext(running) == 3
        await running.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
    (only,) = sessions(recorder)
    assert (only.status, only.output) == (SessionStatus.ABANDONED, [3])


def test_what_the_consumer_sends_and_throws_reaches_the_generator(recorder: Recorder):
    @agent
    def desk() -> Any:
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "caught"
        return "end"

    @agent
    async def adesk() -> Any:
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "caught"

    async def main() -> list[Any]:
        running: Any = adesk()
        return [await running.asend(None), await running.asend(5), await running.athrow(KeyError("x"))]

    running = desk()
    assert [next(running), running.send(5), running.throw(KeyError("x"))] == [1, 5, "caught"]
    assert list(running) == []
    assert asyncio.run(main()) == [1, 5, "caught"]


def test_errors_pass_unchanged_and_are_recorded(recorder: Recorder):
    error = KeyError("missing")

    @tool
    def fails() -> None:
        raise error

    @agent
    def desk() -> None:
        fails()

    with pytest.raises(KeyError) as caught:
        desk()
    assert caught.value is error
    (node,) = nodes(recorder)
    assert (node.status, node.outcome.error.class_name) == (NodeStatus.FAILED, "KeyError")
    assert sessions(recorder)[0].status is SessionStatus.FAILED


def test_an_agent_inside_an_agent_is_a_step_of_it(recorder: Recorder):
    @agent
    def inner(x: int) -> int:
        return add(x)

    @agent
    def outer() -> int:
        return inner(5)

    assert outer() == 7
    (only,) = sessions(recorder)
    call, inside = nodes(recorder)
    assert (only.agent, call.kind, call.name, call.inputs, call.outcome.value) == (
        "outer", NodeKind.AGENT_CALL, "inner", {"x": 5}, 7
    )  # fmt: skip
    assert inside.parent_id == call.id


def test_a_block_is_a_session(recorder: Recorder):
    with session("desk", inputs={"prompt": "hi"}, tags=("a",)) as run:
        add(1)
        run.set_output("done")
        run.tag("b")
        run.note(ticket=7)
    (only,) = sessions(recorder)
    assert only.id == run.id
    assert (only.output, only.tags, only.metadata) == ("done", ("a", "b"), {"ticket": 7})


def test_methods_bind_without_self_and_injected_parameters_are_no_arguments(recorder: Recorder):
    class Shop:
        @tool(exclude=("ctx",))
        def find(self, ctx: object, q: str, limit: int = 3) -> str:
            return q

    with session("desk"):
        assert Shop().find(object(), "x", limit=3) == "x"
    (node,) = nodes(recorder)
    assert node.call.arguments == {"q": "x"}


def test_class_and_static_methods_are_tools_in_either_order_of_decorators(recorder: Recorder):
    class Shop:
        @tool
        @classmethod
        def find(cls, q: str) -> str:
            return f"{cls.__name__} {q}"

        @tool(effect="read")
        @staticmethod
        def count(q: str) -> str:
            return q

    with session("desk"):
        assert (Shop.find("x"), Shop().find(q="x"), Shop.count("y"), Shop().count("y")) == (
            "Shop x",
            "Shop x",
            "y",
            "y",
        )
    assert [n.call.arguments for n in nodes(recorder)] == [{"q": "x"}] * 2 + [{"q": "y"}] * 2


def test_gate_wraps_the_entries_of_a_dispatch_table(recorder: Recorder):
    table = {"double": gate(lambda n: n * 2, name="double", effect="write")}
    with session("desk"):
        assert table["double"](n=4) == 8
    (node,) = nodes(recorder)
    assert (node.call.tool, node.call.effect, node.call.arguments) == ("double", Effect.WRITE, {"n": 4})


def test_outside_a_session_a_tool_is_the_plain_function(recorder: Recorder):
    assert (add(1), list(count(2))) == (3, [0, 1])
    assert sessions(recorder) == []


def test_a_call_that_does_not_fit_fails_as_it_would_without_us(recorder: Recorder):
    with session("desk"), pytest.raises(TypeError, match="missing 1 required positional argument"):
        add()  # type: ignore[call-arg]
