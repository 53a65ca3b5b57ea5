"""Partitions whose log was cut before what had been read of it (KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from kohort.client.offsets import LATEST, Errors, OffsetAndTimestamp
from kohort.client.waiting import Backoff
from kohort.consumer import Cluster, CommittedOffset, EpochEnd, LogTruncatedError
from kohort.consumer.done.done_ahead import encode
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.errors import CommitFailedError
from kohort.consumer.events import Event, LogTruncated, PartitionFailed
from kohort.consumer.reading.delivery import Delivery
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.consumer.reading.positions import Phase, Position, Positions
from kohort.consumer.reading.start_offsets import ReadingContext, StartOffsets
from kohort.protocol import ErrorCode, KafkaError, TopicPartition, UnsupportedVersionError
from tests.consumer.batches import batch

ORDERS = TopicPartition("orders", 0)


def _nothing() -> None:
    """Nobody polls."""


class _Cluster:
    """A leader in epoch 7 whose answer to OffsetForLeaderEpoch is the test's."""

    def __init__(self, end: EpochEnd | Exception) -> None:
        self.end = end
        self.asked: dict[TopicPartition, int] = {}
        self.known_metadata = self
        self.found: dict[TopicPartition, CommittedOffset] = {}

    async def committed(self, *_: Any, **__: Any) -> dict[TopicPartition, CommittedOffset]:
        return self.found

    def leader_epoch(self, _: TopicPartition) -> int:
        return 7

    def topic_id(self, _: str) -> None:
        """It has none."""

    async def list_offsets(
        self, at: dict[TopicPartition, int], **_: object
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        return {partition: OffsetAndTimestamp(25, -1, 7) for partition in at}

    async def epoch_ends(
        self, epochs: dict[TopicPartition, int], **_: object
    ) -> dict[TopicPartition, EpochEnd]:
        self.asked = epochs
        if isinstance(self.end, Exception):
            raise self.end
        return dict.fromkeys(epochs, self.end)


class _Bench:
    def __init__(
        self,
        end: EpochEnd | Exception,
        policy: str = "latest",
        committed: CommittedOffset = CommittedOffset(10, 5),  # noqa: B008
    ) -> None:
        self.events: list[Event] = []
        self.cluster = _Cluster(end)
        self.tracker, self.positions = Tracker(), Positions(policy)
        self.delivery = Delivery(
            self.positions, self.tracker, max_undone=100, wake=_nothing, report=self.events.append
        )
        reading = ReadingContext(
            cast(Cluster, self.cluster),
            self.positions,
            self.delivery,
            Backoff(1, 1),
            report=self.events.append,
            polled=_nothing,
        )
        self.starts = StartOffsets(reading, "billing", False)
        self.positions.add([ORDERS], 1)
        self.positions.hold_partitions([ORDERS], held=False)
        self.positions.found_committed(ORDERS, committed)

    @property
    def position(self) -> Position:
        position = self.positions.get(ORDERS)
        assert position is not None
        return position

    def left_to_do(self) -> list[int]:
        """Of the offsets 10 to 24, those that would be delivered."""
        session = self.tracker.get(ORDERS)
        assert session is not None
        return [10 + place for place in session.fresh_indexes(range(10, 25))]

    async def validate(self) -> None:
        await self.starts.validate_positions([self.position])

    async def read_to(self, delivered: int, fetched: int) -> None:
        """Records are delivered and fetched so far in epoch 6; then there is another leader."""
        await self.validate()
        reader = ChunkReader(
            ORDERS, batch([b"x"] * (fetched - 10), 10), 10, session_id=self.delivery.session_id(ORDERS)
        )
        self.delivery.put(reader)
        self.delivery.take(delivered - 10)
        self.position.fetch_offset, self.position.leader_epoch = fetched, 6
        self.positions.validate(self.position)


async def test_a_log_that_still_has_what_was_committed_is_read_from_there() -> None:
    bench = _Bench(EpochEnd(5, 10))
    assert bench.position.phase is Phase.VALIDATING
    await bench.validate()
    assert bench.cluster.asked == {ORDERS: 5}
    assert (bench.position.phase, bench.position.fetch_offset) == (Phase.READING, 10)
    assert (bench.position.checked_epoch, bench.events) == (7, [])
    assert bench.tracker.committable() == {}


async def test_a_log_cut_before_the_committed_offset_is_read_from_the_cut_and_an_event_says_so() -> None:
    bench = _Bench(EpochEnd(4, 8))
    await bench.validate()
    assert (bench.position.phase, bench.position.fetch_offset) == (Phase.READING, 8)
    assert bench.events == [LogTruncated(ORDERS, 10, 5, 8)]
    assert bench.tracker.committable() == {ORDERS: CommittedOffset(8, 4)}, "the old commit is corrected"


async def test_the_policy_fail_stops_the_partition_at_the_cut() -> None:
    bench = _Bench(EpochEnd(4, 8), "fail")
    await bench.validate()
    error = bench.positions.first_error()
    assert isinstance(error, LogTruncatedError)
    assert (error.offset, error.end_offset) == (10, 8)
    assert [type(event) for event in bench.events] == [PartitionFailed]


async def test_a_log_without_the_epoch_is_reset_by_the_policy() -> None:
    bench = _Bench(EpochEnd(-1, -1), "earliest")
    await bench.validate()
    assert bench.position.phase is Phase.RESETTING
    assert bench.position.reset is not None
    assert (bench.position.reset.asked, bench.position.reset.reason) == (
        10,
        "leader epoch 5, which it is from, is gone",
    )


async def test_a_cut_of_what_was_fetched_and_not_delivered_costs_only_that() -> None:
    bench = _Bench(EpochEnd(5, 10))
    await bench.read_to(delivered=12, fetched=20)
    stay = bench.tracker.get(ORDERS)
    bench.cluster.end = EpochEnd(6, 15)
    await bench.validate()
    assert bench.tracker.get(ORDERS) is stay, "what was delivered can still be marked done"
    assert (bench.position.fetch_offset, bench.delivery.buffered_bytes) == (12, 0)
    assert bench.events == [LogTruncated(ORDERS, 20, 6, 12)]


async def test_a_cut_of_what_was_delivered_begins_a_new_stay() -> None:
    bench = _Bench(EpochEnd(5, 10))
    await bench.read_to(delivered=18, fetched=20)
    stay = bench.tracker.get(ORDERS)
    assert stay is not None
    stay.done_before(18)
    bench.cluster.end = EpochEnd(6, 15)
    await bench.validate()
    assert bench.tracker.get(ORDERS) is not stay
    assert (bench.position.fetch_offset, bench.delivery.delivered_to(ORDERS)) == (15, 15)


async def test_what_is_not_done_before_a_cut_is_read_again() -> None:
    bench = _Bench(EpochEnd(5, 10))
    await bench.read_to(delivered=18, fetched=20)
    bench.cluster.end = EpochEnd(6, 15)
    await bench.validate()
    assert (bench.position.fetch_offset, bench.delivery.delivered_to(ORDERS)) == (10, 10)


async def test_of_what_is_given_up_a_new_leader_begins_no_new_session() -> None:
    bench = _Bench(EpochEnd(5, 10))
    await bench.read_to(delivered=18, fetched=20)
    session = bench.tracker.get(ORDERS)
    bench.positions.give_up([ORDERS])
    bench.delivery.drop([ORDERS])
    bench.cluster.end = EpochEnd(6, 20)
    await bench.validate()
    assert bench.tracker.get(ORDERS) is session, "its undone records would count as done"


async def test_a_topic_that_was_made_anew_begins_its_leader_epochs_anew() -> None:
    bench = _Bench(EpochEnd(5, 10))
    await bench.read_to(delivered=12, fetched=20)
    bench.position.checked_epoch = 6
    bench.starts.made_anew(bench.position)
    assert bench.position.checked_epoch == -1, "the epochs of the new log would count as looked at"


async def test_a_new_leader_with_the_same_log_disturbs_nothing() -> None:
    bench = _Bench(EpochEnd(5, 10))
    await bench.read_to(delivered=12, fetched=20)
    stay = bench.tracker.get(ORDERS)
    bench.cluster.end = EpochEnd(6, 20)
    await bench.validate()
    assert bench.tracker.get(ORDERS) is stay
    assert [record.offset for record in bench.delivery.take(100)] == list(range(12, 20))


async def test_a_broker_that_cannot_say_is_believed() -> None:
    bench = _Bench(UnsupportedVersionError("too old"))
    await bench.validate()
    assert bench.position.phase is Phase.READING


# what was done beyond the commit

#: 10 is committed, 15 to 19 are done as well.
AHEAD = CommittedOffset(10, 5, encode(10, [(15, 20)]))


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (EpochEnd(5, 25), [*range(10, 15), *range(20, 25)]),
        (EpochEnd(5, 17), [*range(10, 15), *range(17, 25)]),
        (EpochEnd(5, 12), [*range(10, 25)]),
        (UnsupportedVersionError("too old"), [*range(10, 25)]),
    ],
    ids=["not cut", "cut within", "cut before", "not known"],
)
async def test_what_was_done_beyond_the_commit_is_done_as_far_as_the_log_is_the_same(
    end: EpochEnd | Exception, left: list[int]
) -> None:
    bench = _Bench(end, committed=AHEAD)
    await bench.validate()
    assert bench.position.phase is Phase.READING
    assert bench.left_to_do() == left


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (EpochEnd(6, 30), [*range(10, 15), *range(20, 25)]),
        (EpochEnd(6, 17), [*range(10, 15), *range(17, 25)]),
        (EpochEnd(6, 13), [*range(10, 25)]),
    ],
    ids=["not cut", "cut within", "cut before"],
)
async def test_a_log_cut_while_it_is_read_also_loses_what_was_done_beyond(
    end: EpochEnd, left: list[int]
) -> None:
    bench = _Bench(EpochEnd(5, 25), committed=AHEAD)
    await bench.read_to(delivered=12, fetched=13)
    session = bench.tracker.get(ORDERS)
    bench.cluster.end = end
    await bench.validate()
    assert bench.tracker.get(ORDERS) is session
    assert bench.left_to_do() == left


