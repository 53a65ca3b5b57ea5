"""Log lines that strangers cause do not fill a disk."""

from __future__ import annotations

import logging

import pytest

from kohort.broker.reporting.log_lines import LINES, RateLimitedLog


def test_so_many_lines_a_second_and_then_their_number(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    kind = RateLimitedLog(logging.WARNING, lambda: now)
    with caplog.at_level(logging.WARNING, "kohort.broker"):
        for number in range(3 * LINES):
            kind.say("closed: %d", number)
        assert len(caplog.records) == LINES
        now = 1.0
        kind.say("closed: %d", 7)
    assert caplog.records[-1].getMessage() == f"closed: 7 ({2 * LINES} lines like this one were left out)"


def test_stack_traces_that_strangers_cause_are_limited_too(caplog: pytest.LogCaptureFixture) -> None:
    kind = RateLimitedLog(logging.ERROR, lambda: 0.0)
    with caplog.at_level(logging.ERROR, "kohort.broker"):
        for number in range(3 * LINES):
            try:
                raise RuntimeError("a bug")
            except RuntimeError:
                kind.fail("failed: %d", number)
    assert len(caplog.records) == LINES
    assert all(record.exc_info and record.exc_info[0] is RuntimeError for record in caplog.records)
