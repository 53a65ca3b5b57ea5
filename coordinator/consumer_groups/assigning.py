"""Target assignments of consumer groups: requested, computed, and applied step by step.

While a result is being applied, some members have their new target while the group has its old target epoch.
That does no harm: owners of partitions depend on members' current assignments, never on targets, and the
target epoch, which is written last, makes every member look at its target again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from ...offsets_topic import GroupRecordType, TargetAssignment, TargetEpoch
from ...protocol import ErrorCode, KohortError
from ..groups.events import AssignorFailed, quote_text
from ..groups.groups import GroupShard
from .changes import Changes
from .configs import config_of
from .group import ConsumerGroup, Failure, live_consumer_group
from .shard_state import state_of
from .target import ComputeTarget, TargetMember, compute_target

if TYPE_CHECKING:
    from ...assignors.server import Numbers

#: A step on a shard, given the time in ms.
Step: TypeAlias = Callable[[GroupShard, int], None]

#: Time in ms after which an assignor that failed is called again for the same epoch.
RETRY_MS: Final = 30_000

#: Most partitions and members that one step applies: a millisecond or two.
_STEP: Final = 2_000


def refresh_target(changes: Changes) -> None:
    """Compute the target for the group's epoch, unless it has one or the last one is too recent."""
    shard, group, now_ms = changes.shard, changes.group, changes.now_ms
    if group.epoch <= group.target_epoch or group.computing is not None:
        return
    interval_ms = config_of(shard.state, group.group_id).assignment_interval_ms
    # a time in the future was written before the last start, by a clock that was ahead
    if group.target_ms and 0 <= now_ms - group.target_ms < interval_ms:
        return
    # thousands of members may send heartbeats until then: none of them may ask about all
    name, failure = group.assignor(next(iter(state_of(shard).assignors))), group.failure
    if failure is not None and failure.assignor == name:
        wait_ms = RETRY_MS if failure.epoch == group.epoch else interval_ms
        if now_ms - failure.at_ms < wait_ms:
            return
    asked = _ask_assignor(shard, group, name)
    if not asked.is_quick:
        group.computing = asked
        shard.command(asked)
        _begin_with_nothing(changes)
        return
    try:
        changed = compute_target(asked)
    except KohortError as error:
        _fail_target(shard, group, asked, str(error), now_ms)
        _begin_with_nothing(changes)
    else:
        _take_in(changes, asked, changed.items())
        _finish_target(changes, asked)


def steps_to_target(asked: ComputeTarget, changed: Mapping[str, Numbers]) -> Iterator[Step]:
    """Short steps that together make a result the target."""
    part: list[tuple[str, Numbers]] = []
    size = 0
    for member_id, numbers in changed.items():
        part.append((member_id, numbers))
        size += 1 + sum(map(len, numbers.values()))
        if size >= _STEP:
            yield partial(_take_step, asked, part, False)
            part, size = [], 0
    yield partial(_take_step, asked, part, True)


def step_for_failure(asked: ComputeTarget, why: str) -> Step:
    """The step for an assignor that gave no usable result: it keeps the last target."""

    def step(shard: GroupShard, now_ms: int) -> None:
        group = live_consumer_group(shard, asked.group_id)
        if group is not None and group.computing is asked:
            group.computing = None
            _fail_target(shard, group, asked, why, now_ms)

    return step


def _ask_assignor(shard: GroupShard, group: ConsumerGroup, name: str) -> ComputeTarget:
    assignors = state_of(shard).assignors
    # its name may come from a broker with other assignors
    spec = assignors.get(name) or next(iter(assignors.values()))
    members = {}
    for member_id, member in group.members.items():
        said, topics = member.metadata, group.subscribed_by(member).topics
        target = group.targets.get(member_id, {})
        members[member_id] = TargetMember(said.instance_id, topics, target, said.client_id, said.rack_id)
    topics_now = dict(sorted(group.subscribed_topics()[0].items()))
    return ComputeTarget(group.group_id, group.epoch, name, spec, members, topics_now)


def _begin_with_nothing(changes: Changes) -> None:
    """Start a group whose first target comes later. Until then members are at an epoch that assigns them
    nothing: epoch 0 would make them join again.
    """
    group = changes.group
    if not group.target_epoch:
        changes.put_record(GroupRecordType.TARGET_EPOCH, "", TargetEpoch(group.epoch - 1))


def _take_step(
    asked: ComputeTarget, part: Iterable[tuple[str, Numbers]], is_last: bool, shard: GroupShard, now_ms: int
) -> None:
    group = live_consumer_group(shard, asked.group_id)
    if group is None or group.computing is not asked:
        return
    if group.is_empty:
        # an empty group may be about to be deleted
        group.computing = None
        return
    changes = Changes(shard, group, now_ms)
    _take_in(changes, asked, part)
    if is_last:
        group.computing = None
        _finish_target(changes, asked)
    changes.commit()


def _take_in(changes: Changes, asked: ComputeTarget, part: Iterable[tuple[str, Numbers]]) -> None:
    group = changes.group
    for member_id, partitions in asked.partitions(part).items():
        if member_id in group.members and partitions != group.targets.get(member_id, {}):
            changes.put_record(GroupRecordType.TARGET, member_id, TargetAssignment(partitions))


def _finish_target(changes: Changes, asked: ComputeTarget) -> None:
    changes.group.failure = None
    changes.put_record(GroupRecordType.TARGET_EPOCH, "", TargetEpoch(asked.epoch, changes.now_ms))


def _fail_target(
    shard: GroupShard, group: ConsumerGroup, asked: ComputeTarget, why: str, now_ms: int
) -> None:
    text = f"assignor {asked.name} failed, members keep what they have: {quote_text(why)}"
    group.failure = Failure(asked.epoch, asked.name, now_ms, text)
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    shard.tell(
        AssignorFailed(
            group.group_id, generation=group.epoch, cause=text, assignor=asked.name, error_code=error
        )
    )
