"""A broker is killed at each of its writes: what clients send again is there once, and with its offset."""

from __future__ import annotations

import asyncio
import errno
import shutil
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kohort.broker import Broker
from kohort.log import _files
from kohort.protocol import ApiKey, ErrorCode, iter_batches
from tests.broker.coordinators.test_transactions import Producer, values
from tests.broker.wire import Wire, batch, create_topic, fetch, produce_fields

pytestmark = pytest.mark.slow(15)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # it writes from a thread of its own
    "kohort.recording.max.bytes": "0",
}
#: Records of a batch of the idempotent producer, whose ends the transactions commit.
COUNT = 154
#: Errors after which clients ask again.
NOT_YET = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
WAIT_S = 30.0

T = TypeVar("T")


class Writes:
    """Counts what changes files; the process is ``dead`` from the ``last`` on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
        self.count, self.last, self.dead = 0, 0, False
        self._moment = moment
        write = _files.OsFile.write
        monkeypatch.setattr(_files.OsFile, "write", lambda file, at, data: self._write(write, file, at, data))
        # a dead process takes nothing back, either
        monkeypatch.setattr(_files.OsFile, "truncate", self._dying(_files.OsFile.truncate))
        for name in ("make_dirs", "remove", "rename"):
            monkeypatch.setattr(_files.OsFileSystem, name, self._dying(getattr(_files.OsFileSystem, name)))

    def begin(self, last: int) -> None:
        self.count, self.last, self.dead = 0, last, False

    def _write(self, real: Callable[..., None], file: object, at: int, data: bytes) -> None:
        half = bytes(data)[: len(data) // 2]
        self._carry_out(lambda: real(file, at, data), lambda: real(file, at, half))

    def _dying(self, real: Callable[..., None]) -> Callable[..., None]:
        return lambda *given: self._carry_out(lambda: real(*given), lambda: None)

    def _carry_out(self, whole: Callable[[], None], half: Callable[[], None]) -> None:
        self.count += not self.dead
        if not self.dead and self.count != self.last:
            return whole()
        if not self.dead:
            {"before": lambda: None, "half": half, "after": whole}[self._moment]()
        self.dead = True
        raise OSError(errno.EIO, "the process is dead")


class Run:
    """A broker that is started again when it is dead, and a client that sends again what was not answered."""

    def __init__(self, data: Path, writes: Writes, loop: asyncio.AbstractEventLoop) -> None:
        self._data, self._writes, self._loop = data, writes, loop
        self.deaths = 0
        self.start(0)

    def start(self, last: int) -> None:
        self._writes.begin(0)

        async def started() -> Broker:
            broker = Broker(data=self._data, settings=SETTINGS)
            await broker.start()
            return broker

        self._broker = self._wait(started())
        self.wire = Wire(self._broker.bootstrap, timeout_s=WAIT_S)
        self._writes.begin(last)

    def kill(self) -> None:
        self.wire.close()
        self._writes.begin(0)
        self._wait(self._broker.kill())

    def ask(self, question: Callable[[Wire], T], error_of: Callable[[T], int]) -> T:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                answer = question(self.wire)
            except (OSError, AssertionError):
                assert self._writes.dead
            if self._writes.dead:
                # nobody has got that answer
                self.deaths += 1
                self.kill()
                self.start(0)
            elif error_of(answer) not in NOT_YET:
                return answer
            else:
                time.sleep(0.005)
        raise AssertionError("no end of errors")

    def _wait(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def produce_twice(run: Run) -> int:
    """The first two batches of an idempotent producer, whose id is returned."""

    def produce(sequence: int, producer_id: int, wire: Wire) -> Any:
        records = batch(COUNT, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        answer = wire.call(ApiKey.PRODUCE, 9, **produce_fields("source", records, version=9))
        return answer.responses[0].partition_responses[0]

    fields = {"transactional_id": None, "transaction_timeout_ms": 1_000}
    given = run.ask(lambda wire: wire.call(ApiKey.INIT_PRODUCER_ID, 4, **fields), lambda it: it.error_code)
    for sequence in (0, COUNT):
        told = run.ask(partial(produce, sequence, given.producer_id), lambda it: it.error_code)
        assert (told.error_code, told.base_offset) == (0, sequence)
    return int(given.producer_id)


def committed_offset(wire: Wire) -> Any:
    fields = {"group_id": "g", "topics": [("source", [0])], "require_stable": True}
    return wire.call(ApiKey.OFFSET_FETCH, 7, **fields).topics[0].partitions[0]


def commit(run: Run, offset: int, *, new: bool) -> None:
    """A record and an offset, in a transaction."""
    producer = run.ask(lambda wire: Producer(wire, new=new), lambda _: 0)

    def step(action: Callable[[], int]) -> int:
        before = producer.id, producer.epoch, producer.sequence

        def taken(wire: Wire) -> int:
            # who sends again has not heard of the next epoch
            producer.wire, (producer.id, producer.epoch, producer.sequence) = wire, before
            return action()

        return run.ask(taken, lambda error: error)

    def hold() -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        answer = producer.wire.call(
            ApiKey.TXN_OFFSET_COMMIT,
            5 if new else 3,
            **producer._identity(),
            group_id="g",
            topics=[("source", [partition])],
        )
        return int(answer.topics[0].partitions[0].error_code)

    if not new:
        named = {**producer._identity(), "group_id": "g"}
        assert step(lambda: producer.add("target", 0)[0]) == 0
        assert step(lambda: producer.wire.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, **named).error_code) == 0
    assert step(lambda: producer.produce("target").error_code) == 0
    assert step(hold) == 0
    assert step(lambda: producer.end(committed=True).error_code) == 0
    told = run.ask(committed_offset, lambda it: it.error_code)
    assert (told.committed_offset, told.error_code) == (offset, 0)


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("moment", ["before", "half", "after"])
def test_what_is_sent_again_after_a_kill_at_any_write_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, *, new: bool
) -> None:
    writes, last, died = Writes(monkeypatch, moment), 1, True
    with running_loop() as loop:
        run = Run(tmp_path / "fresh", writes, loop)
        for topic in ("source", "target"):
            assert create_topic(run.wire, topic, 1).error_code == 0
        Producer(run.wire, new=new)
        run.kill()
        while died:
            shutil.copytree(tmp_path / "fresh", tmp_path / str(last))
            run = Run(tmp_path / str(last), writes, loop)
            writes.begin(last)
            producer_id = produce_twice(run)
            for offset in (COUNT, 2 * COUNT):
                commit(run, offset, new=new)
            # the last markers may still be written
            ended = run.ask(
                lambda wire: len(values(wire, "target", committed=True)),
                lambda count: ErrorCode.CONCURRENT_TRANSACTIONS if count < 2 else ErrorCode.NONE,
            )
            (found,) = run.ask(lambda wire: fetch(wire, "source", 0), lambda _: 0)
            heads = [header for _, header in iter_batches(bytes(found.records))]
            assert [(each.producer_id, each.base_sequence) for each in heads] == [
                (producer_id, 0),
                (producer_id, COUNT),
            ]
            assert ended == 2
            died = run.deaths > 0
            run.kill()
            last += 1
    assert last > 30
