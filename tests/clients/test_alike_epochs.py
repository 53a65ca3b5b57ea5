"""Producers whose epochs are used up are answered as by the cluster of ``--bootstrap``, step by step."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kohort.protocol import ApiKey
from kohort.transactions.moves import LAST_EPOCH
from tests.broker.wire import Wire, batch, create_topic, produce_fields

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

#: Requests that are under way together.
TOGETHER = 200
#: Apache Kafka looks for transactions that are open for too long each 10 s.
EXPIRY_S = 14


class Worn:
    """A transactional id of which one epoch is left before the last; ``told`` is all that it was answered.

    Producer ids are numbered by their first appearance: the first is 0.
    """

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap, timeout_s=60)
        self.topic = self.name = f"epochs-{uuid.uuid4().hex[:8]}"
        self.told: list[Any] = []
        self.ids: dict[int, int] = {-1: -1}
        assert create_topic(self.wire, self.topic, 1).error_code == 0
        while self.wire.call(ApiKey.FIND_COORDINATOR, 3, key=self.name, key_type=1).error_code:
            time.sleep(0.1)
        while (begun := self.wire.call(ApiKey.INIT_PRODUCER_ID, 4, **self._init())).error_code:
            time.sleep(0.1)
        self.id, epoch = begun.producer_id, begun.producer_epoch
        self._numbered(self.id)
        while epoch < LAST_EPOCH - 1:
            count = min(TOGETHER, LAST_EPOCH - 1 - epoch)
            last = self.wire.send_together(ApiKey.INIT_PRODUCER_ID, 4, [self._init()] * count)
            for number in range(last - count + 1, last + 1):
                answer = self.wire.receive(ApiKey.INIT_PRODUCER_ID, 4, number)
                if answer.error_code == 0:
                    epoch = answer.producer_epoch

    def _numbered(self, producer_id: int) -> int:
        return self.ids.setdefault(producer_id, len(self.ids) - 1)

    def _init(self, epoch: int = -1, timeout_ms: int = 60_000) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "transaction_timeout_ms": timeout_ms,
            "producer_id": -1 if epoch < 0 else self.id,
            "producer_epoch": epoch,
        }

    def init(self, epoch: int = -1, timeout_ms: int = 60_000) -> None:
        """InitProducerId, by nobody or by the first producer at this epoch."""
        answer = self.wire.call(ApiKey.INIT_PRODUCER_ID, 4, **self._init(epoch, timeout_ms))
        self.told.append(
            ("init", answer.error_code, self._numbered(answer.producer_id), answer.producer_epoch)
        )

    def write(self, epoch: int, *, old: bool = False) -> None:
        """Begin a transaction with a record."""
        if old:
            added = self.wire.call(
                ApiKey.ADD_PARTITIONS_TO_TXN,
                3,
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[(self.topic, [0])],
            ).results_by_topic_v3_and_below[0]
            self.told.append(("add", added.results_by_partition[0].partition_error_code))
        version = 11 if old else 12
        records = batch(1, producer_id=self.id, producer_epoch=epoch, base_sequence=0, transactional=True)
        fields = produce_fields(self.topic, records, version=version) | {"transactional_id": self.name}
        answer = self.wire.call(ApiKey.PRODUCE, version, **fields)
        self.told.append(("produce", answer.responses[0].partition_responses[0].error_code))

    def end(self, epoch: int, version: int = 5, *, committed: bool = True) -> None:
        fields = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": epoch}
        answer = self.wire.call(ApiKey.END_TXN, version, **fields, committed=committed)
        self.told.append(("end", answer.error_code))
        if version >= 5:
            self.told.append((self._numbered(answer.producer_id), answer.producer_epoch))
        self.settle()

    def settle(self) -> None:
        """Wait for the markers; what the id is then."""
        while True:
            ids = [self.name]
            (state,) = self.wire.call(
                ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=ids
            ).transaction_states
            if not state.transaction_state.startswith("Prepare"):
                break
            time.sleep(0.02)
        self.told.append((state.transaction_state, self._numbered(state.producer_id), state.producer_epoch))
        producers = self.wire.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[(self.topic, [0])])
        self.told.append(
            [
                (self._numbered(each.producer_id), each.producer_epoch, each.current_txn_start_offset)
                for each in producers.topics[0].partitions[0].active_producers
            ]
        )


def repeated(worn: Worn) -> None:
    for epoch in (LAST_EPOCH - 1, LAST_EPOCH - 1, LAST_EPOCH, LAST_EPOCH, LAST_EPOCH + 1, -1):
        worn.init(epoch)


def ended(worn: Worn) -> None:
    worn.write(LAST_EPOCH - 1)
    worn.end(LAST_EPOCH - 1)
    worn.write(LAST_EPOCH)
    for epoch, committed in ((0, True), (0, True), (0, False), (-1, True)):
        worn.end(LAST_EPOCH + epoch, committed=committed)
    worn.init(LAST_EPOCH)


def ended_in_the_first_protocol(worn: Worn) -> None:
    worn.init()
    worn.write(LAST_EPOCH, old=True)
    worn.end(LAST_EPOCH, 4)
    worn.write(LAST_EPOCH, old=True)
    worn.end(LAST_EPOCH, 4, committed=False)
    worn.init()
    worn.init(LAST_EPOCH)


def nothing_to_end(worn: Worn) -> None:
    worn.init()
    worn.end(LAST_EPOCH, committed=False)
    worn.end(LAST_EPOCH, committed=False)
    worn.init(LAST_EPOCH)


def fenced(worn: Worn) -> None:
    worn.init()
    worn.write(LAST_EPOCH)
    worn.init()
    worn.settle()
    worn.init()


def fenced_by_itself(worn: Worn) -> None:
    worn.init()
    worn.write(LAST_EPOCH, old=True)
    worn.init(LAST_EPOCH)
    worn.settle()
    worn.end(LAST_EPOCH, 4)
    worn.init(LAST_EPOCH)
    worn.init(LAST_EPOCH + 1)
    worn.init()


def open_for_too_long(worn: Worn) -> None:
    worn.init(timeout_ms=1_000)
    worn.write(LAST_EPOCH)
    time.sleep(EXPIRY_S)
    worn.settle()
    worn.end(LAST_EPOCH, committed=False)
    worn.init(LAST_EPOCH)


@pytest.mark.slow(40)
@pytest.mark.parametrize(
    "steps",
    [
        repeated,
        ended,
        ended_in_the_first_protocol,
        nothing_to_end,
        fenced,
        fenced_by_itself,
        open_for_too_long,
    ],
)
def test_epochs_that_are_used_up_are_answered_alike(
    compared: tuple[str, str], steps: Callable[[Worn], None]
) -> None:
    def told_by(bootstrap: str) -> list[Any]:
        worn = Worn(bootstrap)
        try:
            steps(worn)
        finally:
            worn.wire.close()
        return worn.told

    with ThreadPoolExecutor() as threads:
        theirs, ours = threads.map(told_by, compared)
    assert ours == theirs
