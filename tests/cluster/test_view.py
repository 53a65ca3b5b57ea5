"""The image that is made of a cluster's entries, and how it follows them."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.cluster import (
    BrokerRegistration,
    Change,
    ClusterView,
    Create,
    Delete,
    PartitionState,
    Put,
    TopicAssignment,
    TopicDeletion,
    deleted_topic_path,
    topic_path,
)
from kohort.cluster.layout import (
    CLUSTER_ID,
    CONTROLLER,
    broker_path,
    states_path,
    stored_broker,
    stored_configs,
    stored_controller,
    stored_states,
    topic_config_path,
)
from kohort.testing.memory_store import MemoryHome, MemoryStore
from tests.cluster.servers import ZooKeeper, until

A, B = UUID(int=10), UUID(int=11)
LED = PartitionState(1, 0, (1, 2), ())


async def broker(store: MemoryStore, node_id: int, rack: str | None = None) -> None:
    value = stored_broker(BrokerRegistration(node_id, rack), 0)
    await store.commit(Create(broker_path(node_id), value, ephemeral=True))


def creation(name: str, topic_id: UUID, *replicas: tuple[int, ...]) -> Create:
    return Create(topic_path(name), TopicAssignment(topic_id, replicas).to_document())


def deletion(name: str, topic_id: UUID, *brokers: int) -> Create:
    return Create(deleted_topic_path(topic_id), TopicDeletion(name, frozenset(brokers)).to_document())


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryHome().open()
    await store.commit(Create(CLUSTER_ID, {"version": "1", "id": "the-cluster"}))
    return store


async def test_an_image_has_what_is_there(store: MemoryStore) -> None:
    await broker(store, 1, "a")
    await store.commit(Create(CONTROLLER, stored_controller(1, 0)))
    await store.commit(
        creation("orders", A, (1, 2), (2, 1)),
        Create(topic_config_path("orders"), stored_configs({"retention.ms": "5"})),
        Create(states_path(0), stored_states({(A, 0): LED})),
    )
    image = ClusterView(store).image
    assert (image.cluster_id, image.controller_id) == ("the-cluster", 1)
    assert image.brokers == {1: BrokerRegistration(1, "a", epoch=2)}
    orders = image.topic("orders")
    assert orders is not None
    assert orders is image.topic_by_id(A)
    assert orders.configs == {"retention.ms": "5"}
    assert orders.partitions == (
        PartitionState(1, 0, (1, 2), (1, 2), offline=(2,)),
        PartitionState(-1, -1, (), (2, 1), offline=(2,)),
    )


async def test_an_image_follows_each_change_and_tells_it_once(store: MemoryStore) -> None:
    told: list[int] = []
    view = ClusterView(store, lambda: told.append(1))
    first = view.image
    await store.commit(
        creation("orders", A, (1, 2)),
        creation("clicks", B, (2,)),
        Create(states_path(0), stored_states({(A, 0): LED, (B, 0): LED._replace(leader=2)})),
    )
    assert (len(told), view.image.topics()[0].name, first.topics()) == (1, "clicks", [])
    clicks = view.image.topic("clicks")
    await store.commit(Put(states_path(0), stored_states({(A, 0): LED._replace(leader=2)})))
    await store.commit(Put(states_path(0), stored_states({(A, 0): LED._replace(leader=5)})))
    assert len(told) == 2
    image = view.image
    orders = image.topic("orders")
    assert orders is not None
    assert orders.partitions[0].leader == 5
    assert image.topic("clicks") is clicks, "its state is merely missing"
    assert view.unstored() == [clicks]
    await store.commit(Put(states_path(0), stored_states({(A, 0): LED._replace(leader=2)})))
    assert view.image.topic("clicks") is image.topic("clicks"), "it has not changed"
    await broker(store, 2)
    orders = view.image.topic("orders")
    assert orders is not None
    assert orders.partitions[0].offline == (1,)
    await store.commit(Put(topic_path("orders"), TopicAssignment(A, ((1, 2), (2, 1))).to_document()))
    await store.commit(Create(topic_config_path("orders"), stored_configs({"a": "b"})))
    orders = view.image.topic("orders")
    assert orders is not None
    assert (len(orders.partitions), orders.configs) == (2, {"a": "b"})
    await store.commit(Delete(topic_path("orders")), deletion("orders", A, 1), Delete(broker_path(2)))
    assert (view.image.topic("orders"), view.image.topic_by_id(A), view.image.brokers) == (None, None, {})


async def test_an_image_without_a_cluster_id_keeps_what_it_has() -> None:
    store = MemoryHome().open()
    view = ClusterView(store)
    await broker(store, 1)
    assert list(view.image.brokers) == [1]
    await store.commit(creation("orders", A, (1,)))
    assert (list(view.image.brokers), view.image.cluster_id) == ([1], "")
    await store.commit(Create(CLUSTER_ID, {"version": "1", "id": "c"}), creation("clicks", B, (1,)))
    assert (len(view.image.topics()), view.image.cluster_id) == (2, "c")


async def test_a_topic_that_was_made_anew_is_another(store: MemoryStore) -> None:
    view = ClusterView(store)
    await store.commit(creation("orders", A, (1,)))
    assert view.image.topic_by_id(A) is not None
    await store.commit(Delete(topic_path("orders")), deletion("orders", A, 1), creation("orders", B, (1,)))
    image = view.image
    assert image.topic_by_id(A) is None
    assert image.topic("orders") is image.topic_by_id(B) is not None


async def test_a_partition_may_go_to_another_entry(store: MemoryStore) -> None:
    await store.commit(
        creation("orders", A, (1,)),
        Create(states_path(0), stored_states({(A, 0): LED})),
        Create(states_path(1), stored_states({})),
    )
    view = ClusterView(store)
    for there, here in ((0, 1), (1, 0)):
        assert view.image.topic("orders") is not None
        assert [number for number, states in view.entries().items() if (A, 0) in states] == [there]
        await store.commit(
            Put(states_path(there), stored_states({})),
            Put(states_path(here), stored_states({(A, 0): LED})),
        )
        orders = view.image.topic("orders")
        assert orders is not None
        assert orders.partitions[0].leader == 1
        assert [number for number, states in view.entries().items() if (A, 0) in states] == [here]


async def test_entries_that_cannot_be_read_change_nothing(store: MemoryStore) -> None:
    await store.commit(creation("orders", A, (1,)), Create(states_path(0), stored_states({(A, 0): LED})))
    view = ClusterView(store)
    before = view.image.topic("orders")
    await store.commit(
        Put(topic_path("orders"), {"partitions": 1}),
        Put(states_path(0), {"topics": {"?": {"0": {}}}}),
        Create(broker_path(1), {}),
        Create("/brokers/ids/x", {}),
        Create("/kohort/partitions/x", {}),
    )
    assert view.image.topic("orders") is before
    assert view.unstored() == [before], "it is written again"
    assert view.image.brokers == {}


async def test_an_image_follows_zookeeper(zookeeper: ZooKeeper) -> None:
    home = zookeeper.home()
    writer, reader = await home(), await home()
    view = ClusterView(reader)
    await writer.commit(
        creation("orders", A, (1,)),
        Create(states_path(0), stored_states({(A, 0): LED})),
    )
    await until(lambda: view.image.topic("orders") is not None)
    orders = view.image.topic("orders")
    assert orders is not None
    assert orders.partitions[0].leader == 1, "both are of one step"
    for epoch in range(1, 30):
        await writer.commit(Put(states_path(0), stored_states({(A, 0): LED._replace(leader_epoch=epoch)})))

    def epoch_seen() -> int:
        topic = view.image.topic("orders")
        assert topic is not None
        return topic.partitions[0].leader_epoch

    await until(lambda: epoch_seen() == 29)
    writer.close()
    reader.close()


async def stored_orders(store: MemoryStore) -> None:
    """A topic with two partitions, a config and states that have changed once."""
    later = LED._replace(leader_epoch=1, partition_epoch=3)
    await store.commit(
        creation("orders", A, (1, 2), (2, 1)),
        Create(topic_config_path("orders"), stored_configs({"retention.ms": "5"})),
        Create(states_path(0), stored_states({(A, 0): later, (A, 1): later})),
    )


OLDER = stored_states({(A, number): LED._replace(partition_epoch=1) for number in range(2)})

#: What happens to entries although nobody deletes the topic.
LOSSES = {
    "its entry is gone": [Delete(topic_path("orders"))],
    "its states are gone": [Delete(states_path(0))],
    "everything is gone": [
        Delete(topic_path("orders")),
        Delete(topic_config_path("orders")),
        Delete(states_path(0)),
    ],
    "its states are of an older copy": [Put(states_path(0), OLDER)],
    "its entry is of an older copy, with fewer partitions": [
        Put(topic_path("orders"), TopicAssignment(A, ((1, 2),)).to_document()),
        Put(states_path(0), stored_states({(A, 0): LED})),
    ],
    "its entry is of an older copy, with other replicas": [
        Put(topic_path("orders"), TopicAssignment(A, ((3, 2), (2, 1))).to_document())
    ],
    "its entry is of an older topic of its name": [
        Put(topic_path("orders"), TopicAssignment(B, ((3,),)).to_document()),
        Put(topic_config_path("orders"), stored_configs({"retention.ms": "7"})),
    ],
    "its configs are gone": [Delete(topic_config_path("orders"))],
}


@pytest.mark.parametrize("changes", LOSSES.values(), ids=LOSSES)
async def test_what_nobody_has_deleted_stays_in_the_image(store: MemoryStore, changes: list[Change]) -> None:
    await stored_orders(store)
    view = ClusterView(store)
    before = view.image.topic("orders")
    assert before is not None
    assert not view.unstored()
    await store.commit(*changes)
    after = view.image.topic("orders")
    assert after is not None
    assert (after.id, after.partitions, after.configs) == (A, before.partitions, before.configs)
    assert [topic.name for topic in view.unstored()] == ["orders"]


async def test_configs_that_were_reset_are_no_loss(store: MemoryStore) -> None:
    await stored_orders(store)
    view = ClusterView(store)
    _ = view.image
    await store.commit(Put(topic_config_path("orders"), stored_configs({})))
    after = view.image.topic("orders")
    assert after is not None
    assert (after.configs, view.unstored()) == ({}, [])


async def test_a_topic_whose_entry_is_gone_follows_its_states(store: MemoryStore) -> None:
    await stored_orders(store)
    view = ClusterView(store)
    _ = view.image
    newer = LED._replace(leader=2, leader_epoch=2, partition_epoch=4)
    await store.commit(Delete(topic_path("orders")))
    await store.commit(Put(states_path(0), stored_states({(A, 0): newer})))
    after = view.image.topic("orders")
    assert after is not None
    assert [state.leader for state in after.partitions] == [2, 1]


async def test_a_deletion_that_is_noted_removes_the_topic_and_its_note_remains(store: MemoryStore) -> None:
    await stored_orders(store)
    view = ClusterView(store)
    _ = view.image
    await store.commit(Delete(topic_path("orders")))
    assert view.image.topic("orders") is not None
    await store.commit(deletion("orders", A, 1, 2))
    assert view.image.topic("orders") is None
    assert view.image.deletions == {A: frozenset({1, 2})}
    assert not view.unstored()
    await store.commit(Delete(deleted_topic_path(A)))
    assert view.image.deletions == {}


async def test_after_forgetting_the_image_is_what_the_store_has(store: MemoryStore) -> None:
    await stored_orders(store)
    view = ClusterView(store)
    _ = view.image
    await store.commit(Delete(topic_path("orders")))
    assert view.image.topic("orders") is not None
    view.forget()
    assert view.image.topic("orders") is None
    assert not view.unstored()


async def test_another_clusters_entries_are_not_followed(store: MemoryStore) -> None:
    await stored_orders(store)
    view = ClusterView(store)
    _ = view.image
    await store.commit(Delete(CLUSTER_ID), Delete(topic_path("orders")))
    assert view.image.cluster_id == "the-cluster"
    await store.commit(Create(CLUSTER_ID, {"version": "1", "id": "another"}), deletion("orders", A, 1))
    assert view.is_foreign
    assert view.image.topic("orders") is not None


async def test_only_what_has_changed_is_parsed_and_replaced(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for node_id in (1, 2, 3):
        await broker(store, node_id)
    await store.commit(creation("a", A, (1, 2)), creation("b", B, (1, 3)))
    await store.commit(Create(states_path(0), stored_states({(A, 0): LED, (B, 0): LED})))
    view = ClusterView(store)
    before = view.image
    parsed: list[str] = []
    parse = TopicAssignment.parse

    def noted(value: dict[str, str]) -> TopicAssignment:
        parsed.append(value["topic_id"])
        return parse(value)

    monkeypatch.setattr(TopicAssignment, "parse", noted)
    await store.commit(Delete(broker_path(3)))
    image = view.image
    assert [state.offline for topic in image.topics() for state in topic.partitions] == [(), (3,)]
    assert image.topic("a") is before.topic("a")
    # a state that was decided anew
    moved = LED._replace(leader=2, leader_epoch=1, partition_epoch=1)
    await store.commit(Put(states_path(0), stored_states({(A, 0): moved, (B, 0): LED})))
    after = view.image
    assert [topic.partitions[0].leader for topic in after.topics()] == [2, 1]
    assert after.topic("b") is image.topic("b")
    assert parsed == []
    # another assignment
    await store.commit(
        Put(topic_path("b"), TopicAssignment(B, ((1, 2),)).to_document()),
        Put(states_path(0), stored_states({(A, 0): moved, (B, 0): LED._replace(partition_epoch=1)})),
    )
    assert [topic.partitions[0].replicas for topic in view.image.topics()] == [(1, 2), (1, 2)]
    assert len(parsed) == 1


async def test_a_topic_that_the_store_lacks_has_the_offline_replicas_of_now(store: MemoryStore) -> None:
    await broker(store, 1)
    await store.commit(creation("orders", A, (1, 2)), Create(states_path(0), stored_states({(A, 0): LED})))
    view = ClusterView(store)
    assert view.image.topic("orders") is not None
    await store.commit(Delete(topic_path("orders")))
    assert view.image.topic("orders") is not None
    [lacked] = view.unstored()
    assert lacked.partitions[0].offline == (2,)
    await broker(store, 2)
    assert [view.image.topic("orders")] == view.unstored()
    assert view.unstored()[0].partitions[0].offline == ()
