"""What a cluster still lacks until its next broker may be stopped: asked of each broker by ordinary requests,
so that it works on Apache Kafka, too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ...client import Cluster

#: Time for one broker to answer, in milliseconds: one that hangs must not hold up what is told of the others.
_ANSWER_MS: Final = 5_000
#: Least pause between two looks, in seconds. Large clusters pause as long as a look takes.
_PAUSE_S: Final = 0.25
#: Partitions that are named; the others are counted.
_MOST_NAMED: Final = 3
#: The topic of Apache Kafka's controllers.
_QUORUM_TOPIC: Final = "__cluster_metadata"


class BrokerView(NamedTuple):
    """The cluster as one broker has it. ``partitions``: leader, leader epoch, replicas, in-sync replicas."""

    brokers: frozenset[int]
    controller: int
    partitions: Mapping[tuple[str, int], tuple[int, int, tuple[int, ...], frozenset[int]]]


async def wait_until_whole(
    cluster: Cluster,
    timeout_s: float,
    tell: Callable[[list[str]], None],
    *,
    brokers: Collection[int] = (),
    preferred: bool = False,
) -> list[str]:
    """Wait until the cluster lacks nothing (see ``find_lacks``), for ``timeout_s`` at most; what it still
    lacks then. Calls ``tell`` whenever that has changed. Raises KafkaError, AuthenticationError.
    """
    loop = asyncio.get_running_loop()
    end, told = loop.time() + timeout_s, [""]
    while True:
        begun = loop.time()
        found = await find_lacks(
            cluster, brokers, preferred=preferred, timeout_ms=max(1, min(_ANSWER_MS, (end - begun) * 1_000))
        )
        now = loop.time()
        pause = max(_PAUSE_S, now - begun)
        if found and now >= end and told != [""]:
            # brokers had no time left to answer this look: the one before tells more
            return told
        if not found or now + pause > end:
            return found
        if found != told:
            tell(found)
            told = found
        await asyncio.sleep(pause)


async def find_lacks(
    cluster: Cluster, wanted: Collection[int] = (), *, preferred: bool = False, timeout_ms: float = _ANSWER_MS
) -> list[str]:
    """What keeps the cluster from being whole, in words. Whole: every registered broker, and each of
    ``wanted``, answers; they agree about brokers, controller, leaders and in-sync replicas; each partition
    has a leader, with ``preferred`` its first replica, and all its replicas are in sync. Raises KafkaError,
    AuthenticationError.
    """
    from ...client import BrokerConnectionError

    try:
        async with asyncio.timeout(timeout_ms / 1_000):
            await cluster.connect(timeout_ms)
    except (BrokerConnectionError, TimeoutError) as error:
        return [f"no broker answers ({error or 'in time'})"]
    known = sorted(cluster.known_metadata.nodes)
    found = [f"broker {node_id} is not registered" for node_id in sorted({*wanted}.difference(known))]
    views = {}
    answers = await asyncio.gather(*(ask_view(cluster, node_id, timeout_ms) for node_id in known))
    for node_id, view in zip(known, answers, strict=True):
        if isinstance(view, BrokerView):
            views[node_id] = view
        else:
            found.append(f"broker {node_id} does not answer ({view})")
    if not views:
        return found
    found += await _hidden_lacks(cluster, min(views), timeout_ms)
    found += await find_controller_lacks(cluster, views, timeout_ms)
    first = min(views)
    for node_id, view in views.items():
        found += _differences_between(first, views[first], node_id, view)
    return found + _partitions_lack(views[first], preferred=preferred)


async def _hidden_lacks(cluster: Cluster, node_id: int, timeout_ms: float) -> list[str]:
    """What is known to lack where the broker that is asked has gone. Raises KafkaError where brokers hide
    topics from this user: their replicas may not be in sync.
    """
    from ...client import BrokerConnectionError
    from ...protocol import ErrorCode, KafkaError
    from ..visibility import HIDDEN_TOPICS, sees_every_topic

    try:
        if await sees_every_topic(cluster, node_id, timeout_ms):
            return []
    except BrokerConnectionError as error:
        return [f"broker {node_id} does not answer ({error})"]
    text = f"whether all replicas are in sync cannot be known; {HIDDEN_TOPICS}"
    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)


async def ask_view(cluster: Cluster, node_id: int, timeout_ms: float) -> BrokerView | Exception:
    """A broker's view, or why it gives none."""
    from ...client import BrokerConnectionError
    from ...protocol import ApiKey
    from ...protocol.messages.metadata import MetadataRequest

    body = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    try:
        async with asyncio.timeout(timeout_ms / 1_000):
            answer = await cluster.request(node_id, ApiKey.METADATA, body, timeout_ms=timeout_ms)
    except BrokerConnectionError as error:
        return error
    except TimeoutError:
        return TimeoutError(f"not within {timeout_ms / 1_000:.1f} s")
    return BrokerView(
        frozenset(each.node_id for each in answer.brokers),
        answer.controller_id,
        {
            (topic.name, each.partition_index): (
                each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                frozenset(each.isr_nodes),
            )
            for topic in answer.topics
            if topic.name is not None
            for each in topic.partitions
        },
    )


