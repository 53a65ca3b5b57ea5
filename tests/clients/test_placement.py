"""New partitions are spread as evenly as Apache Kafka's own placer spreads them, over brokers and racks.

Which broker gets which partition is drawn there, so only the spread is compared.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from kohort.cluster import BrokerRegistration
from kohort.cluster.controller import place_replicas
from tests.clients.java import java_command

pytestmark = pytest.mark.clients

PROGRAM = Path(__file__).with_name("Placement.java")

#: Partitions, replicas of each, and the rack of each broker.
CASES = [
    (12, 3, "abc"),
    (12, 2, "abc"),
    (10, 3, "---"),
    (7, 1, "-----"),
    (30, 3, "aabbcc"),
    (30, 2, "aabbcc"),
    (24, 3, "aaabbc"),
    (12, 2, "aab"),
    (40, 4, "aabbccdd"),
    (9, 5, "aabbc"),
    (100, 3, "aaabbbccc"),
]


class Spread(NamedTuple):
    """How uneven: partitions whose first replica a broker is, and that it has, the most less the least of any
    broker; and how few racks a partition is in.
    """

    leaders: int
    replicas: int
    racks: int


def spread(placed: list[list[int]], racks: str) -> Spread:
    brokers = range(1, len(racks) + 1)
    leaders = Counter(replicas[0] for replicas in placed)
    held = Counter(broker for replicas in placed for broker in replicas)
    return Spread(
        max(leaders[n] for n in brokers) - min(leaders[n] for n in brokers),
        max(held[n] for n in brokers) - min(held[n] for n in brokers),
        min(len({racks[n - 1] if racks[n - 1] != "-" else n for n in replicas}) for replicas in placed),
    )


def test_the_spread_is_no_worse_than_apache_kafkas() -> None:
    words = [word for count, factor, racks in CASES for word in (str(count), str(factor), ",".join(racks))]
    printed = subprocess.run(
        [*java_command(), str(PROGRAM), *words], capture_output=True, text=True, timeout=120, check=False
    )
    if "jdk.compiler" in printed.stderr:
        pytest.skip("this Java has no compiler")
    assert printed.returncode == 0, printed.stderr
    theirs = [
        [[int(word) for word in line.split(",")] for line in block.splitlines()]
        for block in printed.stdout.strip().split("\n\n")
    ]
    for (count, factor, racks), placed in zip(CASES, theirs, strict=True):
        brokers = {n: BrokerRegistration(n, None if rack == "-" else rack) for n, rack in enumerate(racks, 1)}
        ours = spread([list(each) for each in place_replicas(brokers, count, factor)], racks)
        other = spread(placed, racks)
        assert len(placed) == count
        assert ours.leaders <= max(other.leaders, 1), (count, factor, racks, ours, other)
        assert ours.replicas <= max(other.replicas, 1), (count, factor, racks, ours, other)
        assert ours.racks >= other.racks, (count, factor, racks, ours, other)
