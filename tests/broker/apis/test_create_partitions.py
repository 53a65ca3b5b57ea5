"""CreatePartitions: more partitions for a topic, or the reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, batch, create_topic, part, produce


def ask(
    wire: Wire,
    name: str,
    count: int,
    *,
    brokers: list[list[int]] | None = None,
    version: int = 3,
    validate_only: bool = False,
) -> Any:
    assignments = (
        None
        if brokers is None
        else [
            part(
                ApiKey.CREATE_PARTITIONS,
                version,
                "CreatePartitionsTopic",
                "CreatePartitionsAssignment",
                broker_ids=ids,
            )
            for ids in brokers
        ]
    )
    wanted = part(
        ApiKey.CREATE_PARTITIONS,
        version,
        "CreatePartitionsTopic",
        name=name,
        count=count,
        assignments=assignments,
    )
    answer = wire.call(
        ApiKey.CREATE_PARTITIONS, version, topics=[wanted], timeout_ms=1_000, validate_only=validate_only
    )
    return answer.results[0]


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_can_be_written(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, 2)
    produce(wire, name, batch())
    assert produce(wire, name, batch(), partition=4).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(wire, name, 5, version=version).error_code == 0
    assert produce(wire, name, batch(), partition=4).error_code == 0
    assert produce(wire, name, batch()).base_offset == 1


def test_a_check_adds_nothing(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert ask(wire, name, 9, validate_only=True).error_code == 0
    assert ask(wire, name, 2).error_code == 0


def test_assignments_to_this_broker(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert ask(wire, name, 3, brokers=[[1], [1]]).error_code == 0


@pytest.mark.parametrize(
    ("count", "brokers", "code"),
    [
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[5]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1], [1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_refused(
    wire: Wire, name: str, count: int, brokers: list[list[int]] | None, code: ErrorCode
) -> None:
    create_topic(wire, name, 2)
    refused = ask(wire, name, count, brokers=brokers)
    assert refused.error_code == code
    assert refused.error_message
    assert code.name not in refused.error_message, "clients put the code in front themselves"


def test_an_unknown_topic(wire: Wire, name: str) -> None:
    assert ask(wire, name, 3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_asked_for_twice_is_refused(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    twice = [
        part(ApiKey.CREATE_PARTITIONS, 3, "CreatePartitionsTopic", name=name, count=count, assignments=None)
        for count in (2, 3)
    ]
    answer = wire.call(ApiKey.CREATE_PARTITIONS, 3, topics=twice, timeout_ms=1_000, validate_only=False)
    assert [one.error_code for one in answer.results] == [ErrorCode.INVALID_REQUEST]
