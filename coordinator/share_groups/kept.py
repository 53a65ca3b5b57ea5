"""The topics whose share partitions have state at the share coordinators: initialized, being initialized, or
being deleted (KIP-932).

A partition is assigned only when its state is initialized. Commands about state are given when the log has
the records that say so; what a command did counts only while it is the newest one about its topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from ...offsets_topic import ShareRecordType, ShareTopic, ShareTopics
from ...protocol import ErrorCode, KafkaError
from ..engine.effects import Command
from ..engine.runner import ShardRunner
from ..engine.timers import TimerKey
from ..groups.events import ShareStateFailed
from ..groups.groups import Groups, GroupShard
from .changes import ShareChanges, look_for_deleted_topics
from .commands import DeleteShareState, InitializeShareState, StateErrors
from .group import MISSING, SHARE_TYPE, ShareGroup, find_share_group, live_share_group
from .shard_state import state_of

#: A step on a shard, given the time in ms.
Step: TypeAlias = Callable[[GroupShard, int], None]

_Topics: TypeAlias = Mapping[UUID, ShareTopic]

#: Most bytes of a group's topics, some 82,000 partitions. All of them are in one record, which a heartbeat
#: may write with the target and the assignment of an only member, in one batch of at most 1 MiB.
MOST_TOPICS_BYTES: Final = 330_000
_TOPIC_BYTES: Final = 24
_PARTITION_BYTES: Final = 4
#: A look for what has no state, and the records that follow, take time in proportion to the topics that
#: members subscribe to. It waits until so many of these are new, or so many heartbeats have come for each,
#: and no longer than so many ms for each.
_WAITS_FOR: Final = 1 / 16
_PAUSE_MS: Final = 1


def topic_bytes(name: str, partition_count: int) -> int:
    """Return the bytes that a topic takes in a record, or some more."""
    return _TOPIC_BYTES + len(name.encode()) + partition_count * _PARTITION_BYTES


def subscribed_bytes(group: ShareGroup) -> int:
    """Return the bytes that the topics of a group's members take in a record, or some more."""
    known = group.subscribed
    return _TOPIC_BYTES * len(known.found) + known.name_bytes + _PARTITION_BYTES * known.partition_count


def request_missing(changes: ShareChanges) -> None:
    """Have the partitions of subscribed topics initialized that have no state and for which no command is
    under way. A command without a result counts for ``group.share.initialize.retry.interval.ms``.

    One record has all topics of the group. So where a thousand members subscribe to topics of their own,
    those of some members are asked for together.
    """
    group = changes.group
    if group.complete[0] == group.hash_topics() and group.complete[1] is group.kept:
        return
    count = len(group.subscribed_topics())
    group.waiting += 1
    if group.waiting + group.subscribed.found_count - group.found_before <= count * _WAITS_FOR:
        timers, key = changes.shard.timers, (MISSING, group.group_id)
        if key not in timers:  # heartbeats that come now and then put it off no further
            timers.start(key, changes.now_ms + count * _PAUSE_MS)
    else:
        _initialize_missing(changes)


