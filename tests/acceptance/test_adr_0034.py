"""What was decided for fixtures, one test per line of the table: what another system does, and what playhead adds.

The lines, in order: outcome, key, replay, validation, miss, what is recorded, writing, redaction, files, seam, repeats,
code. `docs/fixtures.md` says the same in prose.
"""
# ruff: noqa: PT012, SIM117 - the block is what is tested
# pyright: reportPossiblyUnboundVariable=false

import asyncio
import base64
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import OpContext, OpError, OpGroup, Slot
from playhead.cli.start import main
from playhead.core.keys import call_key
from playhead.errors import FixtureRunError, MissingFixtureError, StoreError

SECRET = "hunter2/hunter2+x"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".playhead").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("CI", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(name, raising=False)
    return folder


def documents(here: Path, pattern: str = "op.*.json") -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((here / ".playhead/fixtures").glob(pattern))]


def whole(here: Path) -> str:
    return "".join(path.read_text() + path.name for path in (here / ".playhead/fixtures").rglob("*") if path.is_file())


def op(answer: Callable[..., Any], name: str = "f", **options: Any) -> Any:
    """An op of one argument that notes its live calls."""
    live: list[Any] = []

    @playhead.op(name, effect="read", **options)
    def f(q: Any = None) -> Any:
        live.append(q)
        found = answer(len(live))
        if isinstance(found, BaseException):
            raise found
        return found

    found: Any = f
    found.live = live
    return found


def test_outcome(here: Path) -> None:
    """``{ok, data}`` or ``{ok, error}``: a value or an error, each of which is served as what it was."""
    f = op(lambda n: {"n": n} if n == 1 else OpError("no", status=404))
    with playhead.fixtures("record"):
        f("a")
        with suppress(OpError):
            f("b")
    outcomes = {found["outcome"]["kind"]: found["outcome"] for found in documents(here)}
    assert outcomes["value"] == {"kind": "value", "value": {"n": 1}}
    assert (outcomes["error"]["error"]["class"], outcomes["error"]["error"]["status"]) == ("OpError", 404)
    with playhead.fixtures("replay"):
        assert f("a") == {"n": 1}
        with pytest.raises(OpError, match="no"):
            f("b")


def test_key(here: Path) -> None:
    """Tool and canonical input, in any order of members; one field differs: another file. Also scope and types."""
    group = OpGroup("g", config={"project": {"default": "eu"}})

    @group.op(effect="read")
    def f(q: Any) -> str:
        return repr(q)

    asked: list[Any] = [{"a": 1, "b": 2}, {"a": 1, "b": 3}, Decimal("1.0"), 1.0]
    with playhead.fixtures("record"):
        for q in asked:
            f(q)
        with group.using(config={"project": "us"}):
            f(asked[0])
    assert len(documents(here)) == 5
    assert {found["key"] for found in documents(here)} >= {call_key("g.f", {"q": {"b": 2, "a": 1}})}
    assert all(found["key"][2:18] in str(sorted((here / ".playhead/fixtures").iterdir())) for found in documents(here))
    with playhead.fixtures("replay"):
        assert f({"b": 2, "a": 1}) == repr(asked[0])


