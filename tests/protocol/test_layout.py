"""Commits that come again: their offsets are read by the layout of the one before, in Python and compiled.

Covers: protocol/_native.pyx.
"""

from __future__ import annotations

import sys
import uuid
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import ApiKey, CommitLayout, _layout, codec_of, commit_layout
from kohort.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.leaks import require_no_leak
from tests.native_parts import needs_native

NAMES = st.text(max_size=200)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTITIONS = st.builds(
    OffsetCommitRequestPartition, INT32, INT64, INT32, st.none() | st.text(max_size=5) | NAMES
)
TOPICS = st.builds(OffsetCommitRequestTopic, NAMES, st.uuids(), st.lists(PARTITIONS, max_size=12))
REQUESTS = st.builds(
    OffsetCommitRequest,
    NAMES,
    INT32,
    NAMES,
    st.none() | NAMES,
    st.just(-1),
    st.lists(TOPICS, max_size=4),
)


def encoded(version: int, body: Any) -> bytes:
    out = bytearray()
    codec_of(ApiKey.OFFSET_COMMIT, version).write_request(out, body, version)
    return bytes(out)


def numbers_of(body: Any) -> tuple[int, ...]:
    return tuple(number for topic in body.topics for each in topic.partitions for number in each[1:3])


def numbers(layout: CommitLayout, data: bytes) -> tuple[int, ...] | None:
    """What is read of a body, alone and behind a header: the same each time."""
    found = layout.numbers(data)
    assert layout.numbers(b"head" + data, 4) == found
    with patch.object(_layout, "NATIVE", False):
        assert layout.numbers(data) == layout.numbers(b"head" + data, 4) == found
    return found


def moved(body: Any, data: st.DataObject) -> Any:
    """The same partitions with other offsets."""
    topics = [
        topic._replace(
            partitions=[
                each._replace(committed_offset=data.draw(INT64), committed_leader_epoch=data.draw(INT32))
                for each in topic.partitions
            ]
        )
        for topic in body.topics
    ]
    return body._replace(topics=topics)


@given(st.integers(6, 10), REQUESTS, st.data())
def test_the_offsets_of_the_same_partitions_are_read_as_the_codec_reads_them(
    version: int, body: Any, data: st.DataObject
) -> None:
    codec = codec_of(ApiKey.OFFSET_COMMIT, version)
    first, second = encoded(version, body), encoded(version, moved(body, data))
    layout = commit_layout(codec, first, codec.request(first, 0))
    assert layout is not None
    assert numbers(layout, first) == numbers_of(codec.request(first, 0))
    assert numbers(layout, second) == numbers_of(codec.request(second, 0))


@given(st.integers(6, 10), REQUESTS, st.data())
def test_a_body_that_differs_in_anything_else_is_not_taken_for_the_same(
    version: int, body: Any, data: st.DataObject
) -> None:
    codec = codec_of(ApiKey.OFFSET_COMMIT, version)
    first = encoded(version, body)
    layout = commit_layout(codec, first, codec.request(first, 0))
    assert layout is not None
    other = bytearray(first)
    other[data.draw(st.integers(0, len(first) - 1))] ^= data.draw(st.integers(1, 255))
    found = numbers(layout, bytes(other))
    if found is not None:
        read = codec.request(bytes(other), 0)
        assert found == numbers_of(read)
        assert [topic._replace(partitions=()) for topic in read.topics] == [
            topic._replace(partitions=()) for topic in codec.request(first, 0).topics
        ]
    assert numbers(layout, first + b"\0") is None
    assert numbers(layout, first[:-1]) is None


@pytest.mark.parametrize("version", [6, 8, 10])
def test_a_body_that_is_written_otherwise_has_no_layout(version: int) -> None:
    codec = codec_of(ApiKey.OFFSET_COMMIT, version)
    topic = OffsetCommitRequestTopic("t", uuid.UUID(int=4), [OffsetCommitRequestPartition(1, 2, 3, "")])
    body = OffsetCommitRequest("g", 1, "m", None, topics=[topic])
    data = encoded(version, body)
    assert commit_layout(codec, data, body) is not None
    # a tagged field at its end, where there may be some, or bytes that nobody reads
    longer = data[:-1] + b"\x01\x07\x01x" if version >= 8 else data + b"x"
    assert commit_layout(codec, longer, codec.request(longer, 0)) is None


@pytest.mark.parametrize("version", [2, 5])
def test_versions_without_leader_epochs_have_none(version: int) -> None:
    codec = codec_of(ApiKey.OFFSET_COMMIT, version)
    data = encoded(version, OffsetCommitRequest("g"))
    assert commit_layout(codec, data, codec.request(data, 0)) is None


@needs_native("protocol")
def test_what_is_no_body_or_no_place_is_not_read() -> None:
    from kohort.protocol._native import read_numbers

    def places(*at: int) -> bytes:
        return b"".join(each.to_bytes(4, sys.byteorder, signed=True) for each in at)

    for start in (-1, 1, 13, 2**62, -(2**62)):
        assert read_numbers(bytes(12), start, bytes(12), places(0)) is None
    assert read_numbers(bytes(12), 0, bytes(12), places(0)) == (0, 0)
    for wrong in ((-1,), (1,), (2**31 - 1,), (-(2**31),), (0, 0)):
        with pytest.raises(IndexError):
            read_numbers(bytes(12), 0, bytes(12), places(*wrong))
    nothing: Any = None
    for given_bytes in ((nothing, b"", b""), (b"", nothing, b""), (b"", b"", nothing)):
        with pytest.raises(TypeError):
            read_numbers(given_bytes[0], 0, *given_bytes[1:])


@needs_native("protocol")
def test_no_memory_stays_behind() -> None:
    codec = codec_of(ApiKey.OFFSET_COMMIT, 9)
    topic = OffsetCommitRequestTopic("t", None, [OffsetCommitRequestPartition(1, 10**12, 10**6, "")] * 5)
    data = encoded(9, OffsetCommitRequest("g", 1, "m", None, topics=[topic]))
    layout = commit_layout(codec, data, codec.request(data, 0))
    assert layout is not None
    require_no_leak(lambda: (layout.numbers(data), layout.numbers(b"x" + data[1:])), [data], 300)
