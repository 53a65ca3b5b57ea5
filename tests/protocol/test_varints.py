"""Varints in messages end after five bytes."""

from __future__ import annotations

import struct

import pytest

from kohort.protocol import (
    ApiKey,
    MalformedMessageError,
    decode_request,
    decode_request_header,
    encode_request,
    request_class,
)

HEAD = struct.pack(">hhih", ApiKey.METADATA, 9, 1, 1) + b"x\x00"


@pytest.mark.parametrize("count", [6, 1_000, 3_000_000])
def test_a_varint_that_does_not_end_is_refused_however_long(count: int) -> None:
    frame = HEAD + b"\xff" * count
    with pytest.raises(MalformedMessageError, match="more than five bytes"):
        decode_request(frame, decode_request_header(frame))


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 30_000])
def test_lengths_of_every_size_are_read(size: int) -> None:
    topic = request_class(ApiKey.METADATA).MetadataRequestTopic(version=9, name="x" * size)
    body = request_class(ApiKey.METADATA)(version=9, topics=[topic] * 3)
    frame = bytes(encode_request(9, 1, "me", body)[4:])
    decoded = decode_request(frame, decode_request_header(frame))
    assert [one.name for one in decoded.topics] == ["x" * size] * 3
