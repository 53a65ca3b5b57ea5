"""When records are flushed, shown and acknowledged, as clients see it."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kohort.broker import Broker
from kohort.broker.partitions.partition import Partition
from kohort.log import PartitionLog
from kohort.log._files import OsFile
from kohort.log._producers import MOST_SAVED
from kohort.protocol import ApiKey, ErrorCode, KafkaError, build_batch, parse_batch_header
from kohort.testing import RunningBroker, running_broker
from tests.broker.wire import (
    Wire,
    batch,
    create_topic,
    fetch,
    fetch_fields,
    offset_at,
    part,
    produce,
    produce_fields,
)
from tests.waiting import until

LATEST = -1
NOW_MS = 1_700_000_000_000
HOUR = "3600000"


class Gate:
    """The disk: syncs of .log files wait while it is shut, and fail while it is broken."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.broken = False
        self.entered = threading.Event()
        self.syncs = 0

    def pass_through(self, path: str) -> None:
        if not path.endswith(".log"):
            return
        self.syncs += 1
        self.entered.set()
        assert self.open.wait(10)
        if self.broken:
            raise OSError(errno.EIO, "broken", path)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    monkeypatch.setattr(OsFile, "sync", lambda file: made.pass_through(file.path))
    yield made
    made.broken = False
    made.open.set()


@pytest.fixture
def own(gate: Gate) -> Iterator[RunningBroker]:
    assert gate.open.is_set()
    with running_broker() as running:
        yield running
        gate.open.set()


@pytest.fixture
def link(own: RunningBroker) -> Iterator[Wire]:
    with Wire(own.bootstrap) as connection:
        yield connection


def high_watermark(wire: Wire, topic: str) -> int:
    (result,) = fetch(wire, topic, 0)
    assert result.error_code == 0
    return int(result.high_watermark)


def wait_for(wire: Wire, topic: str, offset: int) -> None:
    deadline = time.monotonic() + 10
    while offset_at(wire, topic, LATEST).offset != offset:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_records_that_are_not_on_the_disk_are_not_seen(link: Wire, gate: Gate) -> None:
    create_topic(link, "shy", kohort_visibility="flushed")
    gate.open.clear()
    assert produce(link, "shy", batch(3)).base_offset == 0
    (result,) = fetch(link, "shy", 0)
    assert (result.high_watermark, result.last_stable_offset, result.records) == (0, 0, b"")
    assert offset_at(link, "shy", LATEST).offset == 0
    assert offset_at(link, "shy", 0).offset == -1
    gate.open.set()
    wait_for(link, "shy", 3)
    (result,) = fetch(link, "shy", 0)
    assert result.high_watermark == 3
    assert result.records


async def test_what_was_recovered_is_on_the_disk_before_it_is_shown(tmp_path: Path) -> None:
    data, left = tmp_path / "data", tmp_path / "left"
    async with Broker(data=data) as broker:
        await broker.topics.create("shy", 1, {"kohort.visibility": "flushed"})
        broker.topics.logs.partition("shy", 0).append(batch(3), now_ms=NOW_MS)
        # the recorder writes its file meanwhile
        shutil.copytree(data, left, ignore=shutil.ignore_patterns("recording.db*"))
    async with Broker(data=left) as broker:
        log = broker.topics.logs.partition("shy", 0).open()
        assert log is not None
        assert (log.high_watermark, log.recovery_point, log.log_end_offset) == (3, 3, 3)


def test_after_a_clean_stop_the_end_is_told_without_reading_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "known")
        produce(wire, "known", batch(3))
    opened: list[str] = []
    monkeypatch.setattr(Partition, "_take_up", _noting(opened, Partition._take_up))
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert offset_at(wire, "known", LATEST).offset == 3
        assert "known" not in opened
        # that of committed records depends on open transactions
        assert offset_at(wire, "known", LATEST, isolation_level=1).offset == 3
        assert "known" in opened
        produce(wire, "known", batch(2))
        assert offset_at(wire, "known", LATEST).offset == 5


