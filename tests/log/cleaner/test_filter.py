"""What compaction keeps and drops, rule by rule; the parts that need a log are in test_cleaner.py."""

from __future__ import annotations

import pytest

from kohort.log import decode_records
from kohort.log._indexes import AbortedTransaction
from kohort.log.cleaner._filter import BatchFilter, FilterRules, LastBatch
from kohort.log.cleaner._keys import KeyMap, TransactionWalk
from kohort.protocol import CorruptBatchError, build_batch, iter_batches, stamp_batch
from tests.log.batches import NOW_MS, marker
from tests.log.cleaner.test_keys import in_a_row
from tests.log.cleaning import keyed

DAY_MS = 86_400_000


def filtered(
    data: bytes,
    *,
    first_dirty: int = 0,
    now_ms: int = NOW_MS,
    aborted: tuple[AbortedTransaction, ...] = (),
    producers: dict[int, LastBatch] | None = None,
    memory: int = 1 << 20,
) -> bytes:
    """What is left of a log that ends with ``data``."""
    keys = KeyMap(first_dirty, memory, TransactionWalk(aborted))
    keys.add(data)
    walk = BatchFilter(keys, TransactionWalk(aborted), FilterRules(now_ms, DAY_MS, producers or {}))
    kept = walk.take(data)
    assert kept.consumed == len(data)
    assert [header for _, header in iter_batches(kept.data)] == kept.headers
    return kept.data


