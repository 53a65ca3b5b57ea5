"""Records of ShareFetch responses: acquired offsets only, gaps, and batches that cannot be read.

Covers: consumer/share/fetched.py.
"""

from __future__ import annotations

import pytest

from kohort.consumer.share.fetched import Acquired, ShareReader
from kohort.consumer.share.records import RecordLock
from kohort.protocol import AcknowledgeType, MalformedMessageError
from kohort.protocol.messages.share_fetch import AcquiredRecords
from tests.consumer.batches import batch, marker
from tests.consumer.share.records import LOCK_MS, PLACE, Desk


def read(data: bytes, *ranges: tuple[int, int, int]) -> Acquired:
    reader = ShareReader(Desk(), check_crcs=True, max_batch_bytes=1 << 20)
    return reader.read(
        "orders", PLACE, RecordLock(0, LOCK_MS), data, [AcquiredRecords(*each) for each in ranges]
    )


def verdicts(found: Acquired) -> dict[int, AcknowledgeType]:
    return {said.offset: said.verdict for said in found.rest}


def test_only_acquired_offsets_of_a_batch_are_records_each_with_its_delivery_count() -> None:
    found = read(batch([b"a", b"b", b"c", b"d"], 10), (11, 11, 3), (13, 13, 1))
    assert [(r.offset, r.value, r.delivery_count) for r in found.records] == [(11, b"b", 3), (13, b"d", 1)]
    assert verdicts(found) == {}
    assert found.damage is None


def test_ranges_in_any_order_that_overlap_give_each_record_once() -> None:
    found = read(batch([b"a", b"b", b"c", b"d"], 0), (2, 3, 1), (0, 2, 2))
    assert [(record.offset, record.delivery_count) for record in found.records] == [
        (0, 2), (1, 2), (2, 2), (3, 1),
    ]  # fmt: skip
    assert found.rest == []


def test_offsets_without_a_record_are_gaps() -> None:
    data = batch([b"a"], 0) + marker(1, 7, commit=True) + batch([b"c"], 5)
    found = read(data, (0, 5, 1))
    assert [record.offset for record in found.records] == [0, 5]
    assert verdicts(found) == dict.fromkeys([1, 2, 3, 4], AcknowledgeType.GAP)


def test_a_batch_that_cannot_be_read_is_released_and_those_around_it_are_read() -> None:
    damaged = bytearray(batch([b"x", b"y"], 2))
    damaged[-1] ^= 1
    data = batch([b"a", b"b"], 0) + damaged + batch([b"c"], 4) + batch([b"d"], 5)
    found = read(data, (0, 5, 1))
    assert [record.offset for record in found.records] == [0, 1, 4, 5]
    assert verdicts(found) == dict.fromkeys([2, 3], AcknowledgeType.RELEASE)
    assert "from offset 2" in str(found.damage) or "checksum" in str(found.damage)


def test_what_is_no_batch_releases_all_behind_it() -> None:
    found = read(batch([b"a"], 0) + bytes(80), (0, 3, 1))
    assert [record.offset for record in found.records] == [0]
    assert verdicts(found) == dict.fromkeys([1, 2, 3], AcknowledgeType.RELEASE)


@pytest.mark.parametrize("wrong", [(3, 2, 1), (0, 2**62, 1), (0, 0, 0)], ids=["backward", "vast", "never"])
def test_offsets_that_no_broker_acquires_are_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(MalformedMessageError, match=r"orders-0: -?\d+ offsets are said to be acquired"):
        read(batch([b"a"], 0), wrong)


def test_nothing_acquired_is_nothing_read() -> None:
    assert read(batch([b"a"], 0)).records == []
