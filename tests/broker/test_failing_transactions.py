"""A disk that is full or broken under transactions: the same step is carried out once it is well again,
nothing is lost, and no reader is held up for good.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.log._files import OsFile
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.coordinators.test_transactions import Producer, values
from tests.broker.wire import Wire, create_topic, offset_at

NONE = ErrorCode.NONE
#: What every producer sends again.
AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}

FOLDERS = ("__transaction_state-", "__consumer_offsets-", "orders-", "")


@contextmanager
def failing(folder: str, error: int, *, half: bool = False) -> Iterator[list[str]]:
    """Writes to the partitions of a folder fail; gives the files."""
    write = OsFile.write
    failed: list[str] = []

    def fails(file: OsFile, position: int, data: Any) -> None:
        if folder not in file.path or not file.path.endswith(".log"):
            write(file, position, data)
            return
        failed.append(file.path)
        if half:
            write(file, position, data[: len(data) // 2])
        raise OSError(error, "the disk fails", file.path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OsFile, "write", fails)
        yield failed


def met(folder: str, error: int, half: bool, step: Callable[[], int]) -> int:
    """Take a step with the failing disk, and again until it is done; how often it was refused."""
    with failing(folder, error, half=half):
        told = step()
    refused = 0
    deadline = time.monotonic() + 10
    while told != NONE:
        assert told in AGAIN, ErrorCode(told).name
        assert time.monotonic() < deadline
        told, refused = step(), refused + 1
    return refused


@pytest.mark.parametrize(
    ("error", "half"),
    [(errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EIO, False)],
    ids=["full", "half a write", "broken"],
)
@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("new", [True, False], ids=["KIP-890", "first"])
def test_every_step_is_taken_once_the_disk_is_well(new: bool, folder: str, error: int, half: bool) -> None:
    with running_broker() as broker, Wire(broker.bootstrap) as wire:
        assert create_topic(wire, "orders", 1).error_code == NONE
        producer = Producer(wire, new=new)

        def initialize() -> int:
            answer = producer.initialize()
            if answer.error_code == NONE:
                producer.id, producer.epoch = answer.producer_id, answer.producer_epoch
            return int(answer.error_code)

        def add() -> int:
            return NONE if new else producer.add("orders", 0)[0]

        steps: list[Callable[[], int]] = [
            initialize,
            add,
            lambda: producer.produce("orders").error_code,
            lambda: producer.commit_offset("g", "orders", 3),
            lambda: producer.end(committed=True).error_code,
        ]
        refused = [met(folder, error, half, step) for step in steps]
        assert sum(refused) > 0
        producer.settle("CompleteCommit")
        assert values(wire, "orders", committed=True) == [b"v0"]
        assert offset_at(wire, "orders", -1, isolation_level=1) == offset_at(wire, "orders", -1)
        assert _offset(wire) == (NONE, 3)


@pytest.mark.parametrize("folder", FOLDERS)
def test_markers_are_written_once_there_is_room_or_after_the_next_start(tmp_path: Path, folder: str) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders", 1)
        producers = [Producer(wire), Producer(wire)]
        for producer in producers:
            assert producer.produce("orders").error_code == NONE
        assert producers[0].commit_offset("g", "orders", 3) == NONE
        with failing(folder, errno.ENOSPC) as failed:
            for producer in producers:
                producer.end(committed=producer is producers[0])
            deadline = time.monotonic() + 5
            while not failed:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        states = [producer.describe().transaction_state for producer in producers]
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        for producer, state in zip(producers, states, strict=True):
            producer.wire = wire
            if state == "Ongoing":
                assert producer.end(committed=producer is producers[0]).error_code == NONE
        producers[0].settle("CompleteCommit")
        producers[1].settle("CompleteAbort")
        assert values(wire, "orders", committed=True) == [b"v0"]
        assert offset_at(wire, "orders", -1, isolation_level=1) == offset_at(wire, "orders", -1)
        assert _offset(wire) == (NONE, 3)


def _offset(wire: Wire) -> tuple[int, int]:
    answer = wire.call(ApiKey.OFFSET_FETCH, 7, group_id="g", topics=[("orders", [0])], require_stable=True)
    (found,) = answer.topics[0].partitions
    return found.error_code, found.committed_offset
