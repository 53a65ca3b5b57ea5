"""Share groups in a cluster: share partitions and share coordinators move, with their brokers or without.

Covers: broker/replicas/replicas.py, broker/share/led_partition.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from kohort.protocol import ApiKey, ErrorCode, SharePartitionKey
from kohort.testing import RunningCluster, running_cluster
from tests.broker.apis.share_members import ACCEPT, ShareMember, acquired, initialize
from tests.broker.wire import Wire

STATES = "__share_group_state"


@contextmanager
def sharing(count: int = 3) -> Iterator[tuple[RunningCluster, UUID]]:
    """A cluster with three records in a topic ``t``, of which the group ``g`` has read nothing yet."""
    with running_cluster(count, share_coordinator_state_topic_num_partitions=1) as nodes:
        nodes.create_topic("t")
        nodes.produce("t", range(3))
        with Wire(nodes.brokers[1].bootstrap) as wire:
            (topic,) = wire.call(ApiKey.METADATA, 12, topics=[{"name": "t", "topic_id": None}]).topics
            key = str(SharePartitionKey("g", topic.topic_id, 0))
            wire.call(ApiKey.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=[key])
        nodes.wait_in_sync(STATES)
        with Wire(nodes.brokers[nodes.leader_of(STATES)].bootstrap) as wire:
            initialize(wire, "g", topic.topic_id, 0, start=0)
        yield nodes, topic.topic_id


def end_unheard(nodes: RunningCluster, number: int, topic: str, partition: int = 0) -> None:
    """End the session of a broker that is cut off, once it doubts whether it leads a partition: a session
    lasts longer. As with ZooKeeper, the broker does not hear of the end.
    """
    thread = nodes._threads[number]

    async def is_in_doubt() -> bool:
        node = thread.broker._require_running().node
        return node.shares.may_be_replaced(node.logs.partition(topic, partition))

    nodes._eventually(lambda: asyncio.run_coroutine_threadsafe(is_in_doubt(), thread.loop).result(10) or None)
    store = nodes._stores[number]
    with nodes._home.lock:
        nodes._home.sessions.remove(store)
        nodes._home.drop_owned(store)
    nodes._wait_until_missed(number)


def test_a_leader_that_is_cut_off_gives_nothing_that_its_successor_may_have_given() -> None:
    with sharing() as (nodes, topic_id):
        first = nodes.leader_of("t")
        with ShareMember(nodes.brokers[first].bootstrap, "g", "before") as before:
            row = before.fetch(topic_id, 0, max_records=1, share_acquire_mode=1)
            assert acquired(row) == [(0, 0, 1)]
            nodes.cut_off(first)
            end_unheard(nodes, first, "t")
            second = nodes.brokers[nodes.leader_of("t")]
            with ShareMember(second.bootstrap, "g", "after") as after:
                assert acquired(after.fetch(topic_id, 0)) == [(0, 2, 1)]
                row = after.fetch(said={0: [(0, 2, [ACCEPT])]}, topic_id=topic_id, max_wait_ms=0)
                assert row.acknowledge_error_code == 0
                # it has two more in memory, and has not heard that it leads no more
                row = before.fetch(max_wait_ms=500)
                assert (acquired(row), row.error_code) == ([], ErrorCode.NOT_LEADER_OR_FOLLOWER)
