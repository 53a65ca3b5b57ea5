"""What a group answers to each request, by its state: the table behind the documentation and its test.

A cell is the error number of the answer (0 is success), or a word: ``parked`` means the request is held and
answered when the round ends. The member meant by a row is one that is known to the group and sends the
current generation, unless the row says otherwise; in Empty there is no member, so "its" id is unknown there.
Dead is missing from the columns: the shard is gone, everything gets NOT_COORDINATOR (16).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ._group import GroupState

PARKED: Final = "parked"

_STATES = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


class GroupAnswer(NamedTuple):
    """One row: a request, who sends it, and the answer in each state."""

    request: str
    sender: str
    answers: dict[GroupState, int | str]


def _row(request: str, sender: str, *cells: int | str) -> GroupAnswer:
    return GroupAnswer(request, sender, dict(zip(_STATES, cells, strict=True)))


GROUP_ANSWERS: tuple[GroupAnswer, ...] = (
    _row("JoinGroup", "new, v4+ without instance id", 79, 79, 79, 79),
    _row("JoinGroup", "new, v0-3", PARKED, PARKED, PARKED, PARKED),
    _row("JoinGroup", "new static member", PARKED, PARKED, PARKED, PARKED),
    _row("JoinGroup", "unknown member id", 25, 25, 25, 25),
    _row("JoinGroup", "new, without protocols", 23, 23, 23, 23),
    _row("JoinGroup", "leader, nothing changed", 25, PARKED, 0, PARKED),
    _row("JoinGroup", "follower, nothing changed", 25, PARKED, 0, 0),
    _row("JoinGroup", "follower, other metadata", 25, PARKED, PARKED, PARKED),
    _row("SyncGroup", "follower", 25, 27, PARKED, 0),
    _row("SyncGroup", "unknown member id", 25, 25, 25, 25),
    _row("SyncGroup", "old generation", 25, 22, 22, 22),
    _row("Heartbeat", "member", 25, 27, 0, 0),
    _row("Heartbeat", "unknown member id", 25, 25, 25, 25),
    _row("Heartbeat", "old generation", 25, 22, 22, 22),
    _row("Heartbeat", "fenced static member", 25, 82, 82, 82),
    _row("LeaveGroup", "member", 25, 0, 0, 0),
    _row("LeaveGroup", "unknown member id", 25, 25, 25, 25),
    _row("OffsetCommit", "member", 25, 0, 27, 0),
    _row("OffsetCommit", "unknown member id", 25, 25, 25, 25),
    _row("OffsetCommit", "old generation", 25, 22, 22, 22),
    _row("OffsetCommit", "no member, no generation", 0, 25, 25, 25),
    _row("OffsetFetch", "anyone", 0, 0, 0, 0),
    _row("OffsetDelete", "topic the group reads", 0, 86, 86, 86),
    _row("OffsetDelete", "group of another type", 0, 68, 68, 68),
    _row("DescribeGroups", "anyone", 0, 0, 0, 0),
    _row("DeleteGroups", "anyone", 0, 68, 68, 68),
)


def answers_table() -> str:
    """The rows as a Markdown table."""
    lines = [
        "| request | sender | " + " | ".join(state.value for state in _STATES) + " |",
        "| --- " * (2 + len(_STATES)) + "|",
    ]
    for row in GROUP_ANSWERS:
        cells = " | ".join(str(row.answers[state]) for state in _STATES)
        lines.append(f"| {row.request} | {row.sender} | {cells} |")
    return "\n".join(lines) + "\n"
