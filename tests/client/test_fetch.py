"""Fetch answers as consumers take them, and what is no answer."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kohort.client.fetch import (
    FetchedPartition,
    fetched_rows,
)
from kohort.protocol import ApiKey, MalformedMessageError, decode_response, encode_response
from kohort.protocol.messages.fetch import AbortedTransaction
from tests.messages import response_of

NAME, ID = "orders", uuid.UUID(int=7)
VERSIONS = range(4, 17)


def _read(version: int, frame: bytes | bytearray) -> Any:
    return decode_response(ApiKey.FETCH, version, memoryview(frame))[1]


def _frame(version: int, *, diverging: bool = False) -> bytes:
    """Two partitions of a topic, the second one empty."""
    make: Any = response_of(ApiKey.FETCH)
    row = make.FetchableTopicResponse.PartitionData
    cut = row.EpochEndOffset(epoch=3, end_offset=41) if diverging else None
    partitions = [
        row(
            partition_index=5,
            error_code=0,
            high_watermark=90,
            last_stable_offset=80,
            log_start_offset=10,
            aborted_transactions=[row.AbortedTransaction(producer_id=1, first_offset=20)],
            preferred_read_replica=2,
            records=b"some records",
            **({"diverging_epoch": cut} if cut else {}),
        ),
        row(
            partition_index=6,
            error_code=6,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            preferred_read_replica=-1,
            records=None,
        ),
    ]
    topic = make.FetchableTopicResponse(topic=NAME, topic_id=ID, partitions=partitions)
    body = make(throttle_time_ms=0, error_code=0, session_id=77, responses=[topic])
    return bytes(encode_response(ApiKey.FETCH, version, 4, body))[4:]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read_as_it_was_written(version: int) -> None:
    answer = _read(version, _frame(version))
    topic = ID if version >= 13 else NAME
    replica = 2 if version >= 11 else -1
    start = 10 if version >= 5 else -1
    aborted = (AbortedTransaction(1, 20),)
    full = FetchedPartition(0, 90, 80, start, b"some records", aborted, preferred_replica=replica)
    assert answer.session_id == (77 if version >= 7 else 0)
    assert list(fetched_rows(answer)) == [(topic, 5, full), (topic, 6, FetchedPartition(6, -1, -1, -1, b""))]


@pytest.mark.parametrize("version", [12, 16])
def test_where_a_log_was_cut_is_read_from_the_tagged_fields(version: int) -> None:
    rows = fetched_rows(_read(version, _frame(version, diverging=True)))
    assert [fetched.diverging_offset for _, _, fetched in rows] == [41, -1]


def test_records_are_not_copied() -> None:
    frame = bytearray(_frame(16))
    ((_, _, fetched), _) = fetched_rows(_read(16, frame))
    frame[frame.index(b"some")] = ord("S")
    assert fetched.records == b"Some records"


@pytest.mark.parametrize("version", [4, 11, 12, 16])
def test_an_answer_that_is_cut_short_is_malformed_wherever_it_ends(version: int) -> None:
    frame = _frame(version, diverging=version >= 12)
    for size in range(len(frame)):
        with pytest.raises(MalformedMessageError):
            _read(version, frame[:size])


def test_negative_lengths_and_endless_numbers_are_malformed() -> None:
    frame = bytearray(_frame(11))
    at = frame.index(NAME.encode()) - 2
    frame[at : at + 2] = b"\xff\xf0"
    with pytest.raises(MalformedMessageError):
        _read(11, frame)
    with pytest.raises(MalformedMessageError):
        _read(12, b"\x00\x00\x00\x04" + b"\xff" * 20)