async def test_a_log_cut_twice_before_it_is_read_on_is_noticed_twice() -> None:
    bench = _Bench(EpochEnd(5, 25), committed=AHEAD)
    await bench.read_to(delivered=12, fetched=20)
    for end in (EpochEnd(6, 18), EpochEnd(6, 16)):
        bench.cluster.end = end
        await bench.validate()
        assert bench.left_to_do() == [*range(10, 15), *range(end.offset, 25)]
        assert bench.position.leader_epoch >= 0, "it is asked again when the leader changes"
        bench.positions.validate(bench.position)


async def test_the_highest_epoch_that_was_read_is_asked_for() -> None:
    bench = _Bench(EpochEnd(5, 25), committed=AHEAD)
    await bench.validate()
    bench.position.leader_epoch = 3  # the epoch of the records at the commit
    bench.positions.validate(bench.position)
    await bench.validate()
    assert bench.cluster.asked == {ORDERS: 5}
    assert bench.left_to_do() == [*range(10, 15), *range(20, 25)]


async def test_without_a_leader_epoch_nothing_beyond_the_commit_counts_as_done() -> None:
    bench = _Bench(EpochEnd(5, 25))
    bench.positions.remove([ORDERS])
    bench.positions.add([ORDERS], 1)
    bench.cluster.found = {ORDERS: CommittedOffset(10, -1, AHEAD.metadata)}
    await bench.starts.find_committed([bench.position])
    assert bench.left_to_do() == [*range(10, 25)]


