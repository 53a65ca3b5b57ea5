"""Share sessions: epochs, partitions that are named and forgotten, ranges of acknowledgements.

Covers: consumer/share/session.py.
"""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer.share.records import PartitionId
from kohort.consumer.share.session import PeerSession, Range, acknowledged_topics, ranges_of
from kohort.consumer.share.verdicts import Gap
from kohort.protocol import AcknowledgeType

ORDERS, BILLS = UUID(int=1), UUID(int=2)
A, B, C = PartitionId(ORDERS, 0), PartitionId(ORDERS, 1), PartitionId(BILLS, 0)


def named(session: PeerSession, wanted: list[PartitionId], *said: PartitionId) -> tuple[object, object]:
    topics, forgotten = session.name_partitions(
        wanted, {p: [Range(1, 2, AcknowledgeType.ACCEPT)] for p in said}
    )
    return (
        {
            PartitionId(t.topic_id, row.partition_index): bool(row.acknowledgement_batches)
            for t in topics
            if t.topic_id is not None
            for row in t.partitions
        },
        {
            PartitionId(t.topic_id, number)
            for t in forgotten
            if t.topic_id is not None
            for number in t.partitions
        },
    )


def test_partitions_are_named_when_they_are_new_or_acknowledged_and_forgotten_when_they_are_not_wanted() -> (
    None
):
    session = PeerSession()
    assert named(session, [A, B]) == ({A: False, B: False}, set())
    assert named(session, [A, B]) == ({}, set())
    assert named(session, [A, C], A) == ({A: True, C: False}, {B})
    # acknowledging a partition would have the broker serve it again
    assert named(session, [A], C, B) == ({B: True, C: True}, {B, C})
    assert named(session, []) == ({}, {A})


def test_epochs_go_up_wrap_behind_the_largest_and_begin_anew_when_the_session_is_lost() -> None:
    session = PeerSession()
    assert not session.is_open
    session.on_answered()
    session.on_answered()
    assert (session.epoch, session.is_open) == (2, True)
    session.epoch = 2**31 - 1
    session.on_answered()
    assert session.epoch == 1
    named(session, [A])
    session.on_lost()
    assert not session.is_open
    assert named(session, [A]) == ({A: False}, set())


def test_acknowledgements_name_their_topics_and_partitions_in_order() -> None:
    topics = acknowledged_topics(
        {C: [Range(5, 5, AcknowledgeType.GAP)], A: [Range(0, 9, AcknowledgeType.REJECT)]}
    )
    assert [(t.topic_id, t.partitions[0].acknowledgement_batches[0]) for t in topics] == [
        (ORDERS, (0, 9, [3])),
        (BILLS, (5, 5, [0])),
    ]


@given(st.dictionaries(st.integers(0, 40), st.sampled_from(AcknowledgeType)))
def test_ranges_are_ascending_apart_as_few_as_possible_and_say_the_same(
    said: dict[int, AcknowledgeType],
) -> None:
    ranges = ranges_of([Gap(offset, verdict, 0.0) for offset, verdict in reversed(said.items())])
    assert {o: verdict for first, last, verdict in ranges for o in range(first, last + 1)} == said
    for before, after in pairwise(ranges):
        assert before.last < after.first
        assert before.last < after.first - 1 or before.verdict is not after.verdict


def test_partitions_are_told_apart_and_ordered_by_topic_and_number() -> None:
    last = PartitionId(ORDERS, 2**31 - 1)
    assert sorted([C, last, B, A]) == [A, B, last, C]
    assert len({A, B, C, last, PartitionId(ORDERS, 0)}) == 4
    assert (last.topic_id, last.partition, hash(A)) == (ORDERS, 2**31 - 1, hash(PartitionId(ORDERS, 0)))
