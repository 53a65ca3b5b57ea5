"""Snapshot of a broker's figures, as plain typed data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...lag import GroupLag
from ...protocol.named_tuples import NamedTuple
from ...recording import RecorderFigures


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """Durations: totals since the start; mean, maximum and quantiles of the last windows, in ms."""

    count: int = 0
    total_s: float = 0.0
    mean_ms: float = 0.0
    max_ms: float = 0.0
    quantiles_ms: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RateFigures:
    """A number since the start, and how many a second there were in the last windows."""

    total: int
    rate: float


@dataclass(frozen=True, slots=True)
class TallyFigures:
    """Values other than times: how many since the start, and their sum."""

    count: int
    total: float


class ApiFigures(NamedTuple):
    """Requests of one API: their number and rate per second, errors by name, and times by phase.

    The phases: ``queue`` until it is taken up, ``local`` while the broker works on it, ``remote`` while it
    waits (for other members, for records, for a disk), ``total`` of these; ``send`` until the operating
    system has its response; ``throttle`` is the delay that its clients were given.
    """

    requests: int
    rate: float
    errors: Mapping[str, int]
    times: Mapping[str, TimeFigures]


class ClientFigures(NamedTuple):
    """Figures of one user and client id, closed connections included."""

    user: str
    client_id: str
    connections: int
    requests: int
    produced_bytes: int
    fetched_bytes: int


class TopicFigures(NamedTuple):
    """Figures of a topic since the start."""

    messages_in: int
    bytes_in: int
    bytes_out: int
    produce_requests: int
    fetch_requests: int


class PartitionFigures(NamedTuple):
    """The log of a partition."""

    topic: str
    partition: int
    size_bytes: int
    log_start_offset: int
    log_end_offset: int


class GroupFigures(NamedTuple):
    """Groups: how many by state, and by type and state, and what happened to them since the start."""

    by_state: Mapping[str, int]
    by_type: Mapping[tuple[str, str], int]
    members: int
    rebalances: Mapping[str, int]
    share_rebalances: int
    abandoned: int
    rebalance_times: TimeFigures
    expired_members: int
    offsets_committed: int
    offsets_removed: int
    refusals: int
    assignor_failures: int
    records_skipped: int


class LagFigures(NamedTuple):
    """The lag of the groups that this broker coordinates, as of the last look: at ``looked_ms``, 0 if there
    was none. All looks together took ``work_s``. Metrics show ``most_shown`` groups and partitions.
    """

    groups: Sequence[GroupLag] = ()
    looked_ms: int = 0
    work_s: float = 0.0
    most_shown: int = 0


class QuotaFigures(NamedTuple):
    """A measured client quota: the user and client id that share it (None: all), the limit, its use, and the
    delays that it caused, in seconds. ``used`` of controller_mutation_rate is the rest, as in Kafka.
    """

    key: str
    user: str | None
    client_id: str | None
    limit: float
    used: float
    throttled_s: float


class ReplicaFigures(NamedTuple):
    """Partitions that this broker leads, how many of them lack in-sync replicas (at least one, or too many),
    and how often in-sync replicas left and joined. As controller: 1, and the partitions without a leader.
    Bytes per second of throttled replicas that are sent to followers, and fetched from leaders. Partitions
    that this broker has a replica of.
    """

    leaders: int
    under_replicated: int = 0
    under_min_isr: int = 0
    isr_shrinks: int = 0
    isr_expands: int = 0
    active_controller: int = 1
    offline_partitions: int = 0
    leader_throttled_rate: float = 0.0
    follower_throttled_rate: float = 0.0
    partitions: int = 0


class MetadataFigures(NamedTuple):
    """The session with the metadata that brokers share: whether the home is in reach now, how often it was
    not, and how many sessions have expired. The registered brokers by the version of their build.
    """

    connected: bool
    disconnects: int
    expired: int
    brokers_by_version: Mapping[str, int]


class DiskFigures(NamedTuple):
    """The disk of the data folder, in bytes, and how many writes it has refused since the start. Less than
    ``low_bytes`` free is little; ``failing``: it refuses writes now; ``hanging_s``: for how long a write or a
    flush has not returned.
    """

    free_bytes: int
    total_bytes: int
    writes_refused: int
    low_bytes: int = 0
    failing: bool = False
    hanging_s: float = 0.0


class FetchSessionFigures(NamedTuple):
    """Fetch sessions that are kept, their partitions, and how many were evicted since the start."""

    sessions: int
    partitions: int
    evicted: int


class SharePartitionFigures(NamedTuple):
    """A share partition in memory: ranges of offsets in flight that have one state, and the records in them;
    records that members had for too long; records of each range that a member was given; how long in ms, and
    in percent of the time, it was at giving.
    """

    group: str
    topic: str
    partition: int
    ranges: int
    records: int
    lock_timeouts: int
    batch_sizes: TallyFigures
    lock_times_ms: TallyFigures
    lock_percents: TallyFigures


class ShareFigures(NamedTuple):
    """Share sessions and their partitions, sessions that ended with their connection; share partitions in
    memory; records by what members said of them; how long it takes to load a share partition and to answer
    a fetch. Fetches that waited for all of their time; in how many percent of a fetch's partitions there were
    records, by group; records that were given out for the last time, and for how long a share partition that
    stands still has done so, in seconds, both by group.
    """

    sessions: int
    session_partitions: int
    ended_sessions: int
    partitions: list[SharePartitionFigures]
    acknowledged: Mapping[str, int]
    load_times: TimeFigures
    acquire_times: TimeFigures
    expired_fetches: int
    fetch_percents: Mapping[str, TallyFigures]
    last_deliveries: Mapping[str, int]
    stalled_s: Mapping[str, float]


class BrokerSnapshot(NamedTuple):
    """All figures of a broker. ``timestamp_ms`` is from the wall clock; ``certificate_ends``, in seconds
    since 1970, and ``failed_logins`` are by listener.
    """

    timestamp_ms: int
    cluster_id: str
    node_id: int
    apis: Mapping[str, ApiFigures]
    clients: list[ClientFigures]
    topics: Mapping[str, TopicFigures]
    partitions: list[PartitionFigures]
    groups: GroupFigures
    lag: LagFigures
    quotas: list[QuotaFigures]
    connections: Mapping[str, int]
    connections_made: int
    connections_refused: Mapping[str, int]
    #: Whether new connections wait because no descriptors are left for them.
    lacks_descriptors: bool
    #: Whether new connections wait because there are as many as ``max.connections``.
    is_full: bool
    certificate_ends: Mapping[str, float]
    failed_logins: Mapping[str, RateFigures]
    request_bytes_held: int
    request_bytes_limit: int
    #: Time since the start in which no more requests were read for that limit.
    request_bytes_depleted_s: float
    flush_times: TimeFigures
    replicas: ReplicaFigures
    #: None for a single broker, whose metadata are in its data folder.
    metadata: MetadataFigures | None
    open_log_files: int
    max_open_log_files: int
    disk: DiskFigures
    recording: RecorderFigures
    fetch_sessions: FetchSessionFigures
    shares: ShareFigures
    #: Producer ids that partitions remember, each in every partition that it wrote to.
    producer_ids: int
    #: Partitions led here whose oldest transaction is open for longer than any may be.
    late_transactions: int
    #: Writes of the share coordinator, those of a second, and where its topic was cut, by partition.
    share_writes: TimeFigures
    share_write_rate: float
    share_states_cut: Mapping[int, int]
