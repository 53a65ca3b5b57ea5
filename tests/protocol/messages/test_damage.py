"""Readers of messages keep to what their bytes can hold, whatever these say."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from kohort.protocol import MalformedMessageError
from tests.messages import MESSAGES, Draw, codec_of_message, schemas, versions_of_message

#: What a reader raises, for its caller to tell of as a malformed message.
UNREADABLE = (MalformedMessageError, struct.error, IndexError, UnicodeDecodeError)


def written(name: str, version: int, seed: int) -> bytes:
    _, write, _, fields = codec_of_message(name, version)
    out = bytearray()
    write(out, Draw(seed).struct(fields, version), version)
    return bytes(out)


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_message_that_is_cut_short_is_noticed(name: str) -> None:
    for version in versions_of_message(name):
        read, _, _, _ = codec_of_message(name, version)
        whole = written(name, version, 1)
        cuts = range(len(whole)) if len(whole) < 60 else random.Random(2).sample(range(len(whole)), 60)
        for cut in cuts:
            data = whole[:cut]
            try:
                _, at = read(data, 0, version, 1_000)
            except UNREADABLE:
                continue
            assert at > len(data), f"v{version}, cut at {cut} of {len(whole)}"


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_damaged_bytes_are_read_or_refused_and_cost_what_they_weigh(name: str) -> None:
    for version in versions_of_message(name):
        read, _, _, _ = codec_of_message(name, version)
        rng = random.Random(f"{name}{version}")
        for seed in range(2):
            data = bytearray(written(name, version, seed))
            for _ in range(rng.randrange(1, 4) if data else 0):
                data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
            tracemalloc.start()
            try:
                read(bytes(data), 0, version, 1_000)
            except UNREADABLE:
                pass
            finally:
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            assert peak < 200_000 + 20 * len(data), f"v{version}"


@pytest.mark.parametrize(
    ("name", "version", "data", "words"),
    [
        ("HeartbeatRequest", 0, b"\xff\xff", "HeartbeatRequest.group_id is null and may not be"),
        ("HeartbeatRequest", 4, b"\x00", "HeartbeatRequest.group_id is null and may not be"),
        ("HeartbeatRequest", 4, b"\x80\x80\x80\x80\x80\x01", "a varint of more than five bytes"),
        ("HeartbeatRequest", 4, b"\xff\xff\xff\x7f", "32767 is the most"),
        ("DeleteGroupsRequest", 0, struct.pack(">i", 5), "says that it has 5 elements"),
        ("DeleteGroupsRequest", 0, struct.pack(">i", -1), "DeleteGroupsRequest.groups_names is null"),
        ("DeleteGroupsRequest", 0, struct.pack(">i", 11) + bytes(40), "more in all than a request may have"),
    ],
)
def test_what_is_wrong_is_said(name: str, version: int, data: bytes, words: str) -> None:
    read, _, _, _ = codec_of_message(name, version)
    with pytest.raises(MalformedMessageError, match=words):
        read(data, 0, version, 10)


@pytest.mark.parametrize(
    ("name", "version", "field", "data"),
    [
        *(("MetadataRequest", 1, "topics", struct.pack(">i", size)) for size in (-1, -2, -(2**31))),
        *(
            ("MetadataRequest", 9, "topics", varint + bytes(4))
            for varint in (b"\0", b"\xff\xff\xff\xff\x0f", b"\x81\x80\x80\x80\x08", b"\xff\xff\xff\xff\x7f")
        ),
        *(
            ("HeartbeatRequest", 3, "group_instance_id", b"\0\1g\0\0\0\1\0\1m" + struct.pack(">h", size))
            for size in (-1, -2, -(2**15))
        ),
        *(
            ("HeartbeatRequest", 4, "group_instance_id", b"\2g\0\0\0\1\2m" + varint + b"\0")
            for varint in (b"\0", b"\xff\xff\xff\xff\x0f", b"\x81\x80\x80\x80\x08")
        ),
    ],
)
def test_a_length_below_minus_one_is_null_as_for_apache_kafka(
    name: str, version: int, field: str, data: bytes
) -> None:
    read, _, _, _ = codec_of_message(name, version)
    body, at = read(data, 0, version, 10)
    assert getattr(body, field) is None
    assert at == len(data)


@pytest.mark.parametrize("varint", [b"\x80\x80\x80\x80\x08", b"\x80\x80\x80\x80\x80\x01"])
def test_a_length_of_two_billion_and_one_of_six_bytes_are_refused(varint: bytes) -> None:
    read, _, _, _ = codec_of_message("MetadataRequest", 9)
    with pytest.raises(MalformedMessageError):
        read(varint + bytes(4), 0, 9, 10)


def test_the_elements_of_arrays_inside_of_arrays_count() -> None:
    name, version = "OffsetCommitRequest", 8
    read, write, _, fields = codec_of_message(name, version)
    body = Draw(0).struct(fields, version)
    topic = Draw(3).struct(next(each for each in fields if each.name == "topics").fields, version)
    body.topics = [topic] * 4
    topic.partitions = [
        Draw(5).struct(next(each for each in fields if each.name == "topics").fields[-1].fields, version)
    ] * 3
    out = bytearray()
    write(out, body, version)
    read(bytes(out), 0, version, 16)
    with pytest.raises(MalformedMessageError, match="more in all than a request may have"):
        read(bytes(out), 0, version, 15)


def test_unknown_tagged_fields_are_stepped_over() -> None:
    read, write, _, fields = codec_of_message("HeartbeatRequest", 4)
    out = bytearray()
    body = Draw(1).struct(fields, 4)
    write(out, body, 4)
    with_tag = bytes(out[:-1]) + b"\x01\x07\x03abc"
    made, at = read(with_tag, 0, 4, 10)
    assert (made.member_id, at) == (body.member_id, len(with_tag))


def test_a_newer_kafka_python_has_no_other_schemas() -> None:
    """If this fails after an update: look at what is new, and run scripts/generate_messages.py."""
    stale = [name for name, text in schemas.modules().items() if (schemas.TARGET / name).read_text() != text]
    assert stale == []
