"""OffsetCommit (key 8), v2-10, and TxnOffsetCommit (key 28), v0-5: a member, or any client if the group has
no members, stores offsets; those in a producer's transaction count once it is committed.

v2-4 may carry their own retention; v6 leader epoch, v7 instance id (KIP-345), v9 GROUP_ID_NOT_FOUND for a
group that does not exist, v10 topic ids. Topics and partitions are looked up before the core is called
(:func:`resolve_commit`).

All offsets of a request are written together, and the response waits for them. The group decides, by its
type, whether the sender may commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from ...offsets_topic import NONE, OffsetCommitted, commits_again
from ...protocol import ErrorCode
from ...protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ...protocol.named_tuples import NamedTuple
from ..engine.effects import Request
from ..groups.events import CommitRefused
from ..groups.groups import Group, GroupShard, TopicDirectory, why_refused
from ..shared_responses import NO_TOPIC_ID, bad_first

#: Versions from which clients know GROUP_ID_NOT_FOUND, and from which topics go by id (KIP-848).
_GROUP_NOT_FOUND_VERSION: Final = 9
_TOPIC_ID_VERSION: Final = 10

#: Largest timestamp of a record.
_LAST_MS: Final = 2**63 - 1

# plain numbers: reaching an enum's members costs more than the rest of a check
_UNKNOWN_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNKNOWN_TOPIC_ID: Final = int(ErrorCode.UNKNOWN_TOPIC_ID)
_INVALID_REQUEST: Final = int(ErrorCode.INVALID_REQUEST)

_error_of: Final = itemgetter(1)
_Outcome: Final = OffsetCommitResponsePartition
# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__


class CommitTopic(NamedTuple):
    """A topic of a commit; ``outcomes`` are the error codes of its partitions so far, 0 for success.
    ``topic_id`` is that of the request, ``stored_id`` has the 16 bytes that are stored, none if there is no
    topic.
    """

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[OffsetCommitRequestPartition]
    outcomes: list[OffsetCommitResponsePartition]
    stored_id: bytes = b""


@dataclass(slots=True)
class CommitRequest:
    """An OffsetCommit as the core takes it. ``retention_time_ms`` is -1 for the broker's setting; ``refused``
    if no partition is left to commit. ``producer`` is the id and epoch of the producer whose transaction it
    belongs to; None for none. A copy made by ``again`` has the offset and leader epoch of each partition in
    ``numbers`` instead of ``topics``.
    """

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    retention_time_ms: int
    topics: list[CommitTopic]
    refused: bool
    producer: tuple[int, int] | None = None
    numbers: tuple[int, ...] = ()
    _places: list[tuple[str, int, bytes]] | None = None
    _answer: OffsetCommitResponse | None = None

    @property
    def repeats(self) -> bool:
        """Return whether all partitions are valid, and ``numbers`` has everything in which copies can
        differ.
        """
        return (
            self.producer is None
            and self.retention_time_ms == NONE
            and bool(self.topics)
            and not any(any(map(_error_of, topic.outcomes)) for topic in self.topics)
            and not any(each.committed_metadata for topic in self.topics for each in topic.partitions)
        )

    @property
    def places(self) -> list[tuple[str, int, bytes]]:
        """Topic and number of each partition, and the topic's id that is stored."""
        if self._places is None:
            self._places = [
                (topic.name, each.partition_index, topic.stored_id)
                for topic in self.topics
                for each in topic.partitions
            ]
        return self._places

    @property
    def answer(self) -> OffsetCommitResponse:
        """Make the response with the outcome of every partition."""
        if self._answer is None:
            self._answer = commit_reply(self)
        return self._answer

    def again(self, numbers: tuple[int, ...]) -> CommitRequest:
        """Copy a commit that ``repeats``, with other offsets and leader epochs."""
        return CommitRequest(
            self.group_id,
            self.generation,
            self.member_id,
            self.instance_id,
            NONE,
            self.topics,
            False,
            None,
            numbers,
            # the fields, not the properties: calls would cost as much as the rest of the copy
            self._places,
            self._answer,
        )


@lru_cache(maxsize=4_096)
def _stored_id(topic_id: uuid.UUID) -> bytes:
    """The bytes of a topic's id: one object for all offsets of the topic, which are kept for days."""
    return topic_id.bytes


