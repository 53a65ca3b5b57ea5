"""What it costs to read a request follows the length of a frame: varints, tagged fields, array elements."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kohort.protocol import (
    ApiKey,
    KohortError,
    MalformedFrameError,
    MalformedMessageError,
    decode_request,
    decode_request_header,
    encode_request,
)
from kohort.protocol._messages import MAX_REQUEST_ELEMENTS
from tests.messages import request_of


def head(key: ApiKey, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, 1) + b"x\x00"


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*out, value])


def decoded(frame: bytes) -> Any:
    return decode_request(frame, decode_request_header(frame))


HEAD = head(ApiKey.METADATA, 9)


@pytest.mark.parametrize("count", [6, 1_000, 3_000_000])
def test_a_varint_that_does_not_end_is_refused_however_long(count: int) -> None:
    with pytest.raises(MalformedMessageError, match="more than five bytes"):
        decoded(HEAD + b"\xff" * count)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 30_000])
def test_lengths_of_every_size_are_read(size: int) -> None:
    topic = request_of(ApiKey.METADATA).MetadataRequestTopic(version=9, name="x" * size)
    body = request_of(ApiKey.METADATA)(version=9, topics=[topic] * 3)
    frame = bytes(encode_request(9, 1, "me", body)[4:])
    assert [one.name for one in decoded(frame).topics] == ["x" * size] * 3


def join_frame(instance_id: str | None) -> bytes:
    body = request_of(ApiKey.JOIN_GROUP)(
        version=9, group_id="g", member_id="", group_instance_id=instance_id, protocol_type="c", protocols=[]
    )
    return bytes(encode_request(9, 1, "me", body)[4:])


@pytest.mark.parametrize("instance_id", [None, "", "i" * 0x7FFF])
def test_strings_up_to_the_longest_that_kafka_knows_are_read(instance_id: str | None) -> None:
    assert decoded(join_frame(instance_id)).group_instance_id == instance_id


@pytest.mark.parametrize("instance_id", ["i" * 0x8000, "\u00e9" * 0x4000])
def test_a_compact_string_longer_than_that_is_refused(instance_id: str) -> None:
    with pytest.raises(MalformedMessageError, match="a string of 32768 bytes, 32767 is the most"):
        decoded(join_frame(instance_id))


def test_tagged_fields_of_elements_are_read_without_copying_the_frame_for_each() -> None:
    """40,000 topics with a tagged field each, behind which 8 MB follow: copied for each it is 320 GB."""
    count = 40_000
    topic = b"\x02t" + b"\x01\x05\x01!"
    pad = uvarint(8_000_000)
    rest = b"\x00\x00\x00" + b"\x01\x07" + pad + b"p" * 8_000_000
    body = decoded(HEAD + uvarint(count + 1) + topic * count + rest)
    assert [one.name for one in body.topics] == ["t"] * count


def test_a_tagged_field_that_is_known_is_read() -> None:
    body = request_of(ApiKey.FETCH)(
        version=12, cluster_id="c-1", topics=[], forgotten_topics_data=[], rack_id=""
    )
    assert decoded(bytes(encode_request(12, 1, "me", body)[4:])).cluster_id == "c-1"


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(b"\x01\x05\x7f!", id="a field longer than the frame"),
        pytest.param(uvarint(2**31), id="more fields than bytes"),
        pytest.param(b"\x01\xff\xff\xff\xff\xff\xff\x00", id="an endless tag number"),
    ],
)
def test_tagged_fields_that_do_not_fit_are_refused(tags: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decoded(HEAD + b"\x02\x02t" + tags)


def test_thousands_of_tagged_fields_in_a_header_are_refused() -> None:
    frame = struct.pack(">hhih", ApiKey.METADATA, 9, 1, 1) + b"x" + uvarint(2_000) + b"\x05\x00" * 2_000
    with pytest.raises(MalformedFrameError):
        decode_request_header(frame + b"\x01\x00\x00\x00\x00")


@pytest.mark.parametrize("count", [MAX_REQUEST_ELEMENTS - 1, MAX_REQUEST_ELEMENTS])
def test_a_request_of_100_000_elements_is_read(count: int) -> None:
    body = decoded(
        head(ApiKey.FIND_COORDINATOR, 4) + b"\x00" + uvarint(count + 1) + b"\x01" * count + b"\x00"
    )
    assert len(body.coordinator_keys) == count


def test_a_request_of_more_than_100_000_elements_is_refused_however_they_are_nested() -> None:
    many = MAX_REQUEST_ELEMENTS + 1
    flat = head(ApiKey.FIND_COORDINATOR, 4) + b"\x00" + uvarint(many + 1) + b"\x01" * many + b"\x00"
    inner = struct.pack(">i", 50_000) + b"\x00" * 4 * 50_000
    nested = struct.pack(">hhih", ApiKey.OFFSET_FETCH, 1, 1, 1) + b"x" + b"\x00\x01g" + struct.pack(">i", 2)
    for frame in (flat, nested + (b"\x00\x01t" + inner) * 2):
        with pytest.raises(MalformedMessageError, match="more in all than a request may have"):
            decoded(frame)
    assert decoded(nested.replace(b"\x00\x00\x00\x02", b"\x00\x00\x00\x01") + b"\x00\x01t" + inner).topics


@pytest.mark.parametrize("count", [5, 2**31 - 1])
def test_an_array_that_cannot_fit_is_refused_before_it_is_built(count: int) -> None:
    frame = struct.pack(">hhih", ApiKey.METADATA, 1, 1, 1) + b"x" + struct.pack(">i", count)
    with pytest.raises(MalformedMessageError, match=f"{count} elements"):
        decoded(frame + b"\x00\x00")
    with pytest.raises(KohortError):
        decoded(frame)
