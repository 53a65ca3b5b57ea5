"""Values of a cluster's entries: those of Apache Kafka's ZooKeeper layout, as it writes them."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cluster import BrokerRegistration, Endpoint, PartitionState, TopicAssignment
from kohort.cluster.layout import (
    id_text,
    parse_broker,
    parse_id,
    parse_states,
    stored_broker,
    stored_configs,
    stored_controller,
    stored_states,
)

ID = UUID("41dae7d6-c3c3-4b12-a30a-31d5e8c0d78c")

#: As Apache Kafka 3.9 writes them.
BROKER = """{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","TLS":"SSL"},
"endpoints":["PLAINTEXT://one.example:9092","TLS://[::1]:9093"],"jmx_port":-1,"port":9092,"host":"one.example",
"version":5,"timestamp":"1700000000000","rack":"a"}"""
TOPIC = """{"removing_replicas":{"1":[3]},"partitions":{"1":[2,1,3],"0":[1,2]},
"topic_id":"Qdrn1sPDSxKjCjHV6MDXjA","adding_replicas":{"1":[2]},"version":3}"""


def test_a_brokers_entry_is_that_of_kafka() -> None:
    endpoints = (
        Endpoint("PLAINTEXT", "PLAINTEXT", "one.example", 9092),
        Endpoint("TLS", "SSL", "[::1]", 9093),
    )
    broker = BrokerRegistration(1, "a", 77, endpoints)
    assert stored_broker(broker, 1_700_000_000_000) == json.loads(BROKER)
    assert parse_broker(1, json.loads(BROKER), 77) == broker
    damaged = frozenset({(UUID(int=7), 0), (UUID(int=7), 3), (UUID(int=8), 1)})
    leaving = BrokerRegistration(1, endpoints=endpoints, shutting_down=True, damaged=damaged, lost=damaged)
    assert parse_broker(1, stored_broker(leaving, 0), -1) == leaving


def test_a_topics_entry_is_that_of_kafka() -> None:
    topic = TopicAssignment(ID, ((1, 2), (2, 1, 3)), {1: (2,)}, {1: (3,)})
    assert topic.to_document() == json.loads(TOPIC)
    assert TopicAssignment.parse(json.loads(TOPIC)) == topic
    states = [
        PartitionState(1, 0, (1,), (1, 2)),
        PartitionState(2, 0, (2,), (2, 1, 3), adding=(2,), removing=(3,)),
    ]
    assert TopicAssignment.of(ID, states) == topic


def test_the_controllers_entry_and_configs_are_those_of_kafka() -> None:
    assert stored_controller(2, 1_700_000_000_000) == json.loads(
        '{"version":2,"brokerid":2,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
    )
    assert stored_configs({"retention.ms": "5"}) == json.loads('{"version":1,"config":{"retention.ms":"5"}}')


@given(st.uuids())
def test_a_topic_id_is_read_as_it_was_written(topic_id: UUID) -> None:
    assert parse_id(id_text(topic_id)) == topic_id
    assert len(id_text(topic_id)) == 22


def test_states_are_read_as_they_were_written_without_replicas() -> None:
    states = {
        (ID, 0): PartitionState(1, 5, (1, 2), (), partition_epoch=9),
        (ID, 1): PartitionState(-1, 6, (3,), (), partition_epoch=4, recovering=True),
        (UUID(int=1), 700): PartitionState(2, 0, (2,), ()),
    }
    assert parse_states(json.loads(json.dumps(stored_states(states)))) == states


@pytest.mark.parametrize(
    "value", [{}, {"topics": {"x": {}, "Qdrn1sPDSxKjCjHV6MDXjA": {"0": {}}}}, {"topics": {"x": {"0": {}}}}]
)
def test_what_is_no_entry_of_states_is_refused(value: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        parse_states(value)
