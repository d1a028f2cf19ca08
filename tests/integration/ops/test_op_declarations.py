"""What ops declare, and what they may do without."""
# ruff: noqa: PT012, SIM117 - the block is what is tested

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import OpContext, OpError, OpGroup, Slot
from playhead.errors import (
    ConfigError,
    FixtureRunError,
)

from .conftest import files

# declarations and permissions


def test_arguments_are_checked_in_replay_too_with_every_problem_in_one_error() -> None:
    @playhead.op("f", effect="read")
    def f(a: int, b: str = "x") -> int:
        return a

    with playhead.fixtures("record"):
        f(1)
    for mode in ("record", "replay"):
        with playhead.fixtures(mode, allow_empty=True):
            with pytest.raises(OpError, match=r"(?=.*/a)(?=.*/b)") as caught:
                f("1", b=2)  # pyright: ignore[reportArgumentType]
            assert caught.value.code == "input"
            with pytest.raises(OpError, match="argument"):
                f()  # pyright: ignore[reportCallIssue]


def test_a_result_that_does_not_fit_is_an_output_error_live_and_served(here: Path) -> None:
    @playhead.op("poll", effect="read", output={"properties": {"n": {"type": "integer"}}})
    def poll(q: str):  # pyright: ignore
        return {"n": 1 if q == "q" else "many"}

    with playhead.fixtures("record"):
        assert poll("q") == {"n": 1}
        with pytest.raises(OpError, match="/n") as caught:
            poll("q2")
    assert caught.value.code == "output"
    (path,) = files(here)
    path.write_text(path.read_text().replace('"n": 1', '"n": "one"'))
    with pytest.raises(FixtureRunError, match="/n"):
        with playhead.fixtures("replay") as tape:
            with pytest.raises(OpError, match="/n"):
                poll("q")
            assert "stale" in tape.ledger[-1].marks


@pytest.mark.parametrize(
    "declare",
    [
        lambda: playhead.op("f", effect="maybe")(lambda: None),
        lambda: playhead.op("f", effect="read", stream=True)(lambda: None),
        lambda: playhead.op("f", effect="read", output={"type": "nonsense"})(lambda: None),
        lambda: playhead.op("f", effect="read", ignore=["ts"])(lambda: None),
        lambda: playhead.op("f", effect="read", scope=lambda self: {})(lambda: None),
        lambda: OpGroup("g", env=["API_TOKEN"]),
        lambda: OpGroup("g", config={"x": {"fallback": 1}}),
    ],
)
def test_declarations_that_contradict_themselves(declare: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError):
        declare()


def test_annotations_and_a_schema_together_are_a_declaration_error() -> None:
    with pytest.raises(ConfigError, match="output="):

        @playhead.op("f", effect="read", output={"type": "string"})
        def f() -> str:
            return ""

    with pytest.raises(ConfigError, match="input="):

        @playhead.op("f", effect="read", input={"type": "object"})
        def g(a: str) -> str:
            return a

    with pytest.raises(ConfigError, match="scope"):

        class Api:
            @playhead.op("f", effect="read")
            def get(self) -> str:
                return ""


def test_secrets_and_variables_need_a_declaration(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    monkeypatch.setenv("REGION_NAME", "north-pole-7")
    monkeypatch.delenv("UNSET_KEY", raising=False)
    monkeypatch.setenv("ORDERS_KEY", "hunter2-hunter2")

    @playhead.op(
        "f", effect="read", env=["REGION_NAME"], secrets={"db": Slot(env="ORDERS_KEY"), "no": Slot(env="UNSET_KEY")}
    )
    def f(how: str, *, ctx: OpContext) -> Any:
        reads = {
            "db": lambda: ctx.secrets.get("db"),
            "no": lambda: ctx.secrets.get("no"),
            "x": lambda: ctx.secrets.get("x"),
            "env": lambda: ctx.env.get("REGION_NAME"),
            "y": lambda: ctx.env.get("HOME"),
        }
        return reads[how]()

    with playhead.fixtures("record"):
        assert f("db") == "hunter2-hunter2"
        assert f("env") == "north-pole-7"
        for how, code in (("no", "auth"), ("x", "permission"), ("y", "permission")):
            with pytest.raises(OpError) as caught:
                f(how)
            assert caught.value.code == code
    text = "".join(path.read_text() for path in here.rglob("*.json"))
    assert "hunter2" not in text
    assert "north-pole" not in text
    monkeypatch.delenv("ORDERS_KEY")
    with playhead.fixtures("replay"):
        assert f("db") == "[REDACTED:ORDERS_KEY]"
        assert f("env") == "[REDACTED:REGION_NAME]"


@pytest.mark.parametrize(
    ("egress", "hosts", "url", "allowed"),
    [
        (["127.0.0.1"], None, "http://127.0.0.1:1/", True),
        (["127.0.0.1:2"], None, "http://127.0.0.1:1/", False),
        (["*.example.com"], None, "http://example.com/", False),
        ([], None, "http://127.0.0.1:1/", False),
        (["127.0.0.1", "localhost"], ["localhost"], "http://127.0.0.1:1/", False),
    ],
)
def test_ctx_http_reaches_declared_hosts_only(
    monkeypatch: pytest.MonkeyPatch, egress: list[str], hosts: list[str] | None, url: str, allowed: bool
) -> None:
    httpx2 = pytest.importorskip("httpx2")
    monkeypatch.setenv("ORDERS_KEY", "hunter2-hunter2")

    @playhead.op("f", effect="read", egress=egress, secrets={"db": Slot(env="ORDERS_KEY", hosts=hosts)})
    def f(*, ctx: OpContext) -> int:
        ctx.secrets.get("db")
        return ctx.http.get(url).status_code

    with pytest.raises(httpx2.ConnectError if allowed else OpError) as caught:  # port 1: nobody answers
        f()
    if not allowed:
        assert caught.value.code == "permission"  # pyright: ignore


def test_r30_a_rotated_secret_hits_and_two_customers_are_two_keys(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["*_CUSTOMER"]\n')
    monkeypatch.setenv("A_CUSTOMER", "tok-aaaaaaaa")
    monkeypatch.setenv("B_CUSTOMER", "tok-bbbbbbbb")

    @playhead.op("f", effect="read")
    def f(token: str) -> str:
        return token[-1]

    with playhead.fixtures("record"):
        f("tok-aaaaaaaa")
        f("tok-bbbbbbbb")
    monkeypatch.setenv("A_CUSTOMER", "tok-rotated99")
    monkeypatch.delenv("B_CUSTOMER")
    with playhead.fixtures("replay"):
        assert f("[REDACTED:B_CUSTOMER]") == "b"
        assert f("tok-rotated99") == "a"


def test_an_op_in_a_session_is_a_tool_call() -> None:
    runs: list[str] = []

    @playhead.op("f", effect="read")
    def f(q: str, *, ctx: OpContext) -> str:
        runs.append(q)
        return q.upper()

    with playhead.session("agent") as session:
        assert f("x") == "X"
    playhead.flush()
    with playhead.open() as client:
        assert session.id is not None
        found = client.sessions.get(session.id)
    assert runs == ["x"]
    assert found is not None