def test_replay(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the op runs and nothing that it needs is there; a connection is refused besides."""
    monkeypatch.setenv("ORDERS_KEY", SECRET)
    live: list[str] = []

    @playhead.op("f", effect="read", secrets={"db": Slot(env="ORDERS_KEY")}, egress=["db.example.com"])
    def f(q: str, *, ctx: OpContext) -> str:
        live.append(ctx.secrets.get("db"))
        return q.upper()

    with playhead.fixtures("record"):
        f("a")
    monkeypatch.delenv("ORDERS_KEY")
    with playhead.fixtures("replay"):
        assert f("a") == "A"
    assert live == [SECRET]
    with pytest.raises(FixtureRunError, match=r"example\.com"):
        with playhead.fixtures("replay"):
            f("a")
            with suppress(OSError):
                socket.getaddrinfo("example.com", 9)


def test_validation(here: Path) -> None:
    """A recorded result is checked like a live one; an error comes back with code and status, class and arguments."""
    f = op(lambda n: {"n": 1}, output=None)

    @playhead.op("typed", effect="read")
    def typed(q: str) -> dict[str, int]:
        return {"n": 1}

    failing = op(lambda n: OpError("slow", "rate_limit", status=429, retry_after=7), "failing")
    keyed = op(lambda n: KeyError("missing"), "keyed", errors=[KeyError])
    with playhead.fixtures("record"):
        typed("a")
        f("a")
        for each in (failing, keyed):
            with suppress(OpError, KeyError):
                each("a")
    for path in (here / ".playhead/fixtures").glob("op.typed.*"):
        path.write_text(path.read_text().replace('"n": 1', '"n": "one"'))
    with pytest.raises(FixtureRunError, match="/n"):
        with playhead.fixtures("replay"):
            with pytest.raises(OpError) as stale:
                typed("a")
            with pytest.raises(OpError) as limited:
                failing("a")
            with pytest.raises(KeyError) as missing:
                keyed("a")
    assert stale.value.code == "output"
    assert (limited.value.code, limited.value.status, limited.value.retry_after) == ("rate_limit", 429, 7)
    assert (missing.value.args, str(missing.value)) == (("missing",), "'missing'")


def test_miss() -> None:
    """Never live, and a run that swallowed it fails."""
    f = op(lambda n: n)
    with playhead.fixtures("record"):
        f("a")
    with pytest.raises(MissingFixtureError, match="no recording answers f"):
        with playhead.fixtures("replay"):
            with suppress(BaseException):
                f("b")
    assert f.live == ["a"]


class _DupError(Exception):
    pass


def test_recorded(here: Path) -> None:
    """Results and errors with a numeric status; never refusals and timeouts. Also listed classes; a note tells why."""
    ends: dict[str, Any] = {
        "value": 1, "status": OpError("x", status=503), "listed": _DupError("dup"), "refused": ConnectionRefusedError(),
        "bad_import": ImportError("no"), "permission": OpError("no", code="permission"),
        "timeout": OpError("late", code="timeout"),
    }  # fmt: skip
    ops = {name: op(lambda n, end=end: end, name, errors=[_DupError]) for name, end in ends.items()}
    with playhead.fixtures("record"):
        for each in ops.values():
            with suppress(Exception):
                each("a")
    assert sorted(found["tool"] for found in documents(here)) == ["listed", "status", "value"]
    noted = {note["tool"]: note["reason"] for note in documents(here, "recording.json")[0]["not_recorded"]}
    assert sorted(noted) == ["bad_import", "permission", "refused", "timeout"]
    with pytest.raises(MissingFixtureError, match="ConnectionRefusedError"):
        with playhead.fixtures("replay"):
            ops["refused"]("a")


def test_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure to write is not the op's; what the recording run gives is what a replay gives, but for secrets."""
    monkeypatch.setenv("API_SECRET", SECRET)
    f = op(lambda n: {"pair": (1, 2), "secret": SECRET})
    given: list[Any] = []
    for mode in ("record", "replay"):
        with playhead.fixtures(mode):
            given.append(f("a"))
    assert [each["pair"] for each in given] == [[1, 2], [1, 2]]
    assert (given[0]["secret"], given[1]["secret"]) == (SECRET, "[REDACTED:API_SECRET]")

    def full(*args: Any) -> None:
        raise StoreError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("playhead.store.fixture_writing.FixtureWriter.add", full)
        with pytest.raises(FixtureRunError, match="no space left"):
            with playhead.fixtures("record"):
                assert f("b")["pair"] == [1, 2]


def test_redaction(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are free of configured secrets, contents of every one that was read; in every encoding, names, numbers."""
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["CUSTOMER", "PIN"]\n')
    monkeypatch.setenv("CUSTOMER", "tok-aaaaaaaaa")
    monkeypatch.setenv("PIN", "482199")
    monkeypatch.setenv("ORDERS_DB", SECRET)

    @playhead.op("f", effect="read", secrets={"db": Slot(env="ORDERS_DB")})
    def f(q: str, *, ctx: OpContext) -> Any:
        secret = ctx.secrets.get("db")
        return {
            "plain": f"x {secret} x", "url": "https://x.example/?k=hunter2%2Fhunter2%2bx",
            "base64": base64.b64encode(f"u:{secret}".encode()).decode(), secret: 1, "number": 482199, "q": q,
        }  # fmt: skip

    with playhead.fixtures("record"):
        f("tok-aaaaaaaaa")
    text = whole(here)
    for trace in (SECRET, "hunter2", base64.b64encode(SECRET.encode()).decode()[4:12], "482199", "tok-aaaa"):
        assert trace not in text
    assert {"[REDACTED:ORDERS_DB]", "[REDACTED:PIN]", "[REDACTED:CUSTOMER]"} <= set(
        part + "]" for part in text.replace("[", "\n[").replace("]", "\n").split("\n") if part.startswith("[REDACTED:")
    )
    monkeypatch.setenv("CUSTOMER", "tok-rotated-1")
    monkeypatch.delenv("ORDERS_DB")
    with playhead.fixtures("replay"):
        assert f("tok-rotated-1")["number"] == "[REDACTED:PIN]"


def test_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``op.`` and ``http.`` files apart; a request's never answers an op; the doctor reads what is inside."""
    f = op(lambda n: n, "a tool/with signs")
    with playhead.fixtures("record"):
        f("a")
    (path,) = (here / ".playhead/fixtures").glob("op.a_tool_with_signs.*.json")
    text = path.read_text()
    assert main(["fixtures", "doctor", "--output", "json"]) == 0
    path.write_text(text.replace('"q": "a"', '"q": "b"'))
    assert main(["fixtures", "doctor", "--output", "json"]) == 1
    path.unlink()
    path.with_name(path.name.replace("op.", "http.")).write_text(text.replace('"kind": "op"', '"kind": "http"'))
    with pytest.raises(MissingFixtureError):
        with playhead.fixtures("replay"):
            f("a")
    capsys.readouterr()


def test_seam(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without fixtures an op is the plain function; the doctor fails an op that has none, or that they do not fit."""
    import sys

    (here / "pyproject.toml").write_text('[tool.playhead.fixtures]\nops = ["adr_ops"]\n')
    (here / "adr_ops.py").write_text(
        'import playhead\n@playhead.op("adr", effect="read")\ndef adr(limit: int = 5) -> int:\n    return limit\n'
    )
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    import importlib

    module = importlib.import_module("adr_ops")
    try:
        assert module.adr() == 5
        assert not (here / ".playhead/fixtures").exists()
        assert main(["fixtures", "doctor", "--output", "json"]) == 1
        assert "op.none" in capsys.readouterr().out
        with playhead.fixtures("record"):
            module.adr()
        assert main(["fixtures", "doctor", "--output", "json"]) == 0
        path = next((here / ".playhead/fixtures").glob("op.adr.*"))
        path.write_text(path.read_text().replace('"limit": 5', '"limit": 6'))
        assert main(["fixtures", "doctor", "--output", "json"]) == 1
        assert "file.default" in capsys.readouterr().out
    finally:
        sys.modules.pop("adr_ops")


def test_repeats(here: Path) -> None:
    """A poll gives what it gave, in order; ``sequence="last"`` keeps the last answer, as the other system does."""
    f = op(lambda n: n)
    with playhead.fixtures("record"):
        assert [f("a"), f("a"), f("a")] == [1, 2, 3]
    with playhead.fixtures("replay"):
        assert [f("a"), f("a"), f("a")] == [1, 2, 3]
    with playhead.fixtures("record", set="last", sequence="last"):
        f("a")
        f("a")
    with playhead.fixtures("replay", set="last", sequence="last"):
        assert [f("a"), f("a"), f("a")] == [5, 5, 5]
    assert len(list((here / ".playhead/fixtures/last").glob("op.*"))) == 1


def test_code(here: Path) -> None:
    """Other code is told of, and check mode runs it; an abort does not reach an answer; the cause keeps its text."""

    def failed(n: int) -> Any:
        error = OpError("outer", status=502)
        error.__cause__ = OpError("inner", status=418)
        return error

    @playhead.op("slow", effect="read", timeout=60)
    async def slow(q: str) -> str:
        return q

    f, g = op(lambda n: 1), op(failed, "g")

    answers: list[Any] = []

    async def aborted() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        answers.append(await slow("a"))

    async def run(mode: str) -> list[Any]:
        async with playhead.fixtures(mode):
            found: list[Any] = [f("a")]
            with suppress(OpError):
                g("a")
            return [*found, await slow("a")]

    asyncio.run(run("record"))
    changed = op(lambda n: 2)
    with pytest.raises(FixtureRunError, match="outdated"):
        with playhead.fixtures("replay", strict=True) as tape:
            path = next((here / ".playhead/fixtures").glob("op.f.*"))
            path.write_text(path.read_text().replace('"code": "sha256:', '"code": "sha256:0'))
            assert changed("a") == 1
            with pytest.raises(OpError) as caught:
                g("a")
            with suppress(asyncio.CancelledError):
                asyncio.run(aborted())
            assert (answers, "outdated" in tape.ledger[0].marks) == (["a"], True)
    cause = caught.value.__cause__
    assert ("inner" in str(cause), getattr(cause, "status", None)) == (True, 418)
    with pytest.raises(FixtureRunError, match="f changed"):
        with playhead.fixtures("check"):
            assert changed("a") == 2
