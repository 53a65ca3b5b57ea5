"""What the ledger of share states finds in answers of share coordinators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.protocol import ApiKey, SharePartitionKey
from kohort.protocol.messages import delete_share_group_state as delete
from kohort.protocol.messages import initialize_share_group_state as initialize
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.testing.simulation.workloads._share_states import ShareStateLedger

KEY = SharePartitionKey("g", UUID(int=1), 0)
INITIALIZE, READ = ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE
WRITE, DELETE = ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE


class Told:
    """Share coordinators that a test plays; ``names`` are the invariants that the ledger finds broken."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ledger = ShareStateLedger(self)  # type: ignore[arg-type]

    def found(self, name: str, _text: str) -> None:
        self.names.append(name)

    def initialize(self, state_epoch: int, start: int = -1, order: int = -1) -> None:
        row = initialize.PartitionData(0, state_epoch, start, order)
        self.ask(INITIALIZE, row, initialize.PartitionResult())

    def read(self, leader_epoch: int, *batches: tuple[int, int, int, int], start: int = 0) -> None:
        begun = self.ledger.on_read(KEY)
        self.answer_read(leader_epoch, *batches, start=start)
        self.ledger.on_found(begun, start, batches)

    def answer_read(self, leader_epoch: int, *batches: tuple[int, int, int, int], start: int = 0) -> None:
        rows = [read.StateBatch(*each) for each in batches]
        result = read.PartitionResult(0, state_epoch=2, start_offset=start, state_batches=rows)
        self.ask(READ, read.PartitionData(0, leader_epoch), result)

    def write(self, leader_epoch: int, *batches: tuple[int, int, int, int], state_epoch: int = 2) -> None:
        rows = [write.StateBatch(*each) for each in batches]
        row = write.PartitionData(0, state_epoch, leader_epoch, 0, -1, rows)
        self.ask(WRITE, row, write.PartitionResult())

    def delete(self) -> None:
        self.ask(DELETE, delete.PartitionData(), delete.PartitionResult())

    def ask(self, api: ApiKey, row: Any, result: Any) -> None:
        self.ledger.on_answer(self.ledger.on_request(api, [(KEY, row)]), [result])


@pytest.fixture
def told() -> Told:
    made = Told()
    made.initialize(2)
    made.read(5)
    assert not made.names
    return made


def test_a_leader_of_before_may_neither_write_nor_read(told: Told) -> None:
    told.write(4)
    told.read(4)
    assert told.names == ["Q16", "Q16"]


def test_a_leader_of_before_may_read_at_a_coordinator_of_before(told: Told) -> None:
    for api, row, result in (
        (READ, read.PartitionData(0, 4), read.PartitionResult(0, state_epoch=2)),
        (WRITE, write.PartitionData(0, 2, 4, 0, -1, []), write.PartitionResult()),
    ):
        told.ledger.on_answer(told.ledger.on_request(api, [(KEY, row)]), [result], {KEY})
    assert told.names == ["Q16"]


def test_a_state_of_before_may_neither_be_written_nor_begun(told: Told) -> None:
    told.write(5, state_epoch=1)
    told.initialize(1)
    assert told.names == ["Q16", "Q16"]


def test_a_beginning_that_was_carried_out_may_be_answered_so_again(told: Told) -> None:
    told.initialize(2, order=7)
    told.initialize(3, order=8)
    told.initialize(2, order=7)
    assert not told.names
    told.initialize(1, order=6)
    assert told.names == ["Q16"], "which was not"


def test_who_began_before_the_epoch_was_told_may_end_afterwards() -> None:
    told = Told()
    row = write.PartitionData(0, 1, 4)
    asked = told.ledger.on_request(WRITE, [(KEY, row)])
    told.read(5)
    told.ledger.on_answer(asked, [write.PartitionResult()])
    assert not told.names


def test_what_was_answered_is_read(told: Told) -> None:
    told.write(5, (3, 4, 2, 1))
    told.read(5, (3, 4, 2, 1))
    told.read(5, (3, 3, 2, 1), (4, 4, 0, 2))
    told.read(5, start=5)
    assert not told.names
    told.read(5, (3, 4, 2, 1), start=4)
    assert told.names == ["Q17"], "the start has gone back"


def test_what_was_answered_is_missing(told: Told) -> None:
    told.write(5, (3, 4, 2, 1))
    told.read(5, (3, 3, 2, 1))
    assert told.names == ["Q17"]


def test_what_answers_that_nobody_waits_for_say_does_not_matter(told: Told) -> None:
    told.write(5, (3, 4, 2, 1))
    told.answer_read(5)
    assert not told.names


def test_what_is_answered_while_a_leader_reads_need_not_be_found(told: Told) -> None:
    begun = told.ledger.on_read(KEY)
    told.write(5, (3, 4, 2, 1))
    told.ledger.on_found(begun, 0, ())
    assert not told.names


def test_a_state_that_is_replaced_or_deleted_begins_anew(told: Told) -> None:
    told.write(5, (3, 4, 2, 1))
    told.initialize(3)
    told.read(5)
    told.delete()
    told.initialize(1)
    told.read(1)
    assert not told.names


def test_what_was_refused_says_nothing(told: Told) -> None:
    told.ask(WRITE, write.PartitionData(0, 1, 1), write.PartitionResult(0, 74))
    assert not told.names