def _noting(
    opened: list[str], take_up: Callable[[Partition, PartitionLog], None]
) -> Callable[[Partition, PartitionLog], None]:
    def take(partition: Partition, log: PartitionLog) -> None:
        opened.append(partition.topic.name)
        take_up(partition, log)

    return take


async def test_the_end_of_an_earlier_topic_is_not_that_of_one_of_its_name(tmp_path: Path) -> None:
    async with Broker(data=tmp_path) as broker:
        await broker.topics.create("twice", 1, {})
        broker.topics.logs.partition("twice", 0).append(batch(3), now_ms=NOW_MS)
    async with Broker(data=tmp_path) as broker:
        assert broker.topics.logs.partition("twice", 0).high_watermark == 3
        image = broker.topics.image.topic("twice")
        assert image is not None
        await broker.topics.delete([image])
        await broker.topics.create("twice", 1, {})
        assert broker.topics.logs.partition("twice", 0).high_watermark == 0


@pytest.mark.parametrize(("copied_at", "left_at"), [(3, 5), (5, 3)])
async def test_files_that_were_put_back_from_a_copy_tell_their_end_themselves(
    tmp_path: Path, copied_at: int, left_at: int
) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    for folder, count in ((data, left_at), (other, copied_at)):
        async with Broker(data=folder) as broker:
            await broker.topics.create("copied", 1, {})
            broker.topics.logs.partition("copied", 0).append(batch(count), now_ms=NOW_MS)
    shutil.copy(data / "copied-0" / "partition.metadata", other / "copied-0")
    shutil.rmtree(data / "copied-0")
    shutil.copytree(other / "copied-0", data / "copied-0")
    async with Broker(data=data) as broker:
        assert broker.topics.logs.partition("copied", 0).high_watermark == copied_at


async def test_after_any_other_stop_the_files_tell_the_end(tmp_path: Path) -> None:
    data, left = tmp_path / "data", tmp_path / "left"
    async with Broker(data=data) as broker:
        await broker.topics.create("cut", 1, {})
        broker.topics.logs.partition("cut", 0).append(batch(3), now_ms=NOW_MS)
    async with Broker(data=data) as broker:
        broker.topics.logs.partition("cut", 0).append(batch(1), now_ms=NOW_MS)
        # the recorder writes its file meanwhile
        shutil.copytree(data, left, ignore=shutil.ignore_patterns("recording.db*"))
    async with Broker(data=left) as broker:
        assert broker.topics.logs.partition("cut", 0).high_watermark == 4


async def test_the_high_watermark_never_goes_back_when_the_visibility_changes() -> None:
    async with Broker() as broker:
        topic = await broker.topics.create("shy", 1, {})
        partition = broker.topics.logs.partition("shy", 0)
        partition.append(batch(2), now_ms=NOW_MS)
        await broker.topics.alter({topic: {"kohort_visibility": "flushed"}})
        partition.append(batch(1), now_ms=NOW_MS)
        assert (partition.high_watermark, partition.log_end_offset) == (2, 3)
        await broker.topics.alter({topic: {}})
        assert partition.high_watermark == 3


async def test_a_batch_made_here_is_shown_at_once_and_not_added_to_damaged_files() -> None:
    async with Broker() as broker:
        await broker.topics.create("made", 1, {})
        partition = broker.topics.logs.partition("made", 0)
        for number in range(3):
            made = build_batch([(b"k", b"v")], timestamp_ms=NOW_MS)
            assert partition.append_built(made, now_ms=NOW_MS) == number
            assert partition.high_watermark == number + 1
        partition.damage = "a file is damaged"
        with pytest.raises(KafkaError, match="a file is damaged"):
            partition.append_built(build_batch([(b"k", b"v")], timestamp_ms=NOW_MS), now_ms=NOW_MS)
        assert partition.log_end_offset == 3


