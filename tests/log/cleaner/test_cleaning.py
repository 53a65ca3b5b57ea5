"""Compaction of a partition's log, as its readers see it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import DataFolder, LogConfig, PartitionLog, at_once
from kohort.log.cleaner._keys import KEY_OVERHEAD_BYTES
from kohort.protocol._batch import _write_crc
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, TOPIC_ID, batch, marker, offsets_of, open_log
from tests.log.cleaning import compact, found, headers, keyed, newest, values, write
from tests.log.disks import disk, opened

#: One batch fills a segment.
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=100)


def test_the_active_segment_stays_as_it_is(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, keyed(("a", "1")), keyed(("a", "2")), keyed(("a", "3")))
    compact(log)
    assert values(log) == [(1, "a", "2"), (2, "a", "3")]


def test_a_second_compaction_begins_where_the_first_ended(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, keyed(("a", "1")), keyed(("b", "1")), keyed(("c", "1")))
    assert compact(log).end_offset == log.cleaner_offset == 2
    assert log.cleanable(NOW_MS).dirty_bytes == 0
    write(log, keyed(("a", "2")), keyed(("d", "1")))
    report = compact(log)
    assert (report.records, report.end_offset) == (2, 4)
    assert values(log) == [(1, "b", "1"), (2, "c", "1"), (3, "a", "2"), (4, "d", "1")]


def test_small_segments_become_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, *(keyed((f"key-{n}", "x")) for n in range(20)))
    log.reconfigure(LogConfig(cleanup_policy="compact", segment_bytes=10_000))
    before = values(log)
    report = compact(log)
    assert (report.segments_before, report.segments_after) == (19, 1)
    assert values(log) == before
    log.close()
    assert values(open_log(tmp_path, CONFIG)) == before


def test_every_offset_can_still_be_asked_for(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, *(keyed((f"key-{n % 3}", f"{n}")) for n in range(30)))
    compact(log)
    left = [offset for offset, _, _ in values(log)]
    for offset in range(log.log_end_offset):
        first = offsets_of(log.read(offset, 1).records)[0]
        assert first[1] >= offset
        expected = min(o for o in left if o >= offset)
        assert first[0] <= expected or log.read(first[1] + 1, 1).records


def test_times_are_found_in_what_is_left(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, *(keyed((f"key-{n % 3}", f"{n}"), timestamp_ms=1_000 + n) for n in range(30)))
    compact(log)
    assert [record.timestamp_ms for record in found(log)] == [1_026, 1_027, 1_028, 1_029]
    assert at_once(log.find_timestamp(1_000)) == (26, 1_026, 0)
    assert at_once(log.find_timestamp(1_027)) == (27, 1_027, 0)
    assert at_once(log.find_newest()) == (29, 1_029)


def test_what_reads_meanwhile_gets_the_old_records_or_the_new(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, *(keyed((f"key-{n % 5}", f"{n}")) for n in range(40)))
    expected = newest(found(log))
    cleaning = log.begin_cleaning(NOW_MS)
    for number, stage in enumerate(cleaning.stages()):
        position = log.read(number % 40, 200)
        stage.run()
        assert newest(found(log)) == expected
        assert position.records
        if number % 7 == 0:
            write(log, keyed(("new", f"{number}")))
            expected = newest(found(log))
    assert log.end_cleaning(cleaning)
    assert newest(found(log)) == expected


def test_old_files_go_when_their_delay_is_over(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_policy="compact", segment_bytes=100, file_delete_delay_ms=50))
    write(log, *(keyed(("a", f"{n}")) for n in range(5)))
    compact(log)
    folder = Path(log.path)
    assert list(folder.glob("*.deleted"))
    log.apply_retention(NOW_MS + 49)
    assert list(folder.glob("*.deleted"))
    log.apply_retention(NOW_MS + 50)
    assert not list(folder.glob("*.deleted"))


def test_several_passes_do_what_one_has_no_memory_for(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_policy="compact", segment_bytes=500))
    write(log, *(keyed((f"key-{n % 10}", f"{n}")) for n in range(100)))
    expected = newest(found(log))
    passes = 0
    while log.cleanable(NOW_MS).dirty_bytes:
        compact(log, memory_bytes=4 * KEY_OVERHEAD_BYTES)
        assert newest(found(log)) == expected
        passes += 1
    assert passes > 10
    compact(log)
    assert len(values(log)) < 25


def test_a_producer_goes_on_after_its_records_were_compacted_away(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    for sequence in range(3):
        log.append(batch(1, producer_id=7, sequence=sequence), now_ms=NOW_MS)
    write(log, keyed(("key-0", "newer")), keyed(("z", "1")))
    compact(log)
    assert (2, 2, 0) in headers(log)
    log.close()
    again = open_log(tmp_path, CONFIG, clean=False)
    for path in Path(again.path).glob("*.snapshot"):
        path.unlink()
    again._segments.close()
    again = open_log(tmp_path, CONFIG, clean=False)
    assert again.append(batch(1, producer_id=7, sequence=2), now_ms=NOW_MS).duplicate
    assert again.append(batch(1, producer_id=7, sequence=3), now_ms=NOW_MS).base_offset == 5


def test_an_open_transaction_holds_compaction_back(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    write(log, keyed(("a", "1")), keyed(("a", "2")))
    write(
        log,
        keyed(("a", "3"), producer_id=1, sequence=0, transactional=True),
        keyed(("a", "4")),
        keyed(("b", "1")),
    )
    assert log.cleanable(NOW_MS).end_offset == 2
    compact(log)
    assert values(log) == [(1, "a", "2"), (2, "a", "3"), (3, "a", "4"), (4, "b", "1")]
    write(log, marker(1, committed=False), keyed(("c", "1")))
    compact(log)
    assert values(log) == [(3, "a", "4"), (4, "b", "1"), (6, "c", "1")]


def test_tombstones_go_after_their_time_in_the_clean_part(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy="compact", segment_bytes=100, delete_retention_ms=1_000)
    log = open_log(tmp_path, config)
    write(log, keyed(("a", "1")), keyed(("a", None)), keyed(("b", "1")))
    compact(log, NOW_MS)
    assert values(log) == [(1, "a", None), (2, "b", "1")]
    write(log, keyed(("c", "1")))
    compact(log, NOW_MS + 999)
    assert values(log) == [(1, "a", None), (2, "b", "1"), (3, "c", "1")]
    write(log, keyed(("d", "1")))
    compact(log, NOW_MS + 1_000)
    assert values(log) == [(2, "b", "1"), (3, "c", "1"), (4, "d", "1")]


def test_the_checkpoint_outlives_the_process(tmp_path: Path) -> None:
    def start() -> tuple[DataFolder, PartitionLog]:
        folder = DataFolder.open(tmp_path)
        return folder, folder.open_log("orders", 0, CONFIG, now_ms=NOW_MS, topic_id=TOPIC_ID)

    folder, log = start()
    write(log, *(keyed(("a", f"{n}")) for n in range(4)))
    compact(log)
    log.close()
    folder.write_checkpoints([log])
    folder.close()
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    folder, log = start()
    assert log.cleaner_offset == 3
    log.abandon()
    folder.remove_deleted(folder.mark_deleted("orders", 0) or "")
    log = folder.open_log("orders", 0, CONFIG, now_ms=NOW_MS, topic_id=TOPIC_ID)
    assert log.cleaner_offset == 0
    folder.write_checkpoints([log])
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"
    folder.close()


@pytest.mark.parametrize(("batches", "min_bytes", "rolls"), [(4, 1, True), (4, 10_000, False), (0, 0, False)])
def test_a_roll_for_cleaning_makes_the_active_segment_cleanable(
    tmp_path: Path, batches: int, min_bytes: int, rolls: bool
) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_policy="compact"))
    write(log, *(keyed(("a", f"{n}")) for n in range(batches)))
    assert log.roll_for_cleaning(NOW_MS, min_bytes) is rolls
    assert not log.roll_for_cleaning(NOW_MS, min_bytes)
    assert bool(log.cleanable(NOW_MS).dirty_bytes) is rolls


# -- against a model -----------------------------------------------------------------------------------------

_KEYS = st.sampled_from("abcdefg")
_RECORDS = st.lists(st.tuples(_KEYS, st.none() | st.text("xyz", max_size=30)), min_size=1, max_size=5)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), _RECORDS, st.integers(0, 4)),
        st.tuples(st.just("begin"), _RECORDS, st.sampled_from([1, 2])),
        st.tuples(st.just("end"), st.booleans(), st.sampled_from([1, 2])),
        st.tuples(st.just("compact"), st.integers(0, 3_000), st.sampled_from([1, 1_500, 1 << 20])),
        st.tuples(st.just("reopen"), st.booleans(), st.booleans()),
    ),
    max_size=40,
)


class Model:
    """What the log must mean: the newest committed value of each key."""

    def __init__(self, fs: FaultyFileSystem) -> None:
        self.fs = fs
        self.config = LogConfig(
            cleanup_policy="compact", segment_bytes=400, delete_retention_ms=500, index_interval_bytes=64
        )
        self.log = opened(fs, self.config, clean=True)
        self.now_ms = NOW_MS
        self.committed: dict[int, tuple[str, str | None]] = {}
        self.open: dict[int, list[tuple[int, str, str | None]]] = {}
        self.sequences = {1: 0, 2: 0}

    def plain(self, records: list[tuple[str, str | None]], codec: int) -> None:
        self._put(self._append(keyed(*records, codec=codec)), records)

    def begin(self, records: list[tuple[str, str | None]], producer_id: int) -> None:
        data = keyed(
            *records, producer_id=producer_id, sequence=self.sequences[producer_id], transactional=True
        )
        self.sequences[producer_id] += len(records)
        base = self._append(data)
        placed = [(base + n, key, value) for n, (key, value) in enumerate(records)]
        self.open.setdefault(producer_id, []).extend(placed)

    def end(self, committed: bool, producer_id: int) -> None:
        if producer_id not in self.open:
            return
        self._append(marker(producer_id, committed=committed))
        for offset, key, value in self.open.pop(producer_id):
            if committed:
                self.committed[offset] = (key, value)

    def compact(self, later_ms: int, memory_bytes: int) -> None:
        self.now_ms += later_ms
        compact(self.log, self.now_ms, memory_bytes=memory_bytes)

    def reopen(self, cleanly: bool, ordered: bool) -> None:
        cleaned = self.log.cleaner_offset
        if cleanly:
            self.log.close()
            self.log = opened(self.fs, self.config, clean=True)
        else:
            self.log.flush()
            self.fs = self.fs.after_crash(len(self.fs.operations), ordered=ordered)
            self.log = opened(self.fs, self.config, recovery_point=self.log.recovery_point)
        self.log.cleaner_offset = cleaned

    def check(self) -> None:
        table: dict[bytes | None, tuple[int, bytes | None]] = {}
        for offset, (key, value) in sorted(self.committed.items()):
            if offset < self.log.last_stable_offset:
                table[key.encode()] = (offset, None if value is None else value.encode())
        expected = {key: entry for key, entry in table.items() if entry[1] is not None}
        assert newest(found(self.log, committed=True)) == expected
        stored = [record.offset for record in found(self.log)]
        assert stored == sorted(set(stored))

    def _append(self, data: bytes) -> int:
        return self.log.append(data, now_ms=self.now_ms, from_client=False).base_offset

    def _put(self, base: int, records: list[tuple[str, str | None]]) -> None:
        for delta, (key, value) in enumerate(records):
            self.committed[base + delta] = (key, value)


@settings(max_examples=150)
@given(_STEPS)
def test_any_sequence_of_writes_compactions_and_restarts_means_the_same(
    steps: list[tuple[str, object, object]],
) -> None:
    model = Model(disk())
    for name, *arguments in steps:
        getattr(model, name)(*arguments)
        model.check()
    for producer_id in (1, 2):
        model.end(False, producer_id)
    model.compact(0, 1 << 20)
    model.compact(600, 1 << 20)
    model.check()


@pytest.mark.parametrize("claimed", [1, 5, -1, -3])
def test_records_whose_offset_lies_outside_of_their_batch_cost_no_other_record_its_place(
    tmp_path: Path, claimed: int
) -> None:
    odd = bytearray(keyed(("a", "2")))
    odd[61 + 3] = (claimed << 1) ^ (claimed >> 63)
    _write_crc(odd, 0)
    log = open_log(tmp_path, CONFIG)
    write(log, keyed(("a", "1")), keyed(("b", "1")), keyed(("c", "1")))
    log.append(bytes(odd), now_ms=NOW_MS)
    write(log, *(keyed((key, "2")) for key in "bcdefghij"))
    compact(log)
    left = [(key, value) for _, key, value in values(log)]
    assert ("a", "2") in left
    for key in "bcdefghij":
        assert (key, "2") in left
    assert ("b", "1") not in left
