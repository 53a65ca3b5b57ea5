"""What to do about each error number of the group requests: one table for all of them.

Where Java rejoins at once, this client waits a moment with jitter: many members in step are the storm.
"""

from __future__ import annotations

from enum import Enum, auto

from ..protocol import ApiKey, ErrorCode


class Reaction(Enum):
    """The ways to go on after an error."""

    OK = auto()
    #: The same again after a pause.
    RETRY = auto()
    #: Forget the coordinator; the same again after a pause.
    FIND_COORDINATOR = auto()
    #: A new round has begun: join it.
    REJOIN = auto()
    #: The group is past our generation: what was owned is lost; rejoin under the same member id.
    NEW_GENERATION = auto()
    #: The group does not know us: what was owned is lost; rejoin as a new member.
    NEW_MEMBER = auto()
    #: Trying again cannot help.
    FATAL = auto()


_E = ErrorCode
_COMMON = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    _E.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    _E.REQUEST_TIMED_OUT: Reaction.FIND_COORDINATOR,
    _E.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    _E.ILLEGAL_GENERATION: Reaction.NEW_GENERATION,
    _E.UNKNOWN_MEMBER_ID: Reaction.NEW_MEMBER,
    _E.FENCED_INSTANCE_ID: Reaction.FATAL,
}
_OWN: dict[ApiKey, dict[ErrorCode, Reaction]] = {
    # a group that is still settling answers so; one that refuses for good says it differently
    ApiKey.JOIN_GROUP: {_E.REBALANCE_IN_PROGRESS: Reaction.RETRY},
    ApiKey.HEARTBEAT: {_E.GROUP_AUTHORIZATION_FAILED: Reaction.RETRY},
}


#: Answers to FindCoordinator that trying again does not change.
NO_COORDINATOR_FOR_US = frozenset({_E.GROUP_AUTHORIZATION_FAILED, _E.INVALID_GROUP_ID})


def reaction(api_key: ApiKey, code: ErrorCode) -> Reaction:
    """How to go on after ``code`` in the answer to this API."""
    own = _OWN.get(api_key, {}).get(code) or _COMMON.get(code)
    if own is not None:
        return own
    if code.retriable or api_key is ApiKey.HEARTBEAT:
        return Reaction.RETRY
    return Reaction.FATAL


def fatal_text(code: ErrorCode, group: str, instance_id: str | None) -> str:
    """A refusal for people: what it means and what to change."""
    match code:
        case ErrorCode.FENCED_INSTANCE_ID:
            return (
                f"another consumer has taken the group_instance_id {instance_id!r} in group {group!r}: "
                "give every running consumer an instance id of its own"
            )
        case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return (
                f"no assignor of this consumer is known to all members of group {group!r}: "
                "use one they have, or list yours behind theirs for a rolling change"
            )
        case ErrorCode.INVALID_SESSION_TIMEOUT:
            return (
                "session_timeout_ms is outside what the broker allows: see its settings "
                "group.min.session.timeout.ms and group.max.session.timeout.ms"
            )
        case ErrorCode.GROUP_MAX_SIZE_REACHED:
            return f"group {group!r} is full: raise the broker's group.max.size or run fewer members"
        case ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return (
                f"the broker does not allow this client to read in group {group!r}: give its principal the "
                "operations Read and Describe on the group"
            )
        case ErrorCode.INVALID_GROUP_ID:
            return f"the broker refuses the group id {group!r}"
        case _:
            return f"the coordinator of group {group!r} answered {code.name} ({int(code)})"
