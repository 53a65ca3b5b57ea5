"""What the metrics of brokers and services tell: kohort's own, and Apache Kafka's under the names that
Prometheus' JMX exporter gives them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from .cluster import disk_text, find_ending
from .groups import find_behind, find_stalling
from .problem import FoundProblem

#: By the name of a metric: labels, and the value.
Samples: TypeAlias = Mapping[str, list[tuple[Mapping[str, str], float]]]

#: An outage of a client that lasts for as long is a problem, in seconds.
OUTAGE_S: Final = 30.0
#: Shares of descriptors, and of the memory for requests, that are nearly all.
_MOST_DESCRIPTORS: Final = 0.8
_MOST_REQUEST_BYTES: Final = 0.9

_LINE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


def read_samples(text: str) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    """The samples of a text in Prometheus' format. Raises ValueError for a line that is none."""
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"this is no line of metrics: {line[:100]!r}")
        name, labels, value = match.groups()
        read = {key: _ESCAPED.sub(_unescape, raw) for key, raw in _LABEL.findall(labels or "")}
        found.setdefault(name, []).append((read, float(value)))
    return found


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


class _Figures:
    """The metrics of one process, and those of an earlier look at it."""

    def __init__(self, now: Samples, before: Samples | None, about: str, now_s: float) -> None:
        self._now, self._before = now, before
        self.about, self.now_s = about, now_s

    def one(self, name: str) -> float | None:
        """The value of a metric without labels, the sum of one with labels; None if there is none."""
        rows = self._now.get(name)
        return None if not rows else sum(value for _, value in rows)

    def rows(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """Labels and values."""
        return self._now.get(name, [])

    def growth(self, name: str) -> float:
        """How much a counter has grown since the earlier look; 0 without one. After a restart, its value."""
        if self._before is None or name not in self._before:
            return 0.0
        then, now = sum(value for _, value in self._before[name]), self.one(name) or 0.0
        return now - then if now >= then else now


def name_process(now: Samples, address: str, cluster_id: str | None) -> str:
    """What sentences call the process at an address; a broker of this cluster as it is called elsewhere."""
    for labels, _ in now.get("kohort_broker_info", []):
        if labels.get("cluster_id") == cluster_id:
            return f"broker {labels.get('node_id')}"
    return address


def find_in_metrics(
    now: Samples, about: str, now_s: float, before: Samples | None = None
) -> list[FoundProblem]:
    """The problems of one process, a broker or a service, which sentences call ``about``. ``now_s`` is the
    wall clock. ``before`` is an earlier look at the same process, some minutes ago: what has grown since then
    is told too.
    """
    figures = _Figures(now, before, about, now_s)
    return [problem for find in _FINDERS for problem in find(figures)]


def _find_in_disk(of: _Figures) -> Iterator[FoundProblem]:
    free, total = of.one("kohort_log_dir_free_bytes"), of.one("kohort_log_dir_total_bytes")
    if of.one("kohort_log_dir_failing"):
        yield FoundProblem("DiskRefusesWrites", of.about, "its disk is full or fails: it takes no writes")
    hanging_s = of.one("kohort_log_dir_hanging_seconds")
    if hanging_s:
        text = f"a write or a flush of its disk has not returned for {hanging_s:,.0f} s"
        yield FoundProblem("DiskHangs", of.about, text)
    if free is not None and total and free < (of.one("kohort_log_dir_low_bytes") or 0):
        yield FoundProblem("DiskFills", of.about, disk_text(free, total))


def _find_in_recording(of: _Figures) -> Iterator[FoundProblem]:
    if of.one("kohort_recording_failing"):
        text = "it cannot record what happens to groups; its log says why"
        yield FoundProblem("RecordingFails", of.about, text)


def _find_in_certificates(of: _Figures) -> Iterator[FoundProblem]:
    for labels, end_s in of.rows("kohort_certificate_expiry_timestamp_seconds"):
        where = "".join(f" {name} {value}" for name, value in labels.items())
        yield from find_ending(f"{of.about}{where}", end_s, of.now_s)


def _find_in_logins(of: _Figures) -> Iterator[FoundProblem]:
    for labels, rate in of.rows("kafka_server_socket_server_metrics_failed_authentication_rate"):
        if rate > 0:
            text = f"it refuses {rate:.1f} logins a second; its log names users and addresses"
            yield FoundProblem("LoginsRefused", f"{of.about} listener {labels.get('listener', '')}", text)


def _find_in_bounds(of: _Figures) -> Iterator[FoundProblem]:
    used, most = of.one("process_open_fds") or 0, of.one("process_max_fds") or 0
    waiting = of.one("kohort_connections_lack_descriptors")
    if waiting or used > most * _MOST_DESCRIPTORS:
        text = f"{used:,.0f} of {most:,.0f} descriptors are open" + ", new connections wait" * bool(waiting)
        yield FoundProblem("DescriptorsRunOut", of.about, text)
    held, limit = of.one("kohort_request_bytes_held"), of.one("kohort_request_bytes_limit")
    if held is not None and limit and held >= limit * _MOST_REQUEST_BYTES:
        text = f"requests wait: {held / (1 << 20):,.0f} of {limit / (1 << 20):,.0f} MiB for them are taken"
        yield FoundProblem("RequestsWaitForMemory", of.about, text)


def _find_in_session(of: _Figures) -> Iterator[FoundProblem]:
    if of.one("kohort_zookeeper_connected") == 0:
        text = "it does not reach ZooKeeper, and leads nothing once its session is over"
        yield FoundProblem("BrokerWithoutZooKeeper", of.about, text)
    builds = [labels.get("version", "") or "unknown" for labels, n in of.rows("kohort_cluster_brokers") if n]
    if len(builds) > 1:
        yield FoundProblem(
            "BuildsMixed", "cluster", f"brokers of {len(builds)} builds run: {', '.join(sorted(builds))}"
        )


def _find_old_requests(of: _Figures) -> Iterator[FoundProblem]:
    found: dict[str, set[str]] = {}
    for labels, count in of.rows("kafka_network_requestmetrics_deprecatedrequests_total"):
        if count:
            folded = {name.lower(): value for name, value in labels.items()}
            client = (
                f"{folded.get('clientsoftwarename', '')} {folded.get('clientsoftwareversion', '')}".strip()
            )
            found.setdefault(client or "unknown clients", set()).add(folded.get("request", "?"))
    for client, requests in sorted(found.items()):
        text = f"{client} sends versions of {', '.join(sorted(requests))} that the next broker does not know"
        yield FoundProblem("OldRequests", f"{of.about} {client}", text)


def _find_in_service(of: _Figures) -> Iterator[FoundProblem]:
    for labels, live in of.rows("kohort_service_live"):
        if not live:
            text = "no record is finished though some wait; /healthz says what stands still"
            yield FoundProblem("ServiceStandsStill", f"{of.about} group {labels.get('group', '')}", text)
    for labels, outage_s in of.rows("kohort_client_outage_seconds"):
        if outage_s > OUTAGE_S:
            text = f"its client has had no success for {outage_s:,.0f} s; its log names the address"
            yield FoundProblem("NoBrokerAnswers", f"{of.about} group {labels.get('group', '')}", text)
    oldest = {labels.get("handler"): age for labels, age in of.rows("kohort_handler_oldest_call_seconds")}
    for labels, calls in of.rows("kohort_handler_long_calls"):
        if calls:
            name = labels.get("handler", "")
            text = f"{calls:.0f} of its calls hang, one for {oldest.get(name, 0.0):,.0f} s"
            yield FoundProblem("HandlerHangs", f"{of.about} handler {name}", text)


def _find_in_lag(of: _Figures) -> Iterator[FoundProblem]:
    records, ages, standing = (
        {labels.get("group", ""): value for labels, value in of.rows(f"kohort_group_lag_{name}")}
        for name in ("records", "seconds", "standing_seconds")
    )
    for group in {**ages, **standing}:
        yield from find_behind(
            group, records.get(group, 0), ages.get(group, 0) * 1_000, standing.get(group, 0) * 1_000
        )


def _find_in_transactions(of: _Figures) -> Iterator[FoundProblem]:
    late = of.one("kafka_server_replicamanager_partitionswithlatetransactionscount")
    if late:
        text = f"{late:,.0f} of its partitions have a transaction open for too long"
        advice = "`kohort transactions abort` finds and ends what hangs"
        yield FoundProblem("TransactionHangs", of.about, f"{text}: {advice}")


def _find_in_share_groups(of: _Figures) -> Iterator[FoundProblem]:
    for labels, stalled_s in of.rows("kohort_share_group_stalled_seconds"):
        if stalled_s:
            yield find_stalling(f"group {labels.get('group', '')}", "share partitions have", stalled_s)


class _Growth(NamedTuple):
    """A counter that should not grow, by how much it may between two looks, and what it counts."""

    kind: str
    metric: str
    most: float
    words: str


_GROWTHS: Final = (
    _Growth(
        "OffsetsUnreadable",
        "kohort_offsets_records_skipped_total",
        0,
        "records of the offsets topic cannot be read",
    ),
    _Growth(
        "SessionsExpire",
        "kafka_server_sessionexpirelistener_zookeeperexpires_total",
        0,
        "sessions with ZooKeeper have ended",
    ),
    _Growth(
        "IsrFlaps",
        "kafka_server_replicamanager_isrshrinks_total",
        0,
        "times replicas have left those in sync",
    ),
    _Growth(
        "AssignorFails",
        "kohort_group_assignor_failures_total",
        0,
        "times no assignment could be computed",
    ),
    _Growth(
        "EventLoopBlocked",
        "kohort_consumer_loop_blocked_seconds_total",
        5,
        "seconds its event loop was blocked",
    ),
    _Growth("DeadLetters", "kohort_handler_dead_letters_total", 0, "records were set aside"),
    _Growth("CommitsFail", "kohort_consumer_failed_commits_total", 0, "commits have failed"),
    _Growth(
        "RebalancesTooOften", "kafka_consumer_coordinator_rebalance_total", 5, "rebalances were completed"
    ),
    _Growth("LocksLost", "kohort_share_locks_lost_total", 0, "locks have ended too early"),
    _Growth(
        "LastDeliveries",
        "kohort_share_group_last_deliveries_total",
        0,
        "records of share groups were given out for the last time",
    ),
)


def _find_growth(of: _Figures) -> Iterator[FoundProblem]:
    for each in _GROWTHS:
        grown = of.growth(each.metric)
        if grown > each.most:
            yield FoundProblem(each.kind, of.about, f"{grown:,.0f} {each.words} lately")


_FINDERS: Final[tuple[Callable[[_Figures], Iterator[FoundProblem]], ...]] = (
    _find_in_disk,
    _find_in_recording,
    _find_in_certificates,
    _find_in_logins,
    _find_in_bounds,
    _find_in_session,
    _find_old_requests,
    _find_in_service,
    _find_in_lag,
    _find_in_transactions,
    _find_in_share_groups,
    _find_growth,
)
