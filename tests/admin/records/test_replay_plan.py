"""Replays that are planned, and executed as planned or not at all, on any cluster.

Covers: admin/records/letter_topics.py, admin/records/letters.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kohort.admin.records import replay_plan
from kohort.admin.records.letters import LetterFilter
from kohort.admin.records.replay_plan import PlanChangedError, ReplayChoice, execute_plan, plan_replay
from kohort.client import Cluster, ConfigError
from kohort.consumer import Record
from kohort.producer import Producer
from kohort.protocol import TopicPartition
from kohort.service.letters.deadletter import error_headers

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]


@pytest.fixture
def aside(bootstrap: str, new_topic: Topics) -> tuple[str, str]:
    """A topic of orders, and three letters that come from its partition 1: KeyError, ValueError, KeyError."""
    orders, letters = new_topic("orders", partitions=2), new_topic("letters", partitions=1)
    asyncio.run(write(bootstrap, orders, letters, KeyError("a"), ValueError("b"), KeyError("c")))
    return orders, letters


async def write(bootstrap: str, orders: str, letters: str, *errors: BaseException) -> None:
    """Write letters of these errors, from offsets of partition 1 of ``orders`` that begin with 0."""
    async with Producer(bootstrap=bootstrap) as producer:
        for offset, error in enumerate(errors):
            record = Record(orders, 1, offset, 1_700_000_000_000, b"key", b"%d" % offset)
            headers = error_headers(record, error, 2, "billing")
            await producer.send_and_wait(letters, record.value, record.key, headers=headers)


async def execute(bootstrap: str, choice: ReplayChoice) -> dict[str, int]:
    """Plan and execute a replay."""
    async with Cluster(bootstrap) as cluster:
        plan, _ = await plan_replay(cluster, choice, 20)
        return dict(await execute_plan(cluster, {"bootstrap": bootstrap}, plan, 20))


def test_a_plan_says_what_would_go_where(bootstrap: str, aside: tuple[str, str]) -> None:
    orders, letters = aside

    async def plan(**more: object) -> list[tuple[str, str, int | None]]:
        async with Cluster(bootstrap) as cluster:
            made, _ = await plan_replay(cluster, ReplayChoice(letters, **more), 20)  # type: ignore[arg-type]
        return [(row.place, row.topic, row.partition) for row in made.rows]

    assert asyncio.run(plan()) == [(f"{letters}-0@{offset}", orders, 1) for offset in range(3)]
    assert asyncio.run(plan(wanted=LetterFilter(error="*.ValueError"))) == [(f"{letters}-0@1", orders, 1)]
    assert asyncio.run(plan(wanted=LetterFilter(group="other"))) == []
    places = {TopicPartition(letters, 0): frozenset((2, 9)), TopicPartition("other", 0): frozenset((0,))}
    assert asyncio.run(plan(places=places)) == [(f"{letters}-0@2", orders, 1)]
    assert asyncio.run(plan(to=orders)) == [(f"{letters}-0@{offset}", orders, None) for offset in range(3)]
    with pytest.raises(ConfigError, match="a loop"):
        asyncio.run(plan(to=letters))


def test_all_letters_are_replayed_once_and_chosen_ones_as_often_as_they_are_planned(
    bootstrap: str, aside: tuple[str, str]
) -> None:
    orders, letters = aside
    everything = ReplayChoice(letters)
    assert asyncio.run(execute(bootstrap, everything)) == {orders: 3}
    assert asyncio.run(execute(bootstrap, everything)) == {}
    chosen = ReplayChoice(letters, places={TopicPartition(letters, 0): frozenset((0, 2))})
    for _ in range(2):
        assert asyncio.run(execute(bootstrap, chosen)) == {orders: 2}


def test_of_two_replays_that_were_planned_before_either_was_executed_one_is_refused(
    bootstrap: str, aside: tuple[str, str]
) -> None:
    orders, letters = aside

    async def execute_both() -> None:
        async with Cluster(bootstrap) as cluster:
            first, _ = await plan_replay(cluster, ReplayChoice(letters), 20)
            second, _ = await plan_replay(cluster, ReplayChoice(letters), 20)
            assert await execute_plan(cluster, {"bootstrap": bootstrap}, first, 20) == {orders: 3}
            with pytest.raises(PlanChangedError, match="nothing was written"):
                await execute_plan(cluster, {"bootstrap": bootstrap}, second, 20)

    asyncio.run(execute_both())


@pytest.mark.parametrize(("name", "most"), [("MOST_PLANNED", 2), ("MOST_PLANNED_BYTES", 100)])
def test_more_letters_than_fit_into_memory_are_refused(
    bootstrap: str, aside: tuple[str, str], monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(replay_plan, name, most)
    with pytest.raises(ConfigError, match="choose fewer"):
        asyncio.run(execute(bootstrap, ReplayChoice(aside[1])))
