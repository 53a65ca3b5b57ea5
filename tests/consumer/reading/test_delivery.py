"""From buffered bytes to the user."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

import pytest

from kohort.consumer import CommittedOffset, Record
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.events import Event, PartitionFailed, WindowFull
from kohort.consumer.reading.delivery import DECODE_TRIES, Delivery
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.consumer.reading.positions import Phase, Positions
from kohort.protocol import Codec, TopicPartition
from tests.consumer.batches import batch, compressed, marker

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@dataclass
class _Bench:
    """A delivery with everything around it that is needed."""

    max_undone: int = 1_000
    wakes: int = 0
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.positions = Positions("earliest")
        self.tracker = Tracker()
        self.delivery = Delivery(
            self.positions,
            self.tracker,
            max_undone=self.max_undone,
            wake=self._wake,
            report=self.events.append,
        )

    def _wake(self) -> None:
        self.wakes += 1

    def begin(self, partition: TopicPartition, offset: int = 0) -> None:
        self.positions.add([partition], 1)
        self.positions.hold_partitions([partition], held=False)
        self.positions.found_committed(partition, CommittedOffset(offset))
        position = self.positions.get(partition)
        assert position is not None
        self.delivery.start(position)

    def put(self, partition: TopicPartition, *batches: bytes, start: int = 0) -> None:
        session_id = self.delivery.session_id(partition)
        self.delivery.put(ChunkReader(partition, b"".join(batches), start, session_id=session_id))

    def values(self, limit: int = 100) -> list[bytes | None]:
        return [record.value for record in self.delivery.take(limit)]

    def one(self) -> Record | None:
        return next(iter(self.delivery.take(1)), None)


def test_records_come_in_order_and_in_pieces_of_any_size() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0", b"1", b"2"]), batch([b"3"], 3))
    bench.put(A, batch([b"4", b"5"], 4), start=4)
    assert bench.values(2) == [b"0", b"1"]
    one = bench.one()
    assert one is not None
    assert one.value == b"2"
    assert bench.values() == [b"3", b"4", b"5"]
    assert bench.values() == []
    assert bench.one() is None
    assert (bench.delivery.buffered_bytes, bench.delivery.undelivered_bytes(A)) == (0, 0)


def test_partitions_take_turns() -> None:
    bench = _Bench()
    for partition in (A, B):
        bench.begin(partition)
        for n in range(3):
            bench.put(partition, batch([b"%d-%d" % (partition.partition, n)], n), start=n)
    seen: list[Record] = []
    while (record := bench.one()) is not None:
        seen.append(record)
    assert [record.partition for record in seen] == [0, 1, 0, 1, 0, 1]


def test_a_list_may_hold_records_of_several_partitions() -> None:
    bench = _Bench()
    for partition in (A, B):
        bench.begin(partition)
        bench.put(partition, batch([b"x", b"y"]))
    assert [(r.partition, r.value) for r in bench.delivery.take(3)] == [(0, b"x"), (0, b"y"), (1, b"x")]


def test_what_is_taken_is_tracked_and_what_is_only_buffered_is_not() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0", b"1", b"2"]))
    bench.values(2)
    assert bench.tracker.undone() == 2
    stay = bench.tracker.get(A)
    assert stay is not None
    assert stay.position == 2


def test_data_that_came_is_told_to_whoever_waits() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0"]))
    assert bench.wakes == 1


def test_paused_partitions_keep_what_they_have() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0", b"1"]))
    assert bench.values(1) == [b"0"]
    bench.positions.pause([A])
    assert bench.values() == []
    assert bench.one() is None
    bench.positions.resume([A])
    assert bench.values() == [b"1"]


def test_nothing_is_delivered_while_halted() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0"]))
    told: list[bool] = []
    bench.delivery.halting = told.append
    bench.delivery.halt(True)
    assert bench.values() == []
    assert bench.one() is None
    wakes = bench.wakes
    bench.delivery.halt(False)
    assert told == [True, False]
    assert bench.wakes == wakes + 1
    assert bench.values() == [b"0"]


def test_what_is_given_back_is_not_delivered_and_is_fetched_again() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0", b"1", b"2"]), batch([b"3"], 3))
    taken = bench.delivery.take(3)
    position, session = bench.positions.get(A), bench.tracker.get(A)
    assert position is not None
    assert session is not None
    jumps = position.changed
    bench.delivery.give_back(taken[1])
    assert (position.fetch_offset, position.changed) == (1, jumps + 1)
    assert (session.position, session.undone, bench.delivery.buffered_bytes) == (1, 1, 0)
    bench.tracker.done(taken[0])
    assert session.committable == 1
    bench.put(A, batch([b"1", b"2"], 1), batch([b"3"], 3), start=1)
    assert bench.values() == [b"1", b"2", b"3"]
    bench.delivery.give_back(taken[2]._replace(session_id=-1))
    assert session.position == 4, "a session that is over"


def test_what_is_dropped_is_gone_and_its_bytes_are_free() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.begin(B)
    bench.put(A, batch([b"a", b"b"]))
    bench.put(B, batch([b"c"]))
    assert bench.values(1) == [b"a"]
    bench.delivery.drop([A])
    assert bench.values() == [b"c"]
    assert bench.delivery.buffered_bytes == 0


def test_a_full_window_is_told_once_and_holds_back_until_something_is_done() -> None:
    bench = _Bench(max_undone=2)
    bench.begin(A)
    bench.put(A, batch([b"0", b"1", b"2", b"3"]))
    taken = bench.delivery.take(10)
    assert len(taken) == 2
    assert bench.values() == []
    assert bench.one() is None
    assert [e for e in bench.events if isinstance(e, WindowFull)] == [WindowFull(A, 2, 0)]
    bench.tracker.done(taken[0])
    stay = bench.tracker.get(A)
    assert stay is not None
    wakes = bench.wakes
    bench.delivery.made_room()
    assert bench.wakes == wakes + 1
    assert bench.values() == [b"2"]


def test_a_corrupt_batch_is_fetched_again_from_where_delivery_is_and_fails_after_some_times() -> None:
    bench = _Bench()
    bench.begin(A)
    bad = bytearray(batch([b"1"], 1))
    bad[-1] ^= 1
    position = bench.positions.get(A)
    assert position is not None
    for attempt in range(DECODE_TRIES):
        start = 0 if attempt == 0 else 1
        good = [batch([b"0"])] if attempt == 0 else []
        bench.put(A, *good, bytes(bad), start=start)
        assert bench.values() == [b"0"] * len(good)
        assert (position.fetch_offset, bench.delivery.buffered_bytes) == (1, 0)
    assert len([e for e in bench.events if isinstance(e, PartitionFailed)]) == DECODE_TRIES
    assert position.phase is Phase.FAILED
    assert bench.positions.first_error() is not None


def test_of_a_corrupt_batch_behind_control_batches_nothing_counts_as_buffered_any_more() -> None:
    bench = _Bench()
    bench.begin(A)
    bad = bytearray(batch([b"2"], 2))
    bad[-1] ^= 1
    bench.put(A, marker(0, 7, commit=True), marker(1, 8, commit=True), bytes(bad))
    assert bench.values() == []
    assert (bench.delivery.buffered_bytes, bench.delivery.held.total) == (0, 0)


def test_a_reset_forward_keeps_the_stay_and_one_backward_begins_a_new_one() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0", b"1"]))
    bench.values()
    position, stay = bench.positions.get(A), bench.tracker.get(A)
    assert position is not None
    assert stay is not None
    position.fetch_offset = 50
    bench.delivery.start(position, moved_by_reset=True)
    assert bench.tracker.get(A) is stay
    position.fetch_offset = 0
    bench.delivery.start(position, moved_by_reset=True)
    assert bench.tracker.get(A) is not stay
    assert bench.tracker.undone() == 0


def test_a_chunk_without_records_for_the_user_moves_the_position_on() -> None:
    from tests.consumer.batches import marker

    bench = _Bench()
    bench.begin(A)
    bench.put(A, marker(0, 7, commit=True), marker(1, 7, commit=True))
    assert bench.values() == []
    assert bench.tracker.committable() == {A: CommittedOffset(2)}


def test_a_run_gives_what_single_takes_give() -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"0", b"1", b"2"]), batch([b"3", b"4"], 3))
    seen = []
    while (run := bench.delivery.run()) is not None:
        seen += [record.offset for record in run]
    assert seen == [0, 1, 2, 3, 4]
    stay = bench.tracker.get(A)
    assert stay is not None
    assert (stay.undone, stay.position) == (5, 5)


@pytest.mark.parametrize("what", ["pause", "hold", "drop", "halt", "seek", "fail"])
def test_a_run_ends_at_once_when_its_partition_is_disturbed(what: str) -> None:
    bench = _Bench()
    bench.begin(A)
    bench.put(A, batch([b"x"] * 10))
    run = bench.delivery.run()
    assert run is not None
    assert [record.offset for record in islice(run, 4)] == [0, 1, 2, 3]
    position = bench.positions.get(A)
    assert position is not None
    match what:
        case "pause":
            bench.positions.pause([A])
        case "hold":
            bench.positions.hold_partitions([A])
        case "drop":
            bench.delivery.drop([A])
        case "halt":
            bench.delivery.halt(True)
        case "seek":
            bench.positions.seek(A, 7)
            bench.delivery.start(position)
        case "fail":
            bench.positions.fail_position(position, ValueError("unreadable"))
    assert run.over
    assert list(run) == []
    stay = bench.tracker.get(A)
    assert stay is None or (stay.undone, stay.position) == ((0, 7) if what == "seek" else (4, 4))


def test_a_run_stops_at_the_window() -> None:
    bench = _Bench(max_undone=3)
    bench.begin(A)
    bench.put(A, batch([b"x"] * 10))
    run = bench.delivery.run()
    assert run is not None
    assert [record.offset for record in run] == [0, 1, 2]
    assert bench.delivery.run() is None


def test_a_poll_of_large_records_ends_after_some_bytes_however_many_are_asked_for() -> None:
    bench = _Bench()
    bench.begin(A)
    large = 6 * 1024 * 1024
    bench.put(A, *(compressed(batch([bytes(large)], offset), Codec.GZIP) for offset in range(8)))
    polls = []
    while records := bench.delivery.take(500):
        polls.append([record.offset for record in records])
    assert polls == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_a_poll_without_a_limit_of_bytes_has_all_records() -> None:
    bench = _Bench()
    bench.begin(A)
    large = 6 * 1024 * 1024
    bench.put(A, *(compressed(batch([bytes(large)], offset), Codec.GZIP) for offset in range(5)))
    assert [record.offset for record in bench.delivery.take(500, None)] == [0, 1, 2, 3, 4]


def test_with_a_limit_of_bytes_no_further_batch_is_begun_behind_it() -> None:
    bench = _Bench()
    for partition in (A, B):
        bench.begin(partition)
        bench.put(partition, batch([b"x" * 60, b"y" * 60]))
    taken = [bench.delivery.take(100, max_bytes=100) for _ in range(3)]
    assert [[(r.partition, r.offset) for r in some] for some in taken] == [
        [(0, 0), (0, 1)],
        [(1, 0), (1, 1)],
        [],
    ]
