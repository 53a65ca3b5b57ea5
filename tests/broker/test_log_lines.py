"""Log lines that strangers cause do not fill a disk."""

from __future__ import annotations

import logging

import pytest

from kohort.broker._log_lines import LINES, RateLimitedLog


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
