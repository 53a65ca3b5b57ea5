"""Events in the log: one record each, and not more of them than anybody can read.

Covers: broker/reporting/refusal_rate.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kohort.broker.reporting.event_log import (
    EVENTS_LOGGER,
    MAX_LINES,
    EventLogWriter,
)
from kohort.broker.reporting.log_lines import MAX_LOGGED_TEXT
from kohort.broker.reporting.refusal_rate import MAX_REFUSALS, REPEAT_MS
from kohort.coordinator import (
    CauseKind,
    CoordinatorEvent,
    MemberFenced,
    MemberJoined,
    RebalanceCompleted,
    ShardLoaded,
)
from kohort.protocol import ErrorCode, TopicPartition, encode_assignment

START_MS = 1_700_000_000_000


def fence(member: str = "m", *, at_ms: int = START_MS) -> MemberFenced:
    error = ErrorCode.UNKNOWN_MEMBER_ID
    cause = f"member {member} is not in the group"
    return MemberFenced(
        "g", cause=cause, member=member, api="HEARTBEAT", error_code=error, timestamp_ms=at_ms
    )


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__["event_fields"] for record in caplog.records]


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, EVENTS_LOGGER)


def test_an_event_is_a_sentence_and_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    share = encode_assignment([TopicPartition("t", 0)])
    note = RebalanceCompleted(
        "g",
        generation=3,
        cause="member m joined",
        cause_kind=CauseKind.JOIN,
        member="m",
        members=1,
        members_before=0,
        protocol_type="consumer",
        duration_ms=5,
        join_ms=3,
        sync_ms=2,
        before={},
        after={"m": share},
        sequence=8,
    )
    EventLogWriter()(note)
    assert caplog.messages == ["RebalanceCompleted in group 'g': member m joined"]
    assert logged(caplog) == [
        {
            "event": "RebalanceCompleted",
            "group": "g",
            "generation": 3,
            "cause": "member m joined",
            "member": "m",
            "cause_kind": "join",
            "members": 1,
            "members_before": 0,
            "protocol_type": "consumer",
            "duration_ms": 5,
            "join_ms": 3,
            "sync_ms": 2,
            "slowest_ms": 0,
            "partitions_moved": 1,
            "partitions_total": 1,
            "sequence": 8,
        }
    ]


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (MemberJoined("g"), logging.DEBUG),
        (
            RebalanceCompleted("g", members=0, members_before=1, duration_ms=0, join_ms=0, sync_ms=0),
            logging.INFO,
        ),
        (fence(), logging.WARNING),
        (ShardLoaded("", 1, 2, 0, 1, 4), logging.DEBUG),
    ],
    ids=lambda value: type(value).__name__,
)
def test_levels(caplog: pytest.LogCaptureFixture, event: CoordinatorEvent, level: int) -> None:
    EventLogWriter()(event)
    assert [record.levelno for record in caplog.records] == [level]


def test_an_event_without_a_group_says_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    EventLogWriter()(ShardLoaded("", 1, 2, 0, 1, 4))
    assert caplog.messages == ["ShardLoaded: partition 1, records 2, skipped 0, groups 1, duration_ms 4"]


def test_the_callback_is_told_whatever_the_log_takes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, EVENTS_LOGGER)
    told: list[CoordinatorEvent] = []
    event = fence()
    EventLogWriter(told.append)(event)
    assert told == [event]
    assert caplog.records == []


def test_lines_wait_until_there_is_time_and_keep_their_order(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, EVENTS_LOGGER)
    soon: list[Callable[[], None]] = []
    log = EventLogWriter(later=soon.append)
    for partition in (1, 2):
        log(ShardLoaded("", partition, 2, 0, 1, 4))
    assert (caplog.messages, len(soon)) == ([], 1)
    soon.pop()()
    assert [message[:24] for message in caplog.messages] == [
        "ShardLoaded: partition 1",
        "ShardLoaded: partition 2",
    ]
    for partition in range(30):
        log(ShardLoaded("", partition, 2, 0, 1, 4))
    soon.pop()()
    assert (len(caplog.messages), len(soon)) == (27, 1)
    log.close()
    soon.pop()()
    assert (len(caplog.messages), len(soon)) == (32, 0)


def test_of_a_flood_no_more_waits_than_is_written(caplog: pytest.LogCaptureFixture) -> None:
    soon: list[Callable[[], None]] = []
    log = EventLogWriter(later=soon.append)
    for number in range(5_000):
        log(fence(f"m{number}"))
        log(MemberJoined("g", timestamp_ms=START_MS))
    assert len(log._waiting) == MAX_LINES
    while soon:
        soon.pop()()
    assert len(caplog.records) == MAX_LINES
    assert sum("api" in line for line in logged(caplog)) == MAX_REFUSALS


def test_lines_behind_one_that_fails_are_written(caplog: pytest.LogCaptureFixture) -> None:
    soon: list[Callable[[], None]] = []
    log = EventLogWriter(later=soon.append)

    def fail(record: logging.LogRecord) -> bool:
        if "partition 0" in record.getMessage():
            raise RuntimeError("can't start new thread")
        return True

    logger = logging.getLogger(EVENTS_LOGGER)
    logger.addFilter(fail)
    try:
        for partition in range(3):
            log(ShardLoaded("", partition, 2, 0, 1, 4))
        with pytest.raises(RuntimeError):
            soon.pop()()
        soon.pop()()
    finally:
        logger.removeFilter(fail)
    assert [line["partition"] for line in logged(caplog)] == [1, 2]
    assert not soon


def test_a_line_has_the_time_of_its_event(caplog: pytest.LogCaptureFixture) -> None:
    event = fence()
    event.timestamp_ms = 1_700_000_000_123
    EventLogWriter()(event)
    assert caplog.records[0].created == 1_700_000_000.123


def test_an_equal_refusal_is_repeated_once_a_minute_with_its_count(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLogWriter()
    for beat in range(0, REPEAT_MS + 1, 3_000):
        log(fence(at_ms=START_MS + beat))
    first, second = logged(caplog)
    assert "repeated" not in first
    assert second["repeated"] == REPEAT_MS // 3_000 - 1


def test_refusals_in_floods_are_counted_instead(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLogWriter()
    for number in range(MAX_REFUSALS + 7):
        log(fence(f"m{number}"))
    assert len(caplog.records) == MAX_REFUSALS
    log(MemberJoined("g", timestamp_ms=START_MS))
    assert logged(caplog)[-1]["not_logged"] == 7


def test_no_second_has_more_lines_than_its_share(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLogWriter()
    for _ in range(MAX_LINES + 3):
        log(MemberJoined("g", timestamp_ms=START_MS))
    assert len(caplog.records) == MAX_LINES
    log(MemberJoined("g", timestamp_ms=START_MS + 1_000))
    assert logged(caplog)[-1]["not_logged"] == 3


def test_a_group_with_a_long_name_has_short_lines_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLogWriter()
    refusal = fence()
    refusal.group = "g" * 30_000
    log(refusal)
    log(MemberJoined("h" * 30_000, timestamp_ms=START_MS))
    assert [line["group"] for line in logged(caplog)] == [c * MAX_LOGGED_TEXT + "..." for c in "gh"]
    assert max(map(len, caplog.messages)) < 2 * MAX_LOGGED_TEXT
    assert sum(len(str(key)) for key in log._refusals._told) < 3 * MAX_LOGGED_TEXT
