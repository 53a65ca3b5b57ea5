"""DescribeShareGroupOffsets (key 90), v0-1, AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92), v0:
the group's part.

The offsets themselves are at the share coordinators (KIP-932): a description says here which partitions to
read, a change goes there as a command, and is answered when that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from ...offsets_topic import ShareEpoch, ShareRecordType, ShareTopic
from ...protocol import ErrorCode, KafkaError
from ...protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ...protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestTopic,
)
from ...protocol.named_tuples import NamedTuple
from ..element_limits import RepeatLimit
from ..engine.effects import Request
from ..engine.shard import FanOut
from ..groups.groups import GroupShard
from .changes import ShareChanges
from .commands import StateErrors
from .group import ShareGroup, find_share_group
from .heartbeat import require_share_group
from .kept import MOST_TOPICS_BYTES, delete_state, initialize_state, topic_bytes
from .shard_state import PendingRequest, state_of

_E = ErrorCode
_NO_PARTITION: Final = KafkaError(
    _E.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
_NO_STATE: Final = KafkaError(_E.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")

#: By topic: its name, and the start offsets by partition.
_Changed: TypeAlias = dict[UUID, tuple[str, dict[int, int]]]


class AskedTopic(NamedTuple):
    """A topic of which offsets are described. ``kept`` are those of the ``partitions`` that have state; no
    ``id`` if there is no such topic.
    """

    name: str
    id: UUID | None
    partitions: tuple[int, ...]
    kept: frozenset[int]


class AskedOffsets(NamedTuple):
    """The partitions of a group whose offsets are described, or the error of the group."""

    group_id: str
    topics: tuple[AskedTopic, ...]
    error_code: int = 0


class OffsetsRequest(NamedTuple):
    """A DescribeShareGroupOffsets for one group; if ``error`` is not 0 the group is not looked up."""

    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None
    error: int = 0


def _split_describe(body: DescribeShareGroupOffsetsRequest) -> list[OffsetsRequest]:
    """Split a DescribeShareGroupOffsets body into one request for each group."""
    repeats = RepeatLimit()
    return [
        OffsetsRequest(
            group.group_id,
            group.topics,
            int(_E.INVALID_REQUEST) if repeats.refuses(group.group_id) else 0,
        )
        for group in body.groups
    ]


DESCRIBE_FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: _split_describe(body), lambda _version, groups, _topics: groups
)


def handle_describe_offsets(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Say which partitions are asked for: those named, or all that are initialized."""
    if request.body.error:
        shard.refuse(request, request.body.error)
        return
    group = find_share_group(shard, request.body.group_id)
    kept = {} if group is None else group.kept.initialized
    known = shard.state.topics
    if request.body.topics is None:
        asked = [
            AskedTopic(topic.name, topic_id, topic.partitions, frozenset(topic.partitions))
            for topic_id, topic in kept.items()
            if known.topic_of_id(topic_id) is not None
        ]
    else:
        named: dict[str, dict[int, None]] = {}
        for topic in request.body.topics:
            named.setdefault(topic.topic_name, {}).update(dict.fromkeys(topic.partitions))
        asked = []
        for name, numbers in named.items():
            topic_id = known.id_of_topic(name)
            has = kept.get(topic_id) if topic_id is not None else None
            there = frozenset() if has is None else frozenset(has.partitions).intersection(numbers)
            asked.append(AskedTopic(name, topic_id, tuple(numbers), there))
    shard.reply(request, AskedOffsets(request.body.group_id, tuple(asked)))


def describe_refusal(request: Request, error: int) -> AskedOffsets:
    """The error of a group whose offsets cannot be described."""
    return AskedOffsets(request.body.group_id, (), int(error))


