"""What a client knows of a cluster: addresses as users write them, leader epochs that never go back."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kohort.client.metadata import Address, ClusterMetadata, parse_bootstrap
from kohort.protocol import ApiKey, TopicPartition
from tests.messages import response_of

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a", [("a", 9092)]),
        ("a:1, b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "[::1]:5"], [("a", 1), ("::1", 5)]),
        ("[fe80::1]", [("fe80::1", 9092)]),
    ],
)
def test_addresses_are_read_as_users_write_them(text: Any, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


def test_an_address_is_shown_as_it_is_written() -> None:
    assert [str(Address("a", 1)), str(Address("::1", 5))] == ["a:1", "[::1]:5"]


def test_a_broker_that_lags_does_not_set_leader_epochs_back() -> None:
    first, second = uuid.uuid4(), uuid.uuid4()
    state = ClusterMetadata().update_from(_metadata(first, leader=1, epoch=7), None)
    assert state.update_from(_metadata(first, leader=2, epoch=6), None).leader(ORDERS) == 1
    assert state.update_from(_metadata(first, leader=2, epoch=8), None).leader(ORDERS) == 2
    # another topic of the same name begins anew, and a broker that does not say is believed
    assert state.update_from(_metadata(second, leader=2, epoch=0), None).leader_epoch(ORDERS) == 0
    assert state.update_from(_metadata(first, leader=2, epoch=-1), None).leader(ORDERS) == 2


def test_a_partition_that_is_as_it_was_is_not_made_anew() -> None:
    topic_id = uuid.uuid4()
    state = ClusterMetadata().update_from(_metadata(topic_id, leader=1, epoch=7), None)
    before = state.topics["orders"].partitions[0]
    same = state.update_from(_metadata(topic_id, leader=1, epoch=7), None)
    assert same.topics["orders"].partitions[0] is before
    moved = same.update_from(_metadata(topic_id, leader=2, epoch=8), None)
    assert (before.leader, moved.topics["orders"].partitions[0].leader) == (1, 2)


def _metadata(topic_id: Any, *, leader: int, epoch: int) -> Any:
    make = response_of(ApiKey.METADATA)
    topic = make.MetadataResponseTopic
    partition = topic.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2]
    )
    return make(
        brokers=[make.MetadataResponseBroker(node_id=n, host="h", port=n, rack=None) for n in (1, 2)],
        cluster_id="c",
        controller_id=1,
        topics=[
            topic(error_code=0, name="orders", topic_id=topic_id, is_internal=False, partitions=[partition])
        ],
    )
