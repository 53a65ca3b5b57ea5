"""Metadata answers are what kafka-python's classes write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import (
    APIS,
    ApiKey,
    MetadataPartition,
    MetadataPartitions,
    encode_response,
    metadata_answer,
    response_class,
)

VERSIONS = range(APIS[ApiKey.METADATA].min_version, APIS[ApiKey.METADATA].max_version + 1)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
nodes = st.lists(int32, max_size=3)
operations = st.none() | st.frozensets(st.integers(2, 13), max_size=5)
names = st.text(max_size=20)
rows = st.builds(MetadataPartition, int16, int32, int32, int32, nodes, nodes, nodes)


def built(make: Any, version: int, **fields: Any) -> Any:
    """A struct with those of the fields that its version has."""
    schema = make._struct.fields
    return make(version=version, **{k: v for k, v in fields.items() if schema[k].for_version_q(version)})


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, Any, list[list[MetadataPartition]]]:
    """A version, an answer of it, and the partitions of its topics."""
    version = draw(st.sampled_from(VERSIONS))
    made: Any = response_class(ApiKey.METADATA)
    partition = made.MetadataResponseTopic.MetadataResponsePartition
    partitions = draw(st.lists(st.lists(rows, max_size=3), max_size=3))

    topics = [
        built(
            made.MetadataResponseTopic,
            version,
            error_code=draw(int16),
            name=draw(names | st.none()) if version >= 12 else draw(names),
            topic_id=draw(st.uuids()),
            is_internal=draw(st.booleans()),
            partitions=[built(partition, version, **row._asdict()) for row in found],
            authorized_operations=draw(operations),
        )
        for found in partitions
    ]
    broker = built(
        made.MetadataResponseBroker,
        version,
        node_id=draw(int32),
        host=draw(names),
        port=draw(int32),
        rack=draw(names | st.none()),
    )
    body = built(
        made,
        version,
        throttle_time_ms=draw(int32),
        brokers=[broker] * draw(st.integers(0, 2)),
        cluster_id=draw(names | st.none()),
        controller_id=draw(int32),
        topics=topics,
        authorized_operations=draw(operations),
        error_code=draw(int16),
    )
    return version, body, partitions


@given(answer=answers(), correlation_id=int32)
def test_the_frame_is_the_reference_s(
    answer: tuple[int, Any, list[list[MetadataPartition]]], correlation_id: int
) -> None:
    version, body, partitions = answer
    expected = bytes(encode_response(ApiKey.METADATA, version, correlation_id, body))
    assert bytes(metadata_answer(version, correlation_id, body)) == expected
    for topic, found in zip(body.topics, partitions, strict=True):
        topic.partitions = MetadataPartitions(found)
    for _ in range(2):
        assert bytes(metadata_answer(version, correlation_id, body)) == expected


@pytest.mark.parametrize("errors", [[], [0, 0], [5, 0, 3]])
def test_partitions_with_an_error_can_be_counted(errors: list[int]) -> None:
    found = MetadataPartitions(
        [MetadataPartition(error, index, 1, 0, [1], [1], []) for index, error in enumerate(errors)]
    )
    assert [row.error_code for row in found] == [error for error in errors if error]
