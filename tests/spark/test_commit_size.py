"""A batch has as many partitions as one commit has room for; the others come first in the next."""

from __future__ import annotations

from kohort.protocol import TopicPartition
from kohort.spark._commit_size import MAX_COMMIT_BYTES, split_commits
from kohort.spark._intent import intents_of, outcomes_of
from kohort.spark._offsets import Bounds, Commits, Committed
from kohort.spark._plan import Limits, StartRules, plan_batch

PARTITIONS = [TopicPartition("orders-topic", number) for number in range(10_000)]


def size(group: str, commits: Commits) -> int:
    """Bytes of the records that Apache Kafka writes for a commit, without what all of them share."""
    return sum(len(group) + len(p.topic) + len(c.metadata) + 65 for p, c in commits.items())


def test_ten_thousand_partitions_are_read_in_two_batches_and_none_waits_for_a_third() -> None:
    committed: Commits = {}
    read = set[TopicPartition]()
    for number in range(2):
        # more comes to all of them all the time
        bounds = {partition: Bounds(0, 100 * (number + 1)) for partition in PARTITIONS}
        plan = plan_batch(committed, bounds, rules=StartRules(), limits=Limits(), group="etl")
        announced = intents_of(plan)
        assert 5_000 <= len(announced) < 10_000
        assert size("etl", announced) < MAX_COMMIT_BYTES
        assert plan.lag == 100 * (number + 1) * 10_000 - plan.offsets - sum(
            c.offset for c in committed.values()
        )
        read |= announced.keys()
        committed |= outcomes_of(plan.number, plan.ranges)
    assert read == set(PARTITIONS)


def test_positions_are_split_and_the_intents_stay_together() -> None:
    together = {partition: Committed(1, "x" * 40) for partition in PARTITIONS[:5_000]}
    others = {partition: Committed(2, '{"b":3}') for partition in PARTITIONS[5_000:]}
    parts = split_commits("etl", others, together)
    assert len(parts) == 2
    assert together.items() <= parts[-1].items()
    assert {p: c for part in parts for p, c in part.items()} == together | others
    assert all(size("etl", part) < MAX_COMMIT_BYTES for part in parts)
    assert split_commits("etl", {PARTITIONS[0]: Committed(2)}) == [{PARTITIONS[0]: Committed(2)}]
