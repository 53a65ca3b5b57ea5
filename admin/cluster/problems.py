"""What is wrong with a cluster: asked of its brokers by ordinary requests, so that it works on Apache Kafka,
too, and read from the metrics of brokers and services.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...problems import (
    BrokerSeen,
    ClusterSeen,
    FoundProblem,
    PartitionSeen,
    Samples,
    find_in_cluster,
    find_in_groups,
    find_in_metrics,
    most_severe_first,
    read_samples,
)
from .commands import describe_disk
from .health import BrokerView, ask_view, find_controller_lacks
from .top import metrics_url

if TYPE_CHECKING:
    from ...client import Cluster
    from ...lag import LagTracker

#: Time for one broker to answer, in milliseconds, and for one process to give its metrics, in seconds.
_ANSWER_MS: Final = 5_000
_METRICS_S: Final = 5.0
#: Most topics whose configs are asked for: where more lack replicas, their number is no news.
_MOST_TOPICS: Final = 100
_MIN_IN_SYNC: Final = "min.insync.replicas"


async def find_problems(
    cluster: Cluster, timeout_ms: float = _ANSWER_MS, tracker: LagTracker | None = None
) -> list[FoundProblem]:
    """What is wrong with brokers, partitions and groups, the most severe first. With a ``tracker`` that has
    seen several looks also which groups stand still. Raises KafkaError, AuthenticationError, and
    BrokerConnectionError if no broker answers.
    """
    await cluster.metadata([])
    known = sorted(cluster.known_metadata.nodes)
    answers = await asyncio.gather(*(ask_view(cluster, node_id, timeout_ms) for node_id in known))
    found = dict(zip(known, answers, strict=True))
    views = {node_id: view for node_id, view in found.items() if isinstance(view, BrokerView)}
    errors = {node_id: str(view) for node_id, view in found.items() if not isinstance(view, BrokerView)}
    brokers = await asyncio.gather(*(_look_at_broker(cluster, node_id, errors) for node_id in known))
    lacking = await _lacking_partitions(cluster, views)
    state = ClusterSeen(brokers, lacking, await _controller_trouble(cluster, views, timeout_ms))
    behind = await _find_behind(cluster, errors, tracker)
    return most_severe_first([*find_in_cluster(state, time.time()), *behind])


async def _find_behind(
    cluster: Cluster, errors: Mapping[int, str], tracker: LagTracker | None
) -> list[FoundProblem]:
    """The groups that are behind. Not while a broker does not answer: it would be waited for."""
    if errors:
        return []
    from ..groups.lag import measure_lag

    lags = await measure_lag(cluster)
    return find_in_groups(lags if tracker is None else tracker.track(lags))


async def _look_at_broker(cluster: Cluster, node_id: int, errors: Mapping[int, str]) -> BrokerSeen:
    from ...client.pool import Channel

    if node_id in errors:
        return BrokerSeen(node_id, errors[node_id])
    disk = await describe_disk(cluster, node_id)
    connection = await cluster.connect_to(node_id, Channel.CONTROL)
    if disk is None:
        return BrokerSeen(node_id, certificate_end_s=connection.certificate_end_s)
    return BrokerSeen(
        node_id, None, disk.failing, disk.free_bytes, disk.total_bytes, connection.certificate_end_s
    )


async def _controller_trouble(cluster: Cluster, views: Mapping[int, BrokerView], timeout_ms: float) -> str:
    """What is wrong with the controller, as far as the user may know it; "" if nothing is."""
    from ...protocol import KafkaError

    try:
        return "; ".join(await find_controller_lacks(cluster, views, timeout_ms)) if views else ""
    except KafkaError:
        return ""


async def _lacking_partitions(cluster: Cluster, views: Mapping[int, BrokerView]) -> list[PartitionSeen]:
    """The partitions that have no leader or lack replicas, as the first broker knows them."""
    if not views:
        return []
    lacking = {
        key: row
        for key, row in sorted(views[min(views)].partitions.items())
        if row[0] < 0 or len(row[3]) < len(row[2])
    }
    least = await _least_in_sync(cluster, sorted({topic for topic, _ in lacking})[:_MOST_TOPICS])
    return [
        PartitionSeen(
            topic, number, leader if leader >= 0 else None, replicas, sorted(in_sync), least.get(topic)
        )
        for (topic, number), (leader, _, replicas, in_sync) in lacking.items()
    ]


async def _least_in_sync(cluster: Cluster, topics: Collection[str]) -> dict[str, int]:
    """min.insync.replicas of these topics, as far as the user may see it."""
    if not topics:
        return {}
    from ...protocol import KafkaError
    from ..topics.requests import topic_configs

    try:
        found = await topic_configs(cluster, topics, all_configs=True)
    except KafkaError:
        return {}
    return {
        topic: int(config.value)
        for topic, configs in found.items()
        for config in configs
        if config.name == _MIN_IN_SYNC and config.value is not None
    }


def read_metrics(address: str) -> tuple[str, Samples]:
    """What ``HOST:PORT``, or a URL, shows, and the name of that process. Raises OSError, ValueError."""
    import urllib.request  # not above: the help needs no HTTP

    url = metrics_url(address)
    with urllib.request.urlopen(url, timeout=_METRICS_S) as answer:
        return urlsplit(url).netloc, read_samples(str(answer.read(), "utf-8"))


def find_in_processes(
    now: Iterable[tuple[str, Samples]], before: Iterable[tuple[str, Samples]] = ()
) -> list[FoundProblem]:
    """What is wrong with processes, by their metrics now and, where there are some, some time ago."""
    earlier = dict(before)
    return [
        problem
        for name, samples in now
        for problem in find_in_metrics(samples, name, time.time(), earlier.get(name))
    ]