def handle_alter(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Begin partitions anew at the given offsets; a group that does not exist is made."""
    body: AlterShareGroupOffsetsRequest = request.body
    try:
        group = _find_alterable(shard, body.group_id)
    except KafkaError as error:
        shard.reply(request, alter_refusal(request, error.code)._replace(error_message=error.message))
        return
    known, topics = shard.state.topics, _Changed()
    for topic in body.topics:
        topic_id, count = known.id_of_topic(topic.topic_name), known.partition_count_of(topic.topic_name)
        row = {
            each.partition_index: each.start_offset
            for each in topic.partitions
            if 0 <= each.partition_index < (count or 0)
        }
        if topic_id is not None and row:
            topics[topic_id] = topic.topic_name, row

    def finish(shard: GroupShard, errors: StateErrors, _now_ms: int) -> None:
        answer = _altered_response(body, known.id_of_topic, topics, errors)
        if len(errors) == sum(len(row) for _, row in topics.values()):
            shard.reply(request, answer)
        else:
            # what the log refuses to note would be asked for again, from other offsets
            shard.reply_when_written(body.group_id, request, answer)

    if not topics:
        finish(shard, {}, now_ms)
        return
    if _size_with(group, topics) > MOST_TOPICS_BYTES:
        text = f"The topics of the group would take more than {MOST_TOPICS_BYTES} bytes."
        shard.reply(request, alter_refusal(request, _E.INVALID_REQUEST)._replace(error_message=text))
        return
    changes = ShareChanges(shard, group, now_ms)
    if any(_begins_where_the_rule_says(group, topic_id, row) for topic_id, (_, row) in topics.items()):
        # at an epoch that it knows, a share coordinator takes this for a first initialization that comes late
        changes.put(ShareRecordType.EPOCH, "", ShareEpoch(group.epoch + 1, group.metadata_hash))
    command = initialize_state(
        changes,
        {topic_id: ShareTopic(name, tuple(sorted(row))) for topic_id, (name, row) in topics.items()},
        {topic_id: row for topic_id, (_, row) in topics.items()},
    )
    state_of(shard).pending[command] = PendingRequest(request, finish)
    changes.commit()


def _begins_where_the_rule_says(group: ShareGroup, topic_id: UUID, row: Mapping[int, int]) -> bool:
    """Return whether partitions that have state are to begin where the group's reset rule says."""
    has = group.kept.initialized.get(topic_id)
    return has is not None and any(row.get(number, 0) < 0 for number in has.partitions)


def _size_with(group: ShareGroup, changed: _Changed) -> int:
    """Return the bytes that a group's topics take, with those that are changed."""
    sizes = {
        topic_id: topic_bytes(row.name, len(row.partitions))
        for topic_id, row in group.kept.initialized.items()
    }
    for topic_id, (name, row) in changed.items():
        sizes[topic_id] = max(sizes.get(topic_id, 0), topic_bytes(name, len(row)))
    return sum(sizes.values())


def alter_refusal(_request: Request, error: int) -> AlterShareGroupOffsetsResponse:
    """Make the response that is only an error."""
    return AlterShareGroupOffsetsResponse(error_code=int(error))


def handle_delete_offsets(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Delete the state of topics: their partitions begin where the reset rule says."""
    body: DeleteShareGroupOffsetsRequest = request.body
    try:
        if not body.group_id:
            raise KafkaError(_E.INVALID_GROUP_ID, "The group id is invalid.")
        group = _require_empty(require_share_group(shard, body.group_id))
    except KafkaError as error:
        shard.reply(request, delete_refusal(request, error.code)._replace(error_message=error.message))
        return
    rows: dict[str, DeleteShareGroupOffsetsResponseTopic] = {}
    topics: dict[UUID, str] = {}
    for name in dict.fromkeys(topic.topic_name for topic in body.topics):
        topic_id = shard.state.topics.id_of_topic(name)
        if topic_id is None:
            rows[name] = _deleted_topic(name, None, _NO_PARTITION)
        elif not any(topic_id in some for some in group.kept):
            rows[name] = _deleted_topic(name, None, _NO_STATE)
        else:
            topics[topic_id] = name

    def finish(shard: GroupShard, errors: StateErrors, _now_ms: int) -> None:
        failed = {topic_id: error for (topic_id, _), error in errors.items()}
        for topic_id, name in topics.items():
            rows[name] = _deleted_topic(name, topic_id, failed.get(topic_id))
        answer = DeleteShareGroupOffsetsResponse(responses=list(rows.values()))
        if len(failed) == len(topics):
            shard.reply(request, answer)
        else:
            # what the log refuses to note would be kept as being deleted, and nobody would go on with it
            shard.reply_when_written(body.group_id, request, answer)

    if not topics:
        finish(shard, {}, now_ms)
        return
    changes = ShareChanges(shard, group, now_ms)
    state_of(shard).pending[delete_state(changes, topics)] = PendingRequest(request, finish)
    changes.commit()


def delete_refusal(_request: Request, error: int) -> DeleteShareGroupOffsetsResponse:
    """Make the response that is only an error."""
    return DeleteShareGroupOffsetsResponse(error_code=int(error))


def _find_alterable(shard: GroupShard, group_id: str) -> ShareGroup:
    if not group_id:
        raise KafkaError(_E.INVALID_GROUP_ID, "The group id is invalid.")
    if shard.state.find(group_id) is None:
        return ShareGroup(group_id, shard.state.topics)
    return _require_empty(require_share_group(shard, group_id))


def _require_empty(group: ShareGroup) -> ShareGroup:
    if group.members:
        raise KafkaError(_E.NON_EMPTY_GROUP, "The group is not empty.")
    return group


def _altered_response(
    body: AlterShareGroupOffsetsRequest,
    id_of_topic: Callable[[str], UUID | None],
    changed: _Changed,
    errors: StateErrors,
) -> AlterShareGroupOffsetsResponse:
    rows = []
    for topic in body.topics:
        topic_id = id_of_topic(topic.topic_name)
        done = {} if topic_id is None else changed.get(topic_id, ("", {}))[1]
        partitions = []
        for number in dict.fromkeys(each.partition_index for each in topic.partitions):
            error: KafkaError | None = _NO_PARTITION
            if topic_id is not None and number in done:
                error = errors.get((topic_id, number))
            told = (_E.NONE, None) if error is None else (error.code, error.message)
            partitions.append(AlterShareGroupOffsetsResponsePartition(number, *told))
        rows.append(AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, partitions))
    return AlterShareGroupOffsetsResponse(responses=rows)


def _deleted_topic(
    name: str, topic_id: UUID | None, error: KafkaError | None
) -> DeleteShareGroupOffsetsResponseTopic:
    told = (_E.NONE, None) if error is None else (error.code, error.message)
    return DeleteShareGroupOffsetsResponseTopic(name, topic_id, *told)
