"""What brokers hide from a user: their lists leave out, without a word, what it may not DESCRIBE.

Nothing in a list tells that something is missing. Two questions do: which operations the user may carry out
on the cluster, and whether a topic, or a transactional id, of any name may be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..client import Cluster
from ..protocol import ApiKey, ErrorCode, UnsupportedVersionError
from ..protocol.messages.describe_cluster import DescribeClusterRequest
from ..protocol.messages.describe_transactions import DescribeTransactionsRequest
from ..protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

#: The bit of DESCRIBE among authorized operations, and what brokers without access rules may tell for them.
_DESCRIBE: Final = 1 << 8
_UNKNOWN: Final = -(1 << 31)
#: The last version of Metadata that tells of the cluster: what DescribeCluster tells from Kafka 2.8 on.
_OLD_METADATA: Final = 10
#: A name for which no rule is made but those for every name, nor one for names that begin like this one.
_ANY_NAME: Final = "-.kohort.asks.whether.every.name.may.be.seen"

HIDDEN_GROUPS: Final = (
    "groups that this user may not DESCRIBE are hidden: the right to DESCRIBE the cluster shows all"
)
HIDDEN_TOPICS: Final = (
    "topics that this user may not DESCRIBE are hidden: the right to DESCRIBE every topic ('*') shows all"
)
HIDDEN_TRANSACTIONS: Final = (
    "transactional ids that this user may not DESCRIBE are hidden: the right to DESCRIBE every one ('*') "
    "shows all"
)


def hidden_field(hidden: Sequence[str]) -> dict[str, list[str]]:
    """A field of JSON documents; there is none where nothing is hidden."""
    return {"hidden": [*hidden]} if hidden else {}


@dataclass(frozen=True, slots=True)
class Visibility:
    """Whether a user is shown the whole ``cluster`` (disks, controllers, all groups), and every topic. Rules
    that deny single topics are not seen by this.
    """

    cluster: bool = True
    topics: bool = True


async def ask_visibility(cluster: Cluster) -> Visibility:
    """What this user is shown; all of it where brokers have no access rules. Raises BrokerConnectionError."""
    return Visibility(await sees_cluster(cluster), await sees_every_topic(cluster))


async def ask_hidden_groups(cluster: Cluster) -> tuple[str, ...]:
    """A sentence where lists of groups may lack some; () where they have all."""
    return () if await sees_cluster(cluster) else (HIDDEN_GROUPS,)


async def ask_hidden_transactions(cluster: Cluster) -> tuple[str, ...]:
    """A sentence where lists of transactional ids may lack some; () where they have all."""
    return () if await sees_every_transaction(cluster) else (HIDDEN_TRANSACTIONS,)


async def ask_hidden_topics(cluster: Cluster) -> tuple[str, ...]:
    """A sentence where lists of topics may lack some; () where they have all."""
    return () if await sees_every_topic(cluster) else (HIDDEN_TOPICS,)


async def sees_cluster(cluster: Cluster) -> bool:
    """Whether this user may DESCRIBE the cluster. Without that, brokers list only the groups that it may
    DESCRIBE.
    """
    try:
        body = DescribeClusterRequest(include_cluster_authorized_operations=True)
        told = (await cluster.request(None, ApiKey.DESCRIBE_CLUSTER, body)).cluster_authorized_operations
    except UnsupportedVersionError:
        old = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        answer = await cluster.request(None, ApiKey.METADATA, old, max_version=_OLD_METADATA)
        told = answer.cluster_authorized_operations
    return told == _UNKNOWN or bool(told & _DESCRIBE)


async def sees_every_topic(
    cluster: Cluster, node_id: int | None = None, timeout_ms: float | None = None
) -> bool:
    """Whether this user may DESCRIBE topics of every name; brokers list only such ones. One broker is asked,
    or any (None).
    """
    body = MetadataRequest([MetadataRequestTopic(name=_ANY_NAME)], allow_auto_topic_creation=False)
    rows = (await cluster.request(node_id, ApiKey.METADATA, body, timeout_ms=timeout_ms)).topics
    return all(row.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED for row in rows)


async def sees_every_transaction(cluster: Cluster) -> bool:
    """Whether this user may DESCRIBE transactional ids of every name; brokers list only such ones."""
    body = DescribeTransactionsRequest([_ANY_NAME])
    rows = (await cluster.request(None, ApiKey.DESCRIBE_TRANSACTIONS, body)).transaction_states
    return all(row.error_code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED for row in rows)
