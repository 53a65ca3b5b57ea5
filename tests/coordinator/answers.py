"""Answers of a group to each request, by its state: a test asks a real shard for every one of them, and
docs/statemachine.md shows them.

A cell is the error number of the answer (0 is success), or a word: ``parked`` means the request is held and
answered when the round ends. The first column is a group that does not exist. There, and in Empty, nobody is
a member: whoever was one is unknown. Dead is missing: the shard is gone, all get NOT_COORDINATOR (16).

Who asks is a *sender*; where the request carries a generation, ``generations`` says which ones the row is
about. A row may be about all of them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from kohort.statemachine import GroupState

PARKED: Final = "parked"


class Generation(Enum):
    """The generation in a request, against the group's own."""

    CURRENT = "current"
    OTHER = "another"
    NONE = "-1"


#: The columns: no group, then the states that answer.
COLUMNS: Final[tuple[GroupState | None, ...]] = (
    None,
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)

Cell: TypeAlias = int | str


class GroupAnswer(NamedTuple):
    """One row: a request, who sends it, with which generation (none where it has no such field), and the
    answer in each state; None is a group that does not exist.
    """

    request: str
    sender: str
    generations: tuple[Generation, ...]
    answers: dict[GroupState | None, Cell]


_CURRENT = (Generation.CURRENT,)
_OTHER = (Generation.OTHER,)
_NONE = (Generation.NONE,)
_WRONG = (Generation.OTHER, Generation.NONE)
_NUMBERED = (Generation.CURRENT, Generation.OTHER)
_ANY = tuple(Generation)


def _row(request: str, sender: str, generations: tuple[Generation, ...], *cells: Cell) -> GroupAnswer:
    return GroupAnswer(request, sender, generations, dict(zip(COLUMNS, cells, strict=True)))


def _join(sender: str, *cells: Cell) -> GroupAnswer:
    return _row("JoinGroup", sender, (), *cells)


def _leave(sender: str, *cells: Cell) -> GroupAnswer:
    return _row("LeaveGroup", sender, (), *cells)


def _strangers(request: str) -> tuple[GroupAnswer, ...]:
    """SyncGroup and Heartbeat look at who asks before anything else, and in the same way."""
    return (
        _row(request, "member", _WRONG, 25, 25, 22, 22, 22),
        _row(request, "static member, restarted since, with its instance id", _ANY, 25, 25, 82, 82, 82),
        _row(request, "static member, restarted since, without it", _ANY, 25, 25, 25, 25, 25),
        _row(request, "member with the instance id of another", _ANY, 25, 25, 82, 82, 82),
        _row(request, "member with an instance id that is not known", _ANY, 25, 25, 25, 25, 25),
        _row(request, "id that was handed out and not used yet", _ANY, 25, 25, 25, 25, 25),
        _row(request, "unknown member id", _ANY, 25, 25, 25, 25, 25),
        _row(request, "no member id", _ANY, 25, 25, 25, 25, 25),
        _row(request, "anyone, empty group id", _ANY, 24, 24, 24, 24, 24),
    )


_JOIN: tuple[GroupAnswer, ...] = (
    _join("new, v4+", 79, 79, 79, 79, 79),
    _join("new, v0-3", PARKED, PARKED, PARKED, PARKED, PARKED),
    _join("new, with an instance id", PARKED, PARKED, PARKED, PARKED, PARKED),
    _join("id that was handed out and not used yet", 25, PARKED, PARKED, PARKED, PARKED),
    _join("the same, with an instance id", 25, -1, -1, -1, -1),
    _join("leader, nothing changed", 25, 25, PARKED, 0, PARKED),
    _join("leader, other metadata", 25, 25, PARKED, PARKED, PARKED),
    _join("follower, nothing changed", 25, 25, PARKED, 0, 0),
    _join("follower, other metadata", 25, 25, PARKED, PARKED, PARKED),
    _join("static member with both its ids, nothing changed", 25, 25, PARKED, 0, 0),
    _join("static member without its instance id, nothing changed", 25, 25, PARKED, 0, 0),
    _join("static member that restarts, nothing changed", PARKED, PARKED, PARKED, PARKED, 0),
    _join("static member that restarts, other topics", PARKED, PARKED, PARKED, PARKED, PARKED),
    _join("static member, restarted since, with its instance id", 25, 25, 82, 82, 82),
    _join("static member, restarted since, without it", 25, 25, 25, 25, 25),
    _join("member with the instance id of another", 25, 25, 82, 82, 82),
    _join("member with an instance id that is not known", 25, 25, 25, 25, 25),
    _join("unknown member id", 25, 25, 25, 25, 25),
    _join("new, without protocols", 23, 23, 23, 23, 23),
    _join("new, without protocol type", 23, 23, 23, 23, 23),
    _join("new, of another protocol type", 79, 79, 23, 23, 23),
    _join("new, with no protocol that all have", 79, 79, 23, 23, 23),
    _join("new, the group is full", 79, 79, 81, 81, 81),
    _join("anyone, session timeout out of bounds", 26, 26, 26, 26, 26),
    _join("anyone, empty group id", 24, 24, 24, 24, 24),
)

