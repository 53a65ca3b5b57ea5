"""The codecs by hand read and write what kafka-python's classes do, and leave all else to them."""

from __future__ import annotations

import struct
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import (
    APIS,
    UNREADABLE,
    ApiKey,
    HotCodec,
    decode_request,
    decode_request_header,
    encode_request,
    encode_response,
    hot_codec,
    hot_header,
    request_class,
)

HOT = (ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
INSTANCE_FROM = {
    ApiKey.HEARTBEAT: 3,
    ApiKey.OFFSET_COMMIT: 7,
    ApiKey.JOIN_GROUP: 5,
    ApiKey.SYNC_GROUP: 3,
}
VERSIONS = [(key, v) for key in HOT for v in range(APIS[key].min_version, APIS[key].max_version + 1)]

texts = st.text(max_size=20) | st.sampled_from(["", "a" * 126, "a" * 127, "b" * 128, "ü" * 200, "😀"])
datas = st.binary(max_size=20) | st.sampled_from([b"", b"x" * 126, b"y" * 127, b"z" * 20_000])
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def codec_of(key: int, version: int) -> HotCodec:
    codec = hot_codec(struct.pack(">hh", key, version))
    assert codec is not None
    return codec


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, int, bytes]:
    """API, version and a frame that kafka-python wrote."""
    key, version = draw(st.sampled_from(VERSIONS))
    fields: dict[str, Any] = {"group_id": draw(texts), "member_id": draw(texts)}
    if version >= INSTANCE_FROM[key]:
        fields["group_instance_id"] = draw(st.none() | texts)
    if key == ApiKey.OFFSET_COMMIT:
        fields["generation_id_or_member_epoch"] = draw(int32)
        if version <= 4:
            fields["retention_time_ms"] = draw(int64)
        fields["topics"] = [draw(commit_topics(version)) for _ in range(draw(st.integers(0, 3)))]
    elif key == ApiKey.JOIN_GROUP:
        fields |= draw(join_fields(version))
    else:
        fields["generation_id"] = draw(int32)
    if key == ApiKey.SYNC_GROUP:
        made = request_class(key).SyncGroupRequestAssignment
        pairs = draw(st.lists(st.tuples(texts, datas), max_size=3))
        fields["assignments"] = [made(version=version, member_id=m, assignment=data) for m, data in pairs]
        if version >= 5:
            fields |= {"protocol_type": draw(st.none() | texts), "protocol_name": draw(st.none() | texts)}
    body = request_class(key)(version=version, **fields)
    frame = encode_request(version, draw(int32), draw(texts), body)
    return key, version, bytes(frame[4:])


@st.composite
def join_fields(draw: st.DrawFn, version: int) -> dict[str, Any]:
    made = request_class(ApiKey.JOIN_GROUP).JoinGroupRequestProtocol
    pairs = draw(st.lists(st.tuples(texts, datas), max_size=3))
    fields = {
        "session_timeout_ms": draw(int32),
        "protocol_type": draw(texts),
        "protocols": [made(version=version, name=name, metadata=data) for name, data in pairs],
    }
    if version >= 1:
        fields["rebalance_timeout_ms"] = draw(int32)
    if version >= 8:
        fields["reason"] = draw(st.none() | texts)
    return fields


@st.composite
def commit_topics(draw: st.DrawFn, version: int) -> Any:
    made = request_class(ApiKey.OFFSET_COMMIT).OffsetCommitRequestTopic
    names = {"topic_id": draw(st.uuids())} if version >= 10 else {"name": draw(texts)}
    partitions = []
    for _ in range(draw(st.integers(0, 4))):
        fields: dict[str, Any] = {
            "partition_index": draw(int32),
            "committed_offset": draw(int64),
            "committed_metadata": draw(st.none() | texts),
        }
        if version >= 6:
            fields["committed_leader_epoch"] = draw(int32)
        partitions.append(made.OffsetCommitRequestPartition(version=version, **fields))
    return made(version=version, partitions=partitions, **names)