async def test_an_append_that_begins_a_segment_has_the_snapshot_of_many_producers_written() -> None:
    async with Broker() as broker:
        await broker.topics.create("many", 1, {"segment_bytes": "1048576"})
        partition = broker.topics.logs.partition("many", 0)
        large = build_batch([(b"k", b"x" * 900_000)], timestamp_ms=NOW_MS, producer_id=1, base_sequence=0)
        partition.append(large, now_ms=NOW_MS)
        log = partition.open()
        assert log is not None
        for number in range(2, 2 * MOST_SAVED):
            log._producers.note(parse_batch_header(large)._replace(producer_id=number), None, NOW_MS)
        partition.append(build_batch([(b"k", b"x" * 900_000)], timestamp_ms=NOW_MS), now_ms=NOW_MS)
        assert log.has_snapshot_to_write
        await until(lambda: not log.has_snapshot_to_write)
        assert list(Path(log.path).glob("*1.snapshot"))


def test_a_fetch_waits_for_the_flush(link: Wire, own: RunningBroker, gate: Gate) -> None:
    create_topic(link, "shy", kohort_visibility="flushed")
    gate.open.clear()
    produce(link, "shy", batch(3))
    with Wire(own.bootstrap) as reader:
        number = reader.send(ApiKey.FETCH, 12, **fetch_fields("shy", 0, max_wait_ms=8_000))
        assert gate.entered.wait(10)
        gate.open.set()
        answer = reader.receive(ApiKey.FETCH, 12, number)
    assert answer.responses[0].partitions[0].high_watermark == 3
    assert answer.responses[0].partitions[0].records


@pytest.mark.parametrize(
    "configs", [{"flush_messages": "4"}, {"flush_messages": "4", "flush_ms": HOUR}], ids=lambda c: str(len(c))
)
def test_with_an_interval_records_are_seen_when_it_is_over(
    link: Wire, gate: Gate, configs: dict[str, str]
) -> None:
    create_topic(link, "batches", 1, kohort_visibility="flushed", **configs)
    produce(link, "batches", batch(3))
    assert high_watermark(link, "batches") == 0
    assert gate.syncs == 0
    produce(link, "batches", batch(1))
    assert high_watermark(link, "batches") == 4


def test_flush_messages_is_exact(link: Wire, gate: Gate) -> None:
    create_topic(link, "counted", flush_messages="3")
    for count, syncs in ((2, 0), (1, 1), (2, 1), (2, 2), (5, 3)):
        produce(link, "counted", batch(count), acks=1)
        assert gate.syncs == syncs


def test_a_flush_by_time_takes_what_is_old_enough(link: Wire, gate: Gate) -> None:
    create_topic(link, "timed", kohort_visibility="flushed", flush_ms="150")
    started = time.monotonic()
    produce(link, "timed", batch(1))
    produce(link, "timed", batch(1))
    wait_for(link, "timed", 2)
    assert time.monotonic() - started >= 0.15
    assert gate.syncs == 1


def test_acks_all_waits_for_the_disk_and_acks_1_does_not(link: Wire, own: RunningBroker, gate: Gate) -> None:
    create_topic(link, "safe", kohort_ack_flush="true")
    gate.open.clear()
    assert produce(link, "safe", batch(), acks=1).base_offset == 0
    with Wire(own.bootstrap) as second:
        fields = produce_fields("safe", batch(2), acks=-1)
        numbers = [(wire, wire.send(ApiKey.PRODUCE, 9, **fields)) for wire in (link, second)]
        assert gate.entered.wait(10)
        with Wire(own.bootstrap) as reader:  # appended is seen, and the loop is free
            deadline = time.monotonic() + 10
            while high_watermark(reader, "safe") < 5:
                assert time.monotonic() < deadline
        gate.open.set()
        answers = [wire.receive(ApiKey.PRODUCE, 9, number) for wire, number in numbers]
    offsets = {answer.responses[0].partition_responses[0].base_offset for answer in answers}
    assert offsets == {1, 3}
    assert gate.syncs <= 2


