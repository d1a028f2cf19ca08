"""Values to stored JSON and back."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from playhead.core import codec
from playhead.core.codec import FORMAT, decode, dump, encode, load, plain
from playhead.core.values import (
    AgentVersion,
    Divergence,
    Encoded,
    ErrorInfo,
    Fidelity,
    FidelityKind,
    LedgerRow,
    Node,
    NodeKind,
    Outcome,
    OutcomeKind,
    Replay,
    ReplayStatus,
    RunSpec,
    Session,
    ToolCall,
    Truncated,
    Turn,
    Verdict,
)
from playhead.errors import FormatError

SAMPLE = Path(__file__).parent / "data" / "format_1.json"
CLASSES = {cls.__name__: cls for cls in (Session, Node, Verdict, AgentVersion, Replay)}

NODE = Node(
    id="n",
    session_id="s",
    seq=3,
    kind=NodeKind.TOOL_CALL,
    name="t",
    started_at=1,
    attributes={"a": [None]},
    call=ToolCall(tool="t", arguments={"q": 1}, path=("x#1",)),
    outcome=Outcome(
        kind=OutcomeKind.ERROR,
        truncated=Truncated(bytes=3, sha256="ab"),
        error=ErrorInfo(class_name="E", cause=ErrorInfo(class_name="C"), members=(ErrorInfo(class_name="M"),)),
    ),
)
REPLAY = Replay(
    id="r",
    baseline_session_id="b",
    created_at=1,
    status=ReplayStatus.COMPLETED,
    ledger=(LedgerRow(kind="tool", by="served", path=("p",), marks=("loose",)),),
    fidelity=Fidelity(
        kind=FidelityKind.DIVERGED, reasons=("r",), divergence=Divergence(what="tool", where="w", pointers=("/a",))
    ),
    verdicts=(Verdict(name="v", score=0.0, passed=False),),
)
VALUES = [
    NODE,
    REPLAY,
    Session(id="s", agent="a", started_at=1, turns=(Turn(input=1), Turn(input=None, output={})), tags=("x",)),
    Verdict(name="v", score=False, evidence=({"at": 1}, None)),
    AgentVersion(id="v", agent="a", number=2, created_at=1, run_spec=RunSpec(command=("python", "x"), timeout=1.5)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_value_comes_back_from_its_text(value: Any, trusted: bool) -> None:
    data = decode(encode(dump(value)))
    again = load(type(value), data, trusted=trusted)
    assert again == value
    assert repr(again) == repr(value), "no member changed its type"


def test_defaults_are_left_out() -> None:
    assert dump(Session(id="s", agent="a", started_at=1)) == {"id": "s", "agent": "a", "started_at": 1}


def test_falsy_values_that_are_not_the_default_stay() -> None:
    assert dump(Verdict(name="v", score=0, passed=False)) == {"name": "v", "score": 0, "passed": False}
    assert dump(Outcome(kind=OutcomeKind.VALUE, value=[])) == {"kind": "value", "value": []}


@pytest.mark.parametrize("sample", json.loads(SAMPLE.read_text(encoding="utf-8")), ids=lambda sample: sample["class"])
def test_what_format_1_wrote_is_read_for_ever(sample: dict[str, Any]) -> None:
    cls = CLASSES[sample["class"]]
    value = load(cls, sample["data"], format=1)
    assert load(cls, sample["data"], format=1, trusted=True) == value
    assert set(sample["data"]) >= {field.name for field in fields(cls) if field.name != "kind"} - set(
        sample.get("absent", ())
    ), "the sample holds every member"


def test_an_older_format_goes_through_every_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {
        FORMAT: lambda name, data: {**data, "name": f"{name} {data['title']}"},
        FORMAT + 1: lambda name, data: {key: held for key, held in data.items() if key != "title"},
    }
    monkeypatch.setattr(codec, "FORMAT", FORMAT + 2)
    monkeypatch.setattr(codec, "_UPGRADES", steps)
    assert load(Verdict, {"title": "old"}, format=FORMAT) == Verdict(name="Verdict old")
    assert load(Verdict, {"title": "old"}, format=FORMAT, trusted=True) == Verdict(name="Verdict old")


@pytest.mark.parametrize("format", [FORMAT + 1, 0, -1])
def test_a_format_that_is_not_known_is_refused(format: int) -> None:
    with pytest.raises(FormatError, match="format"):
        load(Verdict, {"name": "v"}, format=format)


@pytest.mark.parametrize(
    ("cls", "data", "at"),
    [
        (Node, {**dump(NODE), "colour": "red"}, "/colour"),
        (Node, {**dump(NODE), "call": {"tool": "t", "arguments": None, "a/b": 1}}, "/call/a~1b"),
        (Node, {**dump(NODE), "kind": "dance"}, "/kind"),
        (Node, {**dump(NODE), "seq": "many"}, "/seq"),
        (Node, {**dump(NODE), "call": {"arguments": 1}}, "/call/tool"),
        (Node, {**dump(NODE), "outcome": {"kind": "error", "error": {"class_name": 3}}}, "/outcome/error/class_name"),
        (Session, {"id": "s", "agent": "a", "started_at": 1, "turns": [{"input": 1}, {"out": 1}]}, "/turns/1/out"),
        (Session, {"id": "s", "agent": "a"}, "/started_at"),
        (Session, {"id": "s", "agent": "a", "started_at": 1, "tags": "x"}, "/tags"),
        (Session, ["s"], ""),
        (Session, None, ""),
    ],
)
def test_foreign_data_that_does_not_fit_is_an_error_with_its_place(cls: type, data: Any, at: str) -> None:
    with pytest.raises(FormatError) as caught:
        load(cls, data)
    assert caught.value.details["at"] == at
    assert cls.__name__ in str(caught.value)


def test_lone_surrogates_pass_where_text_is_declared() -> None:
    session = Session(id="s", agent="\ud800", started_at=1, tags=("\udfff",))
    assert load(Session, decode(encode(dump(session)))) == session


@pytest.mark.parametrize(
    "value",
    [
        2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**40, [10**19, -(10**19)], {"a": 9999999999999999999},
        {"a": -9999999999999999999}, "0" * 40, {"id": "1234567890-1234567890-12"}, "\ud800", {"\udc00": 1}, 1.0, -0.0,
        5e-324, "\x00\x7f\u2028", {"": {}}, [[]], None,
    ],
    ids=repr,
)  # fmt: skip
def test_json_comes_back_exactly(value: Any) -> None:
    for wrapped in (value, [value], {"k": [1, value]}):
        assert repr(decode(encode(wrapped))) == repr(wrapped)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_float_that_is_not_finite_is_tagged_and_never_null(value: float) -> None:
    assert set(decode(encode({"a": None, "b": [value]}))["b"][0]) == {"$float"}
    mixed = {"a": Encoded(b"null", b""), "b": [value]}
    assert encode(mixed) == b'{"a":null,"b":' + encode([value]) + b"}"


def test_large_numbers_and_text_that_look_like_no_number_beside_null_stay() -> None:
    value = {"a": None, "n": [1.7976931348623157e308, 2**63, "\x7f\uf0ff"], "g": "g" * 8 + "\x7f"}
    assert decode(encode(value)) == value


@pytest.mark.parametrize("score", [float("inf"), -float("inf"), float("nan")])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_score_that_is_not_finite_comes_back_as_a_float(score: float, trusted: bool) -> None:
    replay = Replay(id="r", baseline_session_id="b", created_at=1, verdicts=(Verdict(name="v", score=score),))
    again = load(Replay, decode(encode(dump(replay))), trusted=trusted)
    assert repr(again) == repr(replay)


def test_encoded_parts_go_into_the_text_as_they_are() -> None:
    part = Encoded(b'{"b":1.50}', b"")
    assert encode({"a": [part, part]}) == b'{"a":[{"b":1.50},{"b":1.50}]}'
    assert plain({"a": (part, 1)}) == {"a": [{"b": 1.5}, 1]}
    assert decode(encode([part, 2**70, "\ud800"])) == [{"b": 1.5}, 2**70, "\ud800"]


def test_members_are_sorted_when_that_is_asked_for() -> None:
    assert encode({"b": 1, "a": 2}, sort_keys=True) == b'{"a":2,"b":1}'
    assert encode({"b": 1, "a": 2}) == b'{"b":1,"a":2}'


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_stored_up_to_a_depth_and_refused_beyond_without_recursion() -> None:
    assert decode(encode(nested(230))) == nested(230)
    assert decode(encode([nested(230), 2**70])) == [nested(230), 2**70]
    for depth in (300, 10_000):
        with pytest.raises(FormatError, match="cannot be stored"):
            encode(nested(depth))
    assert len(plain(nested(10_000))) == 1


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {1, 2}}, b"bytes"], ids=lambda value: type(value).__name__)
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(FormatError, match="cannot be stored"):
        encode(value)


@pytest.mark.parametrize("text", [b"", b"{", b"[1,]", b"nul", b"[" * 100_000, b"\xff"])
def test_text_that_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        decode(text)


@pytest.mark.parametrize(
    ("cls", "data"), [(Verdict, {}), (Verdict, {"name": "v", "nonsense": 1}), (Session, {"id": "s", "agent": "a"})]
)
def test_a_trusted_object_without_a_member_or_with_an_unknown_one_is_refused(cls: type, data: Any) -> None:
    with pytest.raises((LookupError, TypeError)):
        load(cls, data, trusted=True)


def test_defaults_that_can_be_changed_are_not_shared() -> None:
    one, other = (load(Session, {"id": "s", "agent": "a", "started_at": 1}, trusted=True) for _ in range(2))
    one.metadata["a"] = 1  # type: ignore[index]
    assert other.metadata == {}