async def find_controller_lacks(
    cluster: Cluster, views: Mapping[int, BrokerView], timeout_ms: float
) -> list[str]:
    """What is amiss with the controller. Brokers of Apache Kafka with KRaft name any broker to clients: there
    the quorum of the controllers is asked, which kohort's brokers and those on ZooKeeper do not have.
    """
    from ...client import BrokerConnectionError
    from ...protocol import ApiKey, ErrorCode, UnsupportedVersionError
    from ...protocol.messages.describe_quorum import (
        DescribeQuorumRequest,
        RequestPartitionData,
        RequestTopicData,
    )
    from ..errors import advise_error

    body = DescribeQuorumRequest([RequestTopicData(_QUORUM_TOPIC, [RequestPartitionData(0)])])
    try:
        answer = await cluster.request(None, ApiKey.DESCRIBE_QUORUM, body, timeout_ms=timeout_ms)
    except UnsupportedVersionError:
        return _controllers_differ(views)
    except BrokerConnectionError as error:
        return [f"the controllers do not answer ({error})"]
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise advise_error(answer.error_code, "the controllers' quorum")
    rows = [each for topic in answer.topics for each in topic.partitions]
    if answer.error_code or not rows or rows[0].error_code or rows[0].leader_id < 0:
        return ["there is no active controller"]
    return []


def _controllers_differ(views: Mapping[int, BrokerView]) -> list[str]:
    named: dict[int, list[int]] = defaultdict(list)
    for node_id, view in views.items():
        named[view.controller].append(node_id)
    if list(named) == [-1]:
        return ["there is no active controller"]
    if len(named) > 1:
        words = (
            f"brokers {_list_of_ids(nodes)} name {'none' if controller < 0 else controller}"
            for controller, nodes in sorted(named.items())
        )
        return [f"brokers disagree about the controller: {', '.join(words)}"]
    return []


def _differences_between(first: int, expected: BrokerView, node_id: int, view: BrokerView) -> list[str]:
    """In what one broker's view differs from that of the first one."""
    found = []
    if view.brokers != expected.brokers:
        there, here = _list_of_ids(view.brokers), _list_of_ids(expected.brokers)
        found.append(f"broker {node_id} knows the brokers {there}, broker {first} {here}")
    unlike = [
        key
        for key in sorted(view.partitions.keys() | expected.partitions.keys())
        if view.partitions.get(key) != expected.partitions.get(key)
    ]
    if unlike:
        found.append(f"brokers {first} and {node_id} know different states of {_name_some(unlike)}")
    return found


def _partitions_lack(view: BrokerView, *, preferred: bool) -> list[str]:
    found = []
    offline = [key for key, (leader, *_) in view.partitions.items() if leader < 0]
    if offline:
        found.append(f"no leader: {_name_some(sorted(offline))}")
    lagging: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for key, (_, _, replicas, in_sync) in sorted(view.partitions.items()):
        for node_id in set(replicas) - in_sync:
            lagging[node_id].append(key)
    for node_id, keys in sorted(lagging.items()):
        gone = "" if node_id in view.brokers else ", which is not registered"
        found.append(f"not in sync at broker {node_id}{gone}: {_name_some(keys)}")
    if preferred:
        others = [
            key
            for key, (leader, _, replicas, _) in sorted(view.partitions.items())
            if 0 <= leader != replicas[0]
        ]
        if others:
            found.append(f"not led by their first replica: {_name_some(others)}")
    return found


def _name_some(keys: list[tuple[str, int]]) -> str:
    """Some partitions by name, behind their number."""
    names = ", ".join(f"{topic}-{number}" for topic, number in keys[:_MOST_NAMED])
    more = ", ..." if len(keys) > _MOST_NAMED else ""
    return f"{len(keys):,} partition{'s' * (len(keys) != 1)} ({names}{more})"


def _list_of_ids(numbers: Collection[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
