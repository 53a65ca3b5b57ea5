"""Fetch answers in parts are, put together, what kafka-python's classes write."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import APIS, ApiKey, Part, encode_response, fetch_answer, response_class

VERSIONS = range(APIS[ApiKey.FETCH].min_version, APIS[ApiKey.FETCH].max_version + 1)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
records = st.none() | st.binary(max_size=40) | st.sampled_from([b"r" * size for size in (127, 4_096, 20_000)])


def joined(parts: Sequence[Part]) -> bytes:
    assert all(isinstance(part, (bytes, bytearray)) for part in parts)
    return b"".join(part for part in parts if isinstance(part, (bytes, bytearray)))


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, Any]:
    version = draw(st.sampled_from(VERSIONS))
    made: Any = response_class(ApiKey.FETCH)

    def partition() -> Any:
        fields: dict[str, Any] = {
            "partition_index": draw(int32),
            "error_code": draw(int16),
            "high_watermark": draw(int64),
            "last_stable_offset": draw(int64),
            "aborted_transactions": draw(st.none() | st.lists(aborted(), max_size=2)),
            "records": draw(records),
        }
        if version >= 5:
            fields["log_start_offset"] = draw(int64)
        if version >= 12 and draw(st.booleans()):
            made_end = made.FetchableTopicResponse.PartitionData.EpochEndOffset
            fields["diverging_epoch"] = made_end(version=version, epoch=draw(int32), end_offset=draw(int64))
        return made.FetchableTopicResponse.PartitionData(version=version, **fields)

    @st.composite
    def aborted(draw: st.DrawFn) -> Any:
        make = made.FetchableTopicResponse.PartitionData.AbortedTransaction
        return make(version=version, producer_id=draw(int64), first_offset=draw(int64))

    def topic() -> Any:
        name = {"topic_id": draw(st.uuids())} if version >= 13 else {"topic": draw(st.text(max_size=20))}
        partitions = [partition() for _ in range(draw(st.integers(0, 3)))]
        return made.FetchableTopicResponse(version=version, partitions=partitions, **name)

    fields: dict[str, Any] = {
        "throttle_time_ms": draw(int32),
        "responses": [topic() for _ in range(draw(st.integers(0, 2)))],
    }
    if version >= 7:
        fields |= {"error_code": draw(int16), "session_id": draw(int32)}
    return version, made(version=version, **fields)


@given(answer=answers(), correlation_id=int32)
def test_the_parts_are_the_reference_s_frame(answer: tuple[int, Any], correlation_id: int) -> None:
    version, body = answer
    parts = fetch_answer(version, correlation_id, body)
    assert joined(parts) == bytes(encode_response(ApiKey.FETCH, version, correlation_id, body))


@pytest.mark.parametrize("version", VERSIONS)
def test_many_records_are_passed_on_as_they_are(version: int) -> None:
    made: Any = response_class(ApiKey.FETCH)
    big = b"r" * 100_000
    part = made.FetchableTopicResponse.PartitionData(
        version=version, partition_index=0, error_code=0, high_watermark=1, last_stable_offset=1, records=big
    )
    name = {"topic_id": uuid.uuid4()} if version >= 13 else {"topic": "t"}
    body = made(
        version=version, responses=[made.FetchableTopicResponse(version=version, partitions=[part], **name)]
    )
    parts = fetch_answer(version, 1, body)
    assert any(part is big for part in parts)
