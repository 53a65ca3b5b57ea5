"""What is wrong with a cluster: asked of its brokers by ordinary requests, so that it works on Apache Kafka,
too, and read from the metrics of brokers and services.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...client.requests import NO_RIGHT
from ...problems import (
    BrokerSeen,
    ClusterSeen,
    FoundProblem,
    LettersSeen,
    PartitionSeen,
    Samples,
    ShareSeen,
    TransactionSeen,
    find_in_cluster,
    find_in_groups,
    find_in_letters,
    find_in_metrics,
    find_in_shares,
    find_in_transactions,
    most_severe_first,
    name_process,
    read_samples,
)
from ...protocol import ErrorCode
from ..errors import explain_error
from ..visibility import HIDDEN_GROUPS, HIDDEN_TOPICS, Visibility, ask_visibility
from .commands import describe_disk
from .health import BrokerView, ask_view, find_controller_lacks
from .top import metrics_url

if TYPE_CHECKING:
    from ...client import Cluster
    from ...lag import GroupLag, LagTracker
    from ..records.letter_topics import LetterTopicFinder

#: Time for one broker to answer, in milliseconds, and for one process to give its metrics, in seconds.
_ANSWER_MS: Final = 5_000
_METRICS_S: Final = 5.0
#: Most topics whose configs are asked for: where more lack replicas, their number is no news.
_MOST_TOPICS: Final = 100
_MIN_IN_SYNC: Final = "min.insync.replicas"
#: Groups and topics that a sentence names; the others are counted.
_MOST_NAMED: Final = 3
#: What tells of missing rights in the errors of a group and the notes of its partitions.
_GROUP_REFUSED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED.name
_TOPIC_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
#: For how long a transaction may be open, and Kafka's default where brokers do not tell.
_MAX_TRANSACTION: Final = "transaction.max.timeout.ms"
_MAX_TRANSACTION_MS: Final = 900_000


@dataclass(frozen=True, slots=True)
class ProblemReport:
    """What is wrong, the most severe first. ``hidden`` says what could not be looked at for want of rights;
    ``is_blind``: this user may look into neither a topic nor a group, so that nothing follows from it.
    """

    found: list[FoundProblem]
    hidden: tuple[str, ...] = ()
    is_blind: bool = False


async def find_problems(
    cluster: Cluster,
    timeout_ms: float = _ANSWER_MS,
    tracker: LagTracker | None = None,
    finder: LetterTopicFinder | None = None,
) -> ProblemReport:
    """What is wrong with brokers, partitions, transactions and groups, and where dead letters came lately.
    With a ``tracker`` that has seen several looks also which groups stand still; a ``finder`` knows topics
    from the last one. Raises KafkaError, AuthenticationError, and BrokerConnectionError if no broker answers.
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
    problems = find_in_cluster(state, time.time())
    if errors:
        # the broker that does not answer would be waited for
        return ProblemReport(most_severe_first(problems))
    from ..groups.lag import measure_lag

    lags = await measure_lag(cluster)
    seen = await ask_visibility(cluster)
    hidden = [*_hidden_parts(seen), *_hidden_lags(lags)]
    problems += await _find_in_groups(cluster, lags, tracker)
    problems += await _find_hanging(cluster, hidden)
    problems += await _find_letters(cluster, finder, hidden)
    looked_at = [each for each in lags if _GROUP_REFUSED not in (each.error or "")]
    is_blind = seen != Visibility() and not looked_at and not any(view.partitions for view in views.values())
    return ProblemReport(most_severe_first(problems), tuple(hidden), is_blind)


def _hidden_parts(seen: Visibility) -> Iterator[str]:
    if not seen.cluster:
        yield f"disks, controllers and {HIDDEN_GROUPS}"
    if not seen.topics:
        yield HIDDEN_TOPICS


def _hidden_lags(lags: Iterable[GroupLag]) -> Iterator[str]:
    """What is not known of groups that are listed."""
    refused = [each.group for each in lags if _GROUP_REFUSED in (each.error or "")]
    if refused:
        yield f"the lag of {_name_some(refused, 'group')} is hidden: the right to DESCRIBE them shows it"
    ageless = [
        each.group
        for each in lags
        if any(row.records and row.age_ms is None and _TOPIC_REFUSED in row.note for row in each.partitions)
    ]
    if ageless:
        text = f"the age of what {_name_some(ageless, 'group')} has not read is hidden"
        yield f"{text}: the right to READ its topics shows it"


def _name_some(names: Sequence[str], what: str) -> str:
    """A number of things, some of them by name."""
    shown = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    return f"{what} {shown}" if len(names) == 1 else f"{len(names):,} {what}s ({shown})"


