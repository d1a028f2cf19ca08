"""How nodes become segments, and back."""

from typing import Any

import pytest

from playhead.core.codec import encode
from playhead.core.values import Encoded, Node
from playhead.errors import FormatError
from playhead.store.compression import compress, decompress
from playhead.store.segments import Known, Segment, Stored, build, learn, merge, read
from playhead.store.segments.builder import large_values
from playhead.testing.conformance.builders import message, model_call, schemas, tool_call


class Stream:
    """A session's segments, and its shared values, as a store keeps them."""

    def __init__(self) -> None:
        self.known = Known()
        self.stored: list[Stored] = []
        self.sizes: list[int] = []
        self.shared: dict[bytes, bytes] = {}
        self._messages = self._lists = 0

    def append(self, *nodes: Node, known: Known | None = None) -> Segment:
        segment = build(nodes, known or self.known)
        learn(self.known, segment, self._messages, self._lists)
        self._messages += len(segment.messages)
        self._lists += len(segment.lists)
        self.stored.append(Stored(segment.heads, segment.body))
        self.sizes.append(len(segment.messages))
        self.shared.update(segment.shared)
        return segment

    def nodes(self) -> list[Node]:
        return read("s", self.stored, self.shared.__getitem__)

    def merged(self) -> tuple[Segment, list[Node]]:
        segment = merge(self.stored, self.shared.__getitem__)
        return segment, read("s", [Stored(segment.heads, segment.body)], segment.shared.__getitem__)


def history(size: int) -> list[Any]:
    return [message("user", f"message {n}") for n in range(size)]


def test_a_message_is_stored_once_however_often_it_is_sent() -> None:
    stream = Stream()
    nodes = [model_call("s", seq, history(seq + 1)) for seq in range(30)]
    for node in nodes:
        stream.append(node)
    assert stream.sizes == [1] * 30
    assert stream.nodes() == nodes
    segment, merged = stream.merged()
    assert (len(segment.messages), merged) == (30, nodes)


def test_a_list_that_grows_costs_its_new_messages_only() -> None:
    stream = Stream()
    heads = [len(stream.append(model_call("s", seq, history(200 + seq))).heads) for seq in range(3)]
    assert heads[1] < heads[0] / 2
    assert heads[2] < heads[0] / 2


def test_a_writer_that_forgot_stores_again_and_merging_drops_it() -> None:
    stream = Stream()
    stream.append(model_call("s", 0, history(5)))
    stream.append(model_call("s", 1, history(6)), known=Known())
    assert stream.sizes == [5, 6]
    segment, merged = stream.merged()
    assert len(segment.messages) == 6
    assert merged == stream.nodes() == [model_call("s", 0, history(5)), model_call("s", 1, history(6))]


def test_an_encoded_message_is_not_parsed_and_joins_its_equals_when_merged() -> None:
    stream = Stream()
    broken = Encoded(b"{not json", b"x" * 32)
    text = encode(message("user", "hi"))
    stream.append(model_call("s", 0, [Encoded(text, b"1" * 32)]))
    stream.append(model_call("s", 1, [message("user", "hi")]))
    assert len(stream.merged()[0].messages) == 1
    stream.append(model_call("s", 2, [broken]))
    with pytest.raises(FormatError):
        stream.nodes()


def test_replaced_nodes_are_gone_after_merging() -> None:
    stream = Stream()
    stream.append(tool_call("s", 0, value="secret of the first"), tool_call("s", 1))
    stream.append(tool_call("s", 0, value="second"))
    segment, merged = stream.merged()
    assert merged == [tool_call("s", 0, value="second"), tool_call("s", 1)]
    assert b"secret of the first" not in decompress(segment.body)


def test_schemas_and_large_values_are_shared_by_text() -> None:
    large = "long text " * 5000
    stream = Stream()
    told = {"role": "tool", "parts": [{"type": "tool_result", "content": large}]}
    first = stream.append(model_call("s", 0, [told], tools=schemas()), tool_call("s", 1, value=large))
    assert list(first.shared.values()) == [encode(schemas())], "while it runs only schemas are"
    segment, merged = stream.merged()
    assert sorted(segment.shared.values()) == sorted([encode(schemas()), encode(large)])
    assert large.encode() not in decompress(segment.body)
    assert merged == stream.nodes()
    again = merge([Stored(segment.heads, segment.body)], segment.shared.__getitem__)
    assert again.shared == segment.shared
    assert read("s", [Stored(again.heads, again.body)], again.shared.__getitem__) == merged


def test_what_an_unfinished_value_looks_like_does_not_matter_to_what_is_cut() -> None:
    rows = [{"n": n, "text": "row " * 5} for n in range(2000)]
    assert [path for path, _ in large_values({"value": {"deep": rows, "small": 1}})] == [["value", "deep"]]
    assert [held for _, held in large_values({"parts": [{"content": {"deep": rows}}]})] == [rows]
    assert large_values({"a": "small"}) == []
    assert large_values("x" * 100_000) == [], "the whole is never cut out of itself"


def test_wanted_nodes_are_read_alone() -> None:
    stream = Stream()
    stream.append(*(tool_call("s", seq) for seq in range(5)))
    stream.append(tool_call("s", 1, tool="other"))
    wanted = read(
        "s", stream.stored, stream.shared.__getitem__, wanted=lambda head: head["name"] == "lookup" and head["seq"] < 3
    )
    assert wanted == [tool_call("s", 0), tool_call("s", 2)], "a node that was replaced counts as it is now"


@pytest.mark.parametrize("part", ["heads", "body"])
def test_damage_is_an_error(part: str) -> None:
    stream = Stream()
    stream.append(model_call("s", 0, history(3)))
    good = stream.stored[0]
    for bad in (
        b"",
        b"garbage",
        compress(b"{}"),
        compress(b"[1,2]"),
        getattr(good, part)[:-1],
        bytes(getattr(good, part)[:-3]) + b"abc",
    ):
        damaged = good._replace(**{part: bad})
        with pytest.raises(FormatError):
            read("s", [damaged], stream.shared.__getitem__)
        with pytest.raises(FormatError):
            merge([damaged], stream.shared.__getitem__)


def test_a_reference_to_a_segment_that_is_gone_is_an_error() -> None:
    stream = Stream()
    stream.append(model_call("s", 0, history(3)))
    stream.append(model_call("s", 1, history(4)))
    with pytest.raises(FormatError):
        read("s", stream.stored[1:], stream.shared.__getitem__)
