"""Files cut into documents, in any chunks, with any damage."""

import io
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.engine.documents import ArrayScanner, Document, EndOfFile, Unreadable, read_file

JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just('br"ack]{ets,\\'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def read(path: Path, limit: int = 1 << 20) -> list:
    return list(read_file(str(path), is_whole=lambda v: v == "whole", limit=limit))


def values(path: Path, limit: int = 1 << 20) -> list:
    return [p.value for p in read(path, limit) if isinstance(p, Document)]


@settings(deadline=None)
@given(st.lists(JSONS.filter(lambda v: v != ""), max_size=6), st.integers(1, 40), st.sampled_from([None, 1, 3]))
def test_elements_come_whole_out_of_any_chunks(items: list, size: int, indent: int | None) -> None:
    text = json.dumps(items, indent=indent).encode()
    scanner = ArrayScanner(1 << 20)
    stream = io.BytesIO(text)
    found = []
    while chunk := stream.read(size):
        found += scanner.feed(chunk)
    assert [json.loads(element or b"null") for _, element in found] == items
    assert [place for place, _ in found] == list(range(len(items)))
    assert (scanner.closed, scanner.rest) == (True, b"")


def test_an_element_over_the_limit_is_named_and_the_others_come() -> None:
    scanner = ArrayScanner(30)
    found = []
    for byte in json.dumps([1, {"a": "b", "c": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "x" * 10]).encode():
        found += scanner.feed(bytes([byte]))
    assert [(place, element is None) for place, element in found] == [(0, False), (1, True), (2, False)]


def test_lines_arrays_and_single_values_are_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text, expected in (
        ('{"a": 1}', [{"a": 1}]),
        ('{\n "a": 1\n}\n', [{"a": 1}]),
        ('{"a": 1}\n\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ('[1]\n["whole", 2]\n', [[1], ["whole", 2]]),
        ("[1, 2, 3]", [1, 2, 3]),
        ("[\n1,\n2\n]", [1, 2]),
        ('["whole", 2]', [["whole", 2]]),
        ('[\n"whole",\n2]', [["whole", 2]]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
        ("  \n [] ", [[]]),
        ("", []),
        ("   \n", []),
    ):
        path.write_text(text)
        assert values(path) == expected, text


def test_positions_are_lines_and_pointers(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text('{"a": 1}\n\n{"b": 2}\n')
    assert [p.position for p in read(path) if isinstance(p, Document)] == ["1", "3"]
    path.write_text("[1,\n2]")
    assert [p.position for p in read(path) if isinstance(p, Document)] == ["/0", "/1"]


def test_a_line_over_the_limit_is_named_and_the_others_come(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text('{"a": 1}\n{"b": "' + "x" * 200 + '"}\n{"c": 1}\n')
    pieces = read(path, limit=50)
    assert [p.value for p in pieces if isinstance(p, Document)] == [{"a": 1}, {"c": 1}]
    assert [(p.position, p.code) for p in pieces if isinstance(p, Unreadable)] == [("2", "too_large")]


def test_an_array_element_that_is_no_json_does_not_hide_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'[\n{"a": 1},\n{"b": "\xff"},\nnope,\n{"c": 1}]')
    pieces = read(path)
    assert [p.value for p in pieces if isinstance(p, Document)] == [{"a": 1}, {"c": 1}]
    assert [p.position for p in pieces if isinstance(p, Unreadable)] == ["/1", "/2"]


def test_bytes_that_begin_like_a_line_end_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\n{\n\x01\x02binary")
    (document, _) = read(path)
    assert isinstance(document, Document)
    assert document.data == b"\n{\n\x01\x02binary"


def test_numbers_and_characters_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text('{"n": 123456789012345678901234567890, "s": "\\ud800", "d": 1, "d": 2}')
    assert values(path) == [{"n": 123456789012345678901234567890, "s": "\ud800", "d": 2}]


def test_nesting_without_end_is_one_unreadable_document(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in ("[" * 100_000, '{"a":' * 100_000, '[{"a":' + "[" * 50_000 + "]" * 50_000 + "}]"):
        path.write_text(text)
        pieces = read(path)
        assert [type(p) for p in pieces] == [Unreadable, EndOfFile]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(tmp_path_factory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    assert isinstance(read(path)[-1], EndOfFile)
