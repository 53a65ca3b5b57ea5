"""A model: sinks that go by keys, drivers killed anywhere, operators who reset and delete offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import TopicPartition
from kohort.spark._intent import intents_of, outcomes_of, positions_of
from kohort.spark._offsets import Bounds, Committed
from kohort.spark._plan import Limits, StartRules, plan_batch

PARTITIONS = tuple(TopicPartition("orders", number) for number in range(3))
Record = tuple[TopicPartition, int]
Killed = Literal["", "after the intent", "after the sink"]


@dataclass
class World:
    """``due`` are records that the sink has to get yet; a rewind makes them due again."""

    only_the_last_key: bool
    ends: dict[TopicPartition, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    committed: dict[TopicPartition, Committed] = field(default_factory=dict)
    reached: dict[TopicPartition, int] = field(default_factory=dict)
    next_number: int = 0
    keys: list[str] = field(default_factory=list)
    written: Counter[Record] = field(default_factory=Counter)
    due: set[Record] = field(default_factory=set)

    def produce(self, counts: Sequence[int]) -> None:
        for partition, count in zip(PARTITIONS, counts, strict=True):
            end = self.ends[partition]
            self.due |= {(partition, offset) for offset in range(end, end + count)}
            self.ends[partition] = end + count

    def batch(self, reading: Sequence[TopicPartition], limit: int, killed: Killed) -> bool:
        """One turn of a driver; whether there was something to read."""
        plan = plan_batch(
            self.committed,
            {partition: Bounds(0, self.ends[partition]) for partition in reading},
            rules=StartRules(),
            limits=Limits(limit),
            reached=self.reached,
            least_number=self.next_number,
        )
        self.committed |= intents_of(plan) | positions_of(plan)
        if not plan.ranges:
            return False
        if killed == "after the intent":
            self.restart()
            return True
        self._sink(
            f"{plan.number}-{plan.token}",
            [(span.topic_partition, at) for span in plan.ranges for at in range(span.start, span.end)],
        )
        if killed == "after the sink":
            self.restart()
            return True
        self.committed |= outcomes_of(plan.number, plan.ranges)
        self.reached |= {span.topic_partition: span.end for span in plan.ranges}
        self.next_number = plan.number + 1
        return True

    def _sink(self, key: str, records: list[Record]) -> None:
        if key in (self.keys[-1:] if self.only_the_last_key else self.keys):
            return
        self.keys.append(key)
        self.written.update(records)
        self.due.difference_update(records)

    def restart(self) -> None:
        self.reached, self.next_number = {}, 0

    def reset(self, partitions: Sequence[TopicPartition], share: float) -> None:
        """Back to somewhere before where the group stands."""
        for partition in partitions:
            now = self.committed[partition].offset if partition in self.committed else 0
            to = int(now * share)
            self.committed[partition] = Committed(to)
            self.due |= {(partition, offset) for offset in range(to, now)}

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """Offsets expire, or the group is deleted.

        A driver that runs knows where it was, and nothing of a rewind that it did not see before.
        """
        for partition in partitions:
            commit = self.committed.pop(partition, None)
            if partition in self.reached:
                self.due -= {(partition, offset) for offset in range(self.reached[partition])}
            elif commit is not None:
                self.due |= {(partition, offset) for offset in range(commit.offset)}

    def drain(self) -> None:
        self.restart()
        while self.batch(PARTITIONS, 50, ""):
            pass


some = st.lists(st.sampled_from(PARTITIONS), min_size=1, unique=True)
produced = st.tuples(st.just("produce"), st.lists(st.integers(0, 9), min_size=3, max_size=3))
kills = st.sampled_from(("", "after the intent", "after the sink"))
batch = st.tuples(st.just("batch"), st.just(list(PARTITIONS)), st.integers(1, 12), kills)
part = st.tuples(st.just("batch"), some, st.integers(1, 12), kills)
operator = st.one_of(
    st.tuples(st.just("reset"), some, st.floats(0, 1)),
    st.tuples(st.just("forget"), some),
    st.tuples(st.just("restart")),
)


@pytest.mark.parametrize("only_the_last_key", [False, True], ids=["remembers all keys", "the last one"])
@given(steps=st.lists(produced | batch | part | operator, max_size=30))
def test_nothing_is_lost_whatever_is_killed_reset_deleted_or_left_out(
    only_the_last_key: bool, steps: list[tuple[str, ...]]
) -> None:
    world = World(only_the_last_key)
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    world.drain()
    assert world.due == set()


@pytest.mark.parametrize("only_the_last_key", [False, True], ids=["remembers all keys", "the last one"])
@given(steps=st.lists(produced | batch, max_size=30))
def test_each_record_is_written_once_whatever_is_killed(
    only_the_last_key: bool, steps: list[tuple[str, ...]]
) -> None:
    world = World(only_the_last_key)
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    world.drain()
    assert sum(world.ends.values()) == len(world.written) == sum(world.written.values())
