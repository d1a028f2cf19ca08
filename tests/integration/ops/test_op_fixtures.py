"""Ops and their fixtures: what is recorded, what makes two calls the same, and what answers which."""
# ruff: noqa: PT012, SIM117 - the block is what is tested

import asyncio
import json
import math
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import playhead
from playhead import OpContext, OpError, OpGroup, Slot
from playhead.errors import (
    FixtureRunError,
    MissingFixtureError,
)

from .conftest import counted, document, files

# recording and serving


@dataclass
class Order:
    order_id: str
    at: datetime
    total: Decimal


class Customer(BaseModel):
    name: str
    tags: set[str]


def test_a_plain_call_records_and_reads_nothing(here: Path) -> None:
    poll = counted()
    assert poll("a") == {"n": 1}
    assert not (here / ".playhead/fixtures").exists()


def test_a_result_of_a_declared_type_comes_back_equal_and_the_op_does_not_run(here: Path) -> None:
    runs: list[str] = []

    @playhead.op("orders.lookup", effect="read")
    def lookup(order_id: str, limit: int = 5) -> Order:
        runs.append(order_id)
        return Order(order_id, datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.10"))

    with playhead.fixtures("record"):
        recorded = lookup("4821")
    with playhead.fixtures("replay") as tape:
        assert lookup(order_id="4821", limit=5) == recorded
    assert lookup("4821") == recorded
    assert (runs, tape.served) == (["4821", "4821"], 1)
    found = document(here)
    assert (found["kind"], found["tool"], found["effect"]) == ("op", "orders.lookup", "read")
    assert (found["args"], found["assertions"]["defaults"]) == ({"order_id": "4821"}, {"limit": 5})
    assert files(here)[0].stat().st_mode & 0o777 == 0o600


def test_the_key_of_the_vectors() -> None:
    @playhead.op("orders.lookup", effect="read")
    def lookup(order_id: str) -> str:
        return order_id

    with playhead.fixtures("record") as tape:
        lookup("4821")
    from playhead.core.keys import call_key

    assert tape.ledger[0].key == call_key("orders.lookup", {"order_id": "4821"})


def test_async_ops_and_blocks_pydantic_and_nested_ops() -> None:
    runs: list[str] = []

    @playhead.op("inner", effect="read")
    async def inner(x: int) -> int:
        runs.append("inner")
        return x + 1

    @playhead.op("outer", effect="read")
    async def outer(x: int) -> Customer:
        runs.append("outer")
        return Customer(name=str(await inner(x)), tags={"a", "b"})

    async def run(mode: str) -> Customer:
        async with playhead.fixtures(mode):
            return await outer(1)

    recorded = asyncio.run(run("record"))
    assert asyncio.run(run("replay")) == recorded == Customer(name="2", tags={"a", "b"})
    assert runs == ["outer", "inner"]  # and one file: the outermost call is what is recorded


def test_nested_ops_make_one_file(here: Path) -> None:
    test_async_ops_and_blocks_pydantic_and_nested_ops()
    assert [path.name.split(".")[1] for path in files(here)] == ["outer"]


def test_streams_replay_as_far_as_they_were_read() -> None:
    runs: list[int] = []

    @playhead.op("count", effect="read", stream=True)
    def count(upto: int) -> Iterator[int]:
        runs.append(upto)
        yield from range(upto)
        raise OpError("dry", code="failed", status=503)

    @playhead.op("acount", effect="read", stream=True)
    async def acount(upto: int) -> AsyncIterator[int]:
        for n in range(upto):
            yield n

    async def collected() -> list[int]:
        return [n async for n in acount(3)]

    for mode in ("record", "replay"):
        with playhead.fixtures(mode):
            got: list[int] = []
            with pytest.raises(OpError, match="dry"):
                for n in count(2):
                    got.append(n)
            assert got == [0, 1]
            early: Any = count(5)
            assert [next(early), next(early)] == [0, 1]
            early.close()
            assert asyncio.run(collected()) == [0, 1, 2]
    assert runs == [2, 5]
    with pytest.raises(MissingFixtureError, match="more of the answer"):
        with playhead.fixtures("replay"):
            list(count(5))


# keys


class Colour(Enum):
    RED = "r"


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 2, tzinfo=UTC), datetime.fromisoformat("2026-01-02"), uuid.UUID(int=5), Decimal("1.0"),
        Colour.RED, b"\x00\xff", (1, 2), {3, 4}, Order("a", datetime(2026, 1, 2, tzinfo=UTC), Decimal(1)),
        Customer(name="x", tags={"q"}), {1: "a"},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_r05_r06_arguments_with_types(value: Any) -> None:
    poll = counted()

    @playhead.op("f", effect="read")
    def f(v: Any) -> str:
        return poll.__name__

    with playhead.fixtures("record"):
        f(value)
    with playhead.fixtures("replay") as tape:
        f(value)
    assert tape.served == 1