def same(hot: Any, reference: Any) -> None:
    for name in hot._fields:
        mine, other = getattr(hot, name), getattr(reference, name)
        if isinstance(mine, list):
            assert len(mine) == len(other)
            for one, two in zip(mine, other, strict=True):
                same(one, two)
        elif name == "topic_id":
            assert (mine or uuid.UUID(int=0)) == (other or uuid.UUID(int=0))
        else:
            assert mine == other, name


@given(requests())
def test_a_request_is_read_as_the_reference_reads_it(made: tuple[int, int, bytes]) -> None:
    key, version, frame = made
    codec = codec_of(key, version)
    header = decode_request_header(frame)
    assert hot_header(frame, codec) == (header.correlation_id, header.size)
    body = codec.decode(frame, header.size)
    same(body, decode_request(frame, header))


@given(requests(), st.data())
def test_a_request_that_ends_early_is_left_to_the_reference(
    made: tuple[int, int, bytes], data: st.DataObject
) -> None:
    key, version, frame = made
    start = decode_request_header(frame).size
    cut = frame[: data.draw(st.integers(start, len(frame) - 1))]
    with pytest.raises(UNREADABLE):
        codec_of(key, version).decode(cut, start)


@given(requests(), st.data())
def test_what_is_read_of_damaged_bytes_is_what_the_reference_reads(
    made: tuple[int, int, bytes], data: st.DataObject
) -> None:
    key, version, frame = made
    header = decode_request_header(frame)
    at = data.draw(st.integers(header.size, len(frame) - 1))
    damaged = frame[:at] + bytes([data.draw(st.integers(0, 255))]) + frame[at + 1 :]
    try:
        body = codec_of(key, version).decode(damaged, header.size)
    except UNREADABLE:
        return
    same(body, decode_request(damaged, header))


@given(st.sampled_from(VERSIONS), int32, st.integers(0, 2**31 - 1), int16, st.data())
def test_an_answer_is_written_as_the_reference_writes_it(
    api: tuple[int, int], correlation_id: int, throttle_ms: int, error: int, data: st.DataObject
) -> None:
    key, version = api
    body = SimpleNamespace(
        throttle_time_ms=throttle_ms,
        error_code=error,
        generation_id=data.draw(int32),
        protocol_type=data.draw(st.none() | texts),
        protocol_name=data.draw(texts),
        leader=data.draw(texts),
        skip_assignment=data.draw(st.booleans()),
        member_id=data.draw(texts),
        assignment=data.draw(datas),
        topics=[],
        members=[
            SimpleNamespace(member_id=member, group_instance_id=instance, metadata=metadata)
            for member, instance, metadata in data.draw(
                st.lists(st.tuples(texts, st.none() | texts, datas), max_size=3)
            )
        ],
    )
    for _ in range(data.draw(st.integers(0, 3)) if key == ApiKey.OFFSET_COMMIT else 0):
        count = data.draw(st.sampled_from([0, 1, 5, 130]))
        partitions = [SimpleNamespace(partition_index=n, error_code=error) for n in range(count)]
        body.topics.append(
            SimpleNamespace(name=data.draw(texts), topic_id=data.draw(st.uuids()), partitions=partitions)
        )
    expected = encode_response(key, version, correlation_id, body)
    assert codec_of(key, version).encode(correlation_id, body) == expected


@pytest.mark.parametrize("key", HOT)
def test_tagged_fields_are_left_to_the_reference(key: ApiKey) -> None:
    version = APIS[key].max_version
    body = request_class(key)(version=version, group_id="g", member_id="m")
    frame = bytes(encode_request(version, 1, "c", body)[4:])
    start = decode_request_header(frame).size
    tagged = frame[:-1] + b"\x01\x05\x01x"
    with pytest.raises(UNREADABLE):
        codec_of(key, version).decode(tagged, start)
    assert decode_request(tagged, decode_request_header(tagged)).group_id == "g"
    with pytest.raises(UNREADABLE):
        hot_header(frame[: start - 1] + b"\x01\x05\x01x" + frame[start:], codec_of(key, version))


def test_other_apis_have_no_codec_by_hand() -> None:
    assert hot_codec(struct.pack(">hh", ApiKey.METADATA, 9)) is None
    assert hot_codec(struct.pack(">hh", ApiKey.HEARTBEAT, 5)) is None
