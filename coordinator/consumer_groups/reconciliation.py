"""One step of a consumer group's member towards its target (KIP-848), as a pure function.

A member first has to show that it has revoked the partitions that are not in its target, and stays at its
epoch until then. Then it moves to the target's epoch and gets the target's free partitions; the rest follow
as others revoke them. So no two members ever own a partition at the same time, and a member waits only for
partitions of its own target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from uuid import UUID

from ...offsets_topic import CurrentAssignment, PartitionEpochs, Partitions
from ...statemachine import AssignmentState

#: Partitions that a member says it owns; None if it does not say.
Owned = Mapping[UUID, Collection[int]] | None

_STABLE = AssignmentState.STABLE.value
_UNREVOKED = AssignmentState.UNREVOKED_PARTITIONS.value
_UNRELEASED = AssignmentState.UNRELEASED_PARTITIONS.value

#: The assignment of a new member.
NEW_MEMBER = CurrentAssignment(0, 0, _STABLE, {}, {})


def is_settled(current: CurrentAssignment, target_epoch: int) -> bool:
    """Return whether a member has all of its target."""
    return current.state == _STABLE and current.epoch == target_epoch


def reconcile_member(
    current: CurrentAssignment,
    target_epoch: int,
    target: Partitions,
    owned: Owned,
    taken: Callable[[UUID, Collection[int]], Collection[int]],
    subscribed: Set[UUID] | None = None,
    changed: bool = False,
) -> CurrentAssignment:
    """Compute a member's assignment after a heartbeat that reports the partitions ``owned``.

    ``taken`` returns which partitions of a topic are assigned to other members, or still to be revoked by
    them. ``subscribed`` are the member's topics, None for all: it gets no others, whatever an older target
    says, and if this heartbeat has ``changed`` them, partitions of other topics are removed at once.
    """
    stays = current.state == _UNREVOKED and not _given_up(current.revoking, owned)
    if stays or is_settled(current, target_epoch):
        return _remove_unsubscribed(current, subscribed or (), owned) if changed else current
    if has_all(current, target) and (subscribed is None or subscribed >= target.keys()):
        # the usual case, whenever another member joins or leaves
        return CurrentAssignment(target_epoch, current.epoch, _STABLE, current.assigned, {})
    return _reconcile_step(current, target_epoch, target, owned, taken, subscribed)


def _reconcile_step(
    current: CurrentAssignment,
    target_epoch: int,
    target: Partitions,
    owned: Owned,
    taken: Callable[[UUID, Collection[int]], Collection[int]],
    subscribed: Set[UUID] | None,
) -> CurrentAssignment:
    assigned: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    free: dict[UUID, dict[int, int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*current.assigned, *target)):
        wanted = target.get(topic_id, ())
        if subscribed is not None and topic_id not in subscribed:
            wanted = ()
        has, wants = current.assigned.get(topic_id, {}), frozenset(wanted)
        for number, epoch in has.items():
            (assigned if number in wants else revoking).setdefault(topic_id, {})[number] = epoch
        more = [number for number in wanted if number not in has]
        others = taken(topic_id, more)
        if others:
            waits = True
            more = [number for number in more if number not in others]
        if more:
            free[topic_id] = dict.fromkeys(more, target_epoch)
    if revoking and not _given_up(revoking, owned):
        return CurrentAssignment(current.epoch, current.epoch, _UNREVOKED, assigned, revoking)
    for topic_id, numbers in free.items():
        if topic_id in assigned:
            both = {**assigned[topic_id], **numbers}
            assigned[topic_id] = {number: both[number] for number in sorted(both)}
        else:
            assigned[topic_id] = numbers
    state = _UNRELEASED if waits else _STABLE
    return CurrentAssignment(target_epoch, current.epoch, state, assigned, {})


def has_all(current: CurrentAssignment, target: Partitions) -> bool:
    """Return whether a member has its target, and nothing to give up."""
    assigned = current.assigned
    return (
        not current.revoking
        and len(assigned) == len(target)
        and all(
            topic_id in assigned and assigned[topic_id].keys() == frozenset(numbers)
            for topic_id, numbers in target.items()
        )
    )


def _remove_unsubscribed(
    current: CurrentAssignment, subscribed: Collection[UUID], owned: Owned
) -> CurrentAssignment:
    """Remove the partitions of topics that the member does not subscribe to any more."""
    assigned = {topic_id: has for topic_id, has in current.assigned.items() if topic_id in subscribed}
    gone = {topic_id: has for topic_id, has in current.assigned.items() if topic_id not in subscribed}
    if not gone:
        return current
    revoking = dict(current.revoking)
    for topic_id, has in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **has}
    if _given_up(revoking, owned):
        return current._replace(assigned=assigned)
    return current._replace(state=_UNREVOKED, assigned=assigned, revoking=revoking)


def _given_up(revoking: PartitionEpochs, owned: Owned) -> bool:
    if owned is None:
        return False
    return not any(
        number in revoking.get(topic_id, ()) for topic_id, numbers in owned.items() for number in numbers
    )
