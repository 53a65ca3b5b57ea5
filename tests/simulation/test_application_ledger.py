"""What the ledger of share consumers' applications takes for a fault, and what it does not.

Covers: testing/simulation/workloads/_application_ledger.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kohort.consumer.share.records import PartitionId, RecordLock
from kohort.protocol import AcknowledgeType
from kohort.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kohort.protocol.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kohort.testing.simulation.workloads._application_ledger import AppDelivery, ApplicationLedger

ORDERS = UUID(int=1)


@dataclass(eq=False)
class Record:
    """The first record of the topic, as a consumer has it."""

    delivery_count: int = 1
    lock: RecordLock | None = field(default_factory=lambda: RecordLock(0, 1_000))
    place: PartitionId = field(default_factory=lambda: PartitionId(ORDERS, 0))
    partition: int = 0
    offset: int = 0
    verdict: AcknowledgeType | None = None


class Bench:
    """A ledger, and the invariants that it found broken."""

    def __init__(self, *, calm: bool) -> None:
        self.broken: list[str] = []
        world: Any = SimpleNamespace(
            heap=SimpleNamespace(now=0), found=lambda name, _text: self.broken.append(name)
        )
        self.ledger = ApplicationLedger(world, calm=calm)

    def give(self, member: str, count: int) -> None:
        """A broker gives the record to a member."""
        row = PartitionData(0, acquired_records=[AcquiredRecords(0, 0, count)])
        body = ShareFetchResponse(responses=[ShareFetchableTopicResponse(ORDERS, [row])])
        self.ledger.on_fetched(self._call(member), body)

    def deliver(self, member: str, record: Record) -> AppDelivery:
        """The member's application gets the record."""
        given: Any = record
        return self.ledger.on_delivered(member, member, given, holds_ms=1_000, told=False)

    def say(self, member: str, verdict: AcknowledgeType) -> None:
        """The member's consumer says something of it to a broker."""
        self.ledger.on_request(self._call(member, verdict), lambda _place: 0)

    def _call(self, member: str, *verdicts: int) -> Any:
        parts = [AcknowledgePartition(0, [AcknowledgementBatch(0, 0, [verdict]) for verdict in verdicts])]
        body = ShareAcknowledgeRequest("queue", member, 1, topics=[AcknowledgeTopic(ORDERS, parts)])
        return SimpleNamespace(body=body, api_key=79)


@pytest.mark.parametrize("given_back_by", ["a release", "the session's end", None])
def test_what_a_close_has_given_back_is_for_others_whatever_is_said_of_it_later(
    given_back_by: str | None,
) -> None:
    bench = Bench(calm=True)
    bench.give("one", 1)
    record = Record()
    entry = bench.deliver("one", record)
    bench.ledger.on_closing("one")
    if given_back_by == "a release":
        record.lock = None
    elif given_back_by is not None:
        bench.ledger.on_session_closing("one")
    entry.said = AcknowledgeType.ACCEPT
    bench.give("two", 2)
    bench.deliver("two", Record(delivery_count=2))
    assert bench.broken == ([] if given_back_by else ["Q15"])


def test_what_was_said_before_a_session_is_closed_is_not_given_back_by_its_end() -> None:
    bench = Bench(calm=True)
    bench.give("one", 1)
    bench.deliver("one", Record()).said = AcknowledgeType.ACCEPT
    bench.ledger.on_closing("one")
    bench.ledger.on_session_closing("one")
    bench.give("two", 2)
    bench.deliver("two", Record(delivery_count=2))
    assert bench.broken == ["Q15"]


@pytest.mark.parametrize("is_given_again", [True, False])
def test_what_was_given_once_more_is_released_though_the_former_delivery_was_accepted(
    is_given_again: bool,
) -> None:
    """Another leader may give it as the first time again, as it knows nothing of the former."""
    bench = Bench(calm=False)
    bench.give("one", 1)
    bench.deliver("one", Record()).said = AcknowledgeType.ACCEPT
    if is_given_again:
        bench.give("one", 1)
    bench.say("one", AcknowledgeType.RELEASE)
    assert bench.broken == ([] if is_given_again else ["Q11"])


def test_a_record_is_delivered_as_often_as_brokers_have_given_it() -> None:
    bench = Bench(calm=False)
    bench.give("one", 1)
    for _ in range(2):
        bench.deliver("one", Record())
    assert bench.broken == ["Q12"]
