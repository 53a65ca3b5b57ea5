"""A broker's entry: under each session, and one broker a node id."""

from __future__ import annotations

import asyncio
import itertools
from uuid import UUID

import pytest

from kohort.cluster import (
    BrokerRegistration,
    ClusterView,
    Delete,
    Endpoint,
    Registration,
    WrongClusterError,
    shared_cluster_id,
)
from kohort.cluster._store import Change
from kohort.testing.memory_store import MemoryHome, MemoryStore
from tests.cluster.servers import ZooKeeper, until

ONE = BrokerRegistration(1, "a", endpoints=(Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092),))
_clock = itertools.count(1)


def registration(store: MemoryStore, broker: BrokerRegistration = ONE) -> Registration:
    return Registration(store, broker, lambda: next(_clock))


async def test_a_broker_is_there_until_its_session_ends_and_again_with_a_higher_epoch() -> None:
    home = MemoryHome()
    store, view = home.open(), ClusterView(home.open())
    broker = registration(store)
    first = await broker.register()
    assert view.image.brokers == {1: ONE._replace(epoch=first)}
    store.suspend()
    store.expire()
    assert (view.image.brokers, broker.epoch) == ({}, -1)
    store.resume()
    await until(lambda: broker.epoch > first)
    assert view.image.brokers == {1: ONE._replace(epoch=broker.epoch)}
    broker.close()
    store.close()
    assert view.image.brokers == {}


async def test_a_broker_whose_entry_somebody_removes_is_there_again_with_a_higher_epoch() -> None:
    home = MemoryHome()
    store, view = home.open(), ClusterView(home.open())
    broker = registration(store)
    first = await broker.register()
    await broker.shut_down()  # a change of its own is no removal
    assert broker.epoch == first
    for _ in range(2):
        epoch = broker.epoch
        await home.open().commit(Delete("/brokers/ids/1"))
        await until(lambda epoch=epoch: broker.epoch > epoch)  # type: ignore[misc]
        assert view.image.brokers == {1: ONE._replace(epoch=broker.epoch, shutting_down=True)}
    broker.close()


async def test_a_broker_waits_until_the_session_of_the_last_one_with_its_id_is_over() -> None:
    home = MemoryHome()
    old, new = home.open(), home.open()
    await registration(old).register()
    waiting = asyncio.create_task(registration(new).register())
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    old.expire()
    epoch = await waiting
    assert ClusterView(new).image.brokers == {1: ONE._replace(epoch=epoch)}


async def test_a_broker_that_is_about_to_stop_says_so() -> None:
    home = MemoryHome()
    store, view = home.open(), ClusterView(home.open())
    broker = registration(store)
    epoch = await broker.register()
    await broker.shut_down()
    assert view.image.brokers == {1: ONE._replace(epoch=epoch, shutting_down=True)}
    store.suspend()
    store.expire()
    store.resume()
    await until(lambda: broker.epoch > epoch)
    assert view.image.brokers[1].shutting_down


async def test_a_broker_names_its_damaged_replicas_until_they_are_damaged_no_more() -> None:
    home = MemoryHome()
    store, view = home.open(), ClusterView(home.open())
    broker = registration(store)
    damaged = frozenset({(UUID(int=1), 0)})
    broker.announce_damaged(damaged)
    epoch = await broker.register()
    assert view.image.brokers == {1: ONE._replace(epoch=epoch, damaged=damaged)}
    # while nothing can be written it is kept in mind
    store.suspend()
    broker.announce_damaged(more := damaged | {(UUID(int=2), 3)})
    store.resume()
    await until(lambda: view.image.brokers[1].damaged == more)
    await broker.shut_down()
    assert view.image.brokers[1] == ONE._replace(epoch=epoch, damaged=more, shutting_down=True)
    broker.announce_damaged(frozenset())
    await until(lambda: not view.image.brokers[1].damaged)
    assert view.image.brokers[1].shutting_down
    broker.close()


async def test_a_registration_that_may_have_been_made_is_looked_for(own_zookeeper: ZooKeeper) -> None:
    store = await own_zookeeper.home(20_000)()
    broker = Registration(store, ONE, lambda: next(_clock))
    await asyncio.to_thread(own_zookeeper.kill)
    registering = asyncio.create_task(broker.register())
    await asyncio.to_thread(own_zookeeper.again)
    epoch = await registering
    assert ClusterView(store).image.brokers == {1: ONE._replace(epoch=epoch)}
    store.close()


async def test_a_broker_registers_again_if_the_session_ends_before_it_knows_of_its_entry() -> None:
    home = MemoryHome()
    store = home.open()
    create, read = store.commit, store.get

    async def lose_the_answer(*changes: Change) -> None:
        await create(*changes)
        entry = read("/brokers/ids/1")
        store.suspend()
        store.expire()
        store.resume()
        # the store does not show yet that the entry has gone
        store.get = lambda path: entry if path == "/brokers/ids/1" else read(path)  # type: ignore[method-assign]
        store.commit = create_again  # type: ignore[method-assign]
        raise OSError("the connection broke")

    async def create_again(*changes: Change) -> None:
        store.get = read  # type: ignore[method-assign]
        await create(*changes)

    store.commit = lose_the_answer  # type: ignore[method-assign]
    epoch = await asyncio.wait_for(registration(store).register(), 5)
    assert ClusterView(home.open()).image.brokers == {1: ONE._replace(epoch=epoch)}


async def test_brokers_of_a_cluster_have_its_id() -> None:
    home = MemoryHome()
    found = await asyncio.gather(*(shared_cluster_id(home.open()) for _ in range(3)))
    assert len(set(found)) == 1
    assert await shared_cluster_id(home.open(), known=found[0]) == found[0]
    with pytest.raises(
        WrongClusterError, match=f"folder is of cluster other, the metadata store of cluster {found[0]}"
    ):
        await shared_cluster_id(home.open(), known="other")
    assert await shared_cluster_id(MemoryHome().open(), known="mine") == "mine"
