"""Cases of recording and replaying that ops and their fixtures have to get right; each test names its case."""
# ruff: noqa: SIM117 - the block is what is tested
# pyright: reportPossiblyUnboundVariable=false

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

import playhead
from playhead import OpError
from playhead.errors import ConfigError, MissingFixtureError, ReplayedToolError

from .conftest import counted, files


def echo(name: str = "f") -> Any:
    @playhead.op(name, effect="read")
    def f(v: Any = None, **more: Any) -> str:
        return f"{v!r} {more!r}"

    return f


def hits(f: Any, recorded: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether a recording of one call answers another."""
    with playhead.fixtures("record", sequence="last"):
        f(**recorded)
    try:
        with playhead.fixtures("replay"):
            f(**asked)
    except MissingFixtureError:
        return False
    return True


@pytest.mark.parametrize(
    ("recorded", "asked", "same"),
    [
        pytest.param({"x": 1, "y": [{"k": 1, "j": 2}]}, {"y": [{"j": 2, "k": 1}], "x": 1}, True, id="R01"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, False, id="R01-list"),
        pytest.param(2.0, 2, True, id="R02-float"),
        pytest.param(-0.0, 0, True, id="R02-zero"),
        pytest.param(9007199254740993, 9007199254740992, False, id="R02-big"),
        pytest.param(True, 1, False, id="R02-bool"),
        pytest.param("2", 2, False, id="R02-text"),
        pytest.param("é", "\u00e9", True, id="R04-escape"),
        pytest.param("\u00e9", "e\u0301", False, id="R04-composed"),
        pytest.param({"٩(●)۶": 1, "\ufb01": 2, "😀": 3}, {"😀": 3, "\ufb01": 2, "٩(●)۶": 1}, True, id="R04"),
        pytest.param("\ud800", "\ud800", True, id="R04-surrogate"),
        pytest.param(datetime(2026, 1, 2, tzinfo=UTC), datetime.fromisoformat("2026-01-02"), False, id="R05-naive"),
        pytest.param(Decimal("1.0"), 1.0, False, id="R05-decimal"),
        pytest.param((1, 2), [1, 2], True, id="R05-tuple"),
        pytest.param({1: "a"}, {"1": "a"}, False, id="R06"),
        pytest.param({1: "a", "1": "b"}, {1: "a", "1": "b"}, True, id="R06-mixed"),
    ],
)  # fmt: skip
def test_what_makes_two_calls_the_same(recorded: Any, asked: Any, same: bool) -> None:
    assert hits(echo(), {"v": recorded}, {"v": asked}) is same


def test_r06_mappings_by_number_and_by_text_are_answered_each_by_its_own() -> None:
    f = echo()
    with playhead.fixtures("record"):
        one, two = f({1: "a"}), f({"1": "a"})
    with playhead.fixtures("replay"):
        assert (f({"1": "a"}), f({1: "a"})) == (two, one)
    assert one != two


def test_r16_r18_calls_in_another_order_get_their_own_answers() -> None:
    f, g = echo("f"), echo("g")
    with playhead.fixtures("record"):
        recorded = [f("flights"), f("hotels"), g("flights")]
    with playhead.fixtures("replay", strict=True):
        assert [g("flights"), f("hotels"), f("flights")] == recorded[::-1]


def test_r17_no_answer_is_served_twice_to_threads() -> None:
    poll = counted()
    with playhead.fixtures("record"):
        for _ in range(100):
            poll("q")
    got: list[int] = []
    with playhead.fixtures("replay", strict=True):
        threads = [threading.Thread(target=lambda: [got.append(poll("q")["n"]) for _ in range(20)]) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(got) == list(range(1, 101))


def test_r17_overlapping_calls_with_different_answers_are_ambiguous_unless_told() -> None:
    both = threading.Barrier(2)
    numbers = iter([1, 2])

    @playhead.op("f", effect="read")
    def f(q: str) -> int:
        both.wait(60)
        return next(numbers)

    with playhead.fixtures("record"):
        threads = [threading.Thread(target=f, args=("q",)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    with pytest.raises(MissingFixtureError, match="overlapped"):
        with playhead.fixtures("replay"):
            f("q")
    with playhead.fixtures("replay", order="recorded"):
        assert sorted([f("q"), f("q")]) == [1, 2]


def test_r20_retries_inside_an_op_are_one_outcome(here: Path) -> None:
    answers = iter([503, 503, 200])

    @playhead.op("f", effect="read")
    def f(q: str) -> int:
        while (status := next(answers)) != 200:
            pass
        return status

    with playhead.fixtures("record"):
        f("q")
    assert len(files(here)) == 1
    with playhead.fixtures("replay"):
        assert f("q") == 200


WRITER = """
import os, signal, sys
import playhead
from pathlib import Path

@playhead.op("poll", effect="read")
def poll(q: str) -> dict:
    return {"n": "new"}

real = Path.replace
moves = 0
def dies(self, target):
    global moves
    if ".partial" not in str(target) and str(target).endswith(".json"):
        moves += 1
        if moves == 2:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.replace = dies
with playhead.fixtures("record"):
    for q in "abc":
        poll(q)
"""


def test_r27_r25_a_kill_while_files_are_moved_leaves_whole_files_and_is_finished_by_the_next(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        for q in "abc":
            poll(q)
    done = subprocess.run([sys.executable, "-c", WRITER], capture_output=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for path in files(here):
        json.loads(path.read_text())
    with playhead.fixtures("record"):
        poll("d")  # takes over the claim of the dead process, and ends its move
    with playhead.fixtures("replay"):
        assert [poll(q)["n"] for q in "abc"] == ["new"] * 3
    assert not list((here / ".playhead/fixtures").glob(".claim*"))


def test_r27_a_claim_of_the_living_names_its_process(here: Path) -> None:
    from playhead.errors import FixtureBusyError
    from playhead.store.fixtures import FixtureFolder

    folder = FixtureFolder(here / ".playhead/fixtures")
    with folder.claim("s"):
        with pytest.raises(FixtureBusyError, match=str(os.getpid())):
            with folder.claim("s", wait=0.1, sleep=lambda seconds: None):
                pass


class ApiError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.status = 409
        self.code = "dup"


def _with_cause() -> Exception:
    error = OpError("outer", status=500)
    error.__cause__ = ValueError("inner")
    return error


@pytest.mark.parametrize(
    ("error", "cls", "text"),
    [
        (KeyError("missing"), KeyError, "'missing'"),
        (TimeoutError("late"), TimeoutError, "late"),
        (ApiError("twice"), ReplayedToolError, "twice"),
        (ExceptionGroup("both", [ValueError("a"), KeyError("b")]), ExceptionGroup, "both (2 sub-exceptions)"),
        (_with_cause(), OpError, "outer"),
    ],
    ids=["KeyError", "TimeoutError", "custom", "group", "cause"],
)
def test_r40_errors_come_back_as_what_they_were(error: Exception, cls: type[Exception], text: str) -> None:
    poll = counted(lambda n: error, errors=[KeyError, TimeoutError, ExceptionGroup])
    with playhead.fixtures("record"):
        with pytest.raises(type(error)):
            poll("q")
    with playhead.fixtures("replay"):
        with pytest.raises(cls) as caught:
            poll("q")
    found: Any = caught.value
    assert str(found) == text
    if isinstance(error, ApiError):
        assert (found.original_class, found.status, found.error_code) == ("ApiError", 409, "dup")
    if isinstance(error, ExceptionGroup):
        assert [repr(each) for each in found.exceptions] == ["ValueError('a')", "KeyError('b')"]
    if error.__cause__ is not None:
        assert repr(found.__cause__) == "ValueError('inner')"


@pytest.mark.parametrize("library", ["httpx", "requests"])
def test_r40_status_errors_of_http_clients_come_back_as_themselves(library: str) -> None:
    client: Any = pytest.importorskip(library)

    def failed(n: int) -> Exception:
        response: Any = client.Response(429, headers={"retry-after": "7"}) if library == "httpx" else client.Response()
        if library == "httpx":
            response.request = client.Request("GET", "http://shop.example/")
            return client.HTTPStatusError("slow down", request=response.request, response=response)
        response.status_code = 429
        return client.HTTPError("slow down", response=response)

    poll = counted(failed)
    cls = client.HTTPStatusError if library == "httpx" else client.HTTPError
    for mode in ("record", "replay"):
        with playhead.fixtures(mode):
            with pytest.raises(cls, match="slow down") as caught:
                poll("q")
        assert caught.value.response.status_code == 429
    assert len(poll.seen) == 1


def test_r40_an_interrupt_is_never_recorded(here: Path) -> None:
    poll = counted(lambda n: KeyboardInterrupt())
    with suppress(KeyboardInterrupt):
        with playhead.fixtures("record", save="always"):
            poll("q")
    assert files(here) == []


def test_a_miss_names_the_live_call_that_a_value_came_from() -> None:
    minted = iter(["id-111", "id-222"])

    @playhead.op("mint_id", effect="read")
    def mint_id(n: int) -> str:
        return next(minted)

    @playhead.op("send", effect="write")
    def send(id: str, to: str) -> str:
        return to

    with playhead.fixtures("record"):
        send(mint_id(1), "x")
    with pytest.raises(MissingFixtureError, match="/id came from live call mint_id") as caught:
        with playhead.fixtures("auto"):
            send(mint_id(2), "x")
    error = caught.value
    assert (error.tool, error.reason, error.closest and error.closest["differences"]) == ("send", "other_args", ["/id"])
    assert error.key.startswith("1:")
    assert error.folder.endswith("fixtures")
    assert "record" in error.command


def test_a_schema_decides_what_is_a_secret(here: Path) -> None:
    marked: Any = {"properties": {"session_token": {"x-playhead-secret": False}, "code": {"x-playhead-secret": True}}}

    @playhead.op("f", effect="read", output=marked)
    def f():  # pyright: ignore
        return {"session_token": "open-to-all", "code": "hidden-9911"}

    with playhead.fixtures("record"):
        f()
    text = files(here)[0].read_text()
    assert ("open-to-all" in text, "hidden-9911" in text) == (True, False)


def test_blocks_inside_a_command_get_what_it_was_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = here / "reports"
    reports.mkdir()
    said = {"http": None, "effects": "read", "save": "always", "strict": True, "command": "playhead fixtures run"}
    monkeypatch.setenv("PLAYHEAD_FIXTURE_RUN", str(reports))
    monkeypatch.setenv("PLAYHEAD_FIXTURE_OPTIONS", json.dumps(said))

    @playhead.op("send", effect="write")
    def send(to: str) -> str:
        return to

    poll = counted()
    with suppress(RuntimeError):
        with playhead.fixtures("record"):
            poll("a")
            with pytest.raises(OpError, match="effects: read"):
                send("x")
            raise RuntimeError
    with pytest.raises(MissingFixtureError, match="playhead fixtures run"):
        with playhead.fixtures("replay"):
            poll("b")
    from playhead.engine.fixtures.report import reports_in

    first, second = reports_in(reports)
    assert ([row.status for row in first.rows], first.handed) == (["recorded", "refused"], None)
    assert (second.mode, second.failed) == ("replay", True)


# declared types of every kind


class Typed(TypedDict):
    order_id: str
    at: datetime


class Struct(msgspec.Struct):
    order_id: str
    at: datetime


@dataclass
class Data:
    order_id: str
    at: datetime


class Model(BaseModel):
    order_id: str
    at: datetime


@pytest.mark.parametrize("cls", [Typed, Struct, Data, Model])
def test_every_kind_of_record_is_checked_keyed_by_its_fields_and_comes_back(cls: Any, here: Path) -> None:
    def f(order: Any, many: Any = ()) -> Any:
        return order

    f.__annotations__ = {"order": cls, "many": list[cls], "return": cls}
    op: Any = playhead.op("f", effect="read")(f)
    order = cls(order_id="1", at=datetime(2026, 1, 2, tzinfo=UTC))
    with playhead.fixtures("record"):
        recorded = op(order, many=[order])
    with playhead.fixtures("replay"):
        served = op(order, many=[order])
    assert recorded == served == order
    assert type(served) is type(order)
    (document,) = [json.loads(path.read_text()) for path in files(here)]
    plain = {"order_id": "1", "at": {"$datetime": "2026-01-02T00:00:00Z"}}
    assert document["args"] == {"order": plain, "many": [plain]}
    assert document["outcome"]["value"] == plain
    with playhead.fixtures("replay", allow_empty=True):
        with pytest.raises(OpError, match="/order") as caught:
            op({"order_id": 1})
    assert caught.value.code == "input"


# secrets by name


@pytest.fixture
def no_secrets_stay() -> Iterator[None]:
    yield
    playhead.secrets.remove("CUSTOMER")


@pytest.mark.usefixtures("no_secrets_stay")
def test_r30_a_secret_by_name_is_its_tag_in_a_replay_without_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["STRIPE_KEY"]\n')
    monkeypatch.setenv("STRIPE_KEY", "key-aaaaaaaa")
    playhead.secrets.add("CUSTOMER", "tok-bbbbbbbb")
    f = echo()
    with playhead.fixtures("record"):
        recorded = [f(playhead.secret("STRIPE_KEY")), f("tok-bbbbbbbb")]
    assert "tok-bbbbbbbb" in recorded[1]
    assert not any(value in path.read_text() for path in files(here) for value in ("key-aaaa", "tok-bbbb"))
    monkeypatch.delenv("STRIPE_KEY")
    playhead.secrets.remove("CUSTOMER")
    with pytest.raises(ConfigError, match="STRIPE_KEY is not set"):
        playhead.secret("STRIPE_KEY")
    with playhead.fixtures("replay", strict=True):
        assert f(playhead.secret("CUSTOMER")) == "'[REDACTED:CUSTOMER]' {}"
        f(playhead.secret("STRIPE_KEY"))