async def _find_in_groups(
    cluster: Cluster, lags: list[GroupLag], tracker: LagTracker | None
) -> list[FoundProblem]:
    """Groups that are behind, and share groups that stand still or give up on records."""
    behind = (
        find_in_groups(lags)
        if tracker is None
        else find_in_groups(tracker.track(lags), worked=tracker.worked)
    )
    return [*behind, *find_in_shares(await _see_shares(cluster, lags))]


async def _see_shares(cluster: Cluster, lags: Iterable[GroupLag]) -> list[ShareSeen]:
    """The share partitions that brokers have in memory; Apache Kafka's do not tell of them."""
    from ...protocol import KafkaError
    from ..groups.results import SHARE
    from ..groups.share_groups import ask_leaders

    found = []
    now_ms = time.time_ns() // 1_000_000
    for each in lags:
        if each.group_type != SHARE:
            continue
        try:
            told = (await ask_leaders(cluster, each.group)).partitions
        except KafkaError:
            continue  # it is gone, or this user may not see it
        for (topic, number), row in told.items():
            stalled_ms = None if row.stalled_since_ms < 0 else max(0, now_ms - row.stalled_since_ms)
            found.append(ShareSeen(each.group, topic, number, stalled_ms, row.last_delivery))
    return found


async def _find_letters(
    cluster: Cluster, finder: LetterTopicFinder | None, hidden: list[str]
) -> list[FoundProblem]:
    """Topics with names of dead letters that letters have come to lately."""
    from ...protocol import KafkaError
    from ..records.letter_topics import USUAL_NAMES, LetterTopicFinder

    finder = finder or LetterTopicFinder(USUAL_NAMES)
    try:
        found = await finder.find(cluster)
    except KafkaError:
        return []  # topics are gone, or brokers are busy: the next look finds them
    if finder.forbidden:
        where = _name_some(finder.forbidden, "topic")
        hidden.append(f"dead letters in {where} are hidden: the right to READ them shows them")
    seen = (LettersSeen(row.topic, row.records, row.written_ms) for row in found)
    return find_in_letters(seen, time.time() * 1_000)


async def _find_hanging(cluster: Cluster, hidden: list[str]) -> list[FoundProblem]:
    """Transactions that no coordinator knows, and that no record has come in for longer than any may last."""
    from ...protocol import KafkaError
    from ..transactions.open_transactions import find_hanging

    try:
        hanging = await find_hanging(cluster, None, await _longest_transaction_ms(cluster))
    except KafkaError as error:
        if error.code in NO_RIGHT:
            hidden.append(f"transactions that hang are not looked for: {explain_error(error)}")
        return []
    return find_in_transactions(
        TransactionSeen(each.where.topic, each.where.partition, each.silent_ms, each.where.held_back)
        for each in hanging
    )


async def _longest_transaction_ms(cluster: Cluster) -> int:
    """The longest that a broker lets a transaction be open."""
    from ...protocol import KafkaError
    from ..access.configs import ConfiguredResource, describe_configs

    brokers = [ConfiguredResource("broker", str(node)) for node in sorted(cluster.known_metadata.nodes)]
    try:
        found = await describe_configs(cluster, brokers)
    except KafkaError:
        return _MAX_TRANSACTION_MS
    told = [
        int(config.value)
        for configs in found.values()
        for config in configs
        if config.name == _MAX_TRANSACTION and config.value is not None
    ]
    return max(told, default=_MAX_TRANSACTION_MS)


async def _look_at_broker(cluster: Cluster, node_id: int, errors: Mapping[int, str]) -> BrokerSeen:
    from ...client.pool import Channel

    if node_id in errors:
        return BrokerSeen(node_id, errors[node_id])
    disk = await describe_disk(cluster, node_id)
    connection = await cluster.connect_to(node_id, Channel.CONTROL)
    if disk is None:
        return BrokerSeen(node_id, certificate_end_s=connection.certificate_end_s)
    return BrokerSeen(
        node_id,
        None,
        disk.failing,
        disk.hanging,
        disk.free_bytes,
        disk.total_bytes,
        connection.certificate_end_s,
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
    now: Iterable[tuple[str, Samples]],
    before: Iterable[tuple[str, Samples]] = (),
    cluster_id: str | None = None,
) -> list[FoundProblem]:
    """What is wrong with processes, by their metrics now and, where there are some, some time ago. A broker
    of the cluster with this id is called by its number.
    """
    earlier = dict(before)
    return [
        problem
        for name, samples in now
        for problem in find_in_metrics(
            samples, name_process(samples, name, cluster_id), time.time(), earlier.get(name)
        )
    ]