_SYNC: tuple[GroupAnswer, ...] = (
    _row("SyncGroup", "leader", _CURRENT, 25, 25, 27, 0, 0),
    _row("SyncGroup", "follower", _CURRENT, 25, 25, 27, PARKED, 0),
    _row("SyncGroup", "static member", _CURRENT, 25, 25, 27, PARKED, 0),
    _row("SyncGroup", "member, v5+ with another protocol", _CURRENT, 25, 25, 23, 23, 23),
    _row("SyncGroup", "anyone, v5+ without protocol", _ANY, 23, 23, 23, 23, 23),
    *_strangers("SyncGroup"),
)

_HEARTBEAT: tuple[GroupAnswer, ...] = (
    _row("Heartbeat", "leader", _CURRENT, 25, 25, 27, 0, 0),
    _row("Heartbeat", "follower", _CURRENT, 25, 25, 27, 0, 0),
    _row("Heartbeat", "static member", _CURRENT, 25, 25, 27, 0, 0),
    *_strangers("Heartbeat"),
)

_LEAVE: tuple[GroupAnswer, ...] = (
    _leave("leader", 25, 25, 0, 0, 0),
    _leave("follower", 25, 25, 0, 0, 0),
    _leave("static member with both its ids", 25, 25, 0, 0, 0),
    _leave("static member by its instance id alone", 25, 25, 0, 0, 0),
    _leave("static member, restarted since, with its instance id", 25, 25, 82, 82, 82),
    _leave("static member, restarted since, without it", 25, 25, 25, 25, 25),
    _leave("member with the instance id of another", 25, 25, 82, 82, 82),
    _leave("member with an instance id that is not known", 25, 25, 25, 25, 25),
    _leave("id that was handed out and not used yet", 25, 0, 0, 0, 0),
    _leave("an instance id that is not known, alone", 25, 25, 25, 25, 25),
    _leave("unknown member id", 25, 25, 25, 25, 25),
    _leave("no id at all", 25, 25, 25, 25, 25),
    _leave("anyone, empty group id", 24, 24, 24, 24, 24),
)

_COMMIT: tuple[GroupAnswer, ...] = (
    _row("OffsetCommit", "leader", _CURRENT, 69, 25, 0, 27, 0),
    _row("OffsetCommit", "follower", _CURRENT, 69, 25, 0, 27, 0),
    _row("OffsetCommit", "static member", _CURRENT, 69, 25, 0, 27, 0),
    _row("OffsetCommit", "member, v2-8", _CURRENT, 22, 25, 0, 27, 0),
    _row("OffsetCommit", "member", _OTHER, 69, 25, 22, 22, 22),
    _row("OffsetCommit", "member", _NONE, 0, 0, 22, 22, 22),
    _row(
        "OffsetCommit", "static member, restarted since, with its instance id", _NUMBERED, 69, 25, 82, 82, 82
    ),
    _row("OffsetCommit", "static member, restarted since, with its instance id", _NONE, 0, 0, 82, 82, 82),
    _row("OffsetCommit", "static member, restarted since, without it", _NUMBERED, 69, 25, 25, 25, 25),
    _row("OffsetCommit", "member with the instance id of another", _NUMBERED, 69, 25, 82, 82, 82),
    _row("OffsetCommit", "member with an instance id that is not known", _NUMBERED, 69, 25, 25, 25, 25),
    _row("OffsetCommit", "an instance id that is known, alone", _NONE, 0, 0, 82, 82, 82),
    _row("OffsetCommit", "id that was handed out and not used yet", _NUMBERED, 69, 25, 25, 25, 25),
    _row("OffsetCommit", "id that was handed out and not used yet", _NONE, 0, 0, 25, 25, 25),
    _row("OffsetCommit", "unknown member id", _NUMBERED, 69, 25, 25, 25, 25),
    _row("OffsetCommit", "unknown member id", _NONE, 0, 0, 25, 25, 25),
    _row("OffsetCommit", "no member", _NUMBERED, 69, 25, 25, 25, 25),
    _row("OffsetCommit", "no member", _NONE, 0, 0, 25, 25, 25),
    _row("OffsetCommit", "no member, empty group id", _NONE, 0, 0, 0, 0, 0),
    _row("OffsetCommit", "member, metadata too long", _CURRENT, 69, 25, 12, 27, 12),
    _row("OffsetCommit", "anyone, topic or partition that does not exist", _ANY, 3, 3, 3, 3, 3),
)

