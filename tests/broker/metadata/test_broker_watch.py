"""A broker that refuses connections, or does not answer the controller, while its session goes on.

Covers: broker/metadata/broker_watch.py.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from kohort.broker.metadata import broker_watch as _broker_watch
from kohort.broker.replicas import fetcher as _fetcher
from kohort.cluster.controller import NewTopic
from tests.broker.clusters import Nodes, cluster, in_sync


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_broker_watch, "_AGAIN_S", 0.01)
    monkeypatch.setattr(_broker_watch, "_LATER_S", 0.01)


def follower_of_the_controller(nodes: Nodes) -> int:
    image = nodes.any().topics.image
    return next(node_id for node_id in sorted(nodes.brokers) if node_id != image.controller_id)


def test_others_lead_for_a_killed_broker_before_its_session_ends_and_tell_of_it_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_fetcher, "_UNREACHABLE_S", 0.01)

    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders", 6)
            await in_sync(nodes)
            victim = follower_of_the_controller(nodes)
            caplog.clear()
            # nobody ends its session
            await nodes.brokers.pop(victim).kill()
            others = set(nodes.brokers)
            await nodes.until(
                lambda: all(
                    nodes.state("orders", n).leader in others and set(nodes.state("orders", n).isr) == others
                    for n in range(6)
                )
            )
            assert victim in nodes.any().topics.image.brokers
        assert caplog.text.count(f"broker {victim} cannot be followed") <= len(others)

    asyncio.run(run())


def test_a_broker_that_only_listens_no_more_keeps_what_nobody_else_can_lead_and_is_asked_back() -> None:
    async def run() -> None:
        async with cluster(2, min_insync_replicas=1) as nodes:
            victim = follower_of_the_controller(nodes)
            [other] = nodes.brokers.keys() - {victim}
            alone = NewTopic("alone", assignments=[[victim]])
            assert await nodes.any().topics.carry_out([alone]) == {}
            await nodes.create("orders", 4)
            await in_sync(nodes, count=2)
            server = nodes.brokers[victim]._require_running().server
            for acceptor in server.acceptors:
                acceptor.close()
            for connection in list(server._connections):
                connection.transport.abort()
            states = partial(map, partial(nodes.state, "orders", at=victim), range(4))
            await nodes.until(lambda: all(each.leader == other and each.isr == (other,) for each in states()))
            assert nodes.state("alone").leader == victim
            for acceptor in server.acceptors:
                await acceptor.listen(5)
                acceptor.start()
            await in_sync(nodes, count=2)

    asyncio.run(run())


def hang_at(nodes: Nodes, source: int, targets: set[int]) -> None:
    """Let nothing come back that a broker sends to these others, over connections of now and later ones."""
    part = nodes.brokers[source].cluster
    assert part is not None
    connect = part.connect

    async def open_or_hang(node_id: int) -> Any:
        if node_id in targets:
            await asyncio.Event().wait()
        return await connect(node_id)

    part.connect = part.control._connect = part.control._watch._connect = open_or_hang  # type: ignore[method-assign]
    # what is open is tried anew
    for task in part.control._watch._watching.values():
        task.cancel()
    part.control._watch._watching.clear()
    part.control.image_changed()


async def test_others_lead_for_a_broker_that_does_not_answer_the_controller() -> None:
    async with cluster(zookeeper_session_timeout_ms=300) as nodes:
        await nodes.create("orders", 3)
        await in_sync(nodes)
        controller = nodes.any().topics.image.controller_id
        victim = follower_of_the_controller(nodes)
        targets = {victim}
        hang_at(nodes, controller, targets)
        others = set(nodes.brokers) - targets
        await nodes.until(
            lambda: all(
                nodes.state("orders", n).leader in others and set(nodes.state("orders", n).isr) == others
                for n in range(3)
            )
        )
        assert nodes.any().topics.image.controller_id == controller
        targets.clear()
        await in_sync(nodes)


async def test_a_controller_that_most_brokers_do_not_answer_leaves_the_election_to_them() -> None:
    async with cluster(zookeeper_session_timeout_ms=300) as nodes:
        await nodes.create("orders", 3)
        await in_sync(nodes)
        former = nodes.any().topics.image.controller_id
        others = set(nodes.brokers) - {former}
        hang_at(nodes, former, others)
        for other in others:
            hang_at(nodes, other, {former})
        await nodes.until(
            lambda: (
                nodes.any().topics.image.controller_id in others
                and all(nodes.state("orders", n).leader in others for n in range(3))
            )
        )
