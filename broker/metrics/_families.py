"""The names under which metrics are shown: those that Prometheus' JMX exporter gives Apache Kafka's own where
the same is measured, so that dashboards made for them work, and names with ``kohort_`` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from ._snapshot import BrokerSnapshot, TimeFigures

#: Topics, partitions and clients that are shown by name at most, the busiest (partitions: the largest).
MAX_LABELLED: Final = 1_000

#: Label values and what was measured.
Sample = tuple[tuple[str, ...], "float | TimeFigures"]
Samples = Iterable[Sample]


class Family(NamedTuple):
    """One metric. ``kafka`` is Apache Kafka's MBean and attribute, empty for kohort's own."""

    name: str
    kind: Literal["counter", "gauge", "summary"]
    help: str
    kafka: str
    labels: tuple[str, ...]
    samples: Callable[[BrokerSnapshot], Samples]


def _one(read: Callable[[BrokerSnapshot], float | TimeFigures]) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [((), read(now))]


def _topics(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        busiest = sorted(now.topics.items(), key=lambda item: -item[1].bytes_in - item[1].bytes_out)
        return [((topic,), getattr(figures, field)) for topic, figures in busiest[:MAX_LABELLED]]

    return read


def _partitions(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        largest = sorted(now.partitions, key=lambda one: -one.size_bytes)[:MAX_LABELLED]
        return [((one.topic, str(one.partition)), getattr(one, field)) for one in largest]

    return read


def _phase(phase: str) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [
        ((api,), figures.times[phase]) for api, figures in now.apis.items() if figures.times[phase].count
    ]


def _clients(field: str) -> Callable[[BrokerSnapshot], Samples]:
    def read(now: BrokerSnapshot) -> Samples:
        busiest = sorted(now.clients, key=lambda one: -one.requests)[:MAX_LABELLED]
        return [((one.user, one.client_id), getattr(one, field)) for one in busiest]

    return read


def _quotas(key: str, field: str) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [
        ((one.user or "", one.client_id or ""), getattr(one, field)) for one in now.quotas if one.key == key
    ]


def _every_quota(field: str) -> Callable[[BrokerSnapshot], Samples]:
    return lambda now: [
        ((one.key, one.user or "", one.client_id or ""), getattr(one, field)) for one in now.quotas
    ]


def _state(state: str) -> Callable[[BrokerSnapshot], Samples]:
    return _one(lambda now: now.groups.by_state.get(state, 0))


_TOPIC_BEAN = "kafka.server:type=BrokerTopicMetrics,name={}PerSec,topic=*"
_REQUEST_BEAN = "kafka.network:type=RequestMetrics,name={},request=*"
_GROUP_BEAN = "kafka.server:type=group-coordinator-metrics {}"
_CLIENT = ("user", "client_id")

FAMILIES: Final = (
    *(
        Family(
            f"kafka_server_brokertopicmetrics_{name.lower()}",
            "counter",
            words,
            _TOPIC_BEAN.format(name),
            ("topic",),
            _topics(field),
        )
        for name, words, field in (
            ("MessagesIn", "Records produced", "messages_in"),
            ("BytesIn", "Bytes of records produced", "bytes_in"),
            ("BytesOut", "Bytes of records fetched", "bytes_out"),
            ("TotalProduceRequests", "Times a partition was in a Produce request", "produce_requests"),
            ("TotalFetchRequests", "Times a partition was in a Fetch request", "fetch_requests"),
        )
    ),
    Family(
        "kafka_network_requestmetrics_requests",
        "counter",
        "Requests",
        _REQUEST_BEAN.format("RequestsPerSec"),
        ("request",),
        lambda now: [((api,), figures.requests) for api, figures in now.apis.items()],
    ),
    Family(
        "kafka_network_requestmetrics_errors",
        "counter",
        "Errors in answers",
        _REQUEST_BEAN.format("ErrorsPerSec") + ",error=*",
        ("request", "error"),
        lambda now: [
            ((api, error), count)
            for api, figures in now.apis.items()
            for error, count in figures.errors.items()
        ],
    ),
    *(
        Family(
            f"kafka_network_requestmetrics_{name.lower()}",
            "summary",
            f"{words}, in ms; of heartbeats, commits, joins and syncs one in 64 is timed",
            _REQUEST_BEAN.format(name),
            ("request",),
            _phase(phase),
        )
        for name, words, phase in (
            ("RequestQueueTimeMs", "Until a request is taken up", "queue"),
            ("LocalTimeMs", "While the broker works on it", "local"),
            ("RemoteTimeMs", "While it waits for members, records or a disk", "remote"),
            ("ThrottleTimeMs", "What clients over a quota were told to wait", "throttle"),
            ("ResponseSendTimeMs", "Until the answer is with the system", "send"),
            ("TotalTimeMs", "Queue, local and remote time together", "total"),
        )
    ),
    Family(
        "kafka_server_replicamanager_partitioncount",
        "gauge",
        "Partitions that have files",
        "kafka.server:type=ReplicaManager,name=PartitionCount",
        (),
        _one(lambda now: len(now.partitions)),
    ),
    Family(
        "kafka_server_replicamanager_leadercount",
        "gauge",
        "Partitions that are led here: all",
        "kafka.server:type=ReplicaManager,name=LeaderCount",
        (),
        _one(lambda now: len(now.partitions)),
    ),
    Family(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "gauge",
        "One broker is its own controller",
        "kafka.controller:type=KafkaController,name=ActiveControllerCount",
        (),
        lambda _: [((), 1)],
    ),
    Family(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "gauge",
        "Partitions whose files cannot be served",
        "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
        (),
        _one(lambda now: now.offline_partitions),
    ),
    *(
        Family(
            f"kafka_log_log_{name.lower()}",
            "gauge",
            words,
            f"kafka.log:type=Log,name={name},topic=*,partition=*",
            ("topic", "partition"),
            _partitions(field),
        )
        for name, words, field in (
            ("Size", "Bytes of a partition's log", "size_bytes"),
            ("LogStartOffset", "First offset of a partition", "log_start_offset"),
            ("LogEndOffset", "Next offset of a partition", "log_end_offset"),
        )
    ),
    Family(
        "kohort_log_open_files",
        "gauge",
        "Log files that are open; the longest idle is closed when one more is needed",
        "",
        (),
        _one(lambda now: now.open_log_files),
    ),
    Family(
        "kohort_log_open_files_limit",
        "gauge",
        "Log files that may be open: half of the descriptors of the process",
        "",
        (),
        _one(lambda now: now.max_open_log_files),
    ),
    Family(
        "kafka_log_logflushstats_logflushrateandtimems",
        "summary",
        "Flushes of logs, in ms",
        "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
        (),
        _one(lambda now: now.flush_times),
    ),
    Family(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "Connections",
        "kafka.server:type=socket-server-metrics,listener=* connection-count",
        ("listener",),
        lambda now: [((listener,), count) for listener, count in now.connections.items()],
    ),
    Family(
        "kafka_server_socket_server_metrics_connection_creation",
        "counter",
        "Connections made",
        "kafka.server:type=socket-server-metrics connection-creation-total",
        (),
        _one(lambda now: now.connections_made),
    ),
    Family(
        "kohort_connections_refused",
        "counter",
        "Connections closed at once, by reason",
        "",
        ("reason",),
        lambda now: [((reason,), count) for reason, count in now.connections_refused.items()],
    ),
    Family(
        "kohort_request_bytes_held",
        "gauge",
        "Bytes of requests that wait",
        "",
        (),
        _one(lambda now: now.request_bytes_held),
    ),
    Family(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "gauge",
        "Groups",
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
        (),
        _one(lambda now: sum(now.groups.by_state.values())),
    ),
    *(
        Family(
            f"kafka_coordinator_group_groupmetadatamanager_numgroups{state.lower()}",
            "gauge",
            f"Groups in the state {state}",
            f"kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups{state}",
            (),
            _state(state),
        )
        for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
    ),
    *(
        Family(
            f"kafka_server_group_coordinator_metrics_{name.replace('-', '_')}",
            "gauge",
            words,
            _GROUP_BEAN.format(name),
            (),
            _one(read),
        )
        for name, words, read in (
            ("offset-commit-count", "Offsets committed", lambda now: now.groups.offsets_committed),
            (
                "offset-deletion-count",
                "Offsets that expired or were deleted",
                lambda now: now.groups.offsets_removed,
            ),
            (
                "group-completed-rebalance-count",
                "Rebalances that are over",
                lambda now: sum(now.groups.rebalances.values()),
            ),
        )
    ),
    Family(
        "kohort_group_members", "gauge", "Members of groups", "", (), _one(lambda now: now.groups.members)
    ),
    Family(
        "kohort_group_rebalances",
        "counter",
        "Rebalances that are over, by the kind of their first cause",
        "",
        ("cause",),
        lambda now: [((cause,), count) for cause, count in now.groups.rebalances.items()],
    ),
    Family(
        "kohort_group_rebalance_time_ms",
        "summary",
        "From the first cause to the last assignment, in ms",
        "",
        (),
        _one(lambda now: now.groups.rebalance_times),
    ),
    *(
        Family(f"kohort_{name}", "counter", words, "", (), _one(read))
        for name, words, read in (
            (
                "group_generations_abandoned",
                "Generations that ended before they began",
                lambda now: now.groups.abandoned,
            ),
            (
                "group_members_expired",
                "Members whose session expired",
                lambda now: now.groups.expired_members,
            ),
            ("group_refusals", "Group requests that were refused", lambda now: now.groups.refusals),
            (
                "offsets_records_skipped",
                "Records of the offsets topic that could not be read",
                lambda now: now.groups.records_skipped,
            ),
        )
    ),
    *(
        Family(f"kohort_client_{name}", "counter", words, "", _CLIENT, _clients(name))
        for name, words in (
            ("requests", "Requests of a client"),
            ("produced_bytes", "Bytes of its Produce requests"),
            ("fetched_bytes", "Bytes of the answers to its Fetch requests"),
        )
    ),
    Family("kohort_client_connections", "gauge", "Its connections", "", _CLIENT, _clients("connections")),
    *(
        Family(name, "gauge", words, bean, _CLIENT, _quotas(key, "used"))
        for name, words, bean, key in (
            (
                "kafka_server_produce_byte_rate",
                "Produced bytes a second, of clients with a quota",
                "kafka.server:type=Produce,user=*,client-id=* byte-rate",
                "producer_byte_rate",
            ),
            (
                "kafka_server_fetch_byte_rate",
                "Fetched bytes a second, of clients with a quota",
                "kafka.server:type=Fetch,user=*,client-id=* byte-rate",
                "consumer_byte_rate",
            ),
            (
                "kafka_server_request_request_time",
                "Percent of the event loop's time, of clients with a quota",
                "kafka.server:type=Request,user=*,client-id=* request-time",
                "request_percentage",
            ),
            (
                "kafka_server_controllermutation_tokens",
                "Partitions that may be made or deleted at once, of clients with a quota",
                "kafka.server:type=ControllerMutation,user=*,client-id=* tokens",
                "controller_mutation_rate",
            ),
        )
    ),
    Family("kohort_quota_limit", "gauge", "A client quota", "", ("quota", *_CLIENT), _every_quota("limit")),
    Family(
        "kohort_quota_throttled_seconds",
        "counter",
        "What its clients were told to wait, in all",
        "",
        ("quota", *_CLIENT),
        _every_quota("throttled_s"),
    ),
)


def families_table() -> str:
    """For the documentation: each name with its labels and what it is in Apache Kafka."""
    rows = [
        f"| `{_shown(one)}` | {', '.join(one.labels)} | {one.help} | {_code(one.kafka)} |" for one in FAMILIES
    ]
    head = ("| name | labels | what it is | in Apache Kafka |", "| --- | --- | --- | --- |")
    return "\n".join((*head, *rows))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _shown(family: Family) -> str:
    return f"{family.name}_total" if family.kind == "counter" else family.name
