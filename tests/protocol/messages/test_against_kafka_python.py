"""Every message in every version: the bytes are kafka-python's, and are read to what was written."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol import ApiKey, codec_of, response_type
from tests.messages import MESSAGES, Draw, codec_of_message, kafka_class, versions_of_message


def shipped(fields: list[Any], theirs: Any) -> list[Any]:
    """The fields without those that kohort has added to a message that kafka-python ships: tagged ones."""
    names = {other.name for other in theirs}
    return [each for each in fields if each.tag is None or each.name in names]


def without_added(fields: list[Any], theirs: Any, made: Any, *, in_theirs: bool = False) -> Any:
    """The same object without the fields that kohort has added; ``in_theirs``, as kafka-python takes it: some
    bit fields have other names there, and are sets.
    """
    copied = SimpleNamespace()
    for each, other in zip(shipped(fields, theirs), theirs, strict=True):
        if not hasattr(made, each.name):
            continue
        inner = getattr(made, each.name)
        if each.is_struct and inner is not None:
            below = list(other.fields.values())
            values = inner if each.array else [inner]
            many = [without_added(each.fields, below, one, in_theirs=in_theirs) for one in values]
            inner = many if each.array else many[0]
        elif in_theirs and other.type_str == "bitfield":
            inner = {bit for bit in range(32) if inner >> bit & 1}
        setattr(copied, other.name if in_theirs else each.name, inner)
    return copied


def same(fields: list[Any], version: int, ours: Any, given: Any) -> None:
    """What was read is what was written."""
    for each in fields:
        if version not in each.versions:
            continue
        read, wrote = getattr(ours, each.name), getattr(given, each.name)
        if each.is_struct and wrote is not None:
            pairs = zip(read, wrote, strict=True) if each.array else [(read, wrote)]
            for one, other in pairs:
                same(each.fields, version, one, other)
        else:
            assert (list(read) if isinstance(read, tuple) else read) == wrote, f"{each.name} of v{version}"


@pytest.mark.parametrize("name", sorted(MESSAGES))
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32))
def test_both_write_the_same_bytes_and_read_what_was_written(name: str, seed: int) -> None:
    for version in versions_of_message(name):
        check_bytes(name, version, seed)


def check_bytes(name: str, version: int, seed: int) -> None:
    read, write, made, fields = codec_of_message(name, version)
    given_ = Draw(seed).struct(fields, version)
    out = bytearray()
    write(out, given_, version)
    theirs = kafka_class(name)
    if theirs is not None and version <= theirs.max_version:
        flexible = theirs.flexible_version_q(version)
        expected = theirs._struct.encode(
            without_added(fields, theirs._struct._fields, given_, in_theirs=True),
            version=version,
            compact=flexible,
            tagged=flexible,
        )
        plain = bytearray()
        write(plain, without_added(fields, theirs._struct._fields, given_), version)
        assert bytes(plain) == expected, f"v{version}"
    body, at = read(bytes(out), 0, version, 1_000)
    assert at == len(out), f"v{version}"
    assert type(body) is made
    same(fields, version, body, given_)
    again = bytearray()
    write(again, body, version)
    assert again == out, f"v{version}"


@pytest.mark.parametrize("version", range(5))
def test_an_answer_of_numbers_alone_is_framed_as_any_other(version: int) -> None:
    body = response_type(ApiKey.HEARTBEAT)(throttle_time_ms=7, error_code=27)
    codec = codec_of(ApiKey.HEARTBEAT, version)
    frame = codec.response_frame(-3, body)
    expected = bytearray(codec.response_head.pack(0, -3))
    codec.write_response(expected, body, version)
    assert frame == struct.pack(">i", len(expected) - 4) + expected[4:]