@pytest.mark.parametrize("how", ["sought", "reset"])
async def test_who_goes_elsewhere_reads_all_there_even_at_the_committed_offset(how: str) -> None:
    bench = _Bench(EpochEnd(-1, -1), "earliest", AHEAD)
    if how == "sought":
        bench.positions.seek(ORDERS, 10)
    else:
        await bench.validate()
        bench.positions.reset_found(bench.position, 10)
    bench.starts.on_moved(bench.position, moved_by_reset=how == "reset")
    assert bench.left_to_do() == [*range(10, 25)]


@pytest.mark.parametrize("moved", ["given up", "sought"])
async def test_an_answer_that_comes_too_late_is_ignored(moved: str) -> None:
    bench = _Bench(EpochEnd(4, 8))
    position: Any = bench.position
    asking = bench.starts.validate_positions([position])
    if moved == "given up":
        bench.positions.remove([ORDERS])
        await asking
        assert bench.events == []
        return
    # the coroutine has not begun: what it is told about first is the position as it was
    epoch_ends = bench.cluster.epoch_ends

    async def seek_meanwhile(
        epochs: dict[TopicPartition, int], **_: object
    ) -> dict[TopicPartition, EpochEnd]:
        bench.positions.seek(ORDERS, 3)
        return await epoch_ends(epochs)

    bench.cluster.epoch_ends = seek_meanwhile  # type: ignore[method-assign]
    await asking
    assert (position.fetch_offset, bench.events) == (3, [])


