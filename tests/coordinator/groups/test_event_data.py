"""Events as data: what is told of each, and how much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kohort.coordinator import CauseKind, KeptEvent, MemberFenced, MemberReplaced, RebalanceCompleted
from kohort.coordinator.groups.event_data import MAX_BYTES, MAX_LISTED, details_json, event_fields
from kohort.protocol import ErrorCode, TopicPartition, encode_assignment

FENCED = MemberFenced(
    "g",
    generation=3,
    cause="it is late",
    member="m",
    client_id="c",
    client_host="/h",
    error_code=ErrorCode.ILLEGAL_GENERATION,
    api="HEARTBEAT",
    timestamp_ms=5,
)
REPLACED = MemberReplaced("g", member="i-2", instance_id="i", old_member="i-1")


def share(*partitions: int) -> bytes:
    return encode_assignment([TopicPartition("t", partition) for partition in partitions])


def rebalance(before: dict[str, bytes] | None, after: dict[str, bytes] | None) -> RebalanceCompleted:
    return RebalanceCompleted(
        "g",
        generation=2,
        cause_kind=CauseKind.LATE_JOIN,
        leader="a",
        members=2,
        members_before=1,
        protocol_type="consumer",
        protocol="range",
        duration_ms=30,
        join_ms=20,
        sync_ms=10,
        before=before,
        after=after,
    )


def details(event: Any, count: int = 1, first_ms: int = 5) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(details_json(KeptEvent(event, count, first_ms)))
    return found


ROUND = {
    "cause_kind": "late_join",
    "instance_id": None,
    "leader": "a",
    "members": 2,
    "members_before": 1,
    "protocol_type": "consumer",
    "protocol": "range",
    "duration_ms": 30,
    "join_ms": 20,
    "sync_ms": 10,
    "slowest": "",
    "slowest_ms": 0,
}


def test_an_events_own_fields_are_told_and_errors_by_name_and_number() -> None:
    assert event_fields(FENCED) == {
        "generation": 3,
        "cause": "it is late",
        "member": "m",
        "instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "error_code": 22,
        "error": "ILLEGAL_GENERATION",
        "api": "HEARTBEAT",
    }
    assert type(event_fields(FENCED)["error_code"]) is int


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (FENCED, {"instance_id": None, "error_code": 22, "error": "ILLEGAL_GENERATION", "api": "HEARTBEAT"}),
        (REPLACED, {"instance_id": "i", "old_member": "i-1"}),
        (
            rebalance({"a": share(0, 1), "gone": share()}, {"a": share(0), "b": share(1)}),
            {
                **ROUND,
                "partitions_moved": 1,
                "partitions_total": 2,
                "joined": ["b"],
                "left": ["gone"],
                "moves": [["t", 1, "a", "b"]],
            },
        ),
        (rebalance(None, None), {**ROUND, "partitions_moved": None, "partitions_total": None}),
    ],
    ids=["refusal", "replacement", "rebalance", "rebalance without its assignments"],
)
def test_what_has_a_place_in_the_answer_is_not_told_twice(event: Any, expected: dict[str, Any]) -> None:
    assert details(event) == expected


def test_events_that_were_folded_say_how_many_and_since_when() -> None:
    assert details(REPLACED, 2, 7) == {"instance_id": "i", "old_member": "i-1", "count": 2, "first_ms": 7}


def test_no_byte_is_spent_on_blanks() -> None:
    assert details_json(KeptEvent(REPLACED, 1, 0)) == '{"instance_id":"i","old_member":"i-1"}'


@pytest.mark.parametrize(
    ("owners", "length", "listed"),
    [
        (MAX_LISTED - 1, 1, MAX_LISTED - 1),
        (MAX_LISTED + 9, 1, MAX_LISTED),
        # each name is in a list and in a move, and so again under its name before: some 290 bytes
        (MAX_LISTED + 9, 90, MAX_LISTED // 2),
        (3, MAX_BYTES, 0),
    ],
)
def test_of_long_lists_as_much_is_told_as_fits(owners: int, length: int, listed: int) -> None:
    names = [f"{number:03}".ljust(length, "x") for number in range(owners)]
    before = {f"old {name}": b"" for name in names}
    event = rebalance(before, {name: share(number) for number, name in enumerate(names)})
    text = details_json(KeptEvent(event, 1, 0))
    found = json.loads(text)
    assert len(text) <= MAX_BYTES
    assert found["joined"] == sorted(names)[:listed]
    assert found["left"] == sorted(before)[:listed]
    assert [move[1] for move in found["moves"]] == list(range(listed))
    assert found["partitions_moved"] == owners


def test_what_is_just_short_enough_is_told_whole() -> None:
    """The limit is in the text too: one byte more, and the list is halved."""
    event = rebalance({}, {"a": b"", "b" * 20_000: b""})
    event.leader = "l" * (MAX_BYTES - len(details_json(KeptEvent(event, 1, 0))) + 1)
    assert len(details_json(KeptEvent(event, 1, 0))) == MAX_BYTES
    assert len(details(event)["joined"]) == 2
    event.leader += "l"
    assert len(details(event)["joined"]) == 1
