"""The names of metrics: those that Prometheus' JMX exporter gives Apache Kafka's metrics if they measure the
same, so that dashboards for them work, and names with ``kohort_`` otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from typing import Any, Final, Literal, TypeAlias

from ...lag import GroupLag, PartitionLag
from ...protocol.named_tuples import NamedTuple
from ._snapshot import BrokerSnapshot, MetadataFigures, TallyFigures, TimeFigures

#: Most topics, partitions and clients that are shown by name: the busiest (partitions: the largest).
MAX_LABELLED: Final = 1_000

#: Label values and what was measured.
Sample = tuple[tuple[str, ...], "float | TimeFigures | TallyFigures"]
Samples = Iterable[Sample]
Kind: TypeAlias = Literal["counter", "gauge", "summary"]


class Family(NamedTuple):
    """One metric. ``kafka`` is Apache Kafka's MBean and attribute, empty for kohort's own."""

    name: str
    kind: Kind
    help: str
    kafka: str
    labels: tuple[str, ...]
    samples: Callable[[BrokerSnapshot], Samples]


def _own_metric(
    name: str, kind: Kind, words: str, read: Callable[[BrokerSnapshot], Any], *labels: str
) -> Family:
    """A metric of kohort's own. ``read`` returns samples, or without labels the one value."""
    return Family(f"kohort_{name}", kind, words, "", labels, read if labels else _one_sample(read))


def _kafka_metric(bean: str, kind: Kind, words: str, read: Callable[[BrokerSnapshot], Any]) -> Family:
    """A metric of Apache Kafka, under the name that Prometheus' JMX exporter makes of its MBean."""
    domain, _, rest = bean.partition(":")
    properties, _, attribute = rest.partition(" ")
    found = dict(part.split("=") for part in properties.split(","))
    words_of_name = (domain, found["type"], found.get("name", "").removesuffix("PerSec"), attribute)
    name = re.sub("[.-]", "_", "_".join(filter(None, words_of_name))).lower().removesuffix("_total")
    labels = tuple(key.replace("-", "_") for key, value in found.items() if value == "*")
    return Family(name, kind, words, bean, labels, read if labels else _one_sample(read))


def _one_sample(read: Callable[[BrokerSnapshot], float | TimeFigures]) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [((), read(now))]


