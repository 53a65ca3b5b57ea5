"""Reactions of a member to the error codes of the group requests: one table for all of them.

Where Java's client rejoins at once, this one waits briefly with jitter, so that members do not rejoin in
step.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from ...protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from ...protocol.messages.describe_groups import DescribedGroup


class Reaction(Enum):
    """How a member continues after an error."""

    OK = auto()
    #: Send the same request again after a back-off.
    RETRY = auto()
    #: Look the coordinator up again, then as RETRY.
    FIND_COORDINATOR = auto()
    #: A rebalance has begun: join it.
    REJOIN = auto()
    #: The group has a newer generation: owned partitions are lost; rejoin with the same member id.
    NEW_GENERATION = auto()
    #: The group does not know this member: owned partitions are lost; rejoin as a new member.
    NEW_MEMBER = auto()
    #: A retry cannot help.
    FATAL = auto()


_E = ErrorCode
_COMMON = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    _E.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    _E.REQUEST_TIMED_OUT: Reaction.FIND_COORDINATOR,
    _E.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    _E.ILLEGAL_GENERATION: Reaction.NEW_GENERATION,
    _E.FENCED_MEMBER_EPOCH: Reaction.NEW_GENERATION,
    _E.STALE_MEMBER_EPOCH: Reaction.RETRY,
    _E.UNKNOWN_MEMBER_ID: Reaction.NEW_MEMBER,
    _E.FENCED_INSTANCE_ID: Reaction.FATAL,
}
_OWN: dict[ApiKey, dict[ErrorCode, Reaction]] = {
    # a group that is still settling answers this; a refusal for good has another code
    ApiKey.JOIN_GROUP: {_E.REBALANCE_IN_PROGRESS: Reaction.RETRY},
    ApiKey.HEARTBEAT: {_E.GROUP_AUTHORIZATION_FAILED: Reaction.RETRY},
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {
        # the last member of this protocol has left: it is a classic group now
        _E.GROUP_ID_NOT_FOUND: Reaction.NEW_MEMBER,
        _E.TOPIC_AUTHORIZATION_FAILED: Reaction.RETRY,
        _E.UNRELEASED_INSTANCE_ID: Reaction.RETRY,
        _E.INVALID_REGULAR_EXPRESSION: Reaction.RETRY,
    },
}


#: Errors of FindCoordinator that are final.
NO_COORDINATOR_FOR_US = frozenset({_E.GROUP_AUTHORIZATION_FAILED, _E.INVALID_GROUP_ID})


#: Most members that a text names.
_MEMBERS_NAMED: Final = 3
_CONSUMER: Final = "consumer"


def reaction_to(api_key: ApiKey, code: ErrorCode) -> Reaction:
    """The reaction to ``code`` in a response of this API."""
    own = _OWN.get(api_key, {}).get(code) or _COMMON.get(code)
    if own is not None:
        return own
    if code.retriable or api_key is ApiKey.HEARTBEAT:
        return Reaction.RETRY
    return Reaction.FATAL


#: Meaning of final refusals, and what to change.
_FATAL = {
    _E.FENCED_INSTANCE_ID: "another consumer has taken the group_instance_id {instance_id!r} in group "
    "{group!r}: give every running consumer an instance id of its own",
    _E.INCONSISTENT_GROUP_PROTOCOL: "no assignor of this consumer is known to all members of group "
    "{group!r}: use one they have, or list yours behind theirs for a rolling change",
    _E.INVALID_SESSION_TIMEOUT: "session_timeout_ms is outside what the broker allows: see its settings "
    "group.min.session.timeout.ms and group.max.session.timeout.ms",
    _E.GROUP_MAX_SIZE_REACHED: "group {group!r} is full: raise the broker's group.max.size or run fewer "
    "members",
    _E.GROUP_AUTHORIZATION_FAILED: "the broker does not allow this client to read in group {group!r}: give "
    "its principal the operations Read and Describe on the group",
    _E.UNRELEASED_INSTANCE_ID: "another consumer has the group_instance_id {instance_id!r} in group "
    "{group!r}: give every running consumer an instance id of its own",
    _E.UNSUPPORTED_ASSIGNOR: "the broker does not have the assignor: name one of its own "
    "(group.consumer.assignors), or none for its default",
    _E.GROUP_ID_NOT_FOUND: "group {group!r} cannot take a member with protocol='consumer': use 'classic', or "
    "make the group one that can be upgraded",
    _E.UNSUPPORTED_VERSION: "the brokers do not offer the protocol of protocol='consumer': use 'classic', or "
    "'auto', which takes what they offer",
    _E.INVALID_GROUP_ID: "the broker refuses the group id {group!r}",
}


def mismatch_text(row: DescribedGroup, offers: str) -> str:
    """Text of what a group of a DescribeGroups response has in common, beside what this consumer ``offers``;
    "" if the response does not say.
    """
    if row.protocol_type not in ("", _CONSUMER):
        uses = (
            f"the group's members are of the protocol type {row.protocol_type!r}, which is not a consumer's"
        )
    elif row.protocol_data:
        uses = f"the group uses {row.protocol_data!r}"
    elif row.members:
        uses = "the group has not agreed on an assignor yet"
    else:
        return ""
    named = [
        f"{each.group_instance_id or each.member_id} (client {each.client_id!r} at {each.client_host})"
        for each in row.members[:_MEMBERS_NAMED]
    ]
    more = len(row.members) - len(named)
    who = f", by {', '.join(named)}" + (f" and {more} more" if more else "") if named else ""
    return f"{uses}{who}; this consumer offers {offers}"


def fatal_text(code: ErrorCode, group: str, instance_id: str | None) -> str:
    """Text of a final refusal, for users."""
    text = _FATAL.get(code, "the coordinator of group {group!r} answered {code.name} ({number})")
    return text.format(code=code, number=int(code), group=group, instance_id=instance_id)