def on_missing_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Serve the heartbeats that were waiting for others."""
    group = live_share_group(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    changes = ShareChanges(shard, group, now_ms)
    _initialize_missing(changes)
    changes.commit()


def _initialize_missing(changes: ShareChanges) -> None:
    group, now_ms, timers = changes.group, changes.now_ms, changes.shard.timers
    found, known = group.subscribed_topics(), group.hash_topics()
    group.waiting, group.found_before = 0, group.subscribed.found_count
    timers.cancel((MISSING, group.group_id))
    _forget_settled(changes)
    retry_ms = changes.shard.state.settings.group_share_initialize_retry_interval_ms
    missing: dict[UUID, ShareTopic] = {}
    waits = False
    for name, topic in sorted(found.items()):
        has = group.kept.initialized.get(topic.id)
        numbers = set(range(topic.partition_count)).difference(() if has is None else has.partitions)
        if not numbers:
            continue
        asked = group.under_way.get(topic.id)
        if asked is not None and not (
            isinstance(asked, InitializeShareState) and now_ms - asked.asked_ms >= retry_ms
        ):
            waits = True
            continue
        missing[topic.id] = ShareTopic(name, tuple(sorted(numbers)))
    left_out = _leave_out(group, missing)
    if missing:
        initialize_state(
            changes,
            missing,
            {topic_id: dict.fromkeys(row.partitions, -1) for topic_id, row in missing.items()},
            # what could not be deleted before goes now
            unknown=missing.keys() - group.kept.deleting.keys(),
        )
    elif not waits:
        if left_out:
            changes.shard.tell(
                ShareStateFailed(
                    group.group_id,
                    generation=group.epoch,
                    cause=f"{left_out} partitions are not read: the group's record of topics is full",
                    error_code=ErrorCode.RECORD_LIST_TOO_LARGE,
                )
            )
        group.complete = known, group.kept


def _forget_settled(changes: ShareChanges) -> None:
    """Forget that states were to be replaced, if whoever began that can not tell what came of it: they are
    there, before or after.
    """
    group, kept = changes.group, changes.group.kept
    settled = [
        topic_id
        for topic_id, row in kept.initializing.items()
        if topic_id not in group.under_way
        and topic_id in kept.initialized
        and set(row.partitions).issubset(kept.initialized[topic_id].partitions)
    ]
    _put_kept(
        changes, ShareTopics(_without_topics(kept.initializing, settled), kept.initialized, kept.deleting)
    )


def _leave_out(group: ShareGroup, missing: dict[UUID, ShareTopic]) -> int:
    """Take out of ``missing`` what the record of the group's topics has no room for; return how many
    partitions that are.
    """
    kept, left_out = group.kept, 0
    rows = [*kept.initialized.values(), *kept.deleting.values()]
    rows += [row for topic_id, row in kept.initializing.items() if topic_id not in missing]
    room = MOST_TOPICS_BYTES - sum(topic_bytes(row.name, len(row.partitions)) for row in rows)
    for topic_id, row in list(missing.items()):
        count = max((room - topic_bytes(row.name, 0)) // _PARTITION_BYTES, 0)
        if count < len(row.partitions):
            left_out += len(row.partitions) - count
            missing[topic_id] = row = row._replace(partitions=row.partitions[:count])
            if not count:
                del missing[topic_id]
                continue
        room -= topic_bytes(row.name, len(row.partitions))
    return left_out


def initialize_state(
    changes: ShareChanges,
    topics: _Topics,
    starts: Mapping[UUID, Mapping[int, int]],
    unknown: Collection[UUID] = (),
) -> Command:
    """Initialize partitions, with their start offsets; those that are initialized begin anew, but for those
    of ``unknown`` topics that are in use.
    """
    group = changes.group
    command = InitializeShareState(group.group_id, group.epoch, starts, changes.now_ms, unknown)
    kept = group.kept
    initializing = dict(kept.initializing)
    for topic_id, topic in topics.items():
        initializing[topic_id] = _merge_topics(initializing.get(topic_id), topic)
        group.under_way[topic_id] = command
    deleting = _without_topics(kept.deleting, topics)
    _put_kept(changes, ShareTopics(initializing, kept.initialized, deleting))
    changes.commands.append(command)
    return command


def delete_state(changes: ShareChanges, topics: Iterable[UUID]) -> DeleteShareState:
    """Delete all state of topics that have some: of all their partitions, as one whose state could not be
    deleted before is noted no more once others have begun anew.
    """
    group, kept = changes.group, changes.group.kept
    gone: dict[UUID, tuple[int, ...]] = {}
    deleting = dict(kept.deleting)
    for topic_id in topics:
        rows = [some[topic_id] for some in kept if topic_id in some]
        name = rows[0].name
        numbers = {number for row in rows for number in row.partitions}
        numbers.update(range(group.topics.partition_count_of(name) or 0))
        gone[topic_id], deleting[topic_id] = tuple(sorted(numbers)), ShareTopic(name)
    command = DeleteShareState(group.group_id, gone)
    group.under_way.update(dict.fromkeys(gone, command))
    _put_kept(
        changes,
        ShareTopics(
            _without_topics(kept.initializing, gone), _without_topics(kept.initialized, gone), deleting
        ),
    )
    changes.commands.append(command)
    return command


def result_step(command: InitializeShareState | DeleteShareState, errors: StateErrors) -> Step:
    """The step that takes in what a command did, and answers the request that waited for it."""

    def step(shard: GroupShard, now_ms: int) -> None:
        if shard.gone:
            return
        group = find_share_group(shard, command.group_id)
        # it would be asked for anew, from other offsets, behind the answer that it is done
        overtaken = _find_overtaken(group, command)
        if group is not None:
            _take_in(shard, group, command, errors, now_ms)
        pending = state_of(shard).pending.pop(command, None)
        if pending is not None:
            pending.finish(shard, {**overtaken, **errors}, now_ms)

    return step


def remove_deleted_topics(shard: GroupShard, names: Collection[str], now_ms: int) -> None:
    """Forget the state of deleted topics: share coordinators delete it by themselves. It is looked again
    later, as the log may refuse the record of that.
    """
    for group_id, records in list(shard.state.durable.of_type(SHARE_TYPE).items()):
        value = records.get((ShareRecordType.TOPICS, ""))
        if isinstance(value, ShareTopics) and any(
            topic.name in names for topics in value for topic in topics.values()
        ):
            group = find_share_group(shard, group_id)
            if group is not None:
                _forget_deleted(ShareChanges(shard, group, now_ms))
                look_for_deleted_topics(shard, group_id, now_ms)


def on_topics_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Forget deleted topics, and look again if there were any."""
    group = find_share_group(shard, key[1])
    if group is not None and _forget_deleted(ShareChanges(shard, group, now_ms)):
        look_for_deleted_topics(shard, group.group_id, now_ms)