def _topic_samples(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        busiest = sorted(now.topics.items(), key=lambda item: -item[1].bytes_in - item[1].bytes_out)
        return [((topic,), getattr(figures, field)) for topic, figures in busiest[:MAX_LABELLED]]

    return read


def _partition_samples(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        largest = sorted(now.partitions, key=lambda one: -one.size_bytes)[:MAX_LABELLED]
        return [((one.topic, str(one.partition)), getattr(one, field)) for one in largest]

    return read


def _phase_samples(phase: str) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [
        ((api,), figures.times[phase]) for api, figures in now.apis.items() if figures.times[phase].count
    ]


def _client_samples(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        busiest = sorted(now.clients, key=lambda one: -one.requests)[:MAX_LABELLED]
        return [((one.user, one.client_id), getattr(one, field)) for one in busiest]

    return read


def _samples_of_use(key: str) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [
        ((one.user or "", one.client_id or ""), one.used) for one in now.quotas if one.key == key
    ]


def _quota_samples(field: str) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [
        ((one.key, one.user or "", one.client_id or ""), getattr(one, field)) for one in now.quotas
    ]


def _state_samples(state: str) -> Callable[[BrokerSnapshot], int]:
    return lambda now: now.groups.by_state.get(state, 0)


def _count_samples(
    read: Callable[[BrokerSnapshot], Mapping[str, float]],
) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [((label,), count) for label, count in read(now).items()]


def _in_cluster(read: Callable[[MetadataFigures], Samples]) -> Callable[[BrokerSnapshot], Samples]:
    """Samples that a single broker does not have."""
    return lambda now: () if now.metadata is None else read(now.metadata)


def _no_samples(_: BrokerSnapshot) -> Samples:
    return ()


_REQUESTS = "kafka.network:type=RequestMetrics,name={},request=*"
_GROUPS = "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups"
_SESSIONS = "kafka.server:type=SessionExpireListener,name=ZooKeeper"
_CLIENT = ("user", "client_id")

_FETCH_SESSIONS: Final[tuple[tuple[str, Kind, str, Callable[[BrokerSnapshot], int]], ...]] = (
    (
        "NumIncrementalFetchSessions",
        "gauge",
        "Fetch sessions of consumers and followers",
        lambda now: now.fetch_sessions.sessions,
    ),
    (
        "NumIncrementalFetchPartitionsCached",
        "gauge",
        "Partitions of all fetch sessions",
        lambda now: now.fetch_sessions.partitions,
    ),
    (
        "IncrementalFetchSessionEvictionsPerSec",
        "counter",
        "Fetch sessions that were evicted for others",
        lambda now: now.fetch_sessions.evicted,
    ),
)

_SHARES: Final = "kafka.server:type=share-coordinator-metrics"


def _share_partition_samples(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        fullest = sorted(now.shares.partitions, key=lambda one: -one.records)[:MAX_LABELLED]
        return [((one.group, one.topic, str(one.partition)), getattr(one, field)) for one in fullest]

    return read


def _stalled_samples(now: BrokerSnapshot) -> Samples:
    longest = sorted(now.shares.stalled_s.items(), key=lambda row: -row[1])
    return [((group,), stalled_s) for group, stalled_s in longest[:MAX_LABELLED]]


_SHARE_PARTITIONS: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("InFlightMessageCount", "gauge", "Records in flight of a share partition", "records"),
    ("InFlightBatchCount", "gauge", "Ranges of offsets in flight that have one state", "ranges"),
    ("InFlightBatchMessageCount", "summary", "Records of each range that a member was given", "batch_sizes"),
    ("AcquisitionLockTimeoutPerSec", "counter", "Records that members had for too long", "lock_timeouts"),
    ("FetchLockTimeMs", "summary", "Time in which records are given to one member, in ms", "lock_times_ms"),
    ("FetchLockRatio", "summary", "This time in percent, with the time since the last", "lock_percents"),
)

_SHARE_SESSIONS: Final[tuple[tuple[str, Kind, str, Callable[[BrokerSnapshot], int]], ...]] = (
    (
        "ShareSessionsCount",
        "gauge",
        "Share sessions of members of share groups",
        lambda now: now.shares.sessions,
    ),
    (
        "SharePartitionsCount",
        "gauge",
        "Partitions of all share sessions",
        lambda now: now.shares.session_partitions,
    ),
    (
        "ShareSessionEvictionsPerSec",
        "counter",
        "Share sessions that ended with their connection",
        lambda now: now.shares.ended_sessions,
    ),
)


def _group_lag_samples(read: Callable[[GroupLag], float | None]) -> Callable[[BrokerSnapshot], Samples]:
    def samples(now: BrokerSnapshot) -> Samples:
        furthest = sorted(now.lag.groups, key=lambda one: -(one.records or 0))[: now.lag.most_shown]
        known = ((one.group, read(one)) for one in furthest)
        return [((group,), value) for group, value in known if value is not None]

    return samples


def _partition_lag_samples(
    read: Callable[[PartitionLag], float | None],
) -> Callable[[BrokerSnapshot], Samples]:
    def samples(now: BrokerSnapshot) -> Samples:
        rows = ((one.group, row) for one in now.lag.groups for row in one.partitions)
        furthest = nlargest(now.lag.most_shown, rows, key=lambda named: named[1].records or 0)
        known = (((group, row.topic, str(row.partition)), read(row)) for group, row in furthest)
        return [(labels, value) for labels, value in known if value is not None]

    return samples


def _in_seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1_000


_LAG: Final = (
    *(
        _own_metric(f"group_lag_{name}", "gauge", words, _group_lag_samples(read), "group")
        for name, words, read in (
            ("records", "Records that a group has not read", lambda one: one.records),
            (
                "seconds",
                "Time since the oldest record was written that a group has not read; 0: it has read all",
                lambda one: _in_seconds(one.age_ms),
            ),
            (
                "standing_seconds",
                "Longest time that a partition's offset has stood still while records of it were unread",
                lambda one: _in_seconds(one.standing_ms or 0),
            ),
        )
    ),
    *(
        _own_metric(
            f"group_partition_lag_{name}",
            "gauge",
            words,
            _partition_lag_samples(read),
            *("group", "topic", "partition"),
        )
        for name, words, read in (
            ("records", "Records of a partition that a group has not read", lambda row: row.records),
            (
                "seconds",
                "Time since the oldest record of a partition was written that a group has not read",
                lambda row: _in_seconds(row.age_ms),
            ),
        )
    ),
    _own_metric(
        "group_lag_looked_timestamp_seconds",
        "gauge",
        "When the lag of groups was looked at, in seconds since 1970; 0: never",
        lambda now: now.lag.looked_ms / 1_000,
    ),
    _own_metric(
        "group_lag_looking_seconds",
        "counter",
        "Time that the event loop has spent on looking at the lag of groups",
        lambda now: now.lag.work_s,
    ),
)

FAMILIES: Final = (
    *(
        _kafka_metric(
            f"kafka.server:type=BrokerTopicMetrics,name={name}PerSec,topic=*",
            "counter",
            words,
            _topic_samples(field),
        )
        for name, words, field in (
            ("MessagesIn", "Records produced", "messages_in"),
            ("BytesIn", "Bytes of records produced", "bytes_in"),
            ("BytesOut", "Bytes of records fetched", "bytes_out"),
            ("TotalProduceRequests", "Times a partition was in a Produce request", "produce_requests"),
            ("TotalFetchRequests", "Times a partition was in a Fetch request", "fetch_requests"),
        )
    ),
    _kafka_metric(
        _REQUESTS.format("RequestsPerSec"),
        "counter",
        "Requests",
        lambda now: [((api,), figures.requests) for api, figures in now.apis.items()],
    ),
    _kafka_metric(
        _REQUESTS.format("ErrorsPerSec") + ",error=*",
        "counter",
        "Errors in responses",
        lambda now: [
            ((api, error), count)
            for api, figures in now.apis.items()
            for error, count in figures.errors.items()
        ],
    ),
    *(
        _kafka_metric(
            _REQUESTS.format(name),
            "summary",
            f"{words}, in ms; of heartbeats, commits, joins and syncs one in 64 is timed",
            _phase_samples(phase),
        )
        for name, words, phase in (
            ("RequestQueueTimeMs", "Time a request waits for earlier ones of its connection", "queue"),
            ("LocalTimeMs", "Time the broker works on a request", "local"),
            ("RemoteTimeMs", "Time a request waits for members, records or a disk", "remote"),
            ("ThrottleTimeMs", "Delay imposed on clients over a quota", "throttle"),
            ("ResponseSendTimeMs", "Time until a response is passed to the operating system", "send"),
            ("TotalTimeMs", "Queue, local and remote time together", "total"),
        )
    ),
    *(
        _kafka_metric(bean, "gauge", words, read)
        for bean, words, read in (
            (
                "kafka.server:type=ReplicaManager,name=PartitionCount",
                "Partitions of which this broker has a replica",
                lambda now: now.replicas.partitions,
            ),
            (
                "kafka.server:type=ReplicaManager,name=LeaderCount",
                "Partitions that this broker leads; a single broker leads all",
                lambda now: now.replicas.leaders,
            ),
            (
                "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
                "Partitions that this broker leads and that have replicas out of sync",
                lambda now: now.replicas.under_replicated,
            ),
            (
                "kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount",
                "Partitions that this broker leads with fewer in-sync replicas than min.insync.replicas",
                lambda now: now.replicas.under_min_isr,
            ),
            (
                "kafka.controller:type=KafkaController,name=ActiveControllerCount",
                "1 if this broker is the controller; a single broker always is",
                lambda now: now.replicas.active_controller,
            ),
            (
                "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
                "Partitions without a leader, on the controller; on a single broker, those with failed files",
                lambda now: now.replicas.offline_partitions,
            ),
        )
    ),
    *(
        family._replace(samples=_in_cluster(read))
        for family, read in (
            (
                _own_metric(
                    "zookeeper_connected", "gauge", "1 while ZooKeeper is in reach; of a cluster", _no_samples
                ),
                lambda of: [((), int(of.connected))],
            ),
            (
                _kafka_metric(
                    f"{_SESSIONS}DisconnectsPerSec",
                    "counter",
                    "Times ZooKeeper was out of reach; of a cluster",
                    _no_samples,
                ),
                lambda of: [((), of.disconnects)],
            ),
            (
                _kafka_metric(
                    f"{_SESSIONS}ExpiresPerSec",
                    "counter",
                    "Sessions with ZooKeeper that ended while this broker ran; of a cluster",
                    _no_samples,
                ),
                lambda of: [((), of.expired)],
            ),
            (
                _own_metric(
                    "cluster_brokers",
                    "gauge",
                    "Registered brokers, by the version of their build (empty: one that does not tell)",
                    _no_samples,
                    "version",
                ),
                lambda of: [((version,), count) for version, count in of.brokers_by_version.items()],
            ),
        )
    ),
    _kafka_metric(
        "kafka.server:type=LeaderReplication byte-rate",
        "gauge",
        "Bytes per second sent to followers that are throttled replicas",
        lambda now: now.replicas.leader_throttled_rate,
    ),
    _kafka_metric(
        "kafka.server:type=FollowerReplication byte-rate",
        "gauge",
        "Bytes per second fetched for throttled replicas",
        lambda now: now.replicas.follower_throttled_rate,
    ),
    *(
        _kafka_metric(f"kafka.server:type=ReplicaManager,name={name}PerSec", "counter", words, read)
        for name, words, read in (
            ("IsrShrinks", "Times in-sync replicas were removed", lambda now: now.replicas.isr_shrinks),
            ("IsrExpands", "Times in-sync replicas were added", lambda now: now.replicas.isr_expands),
        )
    ),
    *(
        _kafka_metric(
            f"kafka.log:type=Log,name={name},topic=*,partition=*", "gauge", words, _partition_samples(field)
        )
        for name, words, field in (
            ("Size", "Bytes of a partition's log", "size_bytes"),
            ("LogStartOffset", "First offset of a partition", "log_start_offset"),
            ("LogEndOffset", "Next offset of a partition", "log_end_offset"),
        )
    ),
    _own_metric(
        "broker_info",
        "gauge",
        "1; its labels say which broker this is",
        lambda now: [((now.cluster_id, str(now.node_id)), 1)],
        "cluster_id",
        "node_id",
    ),
    _own_metric(
        "log_dir_free_bytes",
        "gauge",
        "Bytes that the broker may still use on the disk of the data folder",
        lambda now: now.disk.free_bytes,
    ),
    _own_metric(
        "log_dir_total_bytes",
        "gauge",
        "Size of the disk of the data folder",
        lambda now: now.disk.total_bytes,
    ),
    _own_metric(
        "log_dir_writes_refused",
        "counter",
        "Writes that the disk of the data folder refused",
        lambda now: now.disk.writes_refused,
    ),
    _own_metric(
        "log_dir_low_bytes",
        "gauge",
        "Free bytes of this disk below which the broker warns (kohort.log.dir.low.space.percent)",
        lambda now: now.disk.low_bytes,
    ),
    _own_metric(
        "log_dir_failing",
        "gauge",
        "1 while the disk of the data folder refuses writes",
        lambda now: int(now.disk.failing),
    ),
    _own_metric(
        "log_dir_hanging_seconds",
        "gauge",
        "Time for which a write or a flush of the data folder has not returned, once it is over "
        "kohort.log.dir.hang.ms",
        lambda now: now.disk.hanging_s,
    ),
    _own_metric(
        "recording_rows",
        "counter",
        "Events and samples of groups that were recorded",
        lambda now: now.recording.rows,
    ),
    _own_metric(
        "recording_events_lost",
        "counter",
        "Events of groups that could not be recorded",
        lambda now: now.recording.lost,
    ),
    _own_metric(
        "recording_bytes",
        "gauge",
        "Bytes that the recording of groups uses",
        lambda now: now.recording.bytes,
    ),
    _own_metric(
        "recording_failing",
        "gauge",
        "1: the recording of groups cannot be written",
        lambda now: int(now.recording.failing),
    ),
    _own_metric(
        "log_open_files",
        "gauge",
        "Open log files; the one unused for longest is closed when another is needed",
        lambda now: now.open_log_files,
    ),
    _own_metric(
        "log_open_files_limit",
        "gauge",
        "Log files that may be open: half of the process's descriptors",
        lambda now: now.max_open_log_files,
    ),
    _kafka_metric(
        "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
        "summary",
        "Flushes of logs, in ms",
        lambda now: now.flush_times,
    ),
    _kafka_metric(
        "kafka.server:type=socket-server-metrics,listener=* connection-count",
        "gauge",
        "Connections",
        _count_samples(lambda now: now.connections),
    ),
    _kafka_metric(
        "kafka.server:type=socket-server-metrics connection-creation-total",
        "counter",
        "Connections accepted",
        lambda now: now.connections_made,
    ),
    _own_metric(
        "connections_refused",
        "counter",
        "Connections closed at once, by reason",
        _count_samples(lambda now: now.connections_refused),
        "reason",
    ),
    _own_metric(
        "connections_lack_descriptors",
        "gauge",
        "1 while new connections wait, as no descriptors are left for them",
        lambda now: int(now.lacks_descriptors),
    ),
    _own_metric(
        "connections_at_limit",
        "gauge",
        "1 while new connections wait, as there are as many as max.connections allows",
        lambda now: int(now.is_full),
    ),
    _own_metric(
        "certificate_expiry_timestamp_seconds",
        "gauge",
        "When the first certificate of a listener (or for zookeeper) expires, in seconds since 1970",
        _count_samples(lambda now: now.certificate_ends),
        "listener",
    ),
    _kafka_metric(
        "kafka.server:type=socket-server-metrics,listener=* failed-authentication-total",
        "counter",
        "Logins that were refused, and TLS handshakes that failed",
        lambda now: [((name,), found.total) for name, found in now.failed_logins.items()],
    ),
    _kafka_metric(
        "kafka.server:type=socket-server-metrics,listener=* failed-authentication-rate",
        "gauge",
        "Of these, in a second",
        lambda now: [((name,), found.rate) for name, found in now.failed_logins.items()],
    ),
    *(
        _kafka_metric(f"kafka.server:type=FetchSessionCache,name={name}", kind, words, read)
        for name, kind, words, read in _FETCH_SESSIONS
    ),
    *(
        _kafka_metric(f"kafka.server:type=ShareSessionCache,name={name}", kind, words, read)
        for name, kind, words, read in _SHARE_SESSIONS
    ),
    _kafka_metric(
        "kafka.server:type=ShareGroupMetrics,name=RecordAcknowledgementsPerSec,ackType=*",
        "counter",
        "Records by what members of share groups said of them",
        _count_samples(lambda now: now.shares.acknowledged),
    ),
    _kafka_metric(
        "kafka.server:type=ShareGroupMetrics,name=PartitionLoadTimeMs",
        "summary",
        "Time in which the state of a share partition is read",
        lambda now: now.shares.load_times,
    ),
    _kafka_metric(
        "kafka.server:type=ShareGroupMetrics,name=TopicPartitionsAcquireTimeMs",
        "summary",
        "Time in which a ShareFetch acquires records, its wait included",
        lambda now: now.shares.acquire_times,
    ),
    _kafka_metric(
        "kafka.server:type=ShareGroupMetrics,name=RequestTopicPartitionsFetchRatio,group=*",
        "summary",
        "Percent of the partitions of a ShareFetch that had records for it",
        lambda now: [((group,), tally) for group, tally in now.shares.fetch_percents.items()],
    ),
    _kafka_metric(
        "kafka.server:type=DelayedShareFetchMetrics,name=ExpiresPerSec",
        "counter",
        "ShareFetches that waited for all of their time",
        lambda now: now.shares.expired_fetches,
    ),
    *(
        _kafka_metric(
            f"kafka.server:type=SharePartitionMetrics,name={name},group=*,topic=*,partition=*",
            kind,
            words,
            _share_partition_samples(field),
        )
        for name, kind, words, field in _SHARE_PARTITIONS
    ),
    _own_metric(
        "share_group_last_deliveries",
        "counter",
        "Records of a share group that were given out for the last time",
        lambda now: [((group,), count) for group, count in now.shares.last_deliveries.items()],
        "group",
    ),
    _own_metric(
        "share_group_stalled_seconds",
        "gauge",
        "Longest time for which a partition of a share group has had records in flight and made no progress",
        _stalled_samples,
        "group",
    ),
    _kafka_metric(
        "kafka.server:type=ReplicaManager,name=ProducerIdCount",
        "gauge",
        "Producer ids that partitions remember, each in every partition that it wrote to",
        lambda now: now.producer_ids,
    ),
    _kafka_metric(
        "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
        "gauge",
        "Partitions with a transaction open for longer than transaction.max.timeout.ms and five minutes",
        lambda now: now.late_transactions,
    ),
    _kafka_metric(
        f"{_SHARES} write-total",
        "counter",
        "Writes of share partitions' state",
        lambda now: now.share_writes.count,
    ),
    _kafka_metric(
        f"{_SHARES} write-rate",
        "gauge",
        "Writes of share partitions' state, in a second",
        lambda now: now.share_write_rate,
    ),
    _kafka_metric(
        f"{_SHARES} write-latency-avg",
        "gauge",
        "Mean duration of these writes, in ms",
        lambda now: now.share_writes.mean_ms,
    ),
    _kafka_metric(
        f"{_SHARES} write-latency-max",
        "gauge",
        "Longest duration of these writes, in ms",
        lambda now: now.share_writes.max_ms,
    ),
    _kafka_metric(
        f"{_SHARES},topic=*,partition=* last-pruned-offset",
        "gauge",
        "Offset below which a partition of __share_group_state was deleted",
        lambda now: [
            (("__share_group_state", str(partition)), offset)
            for partition, offset in now.share_states_cut.items()
        ],
    ),
    _own_metric(
        "request_bytes_held", "gauge", "Bytes of pending requests", lambda now: now.request_bytes_held
    ),
    _own_metric(
        "request_bytes_limit",
        "gauge",
        "Most bytes of pending requests (queued.max.request.bytes)",
        lambda now: now.request_bytes_limit,
    ),
    _own_metric(
        "request_bytes_depleted_seconds",
        "counter",
        "Time in which requests were not read for that limit, in seconds",
        lambda now: now.request_bytes_depleted_s,
    ),
    _own_metric("groups", "gauge", "Groups by type", lambda now: now.groups.by_type.items(), "type", "state"),
    _kafka_metric(_GROUPS, "gauge", "Groups", lambda now: sum(now.groups.by_state.values())),
    *(
        _kafka_metric(f"{_GROUPS}{state}", "gauge", f"Groups in the state {state}", _state_samples(state))
        # the bean of Apache Kafka has these, whatever the types of groups
        for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
    ),
    *(
        _kafka_metric(f"kafka.server:type=group-coordinator-metrics {name}", "gauge", words, read)
        for name, words, read in (
            ("offset-commit-count", "Offsets committed", lambda now: now.groups.offsets_committed),
            (
                "offset-deletion-count",
                "Offsets that expired or were deleted",
                lambda now: now.groups.offsets_removed,
            ),
            (
                "share-group-rebalance-count",
                "Completed rebalances of share groups",
                lambda now: now.groups.share_rebalances,
            ),
            (
                "group-completed-rebalance-count",
                "Completed rebalances",
                lambda now: sum(now.groups.rebalances.values()),
            ),
        )
    ),
    _kafka_metric(
        "kafka.server:type=group-coordinator-metrics,state=* share-group-count",
        "gauge",
        "Share groups",
        lambda now: [
            ((state,), count) for (kind, state), count in now.groups.by_type.items() if kind == "share"
        ],
    ),
    _own_metric("group_members", "gauge", "Members of groups", lambda now: now.groups.members),
    _own_metric(
        "group_rebalances",
        "counter",
        "Completed rebalances, by the kind of their first cause",
        _count_samples(lambda now: now.groups.rebalances),
        "cause",
    ),
    _own_metric(
        "group_rebalance_time_ms",
        "summary",
        "Duration of rebalances from the first cause to the last assignment, in ms",
        lambda now: now.groups.rebalance_times,
    ),
    _own_metric(
        "group_generations_abandoned",
        "counter",
        "Generations that ended before their assignment was handed out",
        lambda now: now.groups.abandoned,
    ),
    _own_metric(
        "group_members_expired",
        "counter",
        "Members whose session expired",
        lambda now: now.groups.expired_members,
    ),
    _own_metric(
        "group_refusals", "counter", "Group requests that were refused", lambda now: now.groups.refusals
    ),
    _own_metric(
        "group_assignor_failures",
        "counter",
        "Failures of the coordinator's assignors to compute a target of a consumer group",
        lambda now: now.groups.assignor_failures,
    ),
    _own_metric(
        "offsets_records_skipped",
        "counter",
        "Records of the offsets topic that could not be read",
        lambda now: now.groups.records_skipped,
    ),
    *_LAG,
    *(
        _own_metric(f"client_{name}", "counter", words, _client_samples(name), *_CLIENT)
        for name, words in (
            ("requests", "Requests of a client"),
            ("produced_bytes", "Bytes of a client's Produce requests"),
            ("fetched_bytes", "Bytes of the responses to a client's Fetch requests"),
        )
    ),
    _own_metric(
        "client_connections", "gauge", "Connections of a client", _client_samples("connections"), *_CLIENT
    ),
    *(
        _kafka_metric(
            f"kafka.server:type={bean}", "gauge", f"{words}, of clients with a quota", _samples_of_use(key)
        )
        for bean, words, key in (
            ("Produce,user=*,client-id=* byte-rate", "Produced bytes per second", "producer_byte_rate"),
            ("Fetch,user=*,client-id=* byte-rate", "Fetched bytes per second", "consumer_byte_rate"),
            (
                "Request,user=*,client-id=* request-time",
                "Percent of the event loop's time",
                "request_percentage",
            ),
            (
                "ControllerMutation,user=*,client-id=* tokens",
                "Partitions that may be created or deleted at once",
                "controller_mutation_rate",
            ),
        )
    ),
    _own_metric("quota_limit", "gauge", "A client quota", _quota_samples("limit"), "quota", *_CLIENT),
    _own_metric(
        "quota_throttled_seconds",
        "counter",
        "Total delay imposed on the clients of a quota, in seconds",
        _quota_samples("throttled_s"),
        "quota",
        *_CLIENT,
    ),
)