def left(data: bytes) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of what is no control record."""
    return [
        (offset, (key or b"").decode(), None if value is None else value.decode())
        for position, header in iter_batches(data)
        if not header.control
        for offset, _, key, value in decode_records(data, header, position)
    ]


def test_the_newest_record_of_each_key_stays_at_its_offset() -> None:
    data = in_a_row(keyed(("a", "1"), ("b", "1")), keyed(("a", "2"), ("c", "1")), keyed(("c", "2")))
    assert left(filtered(data)) == [(1, "b", "1"), (2, "a", "2"), (4, "c", "2")]


@pytest.mark.parametrize("codec", range(5))
def test_batches_of_which_nothing_goes_stay_byte_for_byte(codec: int) -> None:
    gone = keyed(("a", "1"), codec=codec)
    stays = keyed(("a", "2"), ("b", "1"), codec=codec)
    data = in_a_row(gone, stays)
    assert filtered(data) == data[len(gone) :]
    assert filtered(data, first_dirty=3) == data


@pytest.mark.parametrize("codec", range(5))
def test_a_mixed_batch_is_packed_anew_with_its_codec(codec: int) -> None:
    data = in_a_row(keyed(("a", "1"), ("b", "1"), codec=codec), keyed(("a", "2"), codec=codec))
    kept = filtered(data)
    assert left(kept) == [(1, "b", "1"), (2, "a", "2")]
    headers = [header for _, header in iter_batches(kept)]
    assert [(h.codec, h.base_offset, h.last_offset, h.record_count) for h in headers] == [
        (codec, 0, 1, 1),
        (codec, 2, 2, 1),
    ]


def test_older_records_of_the_clean_part_go_too() -> None:
    clean = in_a_row(keyed(("a", "1"), ("b", "1")), keyed(("c", "1")))
    data = in_a_row(keyed(("a", "1"), ("b", "1")), keyed(("c", "1")), keyed(("a", "2"), ("c", None)))
    assert data.startswith(clean)
    assert left(filtered(data, first_dirty=3)) == [(1, "b", "1"), (3, "a", "2"), (4, "c", None)]


def test_records_without_a_key_go() -> None:
    data = in_a_row(bytes(build_batch([(None, b"x", ()), (b"k", b"y", ())], timestamp_ms=1)))
    assert left(filtered(data)) == [(1, "k", "y")]


def test_what_the_map_has_no_room_for_stays() -> None:
    data = in_a_row(*(keyed(("a", f"{n}"), (f"b{n}", "x")) for n in range(4)))
    kept = filtered(data, memory=1)
    assert left(kept) == left(data)
    assert kept == data


def test_a_tombstone_is_dated_then_goes_when_its_time_is_over() -> None:
    data = in_a_row(keyed(("a", "1")), keyed(("a", None), ("b", "1")))
    dated = filtered(data)
    (header,) = (header for _, header in iter_batches(dated))
    assert header.has_delete_horizon
    assert header.base_timestamp_ms == NOW_MS + DAY_MS
    assert left(dated) == [(1, "a", None), (2, "b", "1")]
    times = [record[1] for record in decode_records(dated, header)]
    assert times == [NOW_MS, NOW_MS]

    assert filtered(dated, first_dirty=3, now_ms=NOW_MS + DAY_MS - 1) == dated
    assert left(filtered(dated, first_dirty=3, now_ms=NOW_MS + DAY_MS)) == [(2, "b", "1")]
    assert left(filtered(dated, first_dirty=0, now_ms=NOW_MS + DAY_MS)) == [(2, "b", "1")]


def test_a_batch_of_tombstones_alone_goes_whole() -> None:
    dated = filtered(in_a_row(keyed(("a", None))))
    assert filtered(dated, first_dirty=1, now_ms=NOW_MS + DAY_MS) == b""


def test_the_batch_of_a_producers_last_sequence_stays_without_records() -> None:
    data = in_a_row(
        keyed(("a", "1"), producer_id=5, sequence=0),
        keyed(("a", "2"), producer_id=5, sequence=1),
        keyed(("a", "3")),
    )
    kept = filtered(data, producers={5: LastBatch(1, 0)})
    headers = [header for _, header in iter_batches(kept)]
    assert [(h.base_offset, h.record_count, h.last_sequence) for h in headers] == [(1, 0, 1), (2, 1, -1)]
    assert filtered(kept, producers={5: LastBatch(1, 0)}) == kept
    assert left(filtered(kept, producers={})) == [(2, "a", "3")]
    assert len(list(iter_batches(filtered(kept, producers={})))) == 1


def test_data_of_aborted_transactions_goes_and_their_markers_stay_while_it_was_there() -> None:
    data = in_a_row(
        keyed(("a", "1")),
        keyed(("a", "2"), producer_id=1, sequence=0, transactional=True),
        keyed(("b", "2"), producer_id=2, sequence=0, transactional=True),
        marker(1, committed=False),
        marker(2, committed=True),
    )
    kept = filtered(data, aborted=(AbortedTransaction(1, 1, 3, 2),))
    assert left(kept) == [(0, "a", "1"), (2, "b", "2")]
    assert [h.base_offset for _, h in iter_batches(kept) if h.control] == [3, 4]
    assert not any(header.has_delete_horizon for _, header in iter_batches(kept))


def test_a_spent_marker_is_dated_then_goes_when_its_time_is_over() -> None:
    data = in_a_row(keyed(("a", "1")), marker(1, committed=False), marker(2, committed=True))
    dated = filtered(data)
    controls = [header for _, header in iter_batches(dated) if header.control]
    assert [header.base_timestamp_ms for header in controls] == [NOW_MS + DAY_MS] * 2
    assert all(header.has_delete_horizon for header in controls)
    assert filtered(dated, first_dirty=3, now_ms=NOW_MS + DAY_MS - 1) == dated
    assert [h.control for _, h in iter_batches(filtered(dated, now_ms=NOW_MS + DAY_MS))] == [False]


def test_the_marker_of_a_committed_transaction_stays_while_its_data_does() -> None:
    data = in_a_row(
        keyed(("a", "1"), producer_id=2, sequence=0, transactional=True),
        marker(2, committed=True),
        keyed(("a", "2")),
    )
    once = filtered(data)
    assert [(h.base_offset, h.control) for _, h in iter_batches(once)] == [(1, True), (2, False)]
    twice = filtered(once)
    assert [h.has_delete_horizon for _, h in iter_batches(twice)] == [True, False]
    kept = filtered(
        in_a_row(keyed(("a", "1"), producer_id=2, sequence=0, transactional=True), marker(2, committed=True))
    )
    assert not any(h.has_delete_horizon for _, h in iter_batches(filtered(kept, now_ms=NOW_MS + 9 * DAY_MS)))


def test_a_producers_last_marker_stays_for_its_epoch() -> None:
    dated = filtered(in_a_row(marker(1, committed=False), keyed(("a", "1"))))
    later = NOW_MS + DAY_MS
    kept = filtered(dated, now_ms=later, producers={1: LastBatch(-1, 0)})
    assert [(h.control, h.record_count) for _, h in iter_batches(kept)] == [(True, 0), (False, 1)]
    assert filtered(kept, now_ms=later, producers={1: LastBatch(-1, 0)}) == kept
    kept = filtered(dated, now_ms=later, producers={1: LastBatch(-1, 3)})
    assert [h.control for _, h in iter_batches(kept)] == [False]


def test_other_control_records_stay() -> None:
    other = bytes(
        build_batch(
            [(b"\x00\x00\x00\x07", b"\x00" * 6, ())],
            timestamp_ms=1,
            producer_id=1,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )
    data = in_a_row(other)
    assert filtered(filtered(data), now_ms=NOW_MS + 9 * DAY_MS) == data


def test_the_last_batch_is_offered_as_a_header_when_it_went() -> None:
    data = in_a_row(keyed(("a", "1")), keyed(("b", "1"), ("b", None)))
    dated = filtered(data)
    keys = KeyMap(3, 1 << 20, TransactionWalk([]))
    walk = BatchFilter(keys, TransactionWalk([]), FilterRules(NOW_MS + DAY_MS, DAY_MS, {}))
    kept = walk.take(dated)
    ((_, header),) = iter_batches(kept.last)
    assert (header.base_offset, header.last_offset, header.record_count) == (1, 2, 0)
    later = bytearray(keyed(("z", "1")))
    stamp_batch(later, 0, base_offset=3, leader_epoch=0)
    assert walk.take(bytes(later)).last == b""


@pytest.mark.parametrize("position", [16, 17, 65])
def test_damage_in_the_clean_part_is_told_by_its_position(position: int) -> None:
    data = bytearray(in_a_row(keyed(("a", "1")), keyed(("b", "2"))))
    at = len(data) // 2
    data[at + position] ^= 0x40
    keys = KeyMap(2, 1 << 20, TransactionWalk([]))
    walk = BatchFilter(keys, TransactionWalk([]), FilterRules(NOW_MS, DAY_MS, {}))
    with pytest.raises(CorruptBatchError) as caught:
        walk.take(bytes(data))
    assert caught.value.position == at
