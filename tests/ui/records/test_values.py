"""Bytes as people read them, whatever is in them, and what a schema registry decodes."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from kohort.client.schema_registry import SchemaRegistry
from kohort.ui.records import values
from kohort.ui.records.values import RegistryValues, ShownBytes, ValueReader, show_bytes
from tests.client.registry import FakeRegistry, framed

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    registry = FakeRegistry()
    yield registry
    registry.close()


@pytest.fixture
def reader(fake: FakeRegistry) -> ValueReader:
    return ValueReader(RegistryValues(SchemaRegistry(fake.url, timeout_ms=2_000, max_retries=0)))


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, "null", "null"),
        (b"", "empty", ""),
        (b"hello", "text", "hello"),
        ("grüße ✓".encode(), "text", "grüße ✓"),
        (b' {"b": 1, "a": "\\u00e9"}', "json", '{"b": 1, "a": "é"}'),
        (b"[1, 2]", "json", "[1, 2]"),
        (b"{not json", "text", "{not json"),
        (b"[" * 5_000, "text", "[" * 400),
        (b'{"n": ' + b"9" * 5_000 + b"}", "text", '{"n": ' + "9" * 394),
        (b'["\\ud800"]', "json", '["?"]'),
        (b"\xff\xfe\xfd", "hex", "ff fe fd"),
        (b"a\x00b", "hex", "61 00 62"),
        (b"\x1b[31m", "hex", "1b 5b 33 31 6d"),
        ("\u202egpj.exe".encode(), "hex", "e2 80 ae 67 70 6a 2e 65 78 65"),
        (b"\x00\x00\x00\x2a", "number", "42 (00 00 00 2a)"),
        (b"\xff" * 8, "number", "-1 (ff ff ff ff ff ff ff ff)"),
    ],
)
def test_bytes_are_shown_as_what_they_are(data: bytes | None, kind: str, text: str) -> None:
    shown = show_bytes(data)
    assert (shown.kind, shown.text, shown.size) == (kind, text, len(data or b""))


def test_large_bytes_are_cut_and_their_size_is_told() -> None:
    for data, kind in (
        (b"x" * 10**7, "text"),
        (b"\xff" * 10**7, "hex"),
        (b"[" + b"1," * 10**6 + b"1]", "json"),
    ):
        shown = show_bytes(data)
        assert (shown.kind, shown.size, shown.is_cut) == (kind, len(data), True)
        assert len(shown.text) <= 400
    # a letter of several bytes at the cut is no reason to call it binary
    assert show_bytes(b"x" + "é".encode() * 10**6).kind == "text"


def test_of_json_that_its_indents_make_huge_only_the_beginning_is_made() -> None:
    """Whoever may write records could take all memory of the page otherwise: here it would be 600 MB."""
    data = b"[" * 300 + b",".join([b"1"] * 1_000_000) + b"]" * 300
    tracemalloc.start()
    shown = show_bytes(data, values.WHOLE, indent=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (shown.kind, len(shown.text), shown.is_cut) == ("json", values.WHOLE, True)
    assert peak < 50_000_000


def test_a_records_own_page_has_lines_of_json_and_of_hexadecimal() -> None:
    assert show_bytes(b'{"a":1}', 100, indent=2).text == '{\n  "a": 1\n}'
    shown = show_bytes(bytes(range(250, 256)) + b"abc" * 5, 1_000, indent=2)
    first, second = shown.text.split("\n")
    assert first.startswith("00000000  fa fb fc fd fe ff 61 62 63")
    assert first.endswith("......abcabcabca")
    assert second.startswith("00000010  62 63 61 62 63")


@pytest.mark.parametrize(
    ("data", "wanted", "found"),
    [
        (b"Hello World", "world", True),
        (b"Hello", "bye", False),
        ("GRÜSSE".encode(), "grüsse", True),
        ("Straße".encode(), "Straße".casefold(), True),
        (b'{"a": "\\u00c9t\\u00e9"}', "été", True),
        (b'{"a": "\\u0041b"}', "ab", True),
        (b"\xff\xfeabc", "abc", True),
        (b"\xff\xfe", "é", False),
        (None, "null", False),
        (b"", "x", False),
    ],
)
def test_a_text_is_found_whatever_its_case(data: bytes | None, wanted: str, found: bool) -> None:
    assert ValueReader().contains(data, wanted) is found


@pytest.mark.parametrize(
    ("data", "wanted", "found"),
    [
        (b"user-1", "user-1", True),
        (b"user-10", "user-1", False),
        (b"\x00\x00\x00\x2a", "42", True),
        (b"\xff" * 8, "-1", True),
        (b"\x01\xff\x02", "01 FF 02", True),
        (None, "null", False),
        ("ü".encode(), "ü", True),
    ],
)
def test_a_key_is_a_text_a_number_or_bytes(data: bytes | None, wanted: str, found: bool) -> None:
    assert ValueReader().equals(data, wanted) is found


def test_what_has_a_schema_is_decoded(fake: FakeRegistry, reader: ValueReader) -> None:
    schema_id = fake.add(json.dumps(AVRO))
    data = framed(schema_id, b"\x0eorder-7")
    assert reader.show(data) == ShownBytes(f"avro {schema_id}", '{"id": "order-7"}', len(data))
    assert reader.show(data, indent=2).text == '{\n  "id": "order-7"\n}'
    assert reader.contains(data, "order-7")
    assert reader.contains(data, '"id"')
    assert reader.equals(data, '{"id": "order-7"}')
    asked = len(fake.asked)
    reader.show(data)
    assert len(fake.asked) == asked
    assert reader.show(b"plain").kind == "text"


def test_json_of_the_registry_is_decoded(fake: FakeRegistry, reader: ValueReader) -> None:
    schema_id = fake.add(json.dumps({"type": "object"}), "JSON")
    assert reader.show(framed(schema_id, b'{"a": 1}')).text == '{"a": 1}'


@pytest.mark.parametrize(
    ("kind", "content", "note"),
    [
        ("AVRO", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "cannot be decoded by schema"),
        ("PROTOBUF", b"\x00\x08\x01\xff", "Protobuf of schema"),
        ("JSON", b"{", "cannot be decoded by schema"),
    ],
)
def test_what_is_not_decoded_is_shown_as_it_is_and_why(
    fake: FakeRegistry, reader: ValueReader, kind: str, content: bytes, note: str
) -> None:
    schema = {"AVRO": json.dumps(AVRO), "JSON": "{}"}.get(kind, 'syntax = "proto3"; message M {}')
    schema_id = fake.add(schema, kind)
    shown = reader.show(framed(schema_id, content))
    assert note in shown.note
    assert shown.kind == "hex"
    # the next record of this schema is decoded none the less
    if kind == "AVRO":
        assert reader.show(framed(schema_id, b"\x0eorder-7")).note == ""


def test_a_registry_that_is_away_is_not_asked_for_every_record(
    fake: FakeRegistry, reader: ValueReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = framed(fake.add(json.dumps(AVRO)), b"\x0eorder-7")
    fake.status = 500
    for _ in range(5):
        assert "does not answer" in reader.show(data).note
    assert len(fake.asked) == 1
    fake.status = 0
    later = time.monotonic() + values._PAUSE_S + 1
    monkeypatch.setattr("kohort.ui.records.values.time.monotonic", lambda: later)
    assert reader.show(data).kind.startswith("avro")


def test_a_schema_that_is_not_there_is_asked_for_once_and_hides_no_other(
    fake: FakeRegistry, reader: ValueReader
) -> None:
    known = framed(fake.add(json.dumps(AVRO)), b"\x0eorder-7")
    for _ in range(3):
        assert reader.show(framed(4_711, b"abcdef")).note == "the registry has no schema 4711"
    assert len(fake.asked) == 1
    assert reader.show(known).kind.startswith("avro")