def resolve_commit(
    version: int, body: OffsetCommitRequest, directory: TopicDirectory, max_partitions: int
) -> CommitRequest:
    """Read an OffsetCommit body, and mark the topics and partitions that do not exist: all of them
    INVALID_REQUEST if there are more than ``max_partitions``.
    """
    topics: list[CommitTopic] = []
    total = 0
    bad = False
    for topic in body.topics:
        if not topic.partitions:
            continue
        partitions = topic.partitions
        total += len(partitions)
        if version >= _TOPIC_ID_VERSION:
            topic_id = topic.topic_id or NO_TOPIC_ID
            name = directory.topic_of_id(topic_id)
            missing = _UNKNOWN_TOPIC_ID
        else:
            name, topic_id = topic.name, NO_TOPIC_ID
            missing = _UNKNOWN_PARTITION
        stored_id = b""
        count = None if name is None else directory.partition_count_of(name)
        if count is None:
            count = 0
        else:
            missing = _UNKNOWN_PARTITION
            known_id = directory.id_of_topic(topic.name) if topic_id is NO_TOPIC_ID else topic_id
            stored_id = b"" if known_id is None else _stored_id(known_id)
        outcomes = [
            _new(_Outcome, (number, 0 if 0 <= number < count else missing)) for number, _, _, _ in partitions
        ]
        bad = bad or any(map(_error_of, outcomes))
        topics.append(_new(CommitTopic, (name or "", topic_id, partitions, outcomes, stored_id)))
    if total > max_partitions:
        bad = True
        for resolved in topics:
            resolved.outcomes[:] = [_Outcome(number, _INVALID_REQUEST) for number, _ in resolved.outcomes]
    if bad:
        topics = _bad_first(topics)
    return CommitRequest(
        body.group_id,
        body.generation_id_or_member_epoch,
        body.member_id,
        body.group_instance_id,
        body.retention_time_ms,
        topics,
        not topics or (bad and _all_refused(topics)),
    )


def resolve_transactional(body: Any, directory: TopicDirectory, max_partitions: int) -> CommitRequest:
    """As ``resolve_commit``, of a TxnOffsetCommit body."""
    plain = OffsetCommitRequest(
        body.group_id, body.generation_id, body.member_id, body.group_instance_id, topics=body.topics
    )
    commit = resolve_commit(_GROUP_NOT_FOUND_VERSION, plain, directory, max_partitions)
    commit.producer = body.producer_id, body.producer_epoch
    return commit


def refuse_topics(commit: CommitRequest, version: int, names: Collection[str]) -> None:
    """Refuse topics that were deleted before the commit was carried out."""
    missing = _UNKNOWN_TOPIC_ID if version >= _TOPIC_ID_VERSION else _UNKNOWN_PARTITION
    if commit.numbers:
        commit.topics, commit.numbers = _spelled_out(commit), ()
    commit.topics = _bad_first(
        [_refuse_topic(topic, missing) if topic.name in names else topic for topic in commit.topics]
    )
    commit.refused = _all_refused(commit.topics)


