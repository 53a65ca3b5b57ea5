"""Records out of fetched bytes."""

from __future__ import annotations

import pytest

from kohort.consumer import AbortedTransaction, Record
from kohort.consumer.reading.fetched_records import RUN_BYTES, ChunkReader, end_of_run
from kohort.protocol import (
    Codec,
    CorruptBatchError,
    TopicPartition,
    build_batch,
    parse_batch_header,
    records,
    seal_batch,
)
from tests.consumer.batches import batch, compressed, marker

ORDERS = TopicPartition("orders", 3)


@pytest.fixture(params=["native", "python"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers of records."""
    monkeypatch.setattr(records, "NATIVE", records.NATIVE and request.param == "native")


def _all(reader: ChunkReader) -> list[Record]:
    found: list[Record] = []
    while some := reader.read():
        found += some
    return found


def _values(reader: ChunkReader) -> list[bytes | None]:
    return [record.value for record in _all(reader)]


@pytest.mark.usefixtures("reader")
def test_every_field_comes_through() -> None:
    data = bytes(
        build_batch(
            [(b"k", b"v", [("h", b"1"), ("h", None)]), (None, None, [])],
            timestamp_ms=1_234,
            base_offset=10,
        )
    )
    first, second = _all(ChunkReader(ORDERS, data, 10, generation=4, session_id=9))
    assert (first.topic, first.partition, first.offset, first.timestamp_ms) == ("orders", 3, 10, 1_234)
    assert (first.key, first.value, [tuple(h) for h in first.headers]) == (
        b"k",
        b"v",
        [("h", b"1"), ("h", None)],
    )
    assert (second.key, second.value, list(second.headers), second.offset) == (None, None, [], 11)
    assert (first.generation, first.epoch) == (4, 9)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_every_codec_is_read(codec: Codec) -> None:
    values = [b"value-%d" % number for number in range(100)]
    assert _values(ChunkReader(ORDERS, compressed(batch(values), codec), 0)) == values


def test_snappy_in_blocks_is_read() -> None:
    values = [b"value-%d" % number for number in range(100)]
    data = compressed(batch(values), Codec.SNAPPY, xerial=True)
    assert _values(ChunkReader(ORDERS, data, 0)) == values


def test_records_before_the_offset_asked_for_are_left_out() -> None:
    data = batch([b"a", b"b"], 0) + batch([b"c", b"d", b"e"], 2)
    reader = ChunkReader(ORDERS, data, 3)
    assert _values(reader) == [b"d", b"e"]
    assert reader.next_offset == 5


def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch() -> None:
    whole, cut = batch([b"a"], 0), batch([b"b"], 1)
    for length in (1, 20, len(cut) - 1):
        data = whole + cut[:length]
        reader = ChunkReader(ORDERS, data, 0)
        assert _values(reader) == [b"a"]
        assert (reader.next_offset, -1, None) == (1, -1, None) == end_of_run(data, 0)


def test_control_batches_are_passed() -> None:
    data = batch([b"a"], 0) + marker(1, 7, commit=True)
    reader = ChunkReader(ORDERS, data, 0)
    assert _values(reader) == [b"a"]
    assert (reader.next_offset, -1, None) == (2, -1, None) == end_of_run(data, 0)


def test_a_control_batch_that_compaction_has_emptied_is_passed() -> None:
    aborted, whole = marker(1, 7, commit=False), batch([b"a"], 0)
    left = bytes(seal_batch(parse_batch_header(aborted)._replace(record_count=0), b""))
    reader = ChunkReader(ORDERS, whole + left + batch([b"b"], 2), 0)
    assert _values(reader) == [b"a", b"b"]
    assert reader.next_offset == 3


def test_aborted_records_are_left_out_up_to_their_marker() -> None:
    def sent(value: bytes, at: int, producer_id: int) -> bytes:
        return batch(
            [value], at, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )

    data = (
        sent(b"aborted", 0, 7)
        + sent(b"other", 1, 8)
        + marker(2, 7, commit=False)
        + sent(b"next", 3, 7)
        + marker(4, 7, commit=True)
        + marker(5, 8, commit=True)
    )
    aborted = [AbortedTransaction(7, 0)]
    assert _values(ChunkReader(ORDERS, data, 0, aborted=aborted)) == [b"other", b"next"]
    assert _values(ChunkReader(ORDERS, data, 0)) == [b"aborted", b"other", b"next"]


def test_a_wrong_checksum_is_found_and_reading_stays_before_it() -> None:
    bad = bytearray(batch([b"b"], 1))
    bad[-1] ^= 1
    reader = ChunkReader(ORDERS, batch([b"a"], 0) + bytes(bad), 0)
    assert [record.value for record in reader.read()] == [b"a"]
    for _ in range(2):
        with pytest.raises(CorruptBatchError, match="checksum"):
            reader.read()
    assert reader.next_offset == 1


@pytest.mark.usefixtures("reader")
def test_bytes_that_lie_about_their_records_are_corrupt() -> None:
    bad = bytearray(batch([b"aaaaaaaa", b"b"], 0))
    bad[61] = 0x7E
    with pytest.raises(CorruptBatchError, match="orders"):
        ChunkReader(ORDERS, bytes(bad), 0, check_crcs=False).read()


def test_data_that_does_not_decompress_is_corrupt() -> None:
    data = bytearray(compressed(batch([b"a" * 100], 0), Codec.ZSTD))
    data[61:65] = b"none"
    with pytest.raises(CorruptBatchError, match="zstd"):
        ChunkReader(ORDERS, bytes(data), 0, check_crcs=False).read()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [34, 200])
def test_the_error_of_an_old_format_names_it(magic: int, size: int) -> None:
    data = bytes(8) + (size - 12).to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(size - 17)
    damage = end_of_run(data, 0)[2]
    assert f"magic {magic}: only 2 is known" in str(damage)


def test_a_run_ends_before_bytes_that_are_no_batch_and_says_what_is_wrong() -> None:
    good = batch([b"a"], 0)
    assert end_of_run(good + b"\x01" * 100, 0)[:2] == (1, -1)
    for data in (good + b"\x01" * 100, b"\x01" * 100, good[:-1], b"few"):
        assert isinstance(end_of_run(data, 0)[2], CorruptBatchError)


def test_what_is_before_bytes_that_are_no_batch_is_given_and_then_they_are_corrupt() -> None:
    reader = ChunkReader(ORDERS, batch([b"a"], 0) + b"\x01" * 100, 0)
    assert [record.value for record in reader.read()] == [b"a"]
    for _ in range(2):
        with pytest.raises(CorruptBatchError):
            reader.read()


def test_an_answer_without_a_whole_batch_is_corrupt_and_does_not_end_in_silence() -> None:
    data = batch([b"a"], 0)[:-1]
    reader = ChunkReader(ORDERS, data, 0, damage=end_of_run(data, 0)[2])
    with pytest.raises(CorruptBatchError, match="no whole record batch"):
        reader.read()


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_record_of_zeros_is_read_however_small_it_was_made(codec: Codec) -> None:
    """54 bytes of zstd: Java and librdkafka read it."""
    zeros = bytes(900_000)
    data = compressed(batch([zeros], 0), codec)
    assert _values(ChunkReader(ORDERS, data, 0)) == [zeros]


def test_a_batch_that_grows_beyond_the_setting_is_refused_by_its_bytes() -> None:
    data = compressed(batch([bytes(900_000)], 0), Codec.ZSTD)
    with pytest.raises(CorruptBatchError, match="more than 500000 bytes"):
        ChunkReader(ORDERS, data, 0, max_batch_bytes=500_000).read()


def test_as_many_batches_as_are_bounded_in_bytes_are_taken_apart_at_once() -> None:
    large = bytes(RUN_BYTES - 1_000)
    data = b"".join(compressed(batch([large], n), Codec.ZSTD) for n in range(5))
    reader = ChunkReader(ORDERS, data, 0)
    batches = iter(reader.read_batch, None)
    assert [(len(some), some.size <= 2 * RUN_BYTES) for some in batches] == [(2, True), (2, True), (1, True)]


@pytest.mark.parametrize("count", [1, 100])
def test_a_header_name_that_is_not_utf_8_is_replaced_as_java_does(count: int) -> None:
    rows = [(None, b"value", [(f"header{n:03}", b"x"), ("other", None)]) for n in range(count)]
    data = bytes(build_batch(rows, timestamp_ms=1_000))
    data = data.replace(b"header", b"h\xff\xfeder")
    reader = ChunkReader(ORDERS, data, 0, check_crcs=False)
    found = reader.read()
    assert [record.headers for record in found] == [
        [(f"h\ufffd\ufffdder{n:03}", b"x"), ("other", None)] for n in range(count)
    ]
    assert [(r.offset, r.key, r.value) for r in found] == [(n, None, b"value") for n in range(count)]


def test_a_count_of_records_below_zero_is_corrupt() -> None:
    data = bytearray(batch([b"a"] * 100, 0))
    data[57:61] = (-5).to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatchError, match="a batch of -5 records"):
        ChunkReader(ORDERS, bytes(data), 0, check_crcs=False).read()


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("first", [b"\x7e", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x01"])
def test_control_batches_that_cannot_be_read_are_corrupt(first: bytes) -> None:
    data = bytearray(marker(5, producer_id=7, commit=False))
    data[61 : 61 + len(first)] = first
    with pytest.raises(CorruptBatchError, match="from offset 5 cannot be read"):
        ChunkReader(TopicPartition("t", 0), bytes(data), 0, check_crcs=False).read()