async def test_offsets_are_asked_for_again_at_once_when_a_heartbeat_has_overtaken_that() -> None:
    bench = _Bench(EpochEnd(5, 10))
    bench.positions.add([ORDERS], 2)
    epochs: list[tuple[str | None, int]] = [("m", 4), ("m", 5), ("m", 5)]
    asked: list[object] = []

    async def committed(*_: Any, member: object, **__: Any) -> dict[TopicPartition, CommittedOffset]:
        asked.append(member)
        if member == ("m", 4):
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "")
        return {ORDERS: CommittedOffset(3)}

    bench.cluster.committed = committed  # type: ignore[method-assign]
    bench.starts.reading = replace(bench.starts.reading, member=lambda: epochs.pop(0))
    await bench.starts.find_committed([bench.position])
    assert asked == [("m", 4), ("m", 5)]
    assert bench.position.fetch_offset == 3


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
async def test_a_member_that_the_coordinator_knows_otherwise_asks_again_later(code: ErrorCode) -> None:
    bench = _Bench(EpochEnd(5, 10))
    bench.positions.add([ORDERS], 2)

    async def committed(*_: Any, **__: Any) -> dict[TopicPartition, CommittedOffset]:
        raise KafkaError(code, "")

    bench.cluster.committed = committed  # type: ignore[method-assign]
    await bench.starts.find_committed([bench.position])
    assert bench.position.phase is Phase.SEEKING
    assert bench.position.retry_at > 0


class _Keeper:
    """Commits starts, or fails to; ``reading`` are the phases in which it was asked to."""

    def __init__(self, bench: _Bench) -> None:
        self.kept: list[Mapping[TopicPartition, int]] = []
        self.phases: list[Phase] = []
        self.error: CommitFailedError | None = None
        self.meanwhile = _nothing
        self._bench = bench
        bench.starts.reading = replace(bench.starts.reading, keep=self.keep)

    async def keep(self, starts: Mapping[TopicPartition, int], errors: Errors) -> bool:
        self.phases.append(self._bench.position.phase)
        if self.error is not None:
            errors.update(dict.fromkeys(starts, self.error))
        self.kept.append(starts)
        self.meanwhile()
        return True


async def test_where_a_group_begins_is_committed_before_anything_is_read() -> None:
    bench = _Bench(EpochEnd(5, 10))
    keeper = _Keeper(bench)
    bench.positions.cut_somewhere(bench.position, "epoch 5 is gone")
    keeper.error = CommitFailedError("not committed in time")
    await bench.starts.reset_positions([bench.position])
    assert not bench.position.readable, "nothing is read before it is committed"
    keeper.error = None
    await bench.starts.reset_positions([bench.position])
    assert keeper.kept == [{ORDERS: 25}] * 2
    assert keeper.phases == [Phase.RESETTING] * 2
    session = bench.tracker.get(ORDERS)
    assert bench.position.phase is Phase.READING
    assert session is not None
    assert session.committed == CommittedOffset(25), "it is not committed once more"
    assert bench.tracker.committable() == {}


async def test_a_seek_and_a_reset_to_the_first_record_are_not_committed() -> None:
    bench = _Bench(EpochEnd(5, 10), policy="earliest")
    keeper = _Keeper(bench)
    bench.positions.cut_somewhere(bench.position, "epoch 5 is gone")
    await bench.starts.reset_positions([bench.position])
    bench.positions.seek(ORDERS, LATEST)
    await bench.starts.reset_positions([bench.position])
    assert keeper.kept == [{}, {}]
    assert bench.tracker.committable() == {ORDERS: CommittedOffset(25)}


async def test_a_start_is_not_committed_over_records_that_are_not_done() -> None:
    bench = _Bench(EpochEnd(5, 40))
    keeper = _Keeper(bench)
    await bench.read_to(20, 20)
    await bench.validate()
    bench.positions.out_of_range(bench.position, "the log starts at 22")
    await bench.starts.reset_positions([bench.position])
    assert keeper.kept == [{}]


async def test_a_start_that_was_not_committed_does_not_count_as_committed_when_the_records_are_done() -> None:
    bench = _Bench(EpochEnd(5, 40))
    keeper = _Keeper(bench)
    await bench.read_to(30, 30)
    await bench.validate()
    bench.positions.out_of_range(bench.position, "the log ends at 25")
    session = bench.tracker.get(ORDERS)
    assert session is not None
    keeper.meanwhile = lambda: session.done_before(30)
    await bench.starts.reset_positions([bench.position])
    assert keeper.kept == [{}]
    assert bench.tracker.committable() == {ORDERS: CommittedOffset(25)}