def handle_commit(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Make Kafka's checks in their order, then write one record for each valid partition."""
    commit: CommitRequest = request.body
    if commit.refused:
        shard.reply(request, commit_reply(commit))
        return
    group = shard.state.find(commit.group_id)
    in_transaction = commit.producer is not None
    if in_transaction:
        error = _unacceptable_in_transaction(group, commit)
    else:
        error = _commit_error(group, commit, request.version)
    if error:
        _tell_refused(shard, group, request, error)
        shard.reply(request, refused_commit(request, error))
        return
    if group is not None and not in_transaction:
        group.heard_from(commit.member_id, shard.timers, now_ms)
    if commit.numbers:
        records = commits_again(commit.group_id, commit.places, commit.numbers, now_ms)
        answers = ((request, commit.answer),)
    else:
        records = _offset_records(commit, shard.state.settings.offset_metadata_max_bytes, now_ms)
        answers = ((request, commit_reply(commit)),)
    if not records:
        shard.reply(*answers[0])
    elif commit.producer is None:
        shard.append(commit.group_id, tuple(records), None, answers)
        shard.state.last_commit = shard.last_ticket
    else:
        producer_id, epoch = commit.producer

        def awake(_error: ErrorCode, _now_ms: int) -> None:
            # the group exists from now on, even if the transaction is aborted
            shard.state.find(commit.group_id)

        shard.append(
            commit.group_id,
            tuple(records),
            awake,
            answers,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        shard.state.last_commit = shard.last_ticket


def commit_reply(commit: CommitRequest) -> OffsetCommitResponse:
    """Make the response with the outcome of every partition."""
    topics = [
        _new(OffsetCommitResponseTopic, (name, topic_id, outcomes))
        for name, topic_id, _, outcomes, _ in commit.topics
    ]
    return _new(OffsetCommitResponse, (0, topics))


def refused_commit(request: Request, error: int) -> OffsetCommitResponse:
    """Make the response to a commit that is refused as a whole: the error for each partition without one."""
    commit: CommitRequest = request.body
    commit.topics = [_refuse_topic(topic, int(error)) for topic in commit.topics]
    return commit_reply(commit)


def _refuse_topic(topic: CommitTopic, error: int) -> CommitTopic:
    """Set the error of each partition without one, in a copy: a repeated commit shares the topics of the
    earlier one.
    """
    return topic._replace(
        outcomes=[
            each if each.error_code else _Outcome(each.partition_index, error) for each in topic.outcomes
        ]
    )


def _all_refused(topics: Sequence[CommitTopic]) -> bool:
    return all(all(map(_error_of, topic.outcomes)) for topic in topics)


def _bad_first(topics: list[CommitTopic]) -> list[CommitTopic]:
    pairs = [
        ((name, topic_id, stored_id), [*zip(partitions, outcomes, strict=True)])
        for name, topic_id, partitions, outcomes, stored_id in topics
    ]
    return [
        CommitTopic(
            name,
            topic_id,
            [partition for partition, _ in found],
            [outcome for _, outcome in found],
            stored_id,
        )
        for (name, topic_id, stored_id), found in bad_first(pairs, lambda pair: bool(pair[1].error_code))
    ]


def _tell_refused(shard: GroupShard, group: Group | None, request: Request, error: ErrorCode) -> None:
    commit: CommitRequest = request.body
    shard.tell(
        CommitRefused(
            commit.group_id,
            generation=-1 if group is None else group.generation,
            cause=why_refused(group, commit.member_id, commit.instance_id, commit.generation, error),
            member=commit.member_id,
            instance_id=commit.instance_id,
            client_id=request.context.client_id,
            client_host=request.context.client_host,
            error_code=error,
            claimed_generation=commit.generation,
        )
    )


def _commit_error(group: Group | None, commit: CommitRequest, version: int) -> ErrorCode:
    if group is not None:
        return group.check_commit(
            commit.member_id, commit.instance_id, commit.generation, version, commit.topics
        )
    if commit.generation < 0:
        # the first offset creates a group without members
        return ErrorCode.NONE
    if version >= _GROUP_NOT_FOUND_VERSION:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


def _unacceptable_in_transaction(group: Group | None, commit: CommitRequest) -> ErrorCode:
    """Check the producer's epoch, which fences zombies, and the member that the request names (KIP-447)."""
    names_nobody = commit.generation < 0 and not commit.member_id and commit.instance_id is None
    if names_nobody and (group is None or group.is_no_generation(commit.generation)):
        return ErrorCode.NONE
    if group is None:
        return ErrorCode.NONE if commit.generation < 0 else ErrorCode.ILLEGAL_GENERATION
    error = _commit_error(group, commit, _GROUP_NOT_FOUND_VERSION)
    return _IN_TRANSACTION.get(error, error)


#: Replacement errors in a transaction: producers do not wait for the end of a rebalance, and old versions
#: know no member epochs.
_IN_TRANSACTION: Final = {
    ErrorCode.REBALANCE_IN_PROGRESS: ErrorCode.NONE,
    ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
}


def _spelled_out(commit: CommitRequest) -> list[CommitTopic]:
    """The topics of a repeated commit, with their offsets."""
    numbers = iter(commit.numbers)
    return [
        topic._replace(
            partitions=[
                each._replace(committed_offset=next(numbers), committed_leader_epoch=next(numbers))
                for each in topic.partitions
            ],
            outcomes=[*topic.outcomes],
        )
        for topic in commit.topics
    ]


def _offset_records(commit: CommitRequest, metadata_limit: int, now_ms: int) -> list[OffsetCommitted]:
    expire_ms = NONE
    if commit.retention_time_ms != -1:
        # clients may ask for the largest possible time
        expire_ms = min(now_ms + commit.retention_time_ms, _LAST_MS)
    group_id = commit.group_id
    records = []
    for topic in commit.topics:
        name, outcomes = topic.name, topic.outcomes
        # records with an expiry are of a version without topic ids
        topic_id = topic.stored_id if expire_ms == NONE else b""
        for index, (number, offset, leader_epoch, metadata) in enumerate(topic.partitions):
            if outcomes[index][1]:
                continue
            if metadata and _utf16_length(metadata, metadata_limit) > metadata_limit:
                outcomes[index] = _Outcome(number, int(ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            told = metadata or ""
            fields = (group_id, name, number, offset, leader_epoch, told, now_ms, expire_ms, topic_id)
            records.append(_new(OffsetCommitted, fields))
    return records


def _utf16_length(text: str, limit: int) -> int:
    """Length as Java counts it, in UTF-16 units; exact only near the limit."""
    length = len(text)
    if length > limit or length * 2 <= limit or text.isascii():
        return length
    return length + sum(character > "\uffff" for character in text)
