"""Placement of the replicas of new partitions: spread over brokers and racks, as in Apache Kafka (KIP-36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...protocol import ErrorCode, KafkaError
from .._image import BrokerRegistration, TopicImage


def place_replicas(
    brokers: Mapping[int, BrokerRegistration],
    count: int,
    replication_factor: int,
    *,
    before: Sequence[Sequence[int]] = (),
    led: Mapping[int, int] | None = None,
) -> list[tuple[int, ...]]:
    """Replicas of ``count`` partitions to follow those of ``before``, the preferred leader first.

    Brokers take turns as the topic's preferred leaders, so their numbers differ by at most one; the first is
    the broker that has the fewest by ``led``. The other replicas of a partition are spread over as many racks
    as possible, on the brokers that have the fewest of this topic. Raises KafkaError
    INVALID_REPLICATION_FACTOR if there are fewer brokers than replicas.
    """
    if not 0 < replication_factor <= len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"a replication factor of {replication_factor} is not possible with {len(brokers)} brokers",
        )
    if len(brokers) == 1:
        return [tuple(brokers)] * count
    ring = _ring_of(brokers.values())
    leaders = Counter(replicas[0] for replicas in before)
    held = Counter(node_id for replicas in before for node_id in replicas)
    led = led or {}
    placed: list[tuple[int, ...]] = []
    for number in range(len(before), len(before) + count):
        turn = min(range(len(ring)), key=lambda n: (leaders[ring[n]], led.get(ring[n], 0), n))
        leader = ring[turn]
        # another distance in each round, so that a leader's partitions do not all have the same followers
        distance = 1 + number // len(ring)
        replicas = [leader]
        racks = Counter([_rack_of(brokers[leader])])
        while len(replicas) < replication_factor:
            others = (n for n, node_id in enumerate(ring) if node_id not in replicas)
            chosen = min(
                others,
                key=lambda n: (
                    racks[_rack_of(brokers[ring[n]])],
                    held[ring[n]] - leaders[ring[n]],
                    (n - turn - distance) % len(ring),
                ),
            )
            replicas.append(ring[chosen])
            racks[_rack_of(brokers[ring[chosen]])] += 1
        leaders[leader] += 1
        held.update(replicas)
        placed.append(tuple(replicas))
    return placed


def leaders_of(topics: Iterable[TopicImage]) -> Counter[int]:
    """Number of partitions by preferred leader."""
    return Counter(state.replicas[0] for topic in topics for state in topic.partitions)


def _rack_of(broker: BrokerRegistration) -> object:
    # a broker without a rack counts as a rack of its own
    return broker.node_id if broker.rack is None else broker.rack


def _ring_of(brokers: Iterable[BrokerRegistration]) -> list[int]:
    """Order brokers so that those of one rack are far apart."""
    places: Counter[object] = Counter()
    order = []
    for broker in sorted(brokers):
        rack = _rack_of(broker)
        order.append((places[rack], str(rack), broker.node_id))
        places[rack] += 1
    if any(broker.rack is not None for broker in brokers):
        return [node_id for _, _, node_id in sorted(order)]
    return [node_id for _, _, node_id in order]