def test_a_duplicate_waits_for_the_disk_as_the_first_did(link: Wire, own: RunningBroker, gate: Gate) -> None:
    create_topic(link, "safe", kohort_ack_flush="true")
    again = batch(2, producer_id=7, producer_epoch=0, base_sequence=0)
    gate.open.clear()
    with Wire(own.bootstrap) as second:
        numbers = []
        for wire in (link, second):
            numbers.append(wire.send(ApiKey.PRODUCE, 9, **produce_fields("safe", again)))
            assert gate.entered.wait(10)
        gate.open.set()
        answers = [
            wire.receive(ApiKey.PRODUCE, 9, number).responses[0].partition_responses[0]
            for wire, number in zip((link, second), numbers, strict=True)
        ]
    assert [(one.error_code, one.base_offset) for one in answers] == [(0, 0), (0, 0)]


def test_a_disk_that_fails_takes_the_partition_offline(link: Wire, gate: Gate) -> None:
    create_topic(link, "lost", partitions=2, kohort_ack_flush="true")
    gate.broken = True
    result = produce(link, "lost", batch())
    assert (result.error_code, result.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    gate.broken = False
    assert produce(link, "lost", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [one.error_code for one in fetch(link, "lost", 0, 0)] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert offset_at(link, "lost", LATEST).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(link, "lost", batch(), partition=1).error_code == 0


def test_a_failed_sync_makes_the_next_start_look_at_the_files(
    gate: Gate, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("data")
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "lost", kohort_ack_flush="true")
        gate.broken = True
        assert produce(wire, "lost", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        gate.broken = False
    assert not (data / ".kafka_cleanshutdown").exists()
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        assert produce(wire, "lost", batch()).error_code == 0


def test_deleting_the_topic_ends_the_wait(link: Wire, own: RunningBroker, gate: Gate) -> None:
    create_topic(link, "going", kohort_ack_flush="true")
    gate.open.clear()
    number = link.send(ApiKey.PRODUCE, 9, **produce_fields("going", batch()))
    assert gate.entered.wait(10)
    with Wire(own.bootstrap) as admin:
        answer = admin.call(ApiKey.DELETE_TOPICS, 5, topic_names=["going"], timeout_ms=1_000)
        assert answer.responses[0].error_code == 0
    result = link.receive(ApiKey.PRODUCE, 9, number).responses[0].partition_responses[0]
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    gate.open.set()


def test_the_two_configs_are_described(link: Wire) -> None:
    told = create_topic(link, "told", kohort_ack_flush="true", kohort_visibility="flushed")
    shown = {row.name: row.value for row in told.configs}
    assert (shown["kohort.ack.flush"], shown["kohort.visibility"]) == ("true", "flushed")
    refused = create_topic(link, "odd", kohort_visibility="seen")
    assert refused.error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("flushed", [False, True])
def test_offsets_are_acknowledged_once_they_are_on_the_disk_where_asked_for(
    gate: Gate, flushed: bool
) -> None:
    with running_broker(kohort_offsets_ack_flush=flushed) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        wanted = part(
            ApiKey.OFFSET_COMMIT,
            9,
            "OffsetCommitRequestTopic",
            "OffsetCommitRequestPartition",
            partition_index=0,
            committed_offset=5,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        topic = part(ApiKey.OFFSET_COMMIT, 9, "OffsetCommitRequestTopic", name="orders", partitions=[wanted])
        fields = {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [topic],
        }
        before = gate.syncs
        answer = wire.call(ApiKey.OFFSET_COMMIT, 9, **fields)
        assert answer.topics[0].partitions[0].error_code == 0
        assert gate.syncs - before == flushed
