"""Arrow batches out of what is buffered: a part at a time, and up to what cannot be read.

Covers: consumer/arrow_batches.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.consumer import AbortedTransaction, CommittedOffset
from kohort.consumer.decode import ChunkReader, end_of_run
from kohort.consumer.delivery import DECODE_TRIES, Delivery
from kohort.consumer.positions import Phase, Positions
from kohort.consumer.tracker import Tracker
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
        self.positions.hold([A], held=False)
        self.positions.found_committed(A, CommittedOffset(0))
        position = self.positions.get(A)
        assert position is not None
        self.position = position
        self.delivery.start(position)

    def put(self, data: bytes, start: int = 0, **settings: Any) -> None:
        settings["damage"] = end_of_run(data, start)[2]
        self.delivery.put(ChunkReader(A, data, start, session_id=self.delivery.session_id(A), **settings))

    def take(self) -> list[list[int]]:
        """The offsets of the batches that come at once."""
        from kohort.consumer.arrow_batches import batches_of

        made = self.delivery.take_chunk(lambda chunk: batches_of(chunk, False, 1_000))
        return [each.column("offset").to_pylist() for each in made]


def test_not_everything_that_is_buffered_is_decompressed_at_once() -> None:
    zeros = bytes(3_000_000)
    data = b"".join(compressed(batch([zeros, b"x" * 200_000], 2 * n), Codec.GZIP) for n in range(80))
    bench = Bench()
    bench.put(data)
    taken, times = [], 0
    while some := bench.take():
        taken += [offset for offsets in some for offset in offsets]
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
    assert bench.take() == [[0]]
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
    monkeypatch.setattr("kohort.consumer.decode.RUN_BYTES", 1)
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
    assert [bench.take(), bench.take(), bench.take()] == [[[1]], [[4]], []]
    session = bench.tracker.get(A)
    assert session is not None
    assert session.position == 5