def test_r03_a_call_without_a_key_runs_when_recording_and_is_told() -> None:
    @playhead.op("f", effect="read")
    def f(v: Any) -> str:
        return "A"

    with playhead.fixtures("record"):
        assert f(None) == "A"
    with pytest.raises(FixtureRunError, match=r"no key.*/v"):
        with playhead.fixtures("record"):
            assert f(math.nan) == "A"
    with pytest.raises(MissingFixtureError, match="/v"):
        with playhead.fixtures("replay"):
            f(math.nan)


def test_r07_spellings_of_one_call_and_a_changed_default() -> None:
    def op_with(function: Any) -> Any:
        return playhead.op("f", effect="read")(function)

    def first(x: str, limit: int = 5) -> str:
        return f"{x}{limit}"

    def wider(x: str, limit: int = 5, region: str = "eu") -> str:
        raise AssertionError

    def changed(x: str, limit: int = 10) -> str:
        raise AssertionError

    with playhead.fixtures("record"):
        op_with(first)("a")
    for call in (lambda f: f(x="a"), lambda f: f("a", limit=5), lambda f: f("a", 5)):
        with playhead.fixtures("replay"):
            assert call(op_with(first)) == "a5"
    with playhead.fixtures("replay") as tape:
        assert op_with(wider)("a") == "a5"
    assert tape.ledger[0].marks == ("outdated",)
    with pytest.raises(FixtureRunError, match="outdated"):
        with playhead.fixtures("replay", strict=True):
            op_with(wider)("a")
    with pytest.raises(MissingFixtureError, match="limit was 5, is 10") as caught:
        with playhead.fixtures("replay"):
            op_with(changed)("a")
    assert caught.value.details["reason"] == "default_changed"


def test_r08_ignored_pointers_make_a_loose_hit() -> None:
    def op_with(**options: Any) -> Any:
        @playhead.op("f", effect="read", **options)
        def f(q: str, ts: int) -> str:
            return q

        return f

    for ignore in ((), ("/ts",)):
        with playhead.fixtures("record"):
            op_with(ignore=ignore)("x", 1)
    with playhead.fixtures("replay") as tape:
        assert op_with(ignore=["/ts"])("x", 2) == "x"
    assert tape.ledger[0].marks == ("loose",)
    with pytest.raises(MissingFixtureError) as caught:
        with playhead.fixtures("replay"):
            op_with()("x", 2)
    assert "differs  /ts  recorded" in caught.value.message
    assert 'ignore=["/ts"]' in caught.value.message


@pytest.mark.parametrize("asked", [{"id": " A-1\n"}, {"id": "a-1"}, {"id": "A-1", "note": None}])
def test_r09_white_space_is_data(asked: dict[str, Any]) -> None:
    @playhead.op("f", effect="read", input={"type": "object"})
    def f(**message):  # pyright: ignore
        return message

    with playhead.fixtures("record"):
        f(id="A-1")
    with pytest.raises(MissingFixtureError):
        with playhead.fixtures("replay"):
            f(**asked)


