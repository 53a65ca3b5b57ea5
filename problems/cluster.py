"""What the answers of a cluster's brokers tell, whatever their make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .problem import FoundProblem

#: Less of a disk than this share free is little, where the broker does not say what it takes for little.
LOW_SHARE: Final = 0.10
#: A certificate that ends within this time is a problem, in seconds.
SOON_S: Final = 14 * 86_400.0

#: Partitions that a sentence names; the others are counted.
_MOST_NAMED: Final = 3
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """A broker that is registered. ``error`` says why it does not answer. What it does not tell is None:
    whether its disk refuses writes, or hangs, bytes of the disk, and when the certificate of its listener
    ends, in seconds since 1970.
    """

    node_id: int
    error: str | None = None
    disk_failing: bool | None = None
    disk_hanging: bool | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    certificate_end_s: float | None = None

    @property
    def name(self) -> str:
        """How sentences call it."""
        return f"broker {self.node_id}"


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """A partition. ``leader`` is None where it has none, ``min_in_sync`` where nobody has asked."""

    topic: str
    partition: int
    leader: int | None
    replicas: Sequence[int]
    in_sync: Sequence[int]
    min_in_sync: int | None = None

    @property
    def name(self) -> str:
        """Topic and number."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """Brokers, and the partitions that lack something; others may be left out. ``controller_trouble`` is what
    is wrong with the controller, "" if nothing is.
    """

    brokers: Sequence[BrokerSeen]
    partitions: Sequence[PartitionSeen]
    controller_trouble: str = ""


def find_in_cluster(state: ClusterSeen, now_s: float) -> list[FoundProblem]:
    """The problems of a cluster; ``now_s`` is the wall clock, in seconds since 1970."""
    found = [*_find_in_partitions(state)]
    if state.controller_trouble:
        found.append(FoundProblem("NotOneController", "cluster", state.controller_trouble))
    return found + [problem for broker in state.brokers for problem in _find_in_broker(broker, now_s)]


def _find_in_partitions(state: ClusterSeen) -> Iterator[FoundProblem]:
    offline = [each.name for each in state.partitions if each.leader is None]
    if offline:
        text = f"{name_some(offline)} no leader: nobody can read or write there"
        yield FoundProblem("PartitionsOffline", "cluster", text)
    led = [each for each in state.partitions if each.leader is not None]
    starved = [
        each.name
        for each in led
        # with fewer replicas than that all of them are enough
        if each.min_in_sync is not None and len(each.in_sync) < min(each.min_in_sync, len(each.replicas))
    ]
    if starved:
        text = f"{name_some(starved)} fewer replicas in sync than min.insync.replicas: acks=all is refused"
        yield FoundProblem("PartitionsUnderMinIsr", "cluster", text)
    lagging: dict[int, list[str]] = {}
    for each in state.partitions:
        for node_id in set(each.replicas) - set(each.in_sync):
            lagging.setdefault(node_id, []).append(each.name)
    registered = {broker.node_id for broker in state.brokers}
    for node_id, names in sorted(lagging.items()):
        gone = "" if node_id in registered else ", which is not registered"
        text = f"{name_some(names)} a replica that is not in sync at broker {node_id}{gone}"
        yield FoundProblem("PartitionsUnderReplicated", f"broker {node_id}", text)


def _find_in_broker(broker: BrokerSeen, now_s: float) -> Iterator[FoundProblem]:
    if broker.error is not None:
        yield FoundProblem("BrokerDown", broker.name, f"it is registered and does not answer: {broker.error}")
    if broker.disk_failing:
        yield FoundProblem("DiskRefusesWrites", broker.name, "its disk is full or fails: it takes no writes")
    if broker.disk_hanging:
        yield FoundProblem("DiskHangs", broker.name, "writes or flushes of its disk do not return")
    free, total = broker.free_bytes, broker.total_bytes
    if free is not None and total and free < total * LOW_SHARE:
        yield FoundProblem("DiskFills", broker.name, disk_text(free, total))
    if broker.certificate_end_s is not None:
        yield from find_ending(broker.name, broker.certificate_end_s, now_s)


def disk_text(free: float, total: float) -> str:
    """A sentence about the space of a disk."""
    return f"its disk has {free / total:.0%} free ({free / (1 << 30):,.2f} of {total / (1 << 30):,.2f} GiB)"


def find_ending(about: str, end_s: float, now_s: float) -> Iterator[FoundProblem]:
    """The problem of a certificate that ends soon, or has ended."""
    left_s = end_s - now_s
    if left_s <= 0:
        text = f"a certificate expired {abs(left_s) / _DAY_S:.1f} days ago: clients refuse it"
        yield FoundProblem("CertificateExpired", about, text, round(end_s * 1_000))
    elif left_s < SOON_S:
        yield FoundProblem("CertificateEnds", about, f"a certificate ends in {left_s / _DAY_S:.1f} days")


def name_some(names: Sequence[str]) -> str:
    """A number of partitions, some of them by name, and the verb that fits."""
    shown = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    return f"1 partition ({shown}) has" if len(names) == 1 else f"{len(names):,} partitions ({shown}) have"
