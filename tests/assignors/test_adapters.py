"""Assignors of kohort as kafka-python and aiokafka call them; groups: clients/test_mixed_assignors.py.

Covers: assignors/adapters.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocol
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kohort.assignors import Assignor, AssignorError, GroupAssignment, Member, TopicInfo
from kohort.assignors.adapters import for_aiokafka, for_kafka_python
from kohort.protocol import TopicPartition, decode_assignment, decode_subscription

CLUSTER = SimpleNamespace(partitions_for_topic={"orders": {0, 1, 2}}.get)
ORDERS = [TopicPartition("orders", number) for number in range(3)]


def rows(**subscriptions: bytes) -> list[Any]:
    """Members as kafka-python's leader has them."""
    return [
        SimpleNamespace(
            member_id=name, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data)
        )
        for name, data in subscriptions.items()
    ]


def shares(answer: Mapping[str, Any]) -> dict[str, list[TopicPartition]]:
    return {name: list(decode_assignment(given.encode()).partitions) for name, given in answer.items()}


def test_kafka_python_takes_it_for_one_of_its_own() -> None:
    adapted = for_kafka_python("cooperative-sticky")
    assert isinstance(adapted, AbstractPartitionAssignor)
    assert adapted.name == "cooperative-sticky"
    assert [int(each) for each in adapted.supported_protocols()] == [1]
    assert [int(each) for each in for_kafka_python("sticky").supported_protocols()] == [0]


def test_what_a_cooperative_member_owns_is_in_its_subscription() -> None:
    adapted = for_kafka_python("cooperative-sticky", rack="a")
    adapted.on_assignment(ConsumerProtocolAssignment(0, [("orders", [0, 2])], b""), 7)
    said = decode_subscription(adapted.metadata({"orders"}))
    assert (said.owned, said.generation, said.rack) == ((ORDERS[0], ORDERS[2]), 7, "a")
    eager = for_kafka_python("sticky")
    eager.on_assignment(ConsumerProtocolAssignment(0, [("orders", [0])], b""), 7)
    said = decode_subscription(eager.metadata({"orders"}))
    assert (said.owned, said.generation) == ((), -1)
    assert said.user_data


def test_a_partition_that_another_member_claims_is_not_given_away() -> None:
    leader, owner = for_kafka_python("cooperative-sticky"), for_kafka_python("cooperative-sticky")
    owner.on_assignment(ConsumerProtocolAssignment(0, [("orders", [0, 1, 2])], b""), 3)
    members = rows(a=leader.metadata({"orders"}), b=owner.metadata({"orders"}))
    answer = shares(leader.assign(CLUSTER, members))
    assert answer["a"] == []
    assert len(answer["b"]) == 2


def test_sticky_partitions_stay_where_aiokafka_had_them() -> None:
    leader, owner = for_aiokafka("sticky"), for_aiokafka("sticky")
    owner.on_assignment(ConsumerProtocol.ASSIGNMENT(0, [("orders", [2])], b""))
    told = {"a": leader.metadata(["orders"]), "b": owner.metadata(["orders"])}
    said = {name: ConsumerProtocol.METADATA.decode(data) for name, data in told.items()}
    answer = shares(leader.assign(CLUSTER, said))
    assert ORDERS[2] in answer["b"]
    assert sorted(answer["a"] + answer["b"]) == ORDERS


def test_a_topic_that_is_not_there_is_left_out() -> None:
    adapted = for_kafka_python("range")
    answer = shares(adapted.assign(CLUSTER, rows(a=adapted.metadata({"orders", "gone"}))))
    assert answer == {"a": ORDERS}


class Greedy(Assignor):
    name = "greedy"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        del topics
        return {name: list(ORDERS) for name in members}


@pytest.mark.parametrize("adapter", [for_kafka_python, for_aiokafka])
def test_an_answer_that_breaks_the_rules_does_not_go_out(adapter: Any) -> None:
    adapted = adapter(Greedy)
    data = adapted.metadata(["orders"])
    if adapter is for_kafka_python:
        members: Any = rows(a=data, b=data)
    else:
        members = {name: ConsumerProtocol.METADATA.decode(data) for name in "ab"}
    with pytest.raises(AssignorError, match=r"greedy: .*and 2 more problems"):
        adapted.assign(CLUSTER, members)


def test_aiokafka_gets_no_cooperative_assignor() -> None:
    with pytest.raises(AssignorError, match="cooperative-sticky: aiokafka does not tell"):
        for_aiokafka("cooperative-sticky")
    with pytest.raises(AssignorError, match="no assignor is named 'nope'"):
        for_aiokafka("nope")
