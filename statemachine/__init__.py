"""State machines as data: groups, transactional ids, partitions, replicas, shared records, members."""

from ._consumer_group import (
    ASSIGNMENT_MOVES,
    CONSUMER_GROUP_MOVES,
    AssignmentMove,
    AssignmentState,
    ConsumerGroupMove,
    ConsumerGroupState,
    assignment_diagram,
    consumer_group_diagram,
    consumer_group_state,
)
from ._group import GROUP, GROUP_DURABLE_STATES, GROUP_TRANSITIONS, GroupState, GroupTrigger
from ._machine import IllegalTransitionError, LifeCycle, Transition
from ._member import (
    CONSUMER_MEMBER,
    CONSUMER_MEMBER_TRANSITIONS,
    MEMBER,
    MEMBER_TRANSITIONS,
    MemberState,
    MemberTrigger,
)
from ._partition import (
    PARTITION,
    PARTITION_TRANSITIONS,
    REPLICA,
    REPLICA_TRANSITIONS,
    PartitionLife,
    PartitionTrigger,
    ReplicaLife,
    ReplicaTrigger,
    partition_state,
    replica_state,
)
from ._share_group import SHARE_GROUP_MOVES, ShareGroupMove, ShareGroupState, share_group_diagram
from ._share_record import (
    SHARE_RECORD,
    SHARE_RECORD_TRANSITIONS,
    ShareRecordState,
    ShareRecordTrigger,
)
from ._transaction import (
    TRANSACTION,
    TRANSACTION_DURABLE_STATES,
    TRANSACTION_TRANSITIONS,
    TransactionState,
    TransactionTrigger,
)

fire, legal_triggers, group_diagram = GROUP.fire, GROUP.legal, GROUP.diagram
transaction_diagram = TRANSACTION.diagram
partition_diagram, replica_diagram = PARTITION.diagram, REPLICA.diagram
member_diagram = MEMBER.diagram
consumer_member_diagram = CONSUMER_MEMBER.diagram
share_record_diagram = SHARE_RECORD.diagram

__all__ = [
    "ASSIGNMENT_MOVES",
    "CONSUMER_GROUP_MOVES",
    "CONSUMER_MEMBER",
    "CONSUMER_MEMBER_TRANSITIONS",
    "GROUP_DURABLE_STATES",
    "GROUP_TRANSITIONS",
    "MEMBER",
    "MEMBER_TRANSITIONS",
    "PARTITION",
    "PARTITION_TRANSITIONS",
    "REPLICA",
    "REPLICA_TRANSITIONS",
    "SHARE_GROUP_MOVES",
    "SHARE_RECORD",
    "SHARE_RECORD_TRANSITIONS",
    "TRANSACTION",
    "TRANSACTION_DURABLE_STATES",
    "TRANSACTION_TRANSITIONS",
    "AssignmentMove",
    "AssignmentState",
    "ConsumerGroupMove",
    "ConsumerGroupState",
    "GroupState",
    "GroupTrigger",
    "IllegalTransitionError",
    "LifeCycle",
    "MemberState",
    "MemberTrigger",
    "PartitionLife",
    "PartitionTrigger",
    "ReplicaLife",
    "ReplicaTrigger",
    "ShareGroupMove",
    "ShareGroupState",
    "ShareRecordState",
    "ShareRecordTrigger",
    "TransactionState",
    "TransactionTrigger",
    "Transition",
    "assignment_diagram",
    "consumer_group_diagram",
    "consumer_group_state",
    "consumer_member_diagram",
    "fire",
    "group_diagram",
    "legal_triggers",
    "member_diagram",
    "partition_diagram",
    "partition_state",
    "replica_diagram",
    "replica_state",
    "share_group_diagram",
    "share_record_diagram",
    "transaction_diagram",
]
