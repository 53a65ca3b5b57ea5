"""The table of APIs: key, name, the versions we speak and where each becomes flexible (KIP-482).

The upper bounds are the newest that kafka-python 3 knows and Apache Kafka 4.3.1 offers; the lower ones are
Apache Kafka's own, so that a client that reads a broker's age off the ranges reads a real one. Produce starts
at 0 in the offer (KIP-896: librdkafka asks for it there) and at 3 in what is served.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ._errors import UnsupportedVersionError


class ApiKey(IntEnum):
    """Kafka's API numbers (the ones that kohort serves or sends), and kohort's own."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    DESCRIBE_TOPIC_PARTITIONS = 75
    DESCRIBE_GROUP_HISTORY = 20001


#: API numbers from here on are kohort's own: offered as a feature, never in the list of APIs.
FIRST_PRIVATE_KEY: Final = 20_000

#: The feature (KIP-584) that says that a broker answers DescribeGroupHistory, with its versions.
GROUP_HISTORY_FEATURE: Final = ("kohort.history", 1, 1)


@dataclass(frozen=True, slots=True)
class Api:
    """One row: ``min_version..max_version`` is inclusive; ``flexible_from`` is None where no version is."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_from: int | None

    @property
    def private(self) -> bool:
        """Whether it is kohort's own: ask only who offers its feature."""
        return self.key >= FIRST_PRIVATE_KEY

    def flexible(self, version: int) -> bool:
        """Whether this version has compact strings and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from

    def require(self, version: int) -> None:
        """Raise UnsupportedVersionError unless the version is in range."""
        if not self.min_version <= version <= self.max_version:
            raise UnsupportedVersionError(
                f"{self.name} v{version} is not spoken here: v{self.min_version} to v{self.max_version} are"
            )


_ROWS = (
    Api(ApiKey.PRODUCE, "Produce", 3, 13, 9),
    Api(ApiKey.FETCH, "Fetch", 4, 18, 12),
    Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 11, 6),
    Api(ApiKey.METADATA, "Metadata", 0, 13, 9),
    Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 10, 8),
    Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 10, 6),
    Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, 3),
    Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, 6),
    Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, 4),
    Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, 4),
    Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, 4),
    Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, 5),
    Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, 3),
    Api(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, None),
    Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, 3),
    Api(ApiKey.CREATE_TOPICS, "CreateTopics", 2, 7, 5),
    Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 1, 6, 4),
    Api(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, 2),
    Api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, 2),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, 4),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, 3),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, 3),
    Api(ApiKey.END_TXN, "EndTxn", 0, 5, 3),
    Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, 1),
    Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 5, 3),
    Api(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 1, 3, 2),
    Api(ApiKey.CREATE_ACLS, "CreateAcls", 1, 3, 2),
    Api(ApiKey.DELETE_ACLS, "DeleteAcls", 1, 3, 2),
    Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, 4),
    Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, 2),
    Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 5, 2),
    Api(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, 2),
    Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, 2),
    Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, 2),
    Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, 2),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, 1),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, 0),
    Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, None),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", 0, 0, 0),
    Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, 0),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, 1),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, 1),
    Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, 0),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, 0),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, 0),
    Api(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, 0),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, 0),
    Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, 0),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, 0),
    Api(ApiKey.DESCRIBE_GROUP_HISTORY, "DescribeGroupHistory", 0, 0, 0),
)

#: Every API by number.
APIS: dict[int, Api] = {row.key: row for row in _ROWS}


def api_for(key: int) -> Api:
    """The row of an API number; UnsupportedVersionError for one we do not know."""
    try:
        return APIS[key]
    except KeyError:
        raise UnsupportedVersionError(f"unknown API number {key}") from None
