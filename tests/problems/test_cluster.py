"""What the answers of brokers tell is wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kohort.problems import BrokerSeen, ClusterSeen, FoundProblem, PartitionSeen, find_in_cluster
from kohort.problems.cluster import SOON_S

NOW_S = 1_700_000_000.0
GIB = 1 << 30


def told(*brokers: BrokerSeen, partitions: Sequence[PartitionSeen] = (), controller: str = "") -> list[str]:
    found = find_in_cluster(ClusterSeen(brokers, partitions, controller), NOW_S)
    return [f"{each.kind}, {each.about}: {each.text}" for each in found]


def test_nothing_is_wrong_with_a_whole_cluster_and_what_is_not_known_is_no_problem() -> None:
    whole = PartitionSeen("orders", 0, 1, [1, 2], [2, 1], 2)
    well = BrokerSeen(2, None, False, False, 90 * GIB, 100 * GIB, NOW_S + SOON_S)
    assert told(BrokerSeen(1), well, partitions=[whole]) == []


def test_partitions_without_a_leader_or_replicas_are_told_by_name_and_by_the_broker_that_lacks_them() -> None:
    partitions = [
        PartitionSeen("a", 0, None, [1, 3], [1], 2),
        *(PartitionSeen("b", n, 1, [1, 2, 3], [1], 2) for n in range(4)),
        PartitionSeen("c", 0, 1, [1, 2], [1], 1),
        PartitionSeen("d", 0, 1, [1], [1], 2),
        PartitionSeen("e", 0, 1, [1, 2], [1], None),
    ]
    offline, starved, second, third = told(BrokerSeen(1), BrokerSeen(2), partitions=partitions)
    assert (
        offline
        == "PartitionsOffline, cluster: 1 partition (a-0) has no leader: nobody can read or write there"
    )
    assert starved == (
        "PartitionsUnderMinIsr, cluster: 4 partitions (b-0, b-1, b-2, ...) have fewer replicas in sync than "
        "min.insync.replicas: acks=all is refused"
    )
    lacks = "PartitionsUnderReplicated, broker %d: %s have a replica that is not in sync at broker %d%s"
    assert second == lacks % (2, "6 partitions (b-0, b-1, b-2, ...)", 2, "")
    assert third == lacks % (3, "5 partitions (a-0, b-0, b-1, ...)", 3, ", which is not registered")


def test_a_broker_that_does_not_answer_its_disk_and_the_controller() -> None:
    assert told(
        BrokerSeen(1, "Connection refused"),
        BrokerSeen(2, disk_failing=True, free_bytes=10 * GIB, total_bytes=100 * GIB),
        BrokerSeen(3, disk_hanging=True, free_bytes=10 * GIB - 1, total_bytes=100 * GIB),
        controller="there is no active controller",
    ) == [
        "NotOneController, cluster: there is no active controller",
        "BrokerDown, broker 1: it is registered and does not answer: Connection refused",
        "DiskRefusesWrites, broker 2: its disk is full or fails: it takes no writes",
        "DiskHangs, broker 3: writes or flushes of its disk do not return",
        "DiskFills, broker 3: its disk has 10% free (10.00 of 100.00 GiB)",
    ]


@pytest.mark.parametrize(
    ("left_days", "kind", "text"),
    [
        (14.0, None, ""),
        (13.9, "CertificateEnds", "a certificate ends in 13.9 days"),
        (0.0, "CertificateExpired", "a certificate expired 0.0 days ago: clients refuse it"),
        (-2.5, "CertificateExpired", "a certificate expired 2.5 days ago: clients refuse it"),
    ],
)
def test_a_certificate_that_ends_soon_or_has_ended(left_days: float, kind: str | None, text: str) -> None:
    end_s = NOW_S + left_days * 86_400
    found = find_in_cluster(ClusterSeen([BrokerSeen(4, certificate_end_s=end_s)], []), NOW_S)
    since_ms = round(end_s * 1_000) if left_days <= 0 else None
    assert found == ([] if kind is None else [FoundProblem(kind, "broker 4", text, since_ms)])
