"""A disk that is full when a partition is first written to."""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path

import pytest

from kohort.broker.partitions.topic_names import OFFSETS_TOPIC
from kohort.coordinator.engine import runner, runtime
from kohort.log._files import OsFile, OsFileSystem
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.apis.share_members import ACCEPT, ShareMember, acquired, initialize
from tests.broker.wire import Wire, batch, commit_fields, create_topic, part, produce


def fails(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize(
    ("kind", "operation"), [(OsFileSystem, "make_dirs"), (OsFile, "write")], ids=["folder", "file"]
)
def test_a_producers_first_batch_stays_its_first_though_others_were_under_way_behind_it(
    monkeypatch: pytest.MonkeyPatch, kind: type, operation: str
) -> None:
    """They would be stored in front of it, and again once the producer has sorted itself out. On the same
    connection the next one is refused as the first was.
    """
    first = batch(3, producer_id=7, producer_epoch=0, base_sequence=0)
    second = batch(2, producer_id=7, producer_epoch=0, base_sequence=3)
    with running_broker() as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        with monkeypatch.context() as full:
            full.setattr(kind, operation, fails)
            assert produce(wire, "orders", first).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(wire, "orders", second).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(wire, "orders", second).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(wire, "orders", first).base_offset == 0
        assert produce(wire, "orders", second).base_offset == 3


def committed(wire: Wire) -> tuple[int, int]:
    """The error, and the offset that a group has committed."""
    topic = part(ApiKey.OFFSET_FETCH, 5, "OffsetFetchRequestTopic", name="orders", partition_indexes=[0])
    answer = wire.call(ApiKey.OFFSET_FETCH, 5, group_id="g", topics=[topic])
    if answer.error_code:
        return answer.error_code, -1
    return 0, answer.topics[0].partitions[0].committed_offset


def test_a_start_on_a_full_disk_serves_groups_that_have_to_be_read_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        wire.call(ApiKey.OFFSET_COMMIT, 5, **commit_fields("g", "orders", 7))
        assert committed(wire) == (0, 7)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    whole, is_full = OsFile.write, threading.Event()

    def full(file: OsFile, position: int, data: bytes) -> None:
        if OFFSETS_TOPIC in file.path and is_full.is_set():
            fails()
        whole(file, position, data)

    is_full.set()
    monkeypatch.setattr(OsFile, "write", full)
    monkeypatch.setattr(runner, "_AGAIN_S", 0.05)
    monkeypatch.setattr(runtime, "_LOAD_PARK_SECONDS", 0.05)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert committed(wire) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
        is_full.clear()
        deadline = time.monotonic() + 30
        while (found := committed(wire)) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert found == (0, 7)


def test_an_acknowledgement_on_a_full_disk_is_refused_at_once_and_counts_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait would keep its member from everything else, and nobody knows when there is room."""
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        topic_id = create_topic(wire, "jobs").topic_id
        initialize(wire, "g", topic_id, start=0)
        produce(wire, "jobs", batch(3))
        with ShareMember(broker.bootstrap, "g", "m") as member:
            assert acquired(member.fetch(topic_id, 0)) == [(0, 2, 1)]
            with monkeypatch.context() as full:
                full.setattr(OsFile, "write", fails)
                assert member.acknowledge(topic_id, (0, 1, [ACCEPT])) == (
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    "the disk of the share coordinator takes no writes",
                )
            # they are its own still
            assert member.acknowledge(topic_id, (0, 1, [ACCEPT])) == (0, None)
    with running_broker(data=tmp_path) as broker, ShareMember(broker.bootstrap, "g", "n") as member:
        assert acquired(member.fetch(topic_id, 0)) == [(2, 2, 2)]


def test_a_start_on_a_full_disk_serves_a_partition_that_has_to_be_read_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        assert produce(wire, "orders", batch(3)).base_offset == 0
    (tmp_path / ".kafka_cleanshutdown").unlink()
    refused: list[str] = []
    whole = OsFile.write

    def full(file: OsFile, position: int, data: bytes) -> None:
        if "orders-0" in file.path and not there_is_room:
            refused.append(file.path)
            fails()
        whole(file, position, data)

    there_is_room = False
    monkeypatch.setattr(OsFile, "write", full)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert refused
        there_is_room = True
        assert produce(wire, "orders", batch(1)).base_offset == 3
