"""Brokers of a cluster record the groups that they coordinate: together they tell a group's past."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kohort.admin import GroupAdmin, GroupHistory, TimeStretch
from kohort.consumer import AsyncGroupConsumer
from tests.admin.conftest import stable
from tests.broker.clusters import Nodes, cluster


async def rebalance(nodes: Nodes) -> int:
    """A member comes and goes; return the broker that coordinates the group."""
    async with GroupAdmin(nodes.bootstrap(), timeout_ms=60_000) as admin:
        async with AsyncGroupConsumer(
            "orders", bootstrap=nodes.bootstrap(), group="billing", default_api_timeout_ms=60_000
        ):
            await stable(admin, "billing", 1)
            found = await admin.describe(["billing"])
        return found["billing"].coordinator.node_id


async def past_of(nodes: Nodes, generations: int) -> GroupHistory:
    """The recorded past, once it has so many generations: the last events are written a moment later."""
    async with asyncio.timeout(60), GroupAdmin(nodes.bootstrap(), timeout_ms=60_000) as admin:
        while True:
            history = await admin.history("billing", 100, stretch=TimeStretch())
            if sum(row.cause is not None for row in history.generations) >= generations:
                return history


def test_a_group_that_has_moved_has_the_past_of_both_coordinators(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, group_initial_rebalance_delay_ms=0) as nodes:
            await nodes.create("orders")
            first = await rebalance(nodes)
            before = (await past_of(nodes, 2)).generations
            await nodes.brokers.pop(first).stop()
            second = await rebalance(nodes)
            assert second != first
            # what the first has recorded is in its folder, and told when it is back
            await nodes.start(first)
            both = await past_of(nodes, len(before) + 1)
            causes = [row.cause for row in both.generations]
            assert causes[: len(before)] == [row.cause for row in before]
            numbers = [row.generation for row in both.generations]
            assert numbers == list(range(1, len(numbers) + 1))
            # between the two nobody recorded, and nothing can have happened
            assert any("nobody recorded this group" in words for words in both.unknown)
            assert not both.gaps

    asyncio.run(run())