_OFFSETS: tuple[GroupAnswer, ...] = (
    _row("OffsetFetch", "anyone", (), 0, 0, 0, 0, 0),
    _row("OffsetFetch", "anyone, topic that does not exist", (), 0, 0, 0, 0, 0),
    _row("OffsetFetch", "anyone, partition of an open transaction", (), 0, 0, 0, 0, 0),
    _row("OffsetFetch", "the same, require_stable", (), 88, 88, 88, 88, 88),
    _row("OffsetDelete", "topic that members read", (), 69, 0, 86, 86, 86),
    _row("OffsetDelete", "topic that no member reads", (), 69, 0, 0, 0, 0),
    _row("OffsetDelete", "topic that does not exist", (), 69, 3, 3, 3, 3),
    _row("OffsetDelete", "of a group of another type than consumer", (), 69, 0, 68, 68, 68),
    _row("OffsetDelete", "anyone, empty group id", (), 24, 24, 24, 24, 24),
)

_ADMIN: tuple[GroupAnswer, ...] = (
    _row("DescribeGroups", "anyone, v6", (), 69, 0, 0, 0, 0),
    _row("DescribeGroups", "anyone, v0-5", (), 0, 0, 0, 0, 0),
    _row("ListGroups", "anyone", (), 0, 0, 0, 0, 0),
    _row("DeleteGroups", "anyone", (), 69, 0, 68, 68, 68),
)

GROUP_ANSWERS: tuple[GroupAnswer, ...] = (
    *_JOIN,
    *_SYNC,
    *_HEARTBEAT,
    *_LEAVE,
    *_COMMIT,
    *_OFFSETS,
    *_ADMIN,
)

#: The error numbers of the table, and what each tells a client to do.
ERRORS: Final[dict[int, tuple[str, str]]] = {
    -1: ("UNKNOWN_SERVER_ERROR", "give up: the request makes no sense"),
    0: ("NONE", "go on"),
    3: ("UNKNOWN_TOPIC_OR_PARTITION", "leave that partition out"),
    12: ("OFFSET_METADATA_TOO_LARGE", "commit with shorter metadata"),
    16: ("NOT_COORDINATOR", "look for the coordinator again"),
    22: ("ILLEGAL_GENERATION", "rejoin: this generation is over"),
    23: ("INCONSISTENT_GROUP_PROTOCOL", "give up: it does not fit the group's other members"),
    24: ("INVALID_GROUP_ID", "give up: name a group"),
    25: ("UNKNOWN_MEMBER_ID", "rejoin as a new member"),
    26: ("INVALID_SESSION_TIMEOUT", "give up: choose a session timeout within the broker's bounds"),
    27: ("REBALANCE_IN_PROGRESS", "rejoin with the same member id"),
    68: ("NON_EMPTY_GROUP", "stop the members first"),
    69: ("GROUP_ID_NOT_FOUND", "give up: there is no such group"),
    79: ("MEMBER_ID_REQUIRED", "join again at once with the id of the answer"),
    81: ("GROUP_MAX_SIZE_REACHED", "give up: the group is full"),
    82: ("FENCED_INSTANCE_ID", "give up: another process has this instance id"),
    86: ("GROUP_SUBSCRIBED_TO_TOPIC", "stop the members that read the topic first"),
    88: ("UNSTABLE_OFFSET_COMMIT", "ask again: a transaction is about to end"),
}


def answers_table() -> str:
    """The rows as a Markdown table."""
    names = ["no group" if state is None else state.value for state in COLUMNS]
    lines = [
        "| request | sender | generation | " + " | ".join(names) + " |",
        "| --- " * (3 + len(COLUMNS)) + "|",
    ]
    for row in GROUP_ANSWERS:
        cells = " | ".join(str(row.answers[state]) for state in COLUMNS)
        lines.append(f"| {row.request} | {row.sender} | {_generations(row)} | {cells} |")
    return "\n".join(lines) + "\n"


def errors_table() -> str:
    """The error numbers of the table, named, as a Markdown table."""
    lines = ["| number | error | what a client does |", "| --- | --- | --- |"]
    lines += [f"| {number} | {name} | {meaning} |" for number, (name, meaning) in ERRORS.items()]
    return "\n".join(lines) + "\n"


def _generations(row: GroupAnswer) -> str:
    if row.generations == _ANY:
        return "any"
    return " or ".join(generation.value for generation in row.generations)
