"""Partitions that the user assigns: what starts, what is revoked, and that no group has a say in it."""

from __future__ import annotations

import random

import pytest

from kohort.consumer.group.effects import Assign, Effect, Revoke
from kohort.consumer.group.manual import ManualAssignment
from kohort.protocol import ErrorCode, TopicPartition
from tests.consumer.configs import config

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))


@pytest.fixture
def manual() -> ManualAssignment:
    return ManualAssignment(config(), random.Random(1))


def revoked(*partitions: TopicPartition) -> Effect:
    return Revoke(partitions, lost=False, reason="no longer assigned")


def test_new_partitions_start_and_the_others_are_revoked(manual: ManualAssignment) -> None:
    manual.assign([P1, P0])
    assert manual.take_effects() == [Assign(-1, (P0, P1), ())]
    manual.assign([P1, P2])
    assert manual.take_effects() == [Assign(-1, (P2,), (P1,)), revoked(P0)]
    assert manual.owned == {P1, P2}


def test_what_was_assigned_before_changes_nothing(manual: ManualAssignment) -> None:
    manual.assign([P0])
    manual.take_effects()
    manual.assign([P0])
    assert manual.take_effects() == []


def test_an_assignment_during_a_revocation_waits_for_its_end(manual: ManualAssignment) -> None:
    manual.assign([P0])
    manual.assign([P1])
    manual.take_effects()
    manual.assign([P0, P1])
    manual.assign([P0])
    assert manual.take_effects() == []
    manual.revocation_done(0.0)
    assert manual.take_effects() == [Assign(-1, (P0,), ()), revoked(P1)]


def test_a_refused_commit_takes_no_partition_and_makes_no_member(manual: ManualAssignment) -> None:
    manual.assign([P0])
    manual.take_effects()
    manual.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, -1, 0.0)
    manual.resume(0.0)
    manual.do_due(1e9)
    assert manual.take_effects() == []
    assert (manual.owned, manual.next_deadline(), manual.can_commit()) == (frozenset({P0}), None, True)


def test_a_consumer_that_leaves_reads_nothing_more_and_tells_nobody(manual: ManualAssignment) -> None:
    manual.assign([P0])
    manual.assign([P1])
    manual.take_effects()
    manual.leave("closed")
    manual.revocation_done(0.0)
    assert (manual.owned, manual.take_effects()) == (frozenset(), [])
