"""Arrow batches out of what is buffered: a part at a time, and up to what cannot be read.

Covers: consumer/reading/arrow_batches.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.consumer import AbortedTransaction, CommittedOffset
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.reading.delivery import DECODE_TRIES, Delivery
from kohort.consumer.reading.fetch_buffer import ArrowForm
from kohort.consumer.reading.fetched_records import ChunkReader, end_of_run
from kohort.consumer.reading.positions import Phase, Positions
from kohort.protocol import Codec, CorruptBatchError, TopicPartition
from tests.consumer.batches import batch, compressed, marker

pytest.importorskip("pyarrow")

A = TopicPartition("orders", 0)


class Bench:
    def __init__(self) -> None:
        self.positions, self.tracker = Positions("earliest"), Tracker()
        self.delivery = Delivery(
            self.positions, self.tracker, max_undone=1_000, wake=lambda: None, report=lambda _: None
        )
        self.positions.add([A], 1)
        self.positions.hold_partitions([A], held=False)
        self.positions.found_committed(A, CommittedOffset(0))
        position = self.positions.get(A)
        assert position is not None
        self.position = position
        self.delivery.start(position)

    def put(self, data: bytes, start: int = 0, **settings: Any) -> None:
        settings["damage"] = end_of_run(data, start)[2]
        self.delivery.put(ChunkReader(A, data, start, session_id=self.delivery.session_id(A), **settings))

    def take(self, max_rows: int = 1_000) -> list[int]:
        """The offsets of the next batch; empty when there is none."""
        from kohort.consumer.reading.arrow_batches import batches_of

        batches = self.delivery.take_made(ArrowForm(False, max_rows), batches_of)
        return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_not_everything_that_is_buffered_is_decompressed_at_once() -> None:
    zeros = bytes(3_000_000)
    data = b"".join(compressed(batch([zeros, b"x" * 200_000], 2 * n), Codec.GZIP) for n in range(80))
    bench = Bench()
    bench.put(data)
    taken, times = [], 0
    while some := bench.take():
        taken += some
        times += 1
    assert taken == list(range(160))
    assert times > 1
    assert bench.delivery.held.total == 0


@pytest.mark.parametrize("damaged", ["header", "checksum", "codec"])
def test_what_is_before_damage_is_given_and_polls_raise_when_it_stays(damaged: str) -> None:
    bad = bytearray(compressed(batch([b"b"] * 3, 1), Codec.ZSTD) if damaged == "codec" else batch([b"b"], 1))
    if damaged == "header":
        bad[16] = 7
    else:
        bad[-1] ^= 1
    bench = Bench()
    bench.put(batch([b"a"]) + bytes(bad))
    assert bench.take() == [0]
    for _ in range(DECODE_TRIES - 1):
        assert bench.take() == []
        assert bench.position.phase is Phase.READING
        assert bench.position.fetch_offset == 1
        bench.put(bytes(bad), 1)
    assert bench.take() == []
    assert bench.position.phase is Phase.FAILED
    assert isinstance(bench.positions.first_error(), CorruptBatchError)


def test_aborted_records_are_left_out_though_their_transaction_began_in_another_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kohort.consumer.reading.fetched_records.RUN_BYTES", 1)
    settings: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    data = b"".join(
        (
            batch([b"aborted"], 0, **settings),
            batch([b"plain"], 1),
            batch([b"aborted"], 2, **settings),
            marker(3, 7, commit=False),
            batch([b"committed"], 4, **settings),
        )
    )
    bench = Bench()
    bench.put(data, aborted=[AbortedTransaction(7, 0)])
    assert [bench.take(), bench.take(), bench.take()] == [[1], [4], []]
    session = bench.tracker.get(A)
    assert session is not None
    assert session.position == 5


def test_batches_that_wait_do_not_count_as_delivered() -> None:
    bench = Bench()
    bench.put(batch([b"v"] * 5))
    assert bench.take(2) == [0, 1]
    session = bench.tracker.get(A)
    assert session is not None
    assert (session.position, session.undone) == (2, 2)
    assert [bench.take(2), bench.take(2)] == [[2, 3], [4]]
    assert bench.delivery.held.total == 0


@pytest.mark.parametrize("how", ["records", "one by one", "another form", "paused"])
def test_batches_that_wait_are_lost_to_no_other_way_of_reading(how: str) -> None:
    bench = Bench()
    bench.put(batch([b"v"] * 5))
    assert bench.take(2) == [0, 1]
    if how == "paused":
        bench.positions.pause([A])
        assert bench.take(2) == []
        bench.positions.resume([A])
        assert bench.take(2) == [2, 3]
        return

    def read() -> list[int]:
        if how == "another form":
            return bench.take(3)
        if how == "records":
            return [record.offset for record in bench.delivery.take(9)]
        return [record.offset for record in bench.delivery.run() or ()]

    assert read() == []
    assert (bench.position.fetch_offset, bench.delivery.held.total) == (2, 0)
    bench.put(batch([b"v"] * 5), 2)
    assert read() == [2, 3, 4]
