"""A log on a disk that fails, and what has to be in it: every record by its offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kohort.log import CorruptLogError, DataFolder, LogConfig, decode_records
from kohort.protocol import ErrorCode, KafkaError, build_batch, iter_batches, verify_batch
from kohort.testing.faults import FaultyFileSystem, SimulatedCrash
from tests.log.batches import NOW_MS, TOPIC_ID, committed
from tests.log.disks import disk

KeyValue = tuple[bytes | None, bytes | None]


class Survival(NamedTuple):
    """What becomes of the disk in a crash: ``kill`` stops the program only; a seed below 0 stands for the
    worst, when nothing is left but what was synced. ``again`` is an operation of the recovery at which the
    machine stops once more.
    """

    kill: bool = False
    seed: int = 0
    again: int | None = None

    def disk(self, fs: FaultyFileSystem) -> FaultyFileSystem:
        if self.kill:
            return fs.after_kill()
        return fs.only_synced() if self.seed < 0 else fs.after_crash(self.seed)


KILLED = Survival(kill=True)


class Model:
    """The log ``orders-0`` of a data folder, driven as a broker drives it, and checked after each step."""

    def __init__(self, config: LogConfig, *, page_bytes: int = 64) -> None:
        self.fs = disk(page_bytes=page_bytes)
        self.config = config
        self.now_ms = NOW_MS
        #: Key and value of all that was acknowledged, and of an append that did not end.
        self.sent: dict[int, KeyValue] = {}
        self.unanswered: dict[int, KeyValue] = {}
        self.end = 0
        self.flushed = 0
        #: Between these the log may begin.
        self.starts = (0, 0)
        self.refusals = 0
        self.crashes = 0
        self._serial = 0
        self._open()

    # -- steps -----------------------------------------------------------------------------------------------

    def append(self, keys: list[bytes], value_bytes: int = 5) -> bool:
        """One batch of records; whether the disk took it."""
        self._serial += 1
        value = b"%d" % self._serial + bytes(value_bytes)
        records = [(key, value, ()) for key in keys]
        self.unanswered = {self.end + at: (key, value) for at, key in enumerate(keys)}
        data = bytes(build_batch(records, timestamp_ms=self.now_ms))
        if not self._done(lambda: self.log.append(data, now_ms=self.now_ms)):
            return False
        committed(self.log)
        self.sent |= self.unanswered
        self.end += len(keys)
        self.unanswered = {}
        if self.log.recovery_point == self.end:
            self.flushed = self.end
        return True

    def flush(self) -> bool:
        done = self._done(self.log.flush)
        if done:
            self.flushed = self.end
        return done

    def checkpoint(self) -> bool:
        done = self._done(lambda: self.folder.write_checkpoints([self.log]))
        if done:
            self.starts = (self.log.log_start_offset, self.starts[1])
        return done

    def delete_records(self, before: int) -> bool:
        self.starts = (self.starts[0], max(self.starts[1], before))
        return self._done(lambda: self.log.delete_records(before, now_ms=self.now_ms))

    def retain(self) -> bool:
        self.starts = (self.starts[0], max(self.starts[1], self.log._segments.active.base_offset))
        return self._done(lambda: self.log.apply_retention(self.now_ms))

    def compact(self) -> bool:
        """Roll if that helps, then compact what can be."""
        return self._done(self._compact)

    def close(self) -> bool:
        """A clean stop and the next start, or one that the disk did not let be clean."""
        if not self._done(self.log.close):
            return False
        self.flushed = self.end
        done = self._done(self._close_folder)
        if done:
            self.fs = self.fs.only_synced()
            self._open()
            assert self.log.recovery.cuts == []
            assert self.log.recovery.verified_bytes == 0
        return done

    def crash(self, survival: Survival) -> None:
        """Go on from what is left of the disk."""
        self.crashes += 1
        last = self.fs
        self.fs = survival.disk(last)
        if survival.again is not None:
            self.fs.crash_at(survival.again)
        try:
            self._open()
        except SimulatedCrash:
            self.fs = survival.disk(self.fs)
            self._reopen(survival, last)
        except CorruptLogError:
            self._refused(survival, last)
        self._settle(survival)

    # -- checks ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What a reader gets is what was sent, all of it or, once compacted, the newest of each key."""
        log = self.log
        assert log.log_end_offset == self.end
        start = log.log_start_offset
        assert self.starts[0] <= start <= self.starts[1]
        found = {offset: record for offset, record in self._read() if offset >= start}
        expected = {offset: record for offset, record in self.sent.items() if offset >= start}
        assert self.config.compacts or list(expected) == list(range(start, self.end))
        if not self.config.compacts:
            assert found == expected
            return
        assert found.items() <= expected.items()
        newest = {record[0]: offset for offset, record in expected.items()}
        assert set(newest.values()) <= found.keys()

    def _read(self) -> list[tuple[int, KeyValue]]:
        found: list[tuple[int, KeyValue]] = []
        offset = self.log.log_start_offset
        while (run := self.log.read(offset, 300, to_log_end=True)).records:
            data = bytes(run.records)
            for position, header in iter_batches(data):
                verify_batch(data, header, position)
                found += [(at, (key, value)) for at, _, key, value in decode_records(data, header, position)]
                offset = header.next_offset
        return found

    # -- inside ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.folder = DataFolder.open("/data", fs=self.fs)
        opened = self.folder.open_log("orders", 0, self.config, now_ms=self.now_ms, topic_id=TOPIC_ID)
        self.log = committed(opened)

    def _reopen(self, survival: Survival, last: FaultyFileSystem) -> None:
        try:
            self._open()
        except CorruptLogError:
            self._refused(survival, last)

    def _refused(self, survival: Survival, last: FaultyFileSystem) -> None:
        """Damage in the middle is refused, not cut: only a lost page that nobody had synced can make it."""
        assert not survival.kill
        assert self.flushed < self.end + len(self.unanswered) or last.failed
        self.refusals += 1
        self.fs = last.only_synced()
        self._open()

    def _settle(self, survival: Survival) -> None:
        """Take what was recovered for what there is from now on."""
        self.sent |= self.unanswered
        most = self.end + len(self.unanswered)
        least = self.end if survival.kill else self.flushed
        end = self.log.log_end_offset
        assert least <= end <= most
        assert end in (self.end, most) or not survival.kill
        self.sent = {offset: record for offset, record in self.sent.items() if offset < end}
        if self.config.compacts and not survival.kill:
            # the name of the next file may have outlived the last records before it
            found = {offset for offset, _ in self._read()}
            self.sent = {o: record for o, record in self.sent.items() if o < self.flushed or o in found}
        self.end = self.flushed = end  # all of this disk is durable
        self.unanswered = {}
        start = self.log.log_start_offset
        assert self.starts[0] <= start <= self.starts[1]
        self.starts = (start, start)

    def _done(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except KafkaError as error:
            if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            if not self.log.offline:
                self.unanswered = {}
            return False
        return True

    def _close_folder(self) -> None:
        self.folder.write_checkpoints([self.log])
        self.folder.close()

    def _compact(self) -> None:
        if not self.config.compacts:
            return
        self.log.roll_for_cleaning(self.now_ms, 1)
        try:
            cleaning = self.log.begin_cleaning(self.now_ms)
            for stage in cleaning.stages():
                stage.run()
        except OSError as error:
            self.log.end_cleaning(cleaning)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self.log.end_cleaning(cleaning)