def test_r12_one_op_for_two_accounts(here: Path) -> None:
    group = OpGroup(
        "orders", config={"project": {"default": "eu", "pattern": "[a-z]{2}"}}, secrets={"db": Slot(env="DB_KEY_ONE")}
    )

    @group.op(effect="read")
    def where(*, ctx: OpContext) -> Any:
        return ctx.config["project"]

    with playhead.fixtures("record"):
        where()
        with group.using(config={"project": "us"}):
            where()
        with group.using(slots={"db": "DB_KEY_TWO"}):
            where()
    with playhead.fixtures("replay"):
        with group.using(config={"project": "us"}):
            assert where() == "us"
        assert where() == "eu"
        with group.using(slots={"db": "DB_KEY_TWO"}):
            assert where() == "eu"
    assert len(files(here)) == 3
    assert {json.dumps(json.loads(path.read_text()).get("scope")) for path in files(here)} == {
        "null", '{"config": {"project": "us"}}', '{"slots": {"db": "DB_KEY_TWO"}}',
    }  # fmt: skip
    with playhead.fixtures("replay", allow_empty=True):
        with (
            group.using(config={"project": "USA", "zone": 1}),
            pytest.raises(OpError, match=r"project.*zone") as caught,
        ):
            where()
    assert caught.value.code == "config"


def test_methods_are_told_apart_by_their_scope() -> None:
    class Api:
        def __init__(self, host: str) -> None:
            self.host = host

        @playhead.op("api.get", effect="read", scope=lambda self: {"host": self.host})
        def get(self, path: str) -> str:
            return self.host + path

    with playhead.fixtures("record"):
        Api("a").get("/x")
        Api("b").get("/x")
    with playhead.fixtures("replay"):
        assert (Api("b").get("/x"), Api("a").get("/x")) == ("b/x", "a/x")


# occurrences


def test_r13_r14_a_poll_and_one_call_too_many() -> None:
    poll = counted()
    with playhead.fixtures("record"):
        assert [poll("q")["n"] for _ in range(3)] == [1, 2, 3]
    with pytest.raises(MissingFixtureError, match="all 3 recorded answers of poll are used"):
        with playhead.fixtures("replay"):
            assert [poll("q")["n"] for _ in range(3)] == [1, 2, 3]
            poll("q")
    with pytest.raises(FixtureRunError, match="all 3 recorded"):
        with playhead.fixtures("replay", on_miss="error_result"):
            for _ in range(3):
                poll("q")
            with pytest.raises(OpError) as caught:
                poll("q")
            assert caught.value.code == "missing_fixture"
    assert len(poll.seen) == 3


@pytest.mark.parametrize(("repeat", "expected"), [("last", [1, 2, 3, 3, 3]), ("first", [1, 2, 3, 1, 1])])
def test_r15_repeats_on_purpose(repeat: Any, expected: list[int]) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        for _ in range(3):
            poll("q")
    with playhead.fixtures("replay", repeat=repeat) as tape:
        assert [poll("q")["n"] for _ in range(5)] == expected
    assert ["repeated" in row.marks for row in tape.ledger] == [False] * 3 + [True] * 2


def test_sequence_last_keeps_one_file_per_key(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record", sequence="last"):
        for _ in range(3):
            poll("q")
    with playhead.fixtures("replay", sequence="last"):
        assert [poll("q")["n"] for _ in range(2)] == [3, 3]
    assert len(files(here)) == 1


def test_r17_gathered_calls_are_answered_in_the_order_of_their_starts() -> None:
    order = iter([3, 2, 1])

    @playhead.op("f", effect="read")
    async def f(q: str) -> int:
        mine = next(order)
        for _ in range(mine * 3):
            await asyncio.sleep(0)
        return mine

    async def run(mode: str) -> list[int]:
        async with playhead.fixtures(mode):
            return list(await asyncio.gather(f("q"), f("q"), f("q")))

    assert asyncio.run(run("record")) == asyncio.run(run("replay")) == [3, 2, 1]


def test_r19_fail_then_succeed() -> None:
    poll = counted(lambda n: OpError("slow down", code="rate_limit", status=429, retry_after=7) if n == 1 else {"n": n})
    for mode in ("record", "replay"):
        with playhead.fixtures(mode):
            with pytest.raises(OpError) as caught:
                poll("q")
            assert poll("q") == {"n": 2}
        assert (caught.value.code, caught.value.status, caught.value.retry_after) == ("rate_limit", 429, 7)
