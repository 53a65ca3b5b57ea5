"""Commits that come again: their offsets are read by the layout of the one before."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import ApiKey, codec_of, commit_layout
from kohort.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

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
    assert layout.numbers(first) == numbers_of(codec.request(first, 0))
    assert layout.numbers(second) == numbers_of(codec.request(second, 0))


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
    numbers = layout.numbers(bytes(other))
    if numbers is not None:
        read = codec.request(bytes(other), 0)
        assert numbers == numbers_of(read)
        assert [topic._replace(partitions=()) for topic in read.topics] == [
            topic._replace(partitions=()) for topic in codec.request(first, 0).topics
        ]
    assert layout.numbers(first + b"\0") is None
    assert layout.numbers(first[:-1]) is None


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