class NoShareCoordinators:
    """The worker of a coordinator without connections: it reaches no share coordinator."""

    def carry_out(
        self, runner: ShardRunner[Groups], command: InitializeShareState | DeleteShareState
    ) -> None:
        """Report that no share coordinator can be reached."""
        error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no share coordinator can be reached")
        runner.steer(result_step(command, command.failed(error)))

    async def stop(self) -> None:
        """Do nothing: there is nothing to end."""


def _forget_deleted(changes: ShareChanges) -> bool:
    """Return whether there were deleted topics."""
    kept, known = changes.group.kept, changes.group.topics
    gone = [topic_id for topics in kept for topic_id in topics if known.topic_of_id(topic_id) is None]
    for topic_id in gone:
        changes.group.under_way.pop(topic_id, None)
    _put_kept(changes, ShareTopics(*(_without_topics(topics, gone) for topics in kept)))
    changes.commit()
    return bool(gone)


def _take_in(
    shard: GroupShard,
    group: ShareGroup,
    command: InitializeShareState | DeleteShareState,
    errors: StateErrors,
    now_ms: int,
) -> None:
    """Record what a command has done to the topics of which it is the newest command."""
    mine = [topic_id for topic_id in command.topics if group.under_way.get(topic_id) is command]
    for topic_id in mine:
        del group.under_way[topic_id]
    changes, kept = ShareChanges(shard, group, now_ms), group.kept
    if isinstance(command, DeleteShareState):
        failed = {topic_id for topic_id, _ in errors}
        deleted = [topic_id for topic_id in mine if topic_id not in failed]
        _put_kept(
            changes, ShareTopics(kept.initializing, kept.initialized, _without_topics(kept.deleting, deleted))
        )
    else:
        initializing, initialized = dict(kept.initializing), dict(kept.initialized)
        for topic_id in mine:
            row = initializing.pop(topic_id, None)
            if row is None:
                continue
            done = [number for number in command.topics[topic_id] if (topic_id, number) not in errors]
            if done:
                told = ShareTopic(row.name, tuple(done))
                initialized[topic_id] = _merge_topics(initialized.get(topic_id), told)
            has = set(initialized.get(topic_id, row._replace(partitions=())).partitions)
            # what has failed is asked for again with a heartbeat; a state that was to be replaced stays
            if missing := tuple(number for number in row.partitions if number not in has):
                initializing[topic_id] = row._replace(partitions=missing)
        _put_kept(changes, ShareTopics(initializing, initialized, kept.deleting))
    if any(group.topics.topic_of_id(topic_id) is None for topic_id in mine):
        # it was deleted when the log did not have the record yet that names it
        look_for_deleted_topics(shard, group.group_id, now_ms)
    for (topic_id, number), error in list(errors.items())[:1]:
        what = "deleted" if isinstance(command, DeleteShareState) else "initialized"
        text = f"state of {len(errors)} share partitions was not {what}, such as {number} of {topic_id}"
        shard.tell(
            ShareStateFailed(
                group.group_id,
                generation=group.epoch,
                cause=f"{text}: {error.message or error.code.name}",
                error_code=error.code,
            )
        )
    changes.commit()


def _find_overtaken(
    group: ShareGroup | None, command: InitializeShareState | DeleteShareState
) -> StateErrors:
    """Return the partitions that were to begin anew by a command that the group does not know any more: it
    was loaded anew, or another command about them has come.
    """
    if isinstance(command, DeleteShareState):
        return {}
    text = "the group was loaded, or its offsets were altered, while this was carried out: try again"
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
    known = {} if group is None else group.under_way
    return {
        (topic_id, number): error
        for topic_id, numbers in command.topics.items()
        if known.get(topic_id) is not command
        for number in numbers
    }


def _put_kept(changes: ShareChanges, kept: ShareTopics) -> None:
    if kept != changes.group.kept:
        changes.put(ShareRecordType.TOPICS, "", kept)


def _merge_topics(known: ShareTopic | None, more: ShareTopic) -> ShareTopic:
    if known is None:
        return more
    return more._replace(partitions=tuple(sorted({*known.partitions, *more.partitions})))


def _without_topics(topics: _Topics, gone: Collection[UUID]) -> _Topics:
    return {topic_id: topic for topic_id, topic in topics.items() if topic_id not in gone}
