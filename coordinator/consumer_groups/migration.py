"""Live migration of groups from one protocol to the other (KIP-848).

A consumer that joins a classic group upgrades it to a consumer group: its members stay, with their
assignments, at an epoch that is their generation. When the last consumer leaves, the members that speak the
classic protocol become a classic group again, which rebalances.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from ...offsets_topic import (
    ClassicMetadata,
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupDeleted,
    GroupEpoch,
    GroupRecordType,
    GroupStored,
    MemberMetadata,
    StoredMember,
    TargetAssignment,
    TargetEpoch,
)
from ...protocol import (
    ErrorCode,
    KafkaError,
    MalformedMessageError,
    Subscription,
    decode_assignment,
    decode_subscription,
)
from ...statemachine import AssignmentState
from ..classic_groups import group as classic_groups
from ..classic_groups.group import ClassicGroup
from ..classic_groups.members import restart_session as restart_classic_session
from ..classic_groups.rebalance import prepare_rebalance
from ..groups.events import Cause
from ..groups.groups import CONSUMER, GroupShard, forget_group
from .changes import Changes, answer_parked, restart_session, write_records
from .group import ConsumerGroup, ConsumerGroupMember, assignment_bytes, common_protocol
from .holding import answer_held

_TYPES = GroupRecordType
_UPGRADES, _DOWNGRADES = ("bidirectional", "upgrade"), ("bidirectional", "downgrade")


def upgrade_group(shard: GroupShard, group: ClassicGroup, now_ms: int) -> Changes:
    """Make a consumer group with the members of a classic one, not in the shard yet. Raises KafkaError."""
    settings = shard.state.settings
    if settings.group_consumer_migration_policy not in _UPGRADES:
        raise _refusal_of(group, "online upgrade is disabled.")
    if group.protocol_type != CONSUMER:
        raise _refusal_of(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > settings.group_consumer_max_size:
        raise _refusal_of(group, "the group size exceeds the consumer group maximum size.")
    changes = Changes(shard, ConsumerGroup(group.group_id, shard.state.topics), now_ms)
    changes.records.append(GroupDeleted(group.group_id))
    assigned: dict[str, dict[UUID, dict[int, int]]] = {}
    subscriptions: dict[str, Subscription] = {}
    for member in group.members.values():
        protocol = group.protocol_name or next((name for name, _ in member.protocols), "")
        try:
            subscription = subscriptions[member.member_id] = decode_subscription(member.metadata(protocol))
            assignment = decode_assignment(member.assignment)
        except MalformedMessageError:
            raise _refusal_of(group, "the embedded consumer protocol is malformed.") from None
        if assignment.user_data:
            raise _refusal_of(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                "default assignor before re-attempting the upgrade.",
            )
        has = assigned[member.member_id] = {}
        for topic, number in assignment.partitions:
            topic_id = shard.state.topics.id_of_topic(topic)
            if topic_id is not None:
                has.setdefault(topic_id, {})[number] = group.generation
        changes.set_member(
            member.member_id,
            MemberMetadata(
                member.instance_id,
                subscription.rack,
                member.client_id,
                member.client_host,
                tuple(sorted(set(subscription.topics))),
                "",
                member.rebalance_timeout_ms,
                None,
                ClassicMetadata(member.session_timeout_ms, member.protocols),
            ),
        )
    changes.put_record(_TYPES.EPOCH, "", GroupEpoch(group.generation))
    for member_id, partitions in assigned.items():
        target = {topic_id: tuple(sorted(numbers)) for topic_id, numbers in partitions.items()}
        changes.put_record(_TYPES.TARGET, member_id, TargetAssignment(target))
    changes.put_record(_TYPES.TARGET_EPOCH, "", TargetEpoch(group.generation))
    still_read = _still_read(shard, group, assigned, subscriptions)
    for member_id, partitions in assigned.items():
        revoking = still_read.get(member_id, {})
        state = AssignmentState.UNREVOKED_PARTITIONS if revoking else AssignmentState.STABLE
        current = CurrentAssignment(group.generation, group.generation, state.value, partitions, revoking)
        changes.put_record(_TYPES.CURRENT, member_id, current)
    changes.group.settled_members = len(group.members)
    return changes


def _still_read(
    shard: GroupShard,
    group: ClassicGroup,
    assigned: Mapping[str, Mapping[UUID, Collection[int]]],
    subscriptions: Mapping[str, Subscription],
) -> dict[str, dict[UUID, dict[int, int]]]:
    """Partitions that members owned when they joined, and that have not been assigned since.

    In the middle of a cooperative rebalance their owners revoke them with the next round, or read on until
    they leave. Apache Kafka, which looks only at assignments, gives such a partition a second reader.
    """
    taken = {(topic_id, n) for has in assigned.values() for topic_id, numbers in has.items() for n in numbers}
    found: dict[str, dict[UUID, dict[int, int]]] = {}
    for member_id, said in sorted(subscriptions.items(), key=lambda item: -item[1].generation):
        for topic, number in said.owned:
            topic_id = shard.state.topics.id_of_topic(topic)
            if topic_id is not None and (topic_id, number) not in taken:
                taken.add((topic_id, number))
                found.setdefault(member_id, {}).setdefault(topic_id, {})[number] = group.generation
    return found


def leave_classic(old: ClassicGroup, changes: Changes) -> None:
    """Remove the classic group; members whose requests are parked in it rejoin."""
    shard, group = changes.shard, changes.group
    answer_parked(shard, old, ErrorCode.REBALANCE_IN_PROGRESS)
    forget_group(shard, old.group_id)
    for each in group.members.values():
        restart_session(shard, group, each, changes.now_ms)
        if each.current.revoking:
            changes.start_revocation(each)


def turns_back(shard: GroupShard, group: ConsumerGroup, leaving: list[ConsumerGroupMember]) -> bool:
    """Return whether a group is downgraded when these members have left."""
    settings = shard.state.settings
    if settings.group_consumer_migration_policy not in _DOWNGRADES:
        return False
    gone = {member.member_id for member in leaving}
    stay = 0
    for member in group.members.values():
        if member.member_id not in gone:
            if not member.is_classic:
                return False  # as a rule the first, however many members leave one after the other
            stay += 1
    return 0 < stay <= settings.group_max_size


def downgrade_group(
    shard: GroupShard,
    group: ConsumerGroup,
    leaving: list[ConsumerGroupMember],
    cause: Cause | None,
    now_ms: int,
) -> None:
    """Turn the members that stay into a classic group, which rebalances if there is a cause."""
    group_id = group.group_id
    forget_group(shard, group_id)
    gone = set(leaving)
    stay = [member for member in group.members.values() if member not in gone]
    names = [name for name, _ in (stay[0].metadata.classic or ClassicMetadata(0, ())).protocols]
    protocol = next((name for name in names if common_protocol([name], group, None)), "")
    stored = GroupStored(
        group_id,
        CONSUMER,
        group.epoch,
        protocol,
        stay[0].member_id,
        now_ms,
        tuple(_to_stored(group, member, protocol) for member in stay),
    )
    classic = classic_groups.restore_group(group_id, stored)
    for member in stay:
        if member.metadata.classic is not None:
            classic.set_protocols(classic.members[member.member_id], member.metadata.classic.protocols)
    shard.state.groups[group_id] = classic
    if cause is not None:
        # no record says that a rebalance is due. The session of a made-up member starts it after a load
        nobody = stored.members[0]._replace(member_id=shard.state.new_id(), instance_id=None, assignment=b"")
        stored = stored._replace(members=(*stored.members, nobody))
    write_records(shard, group_id, (*_classic_tombstones(group), stored))
    answer_held(shard, group, now_ms, everyone=True)
    for each in classic.members.values():
        restart_classic_session(shard, classic, each, now_ms)
    if cause is not None:
        prepare_rebalance(shard, classic, cause, now_ms)


def _to_stored(group: ConsumerGroup, member: ConsumerGroupMember, protocol: str) -> StoredMember:
    metadata, classic = member.metadata, member.metadata.classic
    assert classic is not None, "only classic members stay"
    return StoredMember(
        member.member_id,
        metadata.instance_id,
        metadata.client_id,
        metadata.client_host,
        metadata.rebalance_timeout_ms,
        classic.session_timeout_ms,
        dict(classic.protocols).get(protocol, b""),
        assignment_bytes(group, member, protocol),
    )


def _classic_tombstones(group: ConsumerGroup) -> list[ConsumerGroupRecord]:
    names = [(kind, member_id) for kind in (_TYPES.CURRENT, _TYPES.TARGET) for member_id in group.members]
    names += [(_TYPES.TARGET_EPOCH, ""), *((_TYPES.MEMBER, member_id) for member_id in group.members)]
    names += [
        (_TYPES.PARTITION_METADATA, ""),
        (_TYPES.EPOCH, ""),
        *((_TYPES.REGEX, each) for each in group.regexes),
    ]
    return [ConsumerGroupRecord(kind, group.group_id, name) for kind, name in names]


def _refusal_of(group: ClassicGroup, why: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
