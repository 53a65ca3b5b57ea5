"""DescribeGroupRecording: what a broker has recorded of a group, also of one that is gone. kohort's own."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import Broker
from kohort.protocol import ApiKey, ErrorCode
from kohort.recording import FILE_NAME, Recorder
from tests.broker.rebalances import rebalances_of_one
from tests.broker.wire import Wire
from tests.broker_process import BrokerProcess
from tests.waiting import wait_until

KEY = ApiKey.DESCRIBE_GROUP_RECORDING


def recorded(wire: Wire, group: str, **own: Any) -> Any:
    fields = {
        "from_ms": 0,
        "until_ms": -1,
        "limit": -1,
        "only_lasting": False,
        "before_ms": -1,
        "before_number": -1,
    }
    return wire.call(KEY, 0, group_id=group, **{**fields, **own})


def generations_in(answer: Any) -> list[int]:
    return [entry.generation for entry in answer.entries if entry.kind == "RebalanceCompleted"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    made = BrokerProcess(tmp_path, data=tmp_path / "data")
    made.start()
    yield made
    if made.alive:
        made.stop()


@pytest.mark.slow(3)
def test_every_cause_is_there_after_200_rebalances_and_a_kill(process: BrokerProcess) -> None:
    with Wire(process.bootstrap) as wire:
        causes = rebalances_of_one(wire, "g", 200)
        wait_until(lambda: generations_in(recorded(wire, "g")) == list(range(1, 201)), "all are in the file")
    process.kill()
    process.start()
    with Wire(process.bootstrap) as wire:
        rebalances_of_one(wire, "g", 2)
        answer = wait_until(
            lambda: (found := recorded(wire, "g", only_lasting=True)).entries[-1].generation > 200 and found,
            "the rebalance after the restart",
        )
        ends = [entry for entry in answer.entries if entry.generation <= 200]
        assert [entry.cause for entry in ends] == causes
        assert answer.is_recording
        first, second = answer.watched
        assert (
            first.from_ms <= ends[0].timestamp_ms <= ends[-1].timestamp_ms <= first.until_ms < second.from_ms
        )
        assert json.loads(ends[0].details)["duration_ms"] >= 0
        # the newest first, the others on request
        [newest] = recorded(wire, "g", limit=1, until_ms=ends[-1].timestamp_ms, only_lasting=True).entries
        assert newest.generation == 200
        older = recorded(
            wire,
            "g",
            limit=5,
            only_lasting=True,
            before_ms=newest.timestamp_ms,
            before_number=newest.number,
        )
        assert [entry.generation for entry in older.entries] == [195, 196, 197, 198, 199]
        assert older.has_older
        assert recorded(wire, "another").entries == []


@pytest.mark.slow(3)
def test_a_damaged_recording_is_an_error_of_this_request_alone_and_not_of_the_start(
    process: BrokerProcess,
) -> None:
    assert process.data is not None
    process.stop()
    (process.data / FILE_NAME).write_bytes(b"no database" * 1_000)
    process.start()
    with Wire(process.bootstrap) as wire:
        rebalances_of_one(wire, "g", 2)
        wait_until(lambda: generations_in(recorded(wire, "g")) == [1, 2], "a new file")
        wait_until(lambda: "it is set aside" in process.log, "the line, which is written a moment later")
    process.stop()
    assert process.log.count("it is set aside") == 1


async def test_a_folder_that_cannot_be_looked_at_is_an_error_of_this_request_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> bool:
        raise PermissionError(errno.EACCES, "no look")

    async with Broker(data=tmp_path, port=0) as broker:
        monkeypatch.setattr(Recorder, "is_begun", property(fail))

        def ask() -> Any:
            with Wire(broker.bootstrap) as wire:
                return recorded(wire, "g")

        answer = await asyncio.to_thread(ask)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "no look" in answer.error_message


@pytest.mark.slow(3)
def test_without_a_recording_the_broker_says_so(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path, data=tmp_path / "data", settings={"kohort.recording.max.bytes": "0"})
    process.start()
    try:
        with Wire(process.bootstrap) as wire:
            answer = recorded(wire, "g")
            assert (answer.error_code, answer.is_recording, answer.watched) == (ErrorCode.NONE, False, [])
    finally:
        process.stop()
    assert not (tmp_path / "data" / FILE_NAME).exists()
